"""From files to models: reading tables, making numbers of their columns, classifying their rows."""

from ._classifier import TableClassifier
from ._encoder import Column, Problem, TableEncoder
from ._reading import read_chunks, read_table

__all__ = ["Column", "Problem", "TableClassifier", "TableEncoder", "read_chunks", "read_table"]
