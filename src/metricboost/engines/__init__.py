"""Where arrays live and the few hot kernels: ``numpy`` (the oracle) and ``native`` (C++)."""

from .base import Engine, NeighborGraph, NeighborLists
from .choice import ENGINES, get_engine, native_available

__all__ = ["ENGINES", "Engine", "NeighborGraph", "NeighborLists", "get_engine", "native_available"]
