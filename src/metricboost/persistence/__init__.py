"""Model files: saved and loaded without pickle, safe to load from anyone."""

from .files import load, save

__all__ = ["load", "save"]
