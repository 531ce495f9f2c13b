"""The result of a fit, as frozen objects.

``Model`` is a fitted model, and ``Blend`` is several models. ``SparseMetric`` is the distance.
``History`` has the paths of the fits from which the metric was made. A readout turns distances into
evidence for the classes, and ``Calibration`` turns evidence into probabilities.
"""

from .averaging import Plain, assembled, averaged, ordered_by_weight
from .calibration import Calibration, calibrate
from .history import FoldFit, History
from .metric import MetricTerm, SparseMetric
from .model import Blend, Model, Reading
from .out_of_fold import OutOfFold
from .path import Factor, Path, Step, best_step
from .products import Term
from .rows import TrainingRows

__all__ = [
    "Blend",
    "Calibration",
    "Factor",
    "FoldFit",
    "History",
    "MetricTerm",
    "Model",
    "OutOfFold",
    "Path",
    "Plain",
    "Reading",
    "SparseMetric",
    "Step",
    "Term",
    "TrainingRows",
    "assembled",
    "averaged",
    "best_step",
    "calibrate",
    "ordered_by_weight",
]
