"""Kernels and their arrays: ``numpy`` (the oracle), ``native`` (C++) and ``torch`` (a GPU)."""

from .base import Array, Engine, Laplacian, NeighborGraph, NeighborLists, Table, Terms
from .choice import engine_at_hand, get_engine, is_engine, is_torch, native_available
from .host import HostEngine

__all__ = [
    "Array",
    "Engine",
    "HostEngine",
    "Laplacian",
    "NeighborGraph",
    "NeighborLists",
    "Table",
    "Terms",
    "engine_at_hand",
    "get_engine",
    "is_engine",
    "is_torch",
    "native_available",
]
