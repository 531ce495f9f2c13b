"""Explanations of a model as data, pictures of it, and the screening of pairs by itself."""

from ._contributions import contributions, decomposed
from ._rows import Change, Neighbor, RowExplanation, explain_rows
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
    "decomposed",
    "explain_model",
    "explain_rows",
]
