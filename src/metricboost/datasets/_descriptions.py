"""What each real table is; the text of `DESCR`."""

IONOSPHERE = """\
Ionosphere

351 radar returns from the ionosphere, collected at Goose Bay, Labrador; 34 columns with the real
and imaginary parts of 17 pulses, within [-1, 1]. Target: "g" (good, 225 rows: the return shows
structure) or "b" (bad, 126 rows: the signal passes through).

All 34 columns of the source are here. Column a02 is constant 0: without it there are the 33
inputs that are often quoted. Column a01 is binary.

Source: UCI Machine Learning Repository, https://doi.org/10.24432/C5W01B (CC BY 4.0). Reference:
Sigillito, Wing, Hutton and Baker, Classification of radar returns from the ionosphere using
neural networks, Johns Hopkins APL Technical Digest 10 (1989) 262-266.
"""

SECOM = """\
SECOM

Measurements of 590 sensors and process points on 1567 wafers of a semiconductor manufacturing line.
Target: -1 (passed the in-house test, 1463 rows) or 1 (failed, 104 rows).

4.5% of the values are missing (NaN), in 538 columns, and no row is complete; 116 columns are
constant. With preprocessed=True: the constant columns and those with more than 3% of missing
values are dropped, then the rows that still miss a value. 1436 rows (1336 passed, 100 failed) and
414 columns remain.

Source: UCI Machine Learning Repository, https://doi.org/10.24432/C54305 (CC BY 4.0).
Reference: McCann and Johnston, SECOM (2008).
"""

MADELON = """\
Madelon

The artificial table of the NIPS 2003 feature selection challenge: clusters on the vertices of a
hypercube in 5 dimensions, 15 linear combinations of these 5, and 480 probes without information,
all rounded to integers. 2600 rows with labels: 2000 for training, then 600 for validation, as
`fold` says. Target: -1 or 1, half of the rows each.

`relevant` names the 20 columns that matter. They have the largest spread: nearest neighbours find
them in raw units (3-NN error about 0.30) but not after scaling (about 0.50, training to
validation).

Source: UCI Machine Learning Repository, https://doi.org/10.24432/C5602H (CC BY 4.0). Reference:
Guyon, Gunn, Ben-Hur and Dror, Result analysis of the NIPS 2003 feature selection challenge,
Advances in Neural Information Processing Systems 17 (2004).
"""
