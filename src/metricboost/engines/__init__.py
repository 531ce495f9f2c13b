"""Engines: numerical kernels in NumPy (the reference), C++ (``native``) and PyTorch (GPU)."""

from .._typing import Array
from .base import Engine, Laplacian, NeighborGraph, NeighborLists, Sweeps, Table, Terms
from .choice import engine_at_hand, get_engine, is_engine, is_torch, native_available
from .flats import Flats
from .host import HostEngine
from .pairs import Centred, Pairs, known_separation, separation
from .sorting import FEW_QUERIES, Search

__all__ = [
    "FEW_QUERIES",
    "Array",
    "Centred",
    "Engine",
    "Flats",
    "HostEngine",
    "Laplacian",
    "NeighborGraph",
    "NeighborLists",
    "Pairs",
    "Search",
    "Sweeps",
    "Table",
    "Terms",
    "engine_at_hand",
    "get_engine",
    "is_engine",
    "is_torch",
    "known_separation",
    "native_available",
    "separation",
]
