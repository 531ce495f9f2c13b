"""Simulated tables with known structure, and the real tables of the sDist paper."""

from metricboost.datasets._fetch import fetch_ionosphere, fetch_madelon, fetch_secom
from metricboost.datasets._madelon import make_madelon
from metricboost.datasets._simulated import make_double_ring, make_xor

__all__ = [
    "fetch_ionosphere",
    "fetch_madelon",
    "fetch_secom",
    "make_double_ring",
    "make_madelon",
    "make_xor",
]
