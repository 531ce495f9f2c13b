"""Where rows live: ``numpy`` (the oracle), ``native`` (C++) and ``torch`` (a GPU)."""

from .base import Engine, HostEngine, NeighborGraph, NeighborLists
from .choice import engine_at_hand, get_engine, is_engine, is_torch, native_available

__all__ = [
    "Engine",
    "HostEngine",
    "NeighborGraph",
    "NeighborLists",
    "engine_at_hand",
    "get_engine",
    "is_engine",
    "is_torch",
    "native_available",
]
