"""Boosted sparse non-linear distance metrics (sDist) with the scikit-learn interface."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._loading import load, save
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

#: The modules of the names above. A module is imported when one of its names is used for the first
#: time, because scikit-learn takes seconds to import and ``metricboost --help`` does not need it.
_MODULES = {
    **dict.fromkeys(("load", "save"), "_loading"),
    "ModelFileError": "errors",
    **dict.fromkeys(("SDist", "SDistClassifier", "SDistClassifierCV"), "estimators"),
    **dict.fromkeys(("MetricTerm", "SparseMetric"), "model"),
    "to_onnx": "storage",
}
_PACKAGES = (
    "baselines", "boosting", "datasets", "engines", "errors", "estimators", "inputs", "inspection",
    "model", "report", "sources", "storage", "tables", "training",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, or a package of metricboost that was not imported yet."""
    if name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    elif name in _PACKAGES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
