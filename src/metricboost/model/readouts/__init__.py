"""Readouts: from distances under a metric to evidence for each class.

A new readout needs one file in this package and one entry in ``READOUTS``.
"""

from .additive import Additive
from .base import (
    Fitted,
    Near,
    Queries,
    Readout,
    Training,
    evidence,
    in_span,
    rows_for_terms,
)
from .hull import Hull
from .kernel import Kernel
from .linear import FittedLinear, Linear
from .margin import Margin
from .mixture import Mixture
from .ridge import Ridge
from .votes import Votes

#: All readouts by their name, in the order in which they are tried.
READOUTS: dict[str, type[Readout]] = {
    readout.name: readout
    for readout in (Margin, Votes, Hull, Linear, Additive, Ridge, Mixture, Kernel)
}


def readouts(classifier: str, n_neighbors: int | None) -> list[Readout]:
    """The readouts to choose from, for given parameters of ``SDistClassifier``.

    ``n_neighbors`` is ``n_neighbors_predict``, with None instead of "auto".
    """
    kinds = [
        kind
        for kind in READOUTS.values()
        if (kind.automatic if classifier == "auto" else kind.name == classifier)
    ]
    return [readout for kind in kinds for readout in kind.grid(n_neighbors)]


__all__ = [
    "READOUTS",
    "Additive",
    "Fitted",
    "FittedLinear",
    "Hull",
    "Kernel",
    "Linear",
    "Margin",
    "Mixture",
    "Near",
    "Queries",
    "Readout",
    "Ridge",
    "Training",
    "Votes",
    "evidence",
    "in_span",
    "readouts",
    "rows_for_terms",
]
