"""The mathematics of sDist, one room per object; ``loop.py`` is Algorithm 1."""

from .learn import Learned, LearningOptions, learn
from .loop import BoostingOptions
from .path import Path

__all__ = ["BoostingOptions", "Learned", "LearningOptions", "Path", "learn"]
