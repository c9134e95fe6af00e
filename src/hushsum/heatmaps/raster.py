"""A released function of two columns as a raster: densities, with intervals for all pixels together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import ProfileKernel
from hushsum.kernels.parameters import positive_integer
from hushsum.records.bounds import Bounds
from hushsum.releases.answers import check_level
from hushsum.releases.base import ReleasedFunction

MOST_PIXELS = 1 << 24
_CELLS_PER_WIDTH = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Raster:
    """Values at the middles of pixels, shape (height, width), the first row in the south.

    Parameters
    ----------
    value, lower, upper : array of shape (height, width)
        Records per area, and the ends of intervals at ``level`` that hold for the whole raster together.
    bounds : Bounds
        Of all pixels: the outer edges.
    level : float
    unit : str
        What the values are, such as ``"records per km²"``.

    Notes
    -----
    The noise of an answer varies smoothly, within about a bandwidth. So intervals hold together if they do,
    by Bonferroni's inequality, for one query in each cell of half a bandwidth; for a Gaussian kernel in the
    plane, whose noise has exceedances as the Euler characteristic of a smooth Gaussian field counts them
    (Adler and Taylor 2007), that is wider than necessary: 4.9 standard errors against 4.4 in a box of 80 × 80
    bandwidths. How many pixels there are makes no difference.
    """

    value: Floats
    lower: Floats
    upper: Floats
    bounds: Bounds
    level: float
    unit: str

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Where nothing can be distinguished from zero, or is below it: a count is never negative."""
        return np.asarray(self.lower <= 0.0)

    @property
    def middles(self) -> tuple[Floats, Floats]:
        """The middles of the pixels along both columns."""
        height, width = self.value.shape
        x, y = (
            low + (np.arange(number) + 0.5) * ((high - low) / number)
            for low, high, number in zip(self.bounds.low, self.bounds.high, (width, height), strict=True)
        )
        return x, y


def raster_of(
    function: ReleasedFunction, size: int | tuple[int, int], *, level: float, area: float, unit: str
) -> Raster:
    """The raster of a function of two columns; ``area`` is the kernel's integral in the unit."""
    bounds = function.bounds
    if function.dim != 2 or bounds is None:
        raise UsageError(
            rule="a heat map is of a function of two columns with declared bounds", got="another function"
        )
    check_level(level)
    width, height = (size, size) if isinstance(size, int) else size
    positive_integer("size", width, at_most=MOST_PIXELS)
    positive_integer("size", height, at_most=MOST_PIXELS // width)
    empty = np.zeros((height, width))
    raster = Raster(empty, empty, empty, bounds, level, unit)
    x, y = raster.middles
    points = np.stack([each.reshape(-1) for each in np.meshgrid(x, y)], axis=1)
    joint = 1.0 - (1.0 - level) / _places(function, width * height)
    answers = function.query(points, of="sum", level=joint)
    value, lower, upper = (
        each.reshape(height, width) / area for each in (answers.value, answers.lower, answers.upper)
    )
    return Raster(value, lower, upper, bounds, level, unit)


def _places(function: ReleasedFunction, pixels: int) -> int:
    """How many queries may err independently of each other: cells of half a bandwidth, at most the pixels."""
    kernel, bounds = function.kernel, function.bounds
    assert bounds is not None
    if not isinstance(kernel, ProfileKernel) or not kernel.smooth:
        return pixels
    cells = 1.0
    for low, high, width in zip(bounds.low, bounds.high, kernel.column_widths(), strict=True):
        cells *= math.ceil(_CELLS_PER_WIDTH * (high - low) / width)
    return int(max(1, min(cells, pixels)))
