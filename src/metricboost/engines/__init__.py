"""Engines: numerical kernels in NumPy (the reference), C++ (``native``) and PyTorch (GPU)."""

from .._typing import Array
from .base import Engine, Laplacian, NeighborGraph, NeighborLists, Table, Terms
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
