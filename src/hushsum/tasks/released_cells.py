"""Cells of a released function: what it says about where records are. Spends nothing."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.bases.bins import Bins
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.bases.grid_weights import WHOLE, GridWeights
from hushsum.errors import UsageError
from hushsum.kernels.base import ColumnKernel
from hushsum.records.bounds import Bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.releases.weighted_points import PointsFunction
from hushsum.tasks.cells import Cells
from hushsum.tasks.sketched_mixture import sketched_cells

FEW_COLUMNS: Final = 3
"""Up to which any function is read on a lattice."""
_LATTICE: Final = 625
_SEEN: Final = 3.0
"""Standard deviations of the noise above which a place is taken to hold records."""
_BLOCK_NOISE: Final = 0.25
"""Nodes of a grid are put together until noise is about this part of their mean weight."""
_FEWEST_BLOCKS: Final = 8
"""Along each column, that are left at least."""


def check_function(function: object) -> int:
    """How many columns a released function has that can be clustered.

    Raises
    ------
    UsageError
        if it cannot.
    """
    if not isinstance(function, ReleasedFunction):
        raise UsageError(
            parameter="function",
            rule="must be a released function",
            got=type(function).__name__,
            remedy="give what release() or load() returned; records are for fit",
        )
    if function.dim is None or not isinstance(function.kernel, ColumnKernel):
        raise UsageError(
            parameter="function",
            rule="must be one of columns of numbers",
            got=f"the {function.kernel.name} kernel",
            remedy="release a grid or Fourier features",
        )
    basis = function.basis if isinstance(function, CoefficientFunction) else None
    direct = isinstance(function, PointsFunction) or isinstance(basis, FourierFeatures | GridWeights | Bins)
    if not direct and (function.dim > FEW_COLUMNS or function.bounds is None):
        raise UsageError(
            parameter="function",
            rule=f"must be of Fourier features or weighted points in more than {FEW_COLUMNS} columns, and "
            "others must have declared bounds",
            got=f"another kind in {function.dim} columns",
            remedy="release random Fourier features, or fit the records",
        )
    return function.dim


def released_cells(
    function: ReleasedFunction, number: int, box: list[tuple[float, float]], *, seed: int
) -> Cells:
    """Cells of a released function, in the units of the data.

    Weighted points, histograms and grids are taken as they are, with places below the noise left out and
    negative weights at 0; nodes that are many and light are put together first. Fourier features become
    ``number`` normal components (`sketched_cells`). Any other function is read on a lattice, and weights
    there are fitted to it by least squares.

    Raises
    ------
    UsageError
        if the function nowhere stands out of its noise.
    """
    check_function(function)
    if isinstance(function, CoefficientFunction) and isinstance(function.basis, FourierFeatures):
        low, high = np.array(box).T
        own = function.bounds
        origin = np.zeros(len(box)) if own is None else np.asarray(own.centre, np.float64)
        cells = sketched_cells(function, number, low - origin, high - origin, seed=seed)
        return cells.in_units(np.ones(len(box)), origin)
    if isinstance(function, CoefficientFunction) and isinstance(function.basis, GridWeights):
        return _of_grid(function, function.basis)
    if isinstance(function, CoefficientFunction) and isinstance(function.basis, Bins):
        grid = function.basis.grid
        table = np.asarray(function.table, np.float64).reshape(grid.bins)
        axes = [
            low + width * (np.arange(bins) + 0.5)
            for low, width, bins in zip(function.basis.bounds.low, grid.width, grid.bins, strict=True)
        ]
        return _of_lattice(table, function.cell_variance**0.5, axes, np.asarray(grid.width))
    if isinstance(function, PointsFunction):
        return _of_points(function)
    assert function.bounds is not None
    return _read_off(function, function.bounds)


def _of_grid(function: CoefficientFunction, basis: GridWeights) -> Cells:
    columns = basis.grid_columns()
    middle = np.asarray(basis.bounds.centre, np.float64)
    axes = [
        centre + each.first + each.spacing * np.arange(each.nodes)
        for centre, each in zip(middle, columns, strict=True)
    ]
    table = np.asarray(function.table, np.float64).reshape(basis.nodes) / WHOLE
    return _of_lattice(table, function.cell_variance**0.5 / WHOLE, axes, np.array(basis.spacing))


def _of_lattice(table: Floats, deviation: float, axes: list[Floats], width: Floats) -> Cells:
    """Blocks of nodes that stand out of the noise: pairs along each column are put together while the noise
    is large beside the mean weight.
    """
    while (
        deviation > _BLOCK_NOISE * max(float(table.sum()), 0.0) / table.size
        and min(table.shape) >= 2 * _FEWEST_BLOCKS
    ):
        for axis in range(table.ndim):
            table = _paired(table, axis)
        axes = [_paired(each, 0) / _paired(np.ones(len(each)), 0) for each in axes]
        deviation *= 2.0 ** (table.ndim / 2.0)
        width = 2.0 * width
    places = np.stack([each.reshape(-1) for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    return _standing_out(table.reshape(-1), places, deviation, np.square(width) / 12.0)


def _paired(values: Floats, axis: int) -> Floats:
    """Neighbours along an axis added up; a last one without a neighbour stays alone."""
    return np.asarray(np.add.reduceat(values, np.arange(0, values.shape[axis], 2), axis=axis))


def _of_points(function: PointsFunction) -> Cells:
    deviation = 0.0 if function.weight_variance is None else function.weight_variance**0.5
    dim = function.points.shape[1]
    width = np.zeros(dim) if function.cell_width is None else np.array(function.cell_width)
    return _standing_out(function.weights, function.points, deviation, np.square(width) / 12.0)


def _read_off(function: ReleasedFunction, bounds: Bounds) -> Cells:
    """Weights on a lattice, not negative, whose kernel sums are nearest to the function there."""
    from scipy.optimize import nnls

    along = max(2, int(_LATTICE ** (1.0 / bounds.dim) + 1e-9))
    low, high = np.array(bounds.low), np.array(bounds.high)
    width = (high - low) / along
    axes = [start + step * (np.arange(along) + 0.5) for start, step in zip(low, width, strict=True)]
    places = np.stack([each.reshape(-1) for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    answers = function.query(places)
    deviation = np.where(np.isfinite(answers.stderr), answers.stderr, 0.0)
    if not (answers.value > _SEEN * deviation).any():
        raise _nothing_seen()
    similarity = function.kernel.similarity(places, places)
    try:
        weights, _ = nnls(similarity, answers.value)
    except RuntimeError:
        # It did not converge: the function itself, which is wider than the records by the kernel.
        weights = np.where(answers.value > _SEEN * deviation, answers.value, 0.0)
    kept = weights > 0.0
    held = max(function.count, 1.0) * weights[kept] / weights.sum()
    return Cells(held, places[kept], np.tile(np.square(width) / 12.0, (int(kept.sum()), 1)))


def _standing_out(weights: Floats, places: Floats, deviation: float, variances: Floats) -> Cells:
    kept = weights > _SEEN * deviation
    # Of so many places the largest noise, also of Laplace's law, is seldom above this.
    if weights.max() <= (_SEEN + math.log(len(weights))) * deviation:
        raise _nothing_seen()
    return Cells(weights[kept], places[kept], np.tile(variances, (int(kept.sum()), 1)))


def _nothing_seen() -> UsageError:
    return UsageError(
        parameter="function",
        rule="must stand out of its noise somewhere, to have clusters",
        got="noise",
        remedy="release with a larger epsilon",
    )
