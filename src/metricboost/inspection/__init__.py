"""Looking into a table and a metric."""

from ._rows import Change, Neighbor, RowExplanation, contributions, explain_rows
from ._screened import ScreenedPairs
from ._terms import Link, ModelExplanation, TermShare, VariableShare, explain_model

__all__ = [
    "Change",
    "Link",
    "ModelExplanation",
    "Neighbor",
    "RowExplanation",
    "ScreenedPairs",
    "TermShare",
    "VariableShare",
    "contributions",
    "explain_model",
    "explain_rows",
]
