"""Metric learners that the sDist paper compares with, as scikit-learn estimators."""

from ._adapter import ComponentsMetric
from ._base import LinearMetricLearner
from ._boostmetric import BoostMetric
from ._lmnn import LMNN
from ._pgdm import PGDM
from ._smllp import SMLlp
from ._smlsm import SMLsm

__all__ = [
    "LMNN",
    "PGDM",
    "BoostMetric",
    "ComponentsMetric",
    "LinearMetricLearner",
    "SMLlp",
    "SMLsm",
]
