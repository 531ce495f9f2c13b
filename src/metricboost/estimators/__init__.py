"""What users touch: parameters, validation and fitted attributes; no mathematics."""

from ._classifier import SDistClassifier
from ._sdist import SDist

__all__ = ["SDist", "SDistClassifier"]
