"""Array types used throughout."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Index = npt.NDArray[np.intp]
