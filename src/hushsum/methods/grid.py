"""A grid inside declared bounds, as a method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hushsum.bases.base import Reading
from hushsum.bases.grid_weights import MAX_CELLS, MAX_DIM, GridReading, GridWeights, typical_error
from hushsum.errors import UsageError
from hushsum.kernels.base import PROFILES, Kernel, ProfileKernel
from hushsum.methods.prediction import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest
from hushsum.methods.tally_registration import boxed_tally, register_tally
from hushsum.privacy.claim import Promise
from hushsum.records.bounds import Bounds, DeclaredBounds
from hushsum.tally.tally import Tally

NAME = "grid"
DEFAULT_SPACING = 0.75

SPACINGS = (0.4, 0.5, 0.6, 0.75, 0.9, 1.0)
CUSP_SPACINGS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)
"""For kernels with a cusp, which gain from finer grids than the Gaussian."""

MOST_SUMMED = 1 << 16
"""Nodes of a grid whose kernel is summed over all of them: some tenths of a millisecond per query. In three
columns that leaves grids too coarse for a cusp, where many hash rows err less.
"""

_NANOSECONDS_WEIGHT = 12.0
_QUERIES = 64


def grid(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
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
    kernel : ProfileKernel
        Any kernel of columns of numbers; the Gaussian is fastest to read.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    spacing : float, default 0.75
        The distance of nodes in widths of the kernel. Larger grids are more precise, and take more noise.
        From 0.5 for much data to 1 for little.
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

    def basis(box: Bounds, names: tuple[str, ...] | None) -> GridWeights:
        return GridWeights(cells_for(box, cells, spacing, _width(kernel)), box, names)

    return boxed_tally(NAME, kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


def cells_for(
    box: Bounds, cells: int | Sequence[int] | None, spacing: float, width: float
) -> tuple[int, ...]:
    """Cells along each column: as given, or so many that nodes are at most ``spacing`` widths apart."""
    if cells is not None:
        return (cells,) * len(box.low) if isinstance(cells, int) else tuple(cells)
    if not spacing > 0.0 or not math.isfinite(spacing):
        raise UsageError(
            parameter="spacing",
            rule="must be above 0",
            got=f"{spacing}",
            remedy="0.75 of a bandwidth is a common choice",
        )
    sides = (high - low for low, high in zip(box.low, box.high, strict=True))
    return tuple(max(1, math.ceil(side / (spacing * width))) for side in sides)


def predict(request: PredictionRequest) -> list[Option]:
    """One option for each spacing whose file is small enough, and whose answers are quick enough; none
    without bounds, or with many columns.
    """
    options = _options(request)
    if request.promise.delta and request.requested:
        # What is private without δ is private with it, and few cells take less noise so.
        options += _options(replace(request, promise=Promise.of(epsilon=request.promise.epsilon)))
    return options


def predict_reading(request: PredictionRequest, reading: Reading) -> list[Option]:
    """The option that releases a grid that exists."""
    if not isinstance(reading, GridReading):
        return []
    return [_option(request, reading, max(reading.basis.spacing) / _width(reading.kernel))]


def _options(request: PredictionRequest) -> list[Option]:
    bounds, kernel = request.bounds, request.kernel
    if bounds is None or bounds.dim > MAX_DIM:
        return []
    assert isinstance(kernel, ProfileKernel)
    options = []
    for spacing in CUSP_SPACINGS if kernel.cusp else SPACINGS:
        cells = cells_for(bounds, None, spacing, kernel.width)
        if math.prod(n + 2 for n in cells) > (MOST_SUMMED if kernel.cusp else MAX_CELLS):
            continue
        option = _option(request, GridReading(GridWeights(cells, bounds), kernel), spacing)
        if option.size <= request.max_bytes:
            options.append(option)
    return options


def _width(kernel: Kernel) -> float:
    assert isinstance(kernel, ProfileKernel)
    return kernel.width


def _option(request: PredictionRequest, reading: GridReading, spacing: float) -> Option:
    basis, kernel = reading.basis, reading.kernel
    assert isinstance(kernel, ProfileKernel)
    noise = request.noise(basis)
    # The gain depends on where a query lies between nodes, so it is averaged over public places.
    low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
    places = low + (high - low) * np.random.default_rng(0).uniform(0.2, 0.8, (_QUERIES, len(low)))
    gain = float(reading.noise_gain(kernel.prepare(places, basis.bounds, clip=False)).mean())
    deviation = math.sqrt(noise.variance * gain) / request.records
    own = typical_error(spacing, len(low), cusp=kernel.cusp) * request.density
    nodes = math.prod(basis.nodes)
    weight = float(request.records * basis.whole)
    # As for hash rows: counts with mean similarity κ spread over the nodes with the variance N²·κ/nodes.
    uneven = weight * math.sqrt(request.density / nodes)
    return Option.of(
        request,
        method=NAME,
        settings={"spacing": spacing},
        mechanism=noise.mechanism,
        shape=basis.shape,
        noise=NORMAL_MEAN_ABSOLUTE * deviation,
        approximation=NORMAL_MEAN_ABSOLUTE * own,
        error=NORMAL_MEAN_ABSOLUTE * math.hypot(deviation, own),
        size=round(nodes * request.cell_bytes(noise, weight / 8.0, spread=uneven)) + HEADER_BYTES,
        seconds=request.records * 3 ** len(low) * _NANOSECONDS_WEIGHT * 1e-9,
    )


register_tally(
    NAME,
    grid,
    role=PROFILES,
    paper="Wand 1994, for the binning of kernel sums",
    most_columns=MAX_DIM,
    predict=predict,
    predict_reading=predict_reading,
)
