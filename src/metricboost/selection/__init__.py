"""What is made of several fits: one metric, a readout, probabilities, and the choice among them.

``crossfit`` learns metrics without one fold of the rows each and averages them, ``readouts`` turns
distances into evidence for classes and ``calibration`` evidence into probabilities; ``choosing``
takes the best variant and readout of one configuration, ``tuning`` searches several.
"""
