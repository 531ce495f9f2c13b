"""What users touch: parameters, validation and fitted attributes; no mathematics."""

from ._classifier import SDistClassifier
from ._sdist import SDist
from ._tuned import SDistClassifierCV

__all__ = ["SDist", "SDistClassifier", "SDistClassifierCV"]
