"""From a table to a model: the fits of the folds, the choice of a variant, and the model.

``learn`` is one fit: scale, screen, boost, stop, prune. ``folds`` runs one fit for each fold, and
``fits`` averages the metrics of the fits. ``choosing`` selects a variant and a readout for one
configuration of parameters, and ``tuning`` for several configurations. ``finishing`` creates the
``Model``.
"""
