"""Boosted sparse non-linear distance metrics: sDist for the scikit-learn world."""

from .estimators import SDist, SDistClassifier, SDistClassifierCV
from .metric import MetricTerm, SparseMetric

__version__ = "0.1.0"

__all__ = [
    "MetricTerm",
    "SDist",
    "SDistClassifier",
    "SDistClassifierCV",
    "SparseMetric",
    "__version__",
]
