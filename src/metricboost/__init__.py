"""Boosted sparse non-linear distance metrics: sDist for the scikit-learn world."""

from .errors import ModelFileError
from .estimators import SDist, SDistClassifier, SDistClassifierCV
from .metric import MetricTerm, SparseMetric
from .persistence import load

__version__ = "0.1.0"

__all__ = [
    "MetricTerm",
    "ModelFileError",
    "SDist",
    "SDistClassifier",
    "SDistClassifierCV",
    "SparseMetric",
    "__version__",
    "load",
]
