"""Pictures of what was learned, in the form of scikit-learn's displays.

``from_estimator(estimator, X, y)`` computes and draws, and ``plot(ax)`` draws again. Displays that
show only what was learned take no X and no y.
"""

from ._drawing import COLOURS, pyplot
from ._embedding import EmbeddingDisplay, principal_directions
from ._importance import ImportanceDisplay
from ._interaction import InteractionDisplay
from ._matrix import MetricMatrixDisplay
from ._path import PathDisplay
from ._surface import SurfaceDisplay

__all__ = [
    "COLOURS",
    "EmbeddingDisplay",
    "ImportanceDisplay",
    "InteractionDisplay",
    "MetricMatrixDisplay",
    "PathDisplay",
    "SurfaceDisplay",
    "principal_directions",
    "pyplot",
]
