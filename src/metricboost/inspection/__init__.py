"""Looking at data and at models: for now, the pair screening on its own."""

from ._screened import ScreenedPairs

__all__ = ["ScreenedPairs"]
