"""From a table to a model: folds, metrics, the choice among them, and what survives.

``learn`` is one fit: scale, screen, boost, stop, prune. ``folds`` runs one fit for every fold, and
``fits`` averages their metrics. ``choosing`` takes the best variant and readout of one
configuration, ``tuning`` searches several. ``finishing`` makes the ``Model``.
"""
