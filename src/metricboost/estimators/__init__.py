"""The scikit-learn estimators: parameters, validation and fitted attributes, but no mathematics."""

from ._classifier import SDistClassifier
from ._parameters import declared, parameter, parameter_of
from ._sdist import Given, SDist
from ._tuned import SDistClassifierCV

__all__ = [
    "Given",
    "SDist",
    "SDistClassifier",
    "SDistClassifierCV",
    "declared",
    "parameter",
    "parameter_of",
]
