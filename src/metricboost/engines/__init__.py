"""Where rows live: ``numpy`` (the oracle), ``native`` (C++) and ``torch`` (a GPU)."""

from .base import Engine, HostEngine, NeighborGraph, NeighborLists
from .choice import ENGINES, engine_at_hand, get_engine, native_available

__all__ = [
    "ENGINES",
    "Engine",
    "HostEngine",
    "NeighborGraph",
    "NeighborLists",
    "engine_at_hand",
    "get_engine",
    "native_available",
]
