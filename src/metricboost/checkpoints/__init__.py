"""Long fits survive: what was learned is written every few seconds, and a fit goes on from it."""

from ._claims import claim
from ._files import Checkpoints, FitFile
from ._fingerprints import digest
from ._interrupts import Interrupts

__all__ = ["Checkpoints", "FitFile", "Interrupts", "claim", "digest"]
