"""Array types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
#: A table of the user: a float32 or float64 array in any memory layout, or a scipy sparse matrix.
Data = Any
#: An array of an engine: a NumPy array or a PyTorch tensor.
Array = Any
