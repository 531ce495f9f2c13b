"""Boosted sparse non-linear distance metrics: sDist for the scikit-learn world."""

from .estimators import SDist, SDistClassifier
from .metric import MetricTerm, SparseMetric

__version__ = "0.1.0"

__all__ = ["MetricTerm", "SDist", "SDistClassifier", "SparseMetric", "__version__"]
