"""Tables as they are in files: reading them, encoding their columns, classifying their rows."""

from .classifier import TableClassifier
from .columns import Column, Problem
from .encoder import TableEncoder, TableScan
from .reading import read_chunks, read_table

__all__ = [
    "Column",
    "Problem",
    "TableClassifier",
    "TableEncoder",
    "TableScan",
    "read_chunks",
    "read_table",
]
