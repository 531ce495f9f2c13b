"""Descriptions of the real tables (`DESCR`)."""

IONOSPHERE = """\
Ionosphere

351 radar returns from the ionosphere, collected at Goose Bay, Labrador; 34 columns with the real
and imaginary parts of 17 pulses, within [-1, 1]. Target: "g" (good, 225 rows: the return shows
structure) or "b" (bad, 126 rows: the signal passes through).

All 34 columns of the source are included. Column a02 is constant 0. Without column a02, the table
has the 33 inputs that are often quoted. Column a01 is binary.

Source: UCI Machine Learning Repository, https://doi.org/10.24432/C5W01B (CC BY 4.0). Reference:
Sigillito, Wing, Hutton and Baker, Classification of radar returns from the ionosphere using
neural networks, Johns Hopkins APL Technical Digest 10 (1989) 262-266.
"""

SECOM = """\
SECOM

Measurements of 590 sensors and process points on 1567 wafers of a semiconductor manufacturing line.
Target: -1 (passed the in-house test, 1463 rows) or 1 (failed, 104 rows).

4.5% of the values are missing (NaN), in 538 columns, and no row is complete. 116 columns are
constant. With preprocessed=True, constant columns and columns with more than 3% missing values are
dropped, and then rows with missing values. 1436 rows (1336 passed, 100 failed) and 414 columns
remain.

Source: UCI Machine Learning Repository, https://doi.org/10.24432/C54305 (CC BY 4.0).
Reference: McCann and Johnston, SECOM (2008).
"""

MADELON = """\
Madelon

The artificial table of the NIPS 2003 feature selection challenge: clusters on the vertices of a
hypercube in 5 dimensions, 15 linear combinations of these 5 columns, and 480 columns of noise
(probes), all rounded to integers. The table has 2600 rows with labels: 2000 training rows, followed
by 600 validation rows, as given by `fold`. Target: -1 or 1, half of the rows each.

`relevant` has the numbers of the 20 relevant columns. These columns have the largest spread, so
nearest neighbours work in the original units (3-NN error about 0.30), but not after scaling (about
0.50). Both errors are on the validation rows.

Source: UCI Machine Learning Repository, https://doi.org/10.24432/C5602H (CC BY 4.0). Reference:
Guyon, Gunn, Ben-Hur and Dror, Result analysis of the NIPS 2003 feature selection challenge,
Advances in Neural Information Processing Systems 17 (2004).
"""
