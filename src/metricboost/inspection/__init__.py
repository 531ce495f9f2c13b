"""Looking into a table and a metric."""

from ._rows import Change, Neighbor, RowExplanation, contributions, explain_rows
from ._screened import ScreenedPairs
from ._terms import Link, ModelExplanation, TermShare, VariableShare, explain_model
from .displays import (
    EmbeddingDisplay,
    ImportanceDisplay,
    InteractionDisplay,
    MetricMatrixDisplay,
    PathDisplay,
    SurfaceDisplay,
)

__all__ = [
    "Change",
    "EmbeddingDisplay",
    "ImportanceDisplay",
    "InteractionDisplay",
    "Link",
    "MetricMatrixDisplay",
    "ModelExplanation",
    "Neighbor",
    "PathDisplay",
    "RowExplanation",
    "ScreenedPairs",
    "SurfaceDisplay",
    "TermShare",
    "VariableShare",
    "contributions",
    "explain_model",
    "explain_rows",
]
