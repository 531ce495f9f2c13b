"""Where a table lives, and what is computed from all of its rows.

A metric is learned from a bounded sample of rows. Column constants, medians and the moments of
products come from all rows. Both reach the rows through :class:`Source`: one implementation for
tables in memory or in memory-mapped files, one for collections on a Dask cluster
(``metricboost.dask``).
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
