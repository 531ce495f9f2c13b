"""Boosted sparse non-linear distance metrics (sDist) with the scikit-learn interface."""

from ._loading import load, save
from ._version import __version__
from .errors import ModelFileError
from .estimators import SDist, SDistClassifier, SDistClassifierCV
from .model import MetricTerm, SparseMetric
from .storage import to_onnx

__all__ = [
    "MetricTerm",
    "ModelFileError",
    "SDist",
    "SDistClassifier",
    "SDistClassifierCV",
    "SparseMetric",
    "__version__",
    "load",
    "save",
    "to_onnx",
]
