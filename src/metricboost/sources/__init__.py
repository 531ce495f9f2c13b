"""Where a table lives: samples of its rows, and what is computed from all of its rows.

A metric is learned from a bounded sample of rows. Column constants, medians and the moments of
products come from all rows. :class:`Source` is the interface for both. :class:`InMemory` is a table
in memory or in a memory-mapped file. ``sources.cluster`` has the collections on a Dask cluster, and
needs Dask.
"""

from .base import Block, Source
from .memory import BLOCK_NUMBERS, InMemory
from .sampling import corrected_weights, draw, draw_among, least_sample, quotas

__all__ = [
    "BLOCK_NUMBERS",
    "Block",
    "InMemory",
    "Source",
    "corrected_weights",
    "draw",
    "draw_among",
    "least_sample",
    "quotas",
]
