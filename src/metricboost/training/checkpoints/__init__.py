"""Long fits survive: what was learned is written every few seconds, and a fit goes on from it."""

from .claims import claim
from .files import Checkpoints, FitFile, checkpoints_in
from .fingerprints import digest, digest_of_table

__all__ = ["Checkpoints", "FitFile", "checkpoints_in", "claim", "digest", "digest_of_table"]
