"""Where arrays live and the few hot kernels: ``numpy`` (the oracle) and ``native`` (C++)."""

from .base import Engine, NeighborGraph
from .choice import ENGINES, get_engine, native_available

__all__ = ["ENGINES", "Engine", "NeighborGraph", "get_engine", "native_available"]
