"""Checkpoints: what a fit has learned is written every few seconds, so that it can be continued."""

from .claims import claim
from .files import WRITE_EVERY, Checkpoints, FitFile, checkpoints_in
from .fingerprints import digest, digest_of_table

__all__ = [
    "WRITE_EVERY",
    "Checkpoints",
    "FitFile",
    "checkpoints_in",
    "claim",
    "digest",
    "digest_of_table",
]
