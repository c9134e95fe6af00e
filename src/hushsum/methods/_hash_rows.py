"""The private RACE sketch as a method, and how much its rows disagree, which predicts its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Unpack

import numpy as np

from hushsum._types import Floats
from hushsum.declaration import shows_keywords
from hushsum.errors import UsageError
from hushsum.kernels import HASH_ROWS, Batch, HashableCombination, HashableKernel, Kernel, positive_integer
from hushsum.records import Bounds
from hushsum.releases import ROUNDING_SHARE
from hushsum.tables import DividedRows, HashRows, Reading, rows_for_laplace
from hushsum.tally import Tally

from ._method import BoxKeywords, Method, declared_box, register
from ._prediction import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest

__all__ = [
    "BOUND", "DEFAULT_WIDTH", "RACE", "bounded_row_variance", "estimated_row_variance", "race",
    "row_variances", "row_width",
]  # fmt: skip

RACE = "race"
DEFAULT_ROWS = 1000
DEFAULT_WIDTH = 1000
UNDECLARED_ROWS = 2000
ROWS_TO_COMPARE = (2, 5, 12, 40, 100)
"""Rows to count where no number of records is declared. Under pure ε the noisy count decides how many are
published.
"""

ROWS = (10, 25, 50, 100, 200, 500, 1000, 2000, 5000)
MANY_ROWS = (10_000, 20_000, 50_000, 100_000, 200_000)
"""With δ or ρ only, whose noise does not grow with rows."""

WIDTHS = (250, DEFAULT_WIDTH)
"""Wide rows have smaller errors, narrow ones leave room for more of them."""

# The most cells of a tally, at 8 bytes per cell. The release takes half of that in memory.
_MOST_CELLS = 1 << 26

BOUND, ESTIMATE = "bound", "public data"
"""What the variance of a row is known from."""

_NANOSECONDS_INCREMENT = 0.6
_NANOSECONDS_PRODUCT = 0.03
_ESTIMATION_ROWS = 2000
_MOST_QUERIES = 1000


@shows_keywords(BoxKeywords)
def race(
    kernel: Kernel,
    *,
    rows: int = DEFAULT_ROWS,
    width: int = DEFAULT_WIDTH,
    seed: int = 0,
    **declared: Unpack[BoxKeywords],
) -> Tally:
    """An empty tally of hash rows, to be filled by ``add`` and made public by ``release``.

    Works in any dimension and in one pass. In one to four dimensions, grids are more accurate for the same ε.

    Parameters
    ----------
    kernel : HashableKernel or HashableCombination
        Euclidean, Manhattan, angular, Jaccard, Hamming, any other that has hash functions, products of them,
        or a linear combination of those, among whose components the rows are divided.
    rows, width : int
        The size of the table. Rows are a capacity: a pure-ε release publishes the part of them that suits it.
    seed : int
        Public seed of the hash functions. Tallies that are to be merged need the same one.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name, optional
        Declared, never read off the data. Records are clipped to it. Useful where columns have a large
        offset.
    columns : list of str, optional
        What the columns are called, in their order. It becomes part of the fingerprint and of the released
        file, and frames are read by these names.
    max_per_unit : int, optional
        Protect persons instead of records, each with at most this many records.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=200, seed=7)
    >>> f = tally.add([[0.0, 0.0], [0.1, 0.0]]).release(epsilon=1.0)
    >>> f.claim.epsilon, f.claim.unit
    (1.0, 'record')

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, Algorithms 1 and 2, with exact integer noise in place of a rounded
    real one.
    """
    basis = hash_basis(kernel, rows, width, seed, *declared_box(kernel, declared))
    return Tally(basis, max_per_unit=declared.get("max_per_unit"))


def hash_basis(
    kernel: Kernel,
    rows: int,
    width: int,
    seed: int,
    bounds: Bounds | None = None,
    columns: tuple[str, ...] | None = None,
) -> HashRows | DividedRows:
    """Hash rows of one kernel, or divided among the components of a linear combination."""
    HASH_ROWS.check(kernel, RACE)
    if isinstance(kernel, HashableCombination):
        return DividedRows(kernel, rows, width, seed, bounds, columns)
    return HashRows(kernel, rows, width, seed, bounds, columns)


def predict(request: PredictionRequest) -> list[Option]:
    """One option for each number of rows.

    Cells are published as they are where the file is small enough, else rounded.
    """
    rows, width = request.rows, request.width
    many = rows is None and not request.promise.pure
    kernel = request.kernel
    fewest = 2 * len(_components(kernel)) if isinstance(kernel, HashableCombination) else 1
    options = []
    for number in _row_choices(request):
        narrow = many and number >= MANY_ROWS[0]
        for wide in (width,) if width is not None else WIDTHS if narrow else (DEFAULT_WIDTH,):
            if number < fewest or (rows is None and number * wide > _MOST_CELLS):
                continue
            basis = hash_basis(request.kernel, number, wide, 0)
            option = _option(request, basis, request.row_variance(wide), rounded=False)
            if many and option.size > request.max_bytes:
                option = _option(request, basis, request.row_variance(wide), rounded=True)
            options.append(option)
    if rows is not None:
        return options
    return [option for option in options if option.size <= request.max_bytes] or options[:1]


def predict_reading(request: PredictionRequest, reading: Reading) -> list[Option]:
    """The option that releases hash rows that exist."""
    basis = reading.basis
    if not isinstance(basis, HashRows | DividedRows):
        return []
    return [_option(request, basis, request.row_variance(basis.width), rounded=False)]


def _row_choices(request: PredictionRequest) -> Sequence[int]:
    rows = request.rows
    if rows is not None:
        given = rows if isinstance(rows, Sequence) else [rows]
        return sorted({positive_integer("rows", r, at_most=1 << 24) for r in given})
    if request.promise.pure:
        assert request.promise.epsilon is not None
        share = float(request.promise.epsilon) / request.moves
        typical = max(kernel.typical_row_variance() for _, kernel in _components(request.kernel))
        return sorted({*ROWS, rows_for_laplace(request.records, share, typical, ROWS[-1])})
    return [*ROWS, *MANY_ROWS]


def _option(
    request: PredictionRequest, basis: HashRows | DividedRows, variance: RowVariance, *, rounded: bool
) -> Option:
    rows, records = basis.rows, request.records
    # Of an answer, in cells of noise: rows of one kernel count the same, those of components by their
    # weights.
    gain = sum((weight * keep) ** 2 / share for weight, keep, share in _row_weights(basis)) / rows
    request = request.with_best_share(request.calibration(basis).table.variance * gain)
    calibration = request.calibration(basis)
    noise = calibration.table
    cell_variance = noise.variance * (1.0 + ROUNDING_SHARE * rounded)
    noise_variance = cell_variance * gain / records**2
    # Of a combination folds are removed in the variance of a row, since components may have several rates.
    keep = 1.0 / (1.0 - basis.fold_rate) if isinstance(basis, HashRows) else 1.0
    own_variance = variance.row_variance / rows * keep**2
    # Answers are divided by a noisy number of records.
    number_variance = request.count_error(calibration).variance
    noise_of_count = variance.density**2 * number_variance / records**2
    # The mean over few rows of Laplace noise is more peaked than normal: excess kurtosis 3/rows moves E|x|
    # by −1/(8·rows).
    peaked = 1.0 - 1.0 / (8.0 * rows) if noise.mechanism.endswith("laplace") else 1.0
    products = max(kernel.numbers_per_row() for _, kernel in _components(basis.kernel))
    # Over the cells of a row, counts of N records with mean similarity κ have the variance N²·κ/W.
    uneven = records * float(variance.density.mean() / basis.width) ** 0.5
    rounding = ROUNDING_SHARE * rounded
    bytes_per_cell = request.cell_bytes(noise, records, spread=uneven, rounding=rounding)
    drawn = noise_variance + noise_of_count
    whole = np.sqrt(drawn + own_variance)
    error = request.mean_reciprocal(number_variance) * NORMAL_MEAN_ABSOLUTE * float(whole.mean())
    settings = {"rows": rows, "width": basis.width, **({"rounded": True} if rounded else {})}
    request = request.kept_by(calibration)
    return Option(
        method=RACE,
        request=request,
        settings=settings,
        mechanism=noise.mechanism,
        shape=basis.shape,
        noise=NORMAL_MEAN_ABSOLUTE * float(np.sqrt(drawn).mean()) * peaked,
        approximation=NORMAL_MEAN_ABSOLUTE * float(np.sqrt(own_variance).mean()),
        error=error,
        size=round(rows * basis.width * bytes_per_cell) + HEADER_BYTES,
        seconds=records * rows * (_NANOSECONDS_INCREMENT + _NANOSECONDS_PRODUCT * products) * 1e-9,
    )


register(
    Method(
        name=RACE,
        tally=race,
        role=HASH_ROWS,
        paper="Coleman and Shrivastava 2021",
        needs_bounds=False,
        predict=predict,
        predict_reading=predict_reading,
        undeclared_sizes={"rows": UNDECLARED_ROWS, "width": DEFAULT_WIDTH},
        comparison_settings=tuple({"rows": each} for each in ROWS_TO_COMPARE),
    )
)


@dataclass(frozen=True, slots=True)
class RowVariance:
    """The variance of one row's answer over N², at each of some queries, and their mean kernel values."""

    row_variance: Floats
    density: Floats
    source: str


def bounded_row_variance(density: float, fold_rate: float) -> RowVariance:
    """The largest variance of a row's answer at a mean kernel value.

    The answer X of a row has E[X²] ≤ (Σ√k̃)² ≤ N²·κ̃, with κ̃ = κ + (1 − κ)·fold rate, so Var[X]/N² ≤ κ̃ −
    κ̃² (Theorem 2.5 of the paper, Cauchy–Schwarz). It is met when all similar records always collide
    together.
    """
    folded = density + (1.0 - density) * fold_rate
    return RowVariance(np.array([folded - folded**2]), np.array([density]), BOUND)


def estimated_row_variance(
    kernel: Kernel, *, width: int, seed: int, records: int, public: object, queries: object | None
) -> RowVariance:
    """The variance of a row's answer for ``records`` records like the public ones.

    Given a row, records collide with a query independently with some probability p. From n public records X
    of which collide, E[X(X − 1)]/(n(n − 1)) is E[p²] and E[X]/n is E[p], without bias; N records then have
    Var[X] = N²·Var[p] + N·E[p(1 − p)]. A query that is itself one of the public records is left out of its
    own count.
    """
    basis = HashRows(kernel, _ESTIMATION_ROWS, width, seed)
    sample = basis.prepare(public)
    if len(sample) < 3:
        raise UsageError(
            "public", "must hold at least 3 records to estimate from", remedy="give a larger sample"
        )
    own = queries is None
    places = _thin(sample) if own else _thin(basis.prepare_queries(queries))
    table = np.zeros(basis.shape, np.int64)
    basis.accumulate(table, sample, step=1, threads=1)
    counts = table[np.arange(basis.rows), basis.cells(places)].astype(np.float64) - own
    others = len(sample) - own
    first = counts.mean(axis=1) / others
    second = (counts * (counts - 1.0)).mean(axis=1) / (others * (others - 1.0))
    spread = np.maximum(second - first**2, 0.0) + np.maximum(first - second, 0.0) / records
    rate = basis.fold_rate
    return RowVariance(spread, np.maximum((first - rate) / (1.0 - rate), 1e-12), ESTIMATE)


def _thin(batch: Batch) -> Batch:
    """Evenly spread records, at most as many as are needed."""
    keep = np.zeros(len(batch), np.bool_)
    keep[np.linspace(0, len(batch) - 1, min(len(batch), _MOST_QUERIES)).astype(np.int64)] = True
    return batch.select(keep)


def row_variances(
    kernel: Kernel, *, records: int, seed: int, density: float, public: object, queries: object
) -> Callable[[int], RowVariance]:
    """The variance of hash rows of a given width: an estimate from public data, else a bound."""

    def of_component(component: Kernel, width: int) -> RowVariance:
        if public is None:
            return bounded_row_variance(density, HashRows(component, 1, width, seed).fold_rate)
        return estimated_row_variance(
            component, width=width, seed=seed, records=records, public=public, queries=queries
        )

    @cache
    def of_width(width: int) -> RowVariance:
        if not isinstance(kernel, HashableCombination):
            return of_component(kernel, width)
        found = [of_component(component, width) for _, component in _components(kernel)]
        weights = _row_weights(DividedRows(kernel, _ESTIMATION_ROWS, width, seed))
        # With R rows in these shares the variance Σ w²σ²/n is that of R rows of this variance.
        variance = sum(
            (weight * keep) ** 2 * each.row_variance / share
            for (weight, keep, share), each in zip(weights, found, strict=True)
        )
        place = sum(weight * each.density for (weight, _, _), each in zip(weights, found, strict=True))
        # Without public data the density is that of the combination.
        combined = found[0].density if public is None else np.maximum(np.abs(place), 1e-12)
        return RowVariance(np.asarray(variance), np.asarray(combined), found[0].source)

    return of_width


def row_width(reading: Reading | None, width: int | None) -> int:
    """The width of hash rows that the density is estimated with."""
    basis = None if reading is None else reading.basis
    return basis.width if isinstance(basis, HashRows | DividedRows) else width or DEFAULT_WIDTH


def _components(kernel: Kernel) -> tuple[tuple[float, HashableKernel], ...]:
    """The kernels that rows are counted for, with their weights."""
    if isinstance(kernel, HashableCombination):
        return kernel.hashed_components()
    assert isinstance(kernel, HashableKernel)
    return ((1.0, kernel),)


def _row_weights(basis: HashRows | DividedRows) -> list[tuple[float, float, float]]:
    """For each component its weight, the factor by which removing the fold multiplies, and its share of the
    rows.
    """
    if isinstance(basis, HashRows):
        return [(1.0, 1.0 / (1.0 - basis.fold_rate), 1.0)]
    return [
        (weight, 1.0 / (1.0 - HashRows(kernel, 1, basis.width, 0).fold_rate), float(share))
        for (weight, kernel), share in zip(_components(basis.kernel), basis.row_shares(), strict=True)
    ]
