"""The methods the paper compares with, written to be used for their own sake."""

from ._pgdm import PGDM

__all__ = ["PGDM"]
