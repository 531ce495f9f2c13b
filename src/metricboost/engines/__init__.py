"""Engines: numerical kernels in NumPy (the reference), C++ (``native``) and PyTorch (GPU)."""

from .base import Array, Engine, Laplacian, NeighborGraph, NeighborLists, Table, Terms
from .choice import engine_at_hand, get_engine, is_engine, is_torch, native_available
from .flats import Flats
from .host import HostEngine
from .sorting import FEW_QUERIES, Search

__all__ = [
    "FEW_QUERIES",
    "Array",
    "Engine",
    "Flats",
    "HostEngine",
    "Laplacian",
    "NeighborGraph",
    "NeighborLists",
    "Search",
    "Table",
    "Terms",
    "engine_at_hand",
    "get_engine",
    "is_engine",
    "is_torch",
    "native_available",
]
