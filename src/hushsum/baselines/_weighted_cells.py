"""Published methods that release a weight for each cell of a box: a noisy histogram, and MWEM."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.declaration import shows_keywords
from hushsum.errors import DataRefused, UsageError
from hushsum.kernels import COLUMNS, Batch, ColumnKernel, Kernel, positive_integer
from hushsum.methods import (
    PUBLIC_POINTS,
    DeclaredBox,
    Method,
    OneCallKeywords,
    OneCallRelease,
    register,
    release_counted,
)
from hushsum.privacy import LAPLACE, PERMUTE_AND_FLIP, Mechanism, Question, Relation, ReleaseNoise
from hushsum.records import Bounds, CellGrid, DeclaredBounds, bins_for_bandwidth
from hushsum.releases import CoefficientFunction, PointsFunction, ReleasedFunction
from hushsum.tables import Bins
from hushsum.tally import Tally

_DEFAULT_CELLS = 1 << 18


def histogram_tally(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    bins: int | Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of bins, to be filled by ``add`` and made public by ``release``; it merges and streams.

    Parameters as for `histogram`, and ``columns`` and ``max_per_unit`` as for ``hushsum.race``.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import histogram_tally
    >>> tally = histogram_tally(hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1), bins=20)
    >>> tally.add([[0.2]] * 700).add([[0.7]] * 300).release(epsilon=1.0).claim.mechanism
    'discrete laplace'
    """
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    if bins is None:
        bins = _fine_bins(box, kernel, _DEFAULT_CELLS)
    along = (bins,) * box.dim if isinstance(bins, int) else tuple(bins)
    basis = Bins(along, box, declared.columns)
    return Tally(basis, kernel, max_per_unit=max_per_unit)


@shows_keywords(OneCallKeywords, relation=Relation.ADD_REMOVE)
def histogram(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    bins: int | Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
) -> PointsFunction:
    """The middles of bins, weighted by noisy counts. Spends ``epsilon``, and ``delta`` if given.

    Works well in one or two columns. A record is read at the middle of its bin: where the kernel is not much
    wider than a bin, that error stays whatever ε is. A grid has less of it for the same noise.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared; records are clipped to it.
    bins : int or list of int, optional
        Bins along each column; default a quarter of the bandwidth wide, at most 2¹⁸ in all.
    columns : list of str, optional
        What the columns are called, in their order; frames are then read by these names.
    **keywords
        ``epsilon``, ``delta``, ``relation``, ``population``, ``allow_large_delta``, ``budget``,
        ``idempotency_key`` and ``insecure_noise_seed`` as for ``Tally.release``.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    Exact integers: a tally of `Bins`, in which one record has one cell, and its release. Weights below 0 stay
    as they are, so that sums over many cells are unbiased.

    Notes
    -----
    Dwork, McSherry, Nissim and Smith 2006; as a baseline in Coleman and Shrivastava 2021, section 5.1.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import histogram
    >>> X = [[0.2]] * 9000 + [[0.7]] * 1000
    >>> f = histogram(X, hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1), epsilon=1.0)
    >>> f([[0.2], [0.7]]).round(1)
    array([0.9, 0.1])
    >>> narrow = f.with_kernel(hs.GaussianKernel(dim=1, bandwidth=0.05))
    """
    function = release_counted(
        HISTOGRAM,
        X,
        lambda: histogram_tally(kernel, bounds=bounds, bins=bins, columns=columns),
        convert=points_of,
        **keywords,
    )
    assert isinstance(function, PointsFunction)
    return function


def points_of(function: ReleasedFunction) -> PointsFunction:
    """A released histogram as weighted points: the middle of every bin; post-processing."""
    assert isinstance(function, CoefficientFunction)
    basis = function.basis
    assert isinstance(basis, Bins)
    return PointsFunction(
        points=basis.grid.centres(),
        weights=function.table.reshape(-1).astype(np.float64),
        kernel=function.kernel,
        bounds=basis.bounds,
        count=max(function.count, 1.0),
        count_variance=function.count_stderr**2,
        weight_variance=function.cell_variance,
        cell_width=tuple(basis.grid.width.tolist()),
        facts=function.facts,
        method="histogram",
        columns=basis.columns,
    )


def _fine_bins(box: Bounds, kernel: Kernel, most_cells: int) -> tuple[int, ...]:
    """Bins a quarter of the bandwidth wide along each column, or wider where they would be too many."""
    assert isinstance(kernel, ColumnKernel)
    return tuple(bins_for_bandwidth(box, kernel.column_bandwidths(), fraction=0.25, most_cells=most_cells))


HISTOGRAM = register(
    Method(
        name="histogram",
        role=COLUMNS,
        one_call=histogram,
        mechanism=Mechanism.of(LAPLACE),
        paper="Dwork, McSherry, Nissim and Smith 2006",
        most_columns=3,
        tally=histogram_tally,
    )
)


SCALE = 1 << 16
"""Kernel values over a bound on their size are rounded to multiples of 1/SCALE: then every answer is an
integer.
"""

MOST_ENTRIES = 1 << 27
MOST_QUERIES = 1 << 14
_MOST_RECORDS = (1 << 53) // SCALE
_MOST_DEFAULT_CELLS = 1 << 15
_DEFAULT_QUERIES = 256
_PASSES = 10
_LARGEST_STEP = 2.0
_SMALLEST_VARIANCE = 1e-9


@shows_keywords(OneCallKeywords, relation=Relation.ADD_REMOVE)
def mwem(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    rounds: int = 10,
    queries: object = None,
    bins: int | Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
) -> PointsFunction:
    """Multiplicative weights with the exponential mechanism, over kernel queries. Spends ``epsilon``.

    Works well in one or two columns with few rounds at a small ε, where most of the data look like what is
    known already. It depends only on its queries and its cells: with many cells a kernel it is slow, and a
    query far from all of its own is answered by the prior, which is uniform.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private.
    kernel : Kernel
        Its values at the public ``queries`` are what the weights are fitted to.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared. The weights live on the cells of this box.
    rounds : int
        T: how many queries are chosen and measured, each with ε/(2T) for the choice and as much for the
        measurement.
    queries : array of shape (n_queries, columns), optional
        Public, as the claim then states; the private records are refused. Default: an even grid of at most
        256 points.
    bins : int or list of int, optional
        Cells along each column; default a quarter of the bandwidth wide, at most 2¹⁵ in all.
    columns, **keywords
        As for `histogram`.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; MWEM is pure, so ``delta`` is refused.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    Pure ε, exact integers. A record counts as the middle of its cell c, and a query is the integer
    ``round(2¹⁶·k(c, q)/κ)``, κ a bound on |k|, from 0 to 2¹⁶ where k ≥ 0, so one record present, absent or
    replaced moves the answer of every query by at most Δ = 2¹⁶. Where k may be negative it is from −2¹⁶ to
    2¹⁶, and one record replaced moves the answer by 2·2¹⁶. A score is the distance of that answer to the one
    of the weights, which are public, and moves by Δ as well. T choices and T measurements of ε/(2T) each add
    up; under add/remove a fiftieth of ε pays for the number of records first.

    Notes
    -----
    Hardt, Ligett and McSherry, *A simple and practical algorithm for differentially private data release*,
    NIPS 2012: with integer noise, permute-and-flip in place of the exponential mechanism, their improvement
    of updating with all measurements several times, and exponents divided by the query's variance, which need
    fewer passes than theirs.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import mwem
    >>> X = [[0.2]] * 9000 + [[0.8]] * 1000
    >>> f = mwem(X, hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1), epsilon=1.0)
    >>> bool(f([[0.2]])[0] > 2 * f([[0.8]])[0]), f.claim.arithmetic
    (True, 'exact integers')
    """
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    declared.refuse_private(queries, X, "queries")
    prepared = OneCallRelease.of(MWEM, *(() if queries is None else (PUBLIC_POINTS,)), **keywords)
    cells = _fine_bins(box, kernel, _MOST_DEFAULT_CELLS) if bins is None else bins
    grid = CellGrid.of(box, cells, most_cells=MOST_ENTRIES)
    points = _queries(queries, kernel, box)
    number = positive_integer("rounds", rounds, at_most=len(points))
    if grid.cells * len(points) > MOST_ENTRIES:
        raise UsageError("bins", f"must give at most {MOST_ENTRIES} cells × queries", got="more")
    rows = declared.records(X)
    if len(rows) > _MOST_RECORDS:
        raise DataRefused("mwem takes fewer than 2³⁷ records", got="more", remedy="use another method")

    def make() -> PointsFunction:
        table = query_table(kernel, grid, points)
        exact = answers_of(grid.count(rows), table)
        with prepared.noise() as noise:
            count, count_variance, left = prepared.count(noise, len(rows))
            moved = SCALE * (2 if kernel.signed and not prepared.private_count else 1)
            weights = _fitted(exact, table, count, number, left / (2 * number), moved, noise)
        return prepared.points_function(
            declared, points=grid.centres(), weights=weights, count=count, count_variance=count_variance
        )

    return prepared.released(make, bins=list(grid.bins), rounds=number, queries=len(points))


def query_table(kernel: Kernel, grid: CellGrid, queries: NDArray[np.float32]) -> Floats:
    """Every query at the middle of every cell, as integers from 0 to `SCALE`, or from minus that where the
    kernel may be negative, shape (queries, cells).
    """
    least, largest = -1.0 if kernel.signed else 0.0, kernel.size_bound()
    centres = (grid.centres() - grid.bounds.centre).astype(np.float32)
    table = np.empty((len(queries), grid.cells))
    step = max(1, (1 << 21) // len(queries))
    for start in range(0, grid.cells, step):
        some = centres[start : start + step]
        values = kernel._pairwise(Batch((some,), len(some)), Batch((queries,), len(queries)))
        table[:, start : start + step] = np.rint(SCALE * np.clip(values / largest, least, 1.0)).T
    return table


def answers_of(counts: NDArray[np.int64], table: Floats) -> NDArray[np.int64]:
    """The exact answer of every query; secret. Integers below 2⁵³, so that their sums in float64 are
    exact.
    """
    return (table @ counts.astype(np.float64)).astype(np.int64)


def _fitted(
    exact: NDArray[np.int64],
    table: Floats,
    count: float,
    rounds: int,
    share: Fraction,
    moved: int,
    noise: ReleaseNoise,
) -> Floats:
    """The weights after all rounds; ``share`` of ε for each choice and each measurement, of answers that one
    unit moves by at most ``moved``.
    """
    weights = np.full(table.shape[1], count / table.shape[1])
    measured: list[tuple[int, float]] = []
    open_ = np.arange(len(exact))
    for _ in range(rounds):
        known = np.rint(table @ weights).astype(np.int64)
        scores = np.abs(exact - known)[open_].tolist()
        chosen = int(open_[noise.choice(Question(scores, share, moved))])
        noisy, _ = noise.laplace(exact[chosen : chosen + 1], moved, share)
        # No true answer lies outside.
        low, high = count * table[chosen].min(), count * table[chosen].max()
        measured.append((chosen, min(max(float(noisy[0]), low), high)))
        open_ = open_[open_ != chosen]
        for _ in range(_PASSES):
            for query, answer in measured:
                _multiply(weights, table[query] / SCALE, answer / SCALE)
    return weights


def _multiply(weights: Floats, query: Floats, answer: float) -> None:
    """Move the weights, in place, about half the way to where they answer the query so.

    Half of Newton's step for the exponent, which is the error over the query's variance, and at most 2.
    """
    count = float(weights.sum())
    mean = float(query @ weights) / count
    variance = max(float((query * query) @ weights) / count - mean**2, _SMALLEST_VARIANCE)
    step = 0.5 * (answer / count - mean) / variance
    weights *= np.exp(min(max(step, -_LARGEST_STEP), _LARGEST_STEP) * query)
    weights *= count / weights.sum()


def _queries(queries: object, kernel: Kernel, box: Bounds) -> NDArray[np.float32]:
    if queries is None:
        each = max(1, int(_DEFAULT_QUERIES ** (1.0 / box.dim) + 1e-9))
        lattice = CellGrid.of(box, each)
        return (lattice.centres() - box.centre).astype(np.float32)
    rows: NDArray[np.float32] = kernel.prepare(queries, box, clip=False).arrays[0]
    if len(rows) > MOST_QUERIES:
        raise UsageError("queries", f"must be at most {MOST_QUERIES}", got=len(rows))
    return rows


MWEM = register(
    Method(
        name="mwem",
        role=COLUMNS,
        one_call=mwem,
        approximate=False,
        mechanism=Mechanism.of(PERMUTE_AND_FLIP, LAPLACE),
        paper="Hardt, Ligett and McSherry 2012",
        most_columns=3,
    )
)
