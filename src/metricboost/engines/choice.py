"""Selection of an engine by name."""

from __future__ import annotations

import importlib
import re
import warnings
from functools import lru_cache

from .base import Engine
from .numpy_engine import NumpyEngine

ENGINES = ("auto", "numpy", "native", "torch")
#: The devices that are allowed after "torch:".
DEVICE = re.compile(r"cpu|cuda(:\d+)?")

_NO_NATIVE = (
    "metricboost was installed without its C++ kernels, because no compiler was found. The NumPy "
    "engine is used instead: it gives the same results and is several times slower. Install a C++ "
    'compiler and reinstall metricboost, or pass engine="numpy" to silence this warning.'
)


@lru_cache(maxsize=1)
def native_available() -> bool:
    """Whether the C++ kernels were built."""
    try:
        importlib.import_module("metricboost.engines._native")
    except ImportError:
        return False
    return True


def is_torch(name: str) -> bool:
    """Whether the name is "torch", or "torch:" followed by a device."""
    return name == "torch" or name.startswith("torch:")


def is_engine(name: str) -> bool:
    """Whether the name of an engine is valid. The engine may not be installed."""
    return name in ENGINES or (is_torch(name) and bool(DEVICE.fullmatch(name[6:])))


def get_engine(name: str, threads: int = 1) -> Engine:
    """The engine with a given name.

    Parameters
    ----------
    name : str
        "numpy", "native", "torch", or "torch:" followed by a device. "auto" is the native engine if
        its C++ kernels were built, and the NumPy engine otherwise.
    threads : int, default=1

    Returns
    -------
    Engine
    """
    if not is_engine(name):
        raise ValueError(
            f"engine={name!r} does not exist. Use one of {', '.join(ENGINES)}, or torch with a "
            'device, such as "torch:cpu" or "torch:cuda:1".'
        )
    if is_torch(name):
        return _torch_engine(threads, name[6:] or "auto")
    if name == "numpy":
        return NumpyEngine(threads)
    if native_available():
        from .native import NativeEngine

        return NativeEngine(threads)
    if name == "native":
        raise ImportError(
            'engine="native" needs the C++ kernels, which were not built. ' + _NO_NATIVE
        )
    _say_once_that_native_is_missing()
    return NumpyEngine(threads)


def _torch_engine(threads: int, device: str) -> Engine:
    try:
        importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            'engine="torch" needs PyTorch, which is not installed: pip install "metricboost[gpu]".'
        ) from error
    from .torch_engine import TorchEngine

    return TorchEngine(threads, device)


def engine_at_hand(name: str, threads: int = 1) -> Engine:
    """The engine with a given name, for a fitted model.

    If a PyTorch engine is not available, a warning is given and the default engine is returned.
    """
    try:
        return get_engine(name, threads)
    except (ImportError, ValueError) as error:  # no PyTorch, or no such device
        if not is_torch(name):
            raise
        _say_once_what_is_missing(str(error))
        return get_engine("auto", threads)


@lru_cache(maxsize=2)
def _say_once_what_is_missing(what: str) -> None:
    warnings.warn(f"{what} Fitted models run on the CPU instead.", stacklevel=2)


@lru_cache(maxsize=1)
def _say_once_that_native_is_missing() -> None:
    warnings.warn(_NO_NATIVE, UserWarning, stacklevel=2)
