"""Estimators for tables on a Dask cluster (the extra ``dask``)."""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        'metricboost.dask needs Dask, which is not installed: pip install "metricboost[dask]".'
    ) from error

from ._estimators import SDist, SDistClassifier, SDistClassifierCV

__all__ = ["SDist", "SDistClassifier", "SDistClassifierCV"]
