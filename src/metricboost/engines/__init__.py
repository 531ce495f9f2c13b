"""Engines: numerical kernels in NumPy (the reference), C++ (``native``) and PyTorch (GPU)."""

from .base import Array, Engine, Laplacian, NeighborGraph, NeighborLists, Table, Terms
from .choice import engine_at_hand, get_engine, is_engine, is_torch, native_available
from .flats import Flats
from .host import HostEngine

__all__ = [
    "Array",
    "Engine",
    "Flats",
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
