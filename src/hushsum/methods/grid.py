"""A grid inside declared bounds, as a method."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hushsum.bases.grid_weights import MAX_DIM, GridWeights
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.methods.linear import register_tally
from hushsum.records.bounds import Bounds
from hushsum.tally.tally import Tally

DEFAULT_SPACING = 0.75


def grid(
    kernel: Kernel,
    *,
    bounds: Sequence[tuple[float, float]] | tuple[float, float],
    spacing: float = DEFAULT_SPACING,
    cells: int | Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of weights on a grid, to be filled by ``add`` and made public by ``release``.

    The most accurate way in one to four columns with declared bounds. After the release, other kernels and
    bandwidths can be read from it for nothing: ``f.with_kernel(...)``.

    Parameters
    ----------
    kernel : Kernel
        Gaussian, Euclidean or Manhattan; the first is fastest to read.
    bounds : list of (low, high), or one (low, high) for all columns
        Declared, never read off the data. Records are clipped to it.
    spacing : float, default 0.75
        The distance of nodes in bandwidths. Larger grids are more precise, and take more noise. From 0.5 for
        much data to 1 for little.
    cells : int or list of int, optional
        How many cells along each column, in place of ``spacing``: for a release that shall serve many
        bandwidths.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(-1, 1))
    >>> f = tally.add([[0.0], [0.1]] * 500).release(epsilon=1.0)
    >>> bool(abs(f([[0.0]])[0] - 0.8) < 0.1)
    True
    """
    dim: int | None = getattr(kernel, "dim", None)
    bandwidth: float | None = getattr(kernel, "bandwidth", None)
    if dim is None or bandwidth is None:
        raise UsageError(
            f"a grid reads the gaussian, euclidean or manhattan kernel, got {kernel.name}; use race for it"
        )
    box = Bounds.declared(bounds, dim, "a grid")
    names = None if columns is None else tuple(columns)
    numbers = cells_for(box, cells, spacing, bandwidth / math.sqrt(getattr(kernel, "power", 1)))
    return Tally(GridWeights(kernel, numbers, box, names), max_per_unit=max_per_unit)


def cells_for(
    box: Bounds, cells: int | Sequence[int] | None, spacing: float, bandwidth: float
) -> tuple[int, ...]:
    """Cells along each column: as given, or so many that nodes are at most ``spacing`` bandwidths apart."""
    if cells is not None:
        return (cells,) * len(box.low) if isinstance(cells, int) else tuple(cells)
    if not spacing > 0.0 or not math.isfinite(spacing):
        raise UsageError(f"spacing must be above 0, got {spacing}; 0.75 of a bandwidth is a common choice")
    sides = (high - low for low, high in zip(box.low, box.high, strict=True))
    return tuple(max(1, math.ceil(side / (spacing * bandwidth))) for side in sides)


register_tally(
    "grid",
    grid,
    paper="Wand 1994, for the binning of kernel sums",
    kernels=("gaussian", "euclidean", "manhattan"),
    most_columns=MAX_DIM,
)
