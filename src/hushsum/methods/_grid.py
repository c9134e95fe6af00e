"""A grid inside declared bounds, as a method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hushsum._types import Floats, is_number
from hushsum.errors import UsageError, shown
from hushsum.kernels import PROFILES, Kernel, ProfileKernel
from hushsum.records import Bounds, DeclaredBounds, DeclaredSteps, Steps, declared_steps, steps_between
from hushsum.releases import UNSEEN_SHARE
from hushsum.tables import (
    CORNER_CELLS,
    HEAPED_SHARE,
    HIGHEST_DEGREE,
    LOWEST_DEGREE,
    MAX_CELLS,
    MAX_DIM,
    WHOLE,
    WIDEST,
    GridReading,
    GridWeights,
    Reading,
)
from hushsum.tally import Tally

from ._method import Method, boxed_tally, register
from ._prediction import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest, errors_at_densities

__all__ = ["GRID", "TYPICAL_HEAP", "grid"]

GRID = "grid"
DEFAULT_SPACING = 0.75
DEFAULT_DEGREES = {1: 5, 2: 5, 3: 4, 4: 3}
"""By the number of columns: a record gives weights to (degree + 1)^d nodes."""

CORNER_DEGREE = 2
"""For kernels with a corner, which no degree follows better; the lowest reads with the least noise."""

SPACINGS = (0.25, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)
CORNER_SPACINGS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)
"""For kernels with a corner, which gain from finer grids than the Gaussian."""

MOST_SUMMED = 1 << 16
"""Nodes of a grid whose kernel is summed over all of them: some tenths of a millisecond per query. In three
columns that leaves grids too coarse for a corner, where many hash rows have smaller errors.
"""

# The fraction of records assumed to equal the query, among those near enough to it to meet the corner of a
# kernel.
_HEAPED_NEAR = 0.25

TYPICAL_HEAP, HEAP_SPREAD = HEAPED_SHARE, 1.0
"""The fraction of a query's density that is assumed to come from records equal to the query: the median over
data sets, and the standard deviation of its logarithm. The errors of records at one place of a cell add up;
those of records spread evenly over it average out; real data are in between. Fitted to the tuning half of
``benchmarks/plans/plan_validation.py``: the median is 0.4 in one column, 0.2 in two, 0.4 in three, 0.3 in
four.
"""

ONE_VALUE = 0.01
"""The assumed probability that all records of a column have one value, as a column of default values may.

It makes grids of one column finer, at the cost of some per cent more noise.
"""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)

# The sum over more nodes has so much noise that the number of records comes from the noisy count alone.
_COUNTING_NODES = 1 << 14

_NANOSECONDS_WEIGHT = 12.0
_QUERIES = 64


def grid(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    spacing: float = DEFAULT_SPACING,
    degree: int | None = None,
    cells: int | Sequence[int] | None = None,
    steps: DeclaredSteps | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of weights on a grid, to be filled by ``add`` and made public by ``release``.

    The most accurate way in one to four columns with declared bounds. After the release, other kernels and
    bandwidths can be read from it for nothing: ``f.with_kernel(...)``.

    Parameters
    ----------
    kernel : ProfileKernel
        Any kernel of columns of numbers; the Gaussian is fastest to read.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    spacing : float, default 0.75
        The distance of nodes in widths of the kernel. Finer grids are more precise, and take more noise.
        From 0.5 for much data to 1 for little.
    degree : int, optional
        Of the splines that a record is shared by, 2 to 5. A higher degree is more precise and takes a few per
        cent more noise; a record then gives weights to more nodes, (degree + 1)^d. Default: 5 in one and two
        columns, 4 in three, 3 in four; 2 for kernels with a corner.
    cells : int or list of int, optional
        How many cells along each column, in place of ``spacing``: for a release that shall serve many
        bandwidths.
    steps : float, list of float or None, or a dictionary by column name, optional
        For columns whose values are multiples of a step from the lower bound, such as ages, counts and
        prices: the nodes are those values, and the reading has no approximation error. Values between are
        rounded to the nearest step. The bounds of the column must be whole steps apart.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(-1, 1))
    >>> f = tally.add([[0.0], [0.1]] * 500).release(epsilon=1.0)
    >>> bool(abs(f([[0.0]])[0] - 0.8) < 0.1)
    True
    >>> ages = hs.grid(hs.GaussianKernel(dim=1, bandwidth=5.0), bounds=(0, 120), steps=1.0)
    >>> ages.basis.shape
    (121, 1)
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> GridWeights:
        profiles = _profiles(kernel)
        chosen = default_degree(profiles) if degree is None else degree
        return grid_basis(
            box,
            profiles.column_widths(),
            spacing,
            chosen,
            steps=declared_steps(steps, box, names),
            cells=cells,
            names=names,
        )

    return boxed_tally(GRID, kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


def default_degree(kernel: ProfileKernel) -> int:
    """The degree of the weights where none is given."""
    return DEFAULT_DEGREES.get(kernel.dim, CORNER_DEGREE) if kernel.smooth else CORNER_DEGREE


def grid_basis(
    box: Bounds,
    widths: Sequence[float],
    spacing: float,
    degree: int,
    *,
    steps: Steps | None = None,
    cells: int | Sequence[int] | None = None,
    names: tuple[str, ...] | None = None,
) -> GridWeights:
    """Weights of a degree, on nodes a spacing apart, and on every step of columns that have them."""
    number, degrees = _layout(box, cells_for(box, cells, spacing, widths), degree, steps)
    return GridWeights(tuple(number), box, tuple(degrees), names)


def _layout(
    box: Bounds, cells: Sequence[int], degree: int, steps: Steps | None
) -> tuple[list[int], list[int]]:
    """The cells along each column and the degree of its weights, 0 for columns with a node on every step."""
    number, degrees = list(cells), [degree] * len(box.low)
    for column, step in enumerate(steps or ()):
        if step is not None and column < len(number):
            number[column], degrees[column] = steps_between(box.low[column], box.high[column], step), 0
    return number, degrees


def cells_for(
    box: Bounds, cells: int | Sequence[int] | None, spacing: float, widths: Sequence[float]
) -> tuple[int, ...]:
    """Cells along each column: as given, or as few as keep nodes within ``spacing`` widths of each other."""
    if cells is not None:
        return tuple(cells) if isinstance(cells, Sequence | np.ndarray) else (cells,) * len(box.low)
    if not is_number(spacing) or not 0.0 < spacing < math.inf:
        raise UsageError(
            "spacing", "must be above 0", got=shown(spacing), remedy="0.75 of a bandwidth is a common choice"
        )
    return tuple(
        max(1, math.ceil(side / (spacing * width))) for side, width in zip(box.widths, widths, strict=True)
    )


def predict(request: PredictionRequest) -> list[Option]:
    """One option for each spacing whose file is small enough, and whose answers are quick enough; none
    without bounds, or with many columns.
    """
    bounds, kernel = request.bounds, _profiles(request.kernel)
    if bounds is None or bounds.dim > MAX_DIM:
        return []
    highest = HIGHEST_DEGREE if kernel.smooth else CORNER_DEGREE
    options = []
    for steps in {None, request.steps}:
        for spacing in SPACINGS if kernel.smooth else CORNER_SPACINGS:
            found = []
            for degree in range(LOWEST_DEGREE, highest + 1):
                if _too_many(bounds, kernel, spacing, degree, steps):
                    continue
                basis = grid_basis(bounds, kernel.column_widths(), spacing, degree, steps=steps)
                settings: dict[str, Any] = {"spacing": spacing, "degree": degree}
                if steps is not None:
                    settings["steps"] = list(steps)
                option = _option(request, _reading(basis, kernel), settings)
                if option.size <= request.max_bytes:
                    found.append(option)
            if found:
                options.append(min(found, key=lambda option: option.error))
            if steps is not None and None not in steps:
                # Nodes on every column's steps: there is no spacing to choose.
                break
    return options


def predict_reading(request: PredictionRequest, reading: Reading) -> list[Option]:
    """The option that releases a grid that exists."""
    if not isinstance(reading, GridReading):
        return []
    basis = reading.basis
    settings = {
        "spacing": max(
            spacing / width
            for spacing, width in zip(basis.spacing, _profiles(reading.kernel).column_widths(), strict=True)
        ),
        "degree": max(basis.degrees) or default_degree(_profiles(reading.kernel)),
    }
    return [_option(request, reading, settings)]


def _too_many(box: Bounds, kernel: ProfileKernel, spacing: float, degree: int, steps: Steps | None) -> bool:
    """Whether a grid has more nodes than can be held, or summed in time for each query, or cells that are too
    small for the kernel.
    """
    cells, degrees = _layout(box, cells_for(box, None, spacing, kernel.column_widths()), degree, steps)
    nodes = [number + max(each, 1) for number, each in zip(cells, degrees, strict=True)]
    columns = zip(cells, box.widths, kernel.column_widths(), strict=True)
    if kernel.smooth and any(width * n > WIDEST * side for n, side, width in columns):
        return True
    return math.prod(nodes) > (MAX_CELLS if kernel.smooth else MOST_SUMMED)


def _profiles(kernel: Kernel) -> ProfileKernel:
    assert isinstance(kernel, ProfileKernel)
    return kernel


@lru_cache(maxsize=128)
def _reading(basis: GridWeights, kernel: ProfileKernel) -> GridReading:
    """Cached with its errors, because the search for an ε plans the same grids at many values of it."""
    return GridReading(basis, kernel)


@lru_cache(maxsize=128)
def _mean_gains(reading: GridReading) -> tuple[float, float]:
    """The gain of an answer's noise, and its covariance with the number of records that the table holds, for
    cells of variance 1. They depend on where a query lies between nodes, so they are averaged over public
    places.
    """
    bounds = reading.basis.bounds
    low, high = np.array(bounds.low), np.array(bounds.high)
    places = low + (high - low) * np.random.default_rng(0).uniform(0.2, 0.8, (_QUERIES, len(low)))
    queries = _profiles(reading.kernel).prepare(places, bounds, clip=False)
    gain = float(reading.noise_gain(queries).mean())
    few = math.prod(reading.basis.nodes) <= _COUNTING_NODES
    return gain, float(reading.total_covariance(queries).mean()) if few else 0.0


def _option(request: PredictionRequest, reading: GridReading, settings: dict[str, Any]) -> Option:
    """What a grid is predicted to cost."""
    basis = reading.basis
    gain, together = _mean_gains(reading)
    nodes = math.prod(basis.nodes)
    whole = nodes / float(WHOLE) ** 2
    variance = request.calibration(basis).table.variance
    request = request.with_best_share(variance * gain, own=variance * whole, covariance=variance * together)
    calibration = request.calibration(basis)
    noise = calibration.table
    number = request.count_error(calibration, noise.variance * whole, noise.variance * together)
    densities = request.all_densities
    drawn = np.sqrt(number.of_quotient(noise.variance * gain, densities)) / request.records
    beyond = np.empty_like(drawn)
    for i, (density, deviation) in enumerate(zip(densities, drawn, strict=True)):
        shares, likely = _repeated_shares(density, reading)
        beyond[i] = likely @ (np.hypot(deviation, reading.errors.at_heap * shares) - deviation)
    errors = errors_at_densities(
        NORMAL_MEAN_ABSOLUTE * drawn,
        NORMAL_MEAN_ABSOLUTE * np.sqrt(beyond * (beyond + 2.0 * drawn)),
        request.mean_reciprocal(number) * NORMAL_MEAN_ABSOLUTE * (drawn + beyond),
    )
    weight = float(request.records * WHOLE)
    # As for hash rows: counts with mean similarity κ spread over the nodes with the variance N²·κ/nodes.
    uneven = weight * math.sqrt(request.density / nodes)
    packed = request.cell_bytes(noise, weight / 8.0, spread=uneven, rounding=UNSEEN_SHARE)
    weights = math.prod(degree + 1 for degree in basis.degrees)
    request = request.kept_by(calibration)
    return Option(
        method=GRID,
        request=request,
        settings=settings,
        mechanism=noise.mechanism,
        shape=basis.shape,
        **errors,
        size=round(nodes * packed) + HEADER_BYTES,
        seconds=request.records * weights * _NANOSECONDS_WEIGHT * 1e-9,
    )


def _repeated_shares(density: float, reading: GridReading) -> tuple[Floats, Floats]:
    """Shares of the records that equal a query, and their probabilities: a plan does not know the repeated
    values of the data, and a grid that is too coarse for some of them costs more than one that is too fine.
    """
    kernel = _profiles(reading.kernel)
    if kernel.smooth:
        shares = np.minimum(1.0, TYPICAL_HEAP * density * np.exp(HEAP_SPREAD * _NODES))
        rest = 1.0 - ONE_VALUE * (kernel.dim == 1)
        return np.append(shares, 1.0), np.append(rest * _WEIGHTS / _WEIGHTS.sum(), 1.0 - rest)
    # Of a kernel with a corner the error is where query and record meet: at a point, or along every column.
    meets = [
        min(1.0, CORNER_CELLS * spacing / width)
        for spacing, width in zip(reading.basis.spacing, kernel.column_widths(), strict=True)
    ]
    near = math.prod(meets) if kernel.column_profile() is None else max(meets)
    return np.array([_HEAPED_NEAR * density * near]), np.ones(1)


register(
    Method(
        name=GRID,
        tally=grid,
        role=PROFILES,
        paper="Wand 1994, for the binning of kernel sums; Unser 1999, for splines and their duals",
        most_columns=MAX_DIM,
        shared=True,
        predict=predict,
        predict_reading=predict_reading,
    )
)
