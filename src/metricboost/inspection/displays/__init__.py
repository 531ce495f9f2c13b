"""Pictures of what was learned, in scikit-learn's form: computed once, drawn as often as wanted."""

from ._embedding import EmbeddingDisplay
from ._importance import ImportanceDisplay
from ._interaction import InteractionDisplay
from ._matrix import MetricMatrixDisplay
from ._path import PathDisplay
from ._surface import SurfaceDisplay

__all__ = [
    "EmbeddingDisplay",
    "ImportanceDisplay",
    "InteractionDisplay",
    "MetricMatrixDisplay",
    "PathDisplay",
    "SurfaceDisplay",
]
