"""The array and file types that signatures in every package share."""

from __future__ import annotations

import os
from typing import IO

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rows = NDArray[np.float32]
"""Records or queries in the single precision that the native loops read."""

Box = list[tuple[float, float]]
"""The declared bounds of the columns, one pair for each."""

PathOrFile = str | os.PathLike[str] | IO[bytes]
"""Where a file is read from or written to: a path, or an open binary file."""
