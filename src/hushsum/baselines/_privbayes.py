"""PrivBayes: points drawn from a private Bayesian network of discretised columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, prod
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Parameter, UsageError, shown
from hushsum.kernels import COLUMNS, Kernel, positive_integer
from hushsum.methods import (
    FINENESS,
    SCORE_SENSITIVITY,
    DeclaredBox,
    Method,
    OneCallRelease,
    ReleaseKeywords,
    exact_counts,
    part_of_budget,
    register,
)
from hushsum.privacy import (
    LAPLACE,
    PERMUTE_AND_FLIP,
    Mechanism,
    Question,
    Relation,
    ReleaseNoise,
    release_noise,
)
from hushsum.records import CellGrid, Codes, DeclaredBounds
from hushsum.releases import PointsFunction

MOST_CANDIDATES = 4096
"""Families looked at for the next column; where there are more, a public random sample of them."""


@dataclass(frozen=True, slots=True)
class Family:
    """A column and the columns it depends on."""

    column: int
    parents: tuple[int, ...]

    def parent_cells(self, codes: Codes, bins: Sequence[int]) -> Codes:
        """The cell of each row's parents, the last parent fastest."""
        index = np.zeros(len(codes), np.int64)
        for parent in self.parents:
            index = index * bins[parent] + codes[:, parent]
        return index

    def counts(self, codes: Codes, bins: Sequence[int]) -> NDArray[np.int64]:
        """How many records lie in each cell of the parents and the column, which is fastest; secret."""
        cells = self.parent_cells(codes, bins) * bins[self.column] + codes[:, self.column]
        size = prod(bins[each] for each in self.parents) * bins[self.column]
        return np.bincount(cells, minlength=size).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Network:
    """Families in the order in which columns are drawn; public."""

    families: tuple[Family, ...]
    bins: tuple[int, ...]
    degree: int

    @property
    def released(self) -> tuple[Family, ...]:
        """The families whose tables are released: the first ``degree + 1`` columns are one table."""
        return self.families[self.degree :]


def next_families(placed: Sequence[int], columns: int, degree: int, rng: np.random.Generator) -> list[Family]:
    """Every column that is not placed, with every set of ``degree`` placed parents, or all of them if fewer.

    >>> [len(next_families([0, 1], 4, 1, np.random.default_rng(0)))]
    [4]
    """
    number = min(degree, len(placed))
    open_ = [column for column in range(columns) if column not in placed]
    sets = comb(len(placed), number)
    if len(open_) * sets <= MOST_CANDIDATES:
        return [Family(column, each) for column in open_ for each in combinations(sorted(placed), number)]
    chosen: dict[Family, None] = {}
    while len(chosen) < MOST_CANDIDATES:
        parents = tuple(sorted(rng.choice(list(placed), number, replace=False).tolist()))
        chosen[Family(int(rng.choice(open_)), parents)] = None
    return list(chosen)


def dependence_score(codes: Codes, family: Family, bins: Sequence[int]) -> int:
    """How many records would have to move to make the column independent of its parents, in 1024ths; secret.

    With counts c(x, π), marginals a(x) and b(π) and n records it is ``½·Σ|c(x, π) − a(x)·b(π)/n|``, n times
    the score R of PrivBayes, rounded down.

    Privacy
    -------
    The same number as `hushsum.methods._marginals.dependence_of_counts`, so the same sensitivity:
    `SCORE_SENSITIVITY` for one record present or absent, twice that for one replaced.

    Examples
    --------
    >>> codes = np.array([[0, 0], [1, 1]] * 50)
    >>> dependence_score(codes, Family(0, (1,)), [2, 2]) / FINENESS
    50.0
    """
    records = len(codes)
    if not family.parents or not records:
        return 0
    # Only cells that a record is in have c > 0; the others add a·b each, n² − Σ_used a·b together.
    cells = family.parent_cells(codes, bins)
    own = codes[:, family.column]
    column = np.bincount(own, minlength=bins[family.column])
    names, parent, parents = np.unique(cells, return_inverse=True, return_counts=True)
    joint, counts = np.unique(parent * bins[family.column] + own, return_counts=True)
    del names
    joint_counts = exact_counts(counts, records)
    product = (
        exact_counts(column, records)[joint % bins[family.column]] * parents[joint // bins[family.column]]
    )
    total = int(np.abs(records * joint_counts - product).sum()) + records**2 - int(product.sum())
    return total * FINENESS // (2 * records)


NAME = "privbayes"
MECHANISM = Mechanism.of(PERMUTE_AND_FLIP, LAPLACE)
USEFULNESS = 4.0
MOST_CELLS = 1 << 24
MOST_POINTS = 1 << 24


def privbayes(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    epsilon: float,
    delta: float | None = None,
    bins: int | Sequence[int] = 16,
    degree: int | str = "auto",
    size: int = 20_000,
    network_share: float = 0.3,
    seed: int = 0,
    relation: str | Relation = Relation.ADD_REMOVE,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[ReleaseKeywords],
) -> PointsFunction:
    """Synthetic points that keep the strongest dependences between columns. Spends ``epsilon``.

    Works well for tables with some tens of columns of which each depends on a few others. Columns are cut
    into ``bins`` first, so a kernel narrower than a bin sees only the bins.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared; cut into bins.
    bins : int or list of int
        Bins along each column; the paper has 16.
    degree : int or "auto"
        How many parents a column has. ``"auto"``: the most for which the mean cell of a table holds at least
        four times the scale of its noise (θ-usefulness with θ = 4), from the paid count.
    size : int
        How many points are drawn from the network.
    network_share : float
        The part of the budget that pays for the choice of the network; β in the paper, 0.3 there.
    seed : int
        Public: which points are drawn from the network, which column comes first, and which candidates are
        looked at where there are more than a few thousand.
    relation, columns, **keywords
        As for `histogram`.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; PrivBayes is pure, so ``delta`` is refused.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    Pure ε, exact integers. Each next column and its parents are chosen by permute-and-flip with the score of
    `dependence_score`, whose sensitivity is proven there. Then the tables of each column with its parents get
    discrete Laplace noise: a record is in one cell of each of the d − k tables, so Δ1 is d − k, and twice
    that under replace. What follows, drawing the points, spends nothing.

    Notes
    -----
    Zhang, Cormode, Procopiuc, Srivastava and Xiao, *PrivBayes: private data release via Bayesian networks*,
    SIGMOD 2014 and TODS 42(4), 2017; with its score R, which has a constant sensitivity where mutual
    information has one that grows with log n.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import privbayes
    >>> X = [[0.1, 0.9], [0.9, 0.1]] * 5000
    >>> kernel = hs.GaussianKernel(dim=2, bandwidth=0.2)
    >>> f = privbayes(X, kernel, bounds=(0, 1), epsilon=1.0, bins=4)
    >>> bool(f([[0.1, 0.9]])[0] > 3 * f([[0.1, 0.1]])[0])
    True
    """
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    prepared = OneCallRelease.of(METHOD, epsilon=epsilon, delta=delta, relation=relation, **keywords)
    grid = CellGrid.of(box, bins)
    given = _degree(degree, grid)
    points = positive_integer("size", size, at_most=MOST_POINTS)
    share = part_of_budget("network_share", network_share)
    rows = declared.records(X)

    def make() -> PointsFunction:
        rng = np.random.default_rng(seed)
        codes = grid.codes(rows)
        with release_noise(prepared.insecure_noise_seed) as noise:
            count, count_variance, left = prepared.count(noise, len(rows))
            moved = 1 if prepared.private_count else 2
            parents = given if given is not None else useful_degree(grid, count, float(left), moved)
            network, left = _network(codes, grid, parents, left, share, moved, noise, rng)
            tables = _tables(codes, grid, network, left, moved, noise)
        drawn = sample(network, tables, points, rng)
        return prepared.points_function(
            declared,
            points=grid.places(drawn, rng.random(drawn.shape)),
            weights=np.full(points, count / points),
            count=count,
            count_variance=count_variance,
        )

    return prepared.released(make, bins=list(grid.bins), degree=str(degree), size=points)


def useful_degree(grid: CellGrid, count: float, epsilon: float, moved: int) -> int:
    """The most parents for which the mean cell of every table is θ times the scale of its noise.

    The noise has scale ``moved·(columns − parents)/ε``; the widest columns make the largest table.

    >>> from hushsum.records import Bounds, DeclaredBounds
    >>> useful_degree(CellGrid.of(Bounds.of((0, 1), dim=3), 16), 100_000.0, 1.0, 1)
    2
    """
    widest = sorted(grid.bins, reverse=True)
    columns = len(widest)
    best = 0
    for parents in range(columns):
        cells = float(np.prod([float(each) for each in widest[: parents + 1]]))
        if cells <= MOST_CELLS and count / cells >= USEFULNESS * moved * (columns - parents) / epsilon:
            best = parents
    return best


def _network(
    codes: Codes,
    grid: CellGrid,
    parents: int,
    epsilon: Fraction,
    share: Fraction,
    moved: int,
    noise: ReleaseNoise,
    rng: np.random.Generator,
) -> tuple[Network, Fraction]:
    """A network of the given degree, and the ε that is left; free where there is nothing to choose."""
    columns = len(grid.bins)
    families = [Family(int(rng.integers(columns)), ())]
    if parents in (0, columns - 1):
        for column in range(columns):
            if column != families[0].column:
                families.append(Family(column, tuple(each.column for each in families) if parents else ()))
        return Network(tuple(families), grid.bins, parents), epsilon
    each_choice = epsilon * share / (columns - 1)
    scores: dict[Family, int] = {}
    while len(families) < columns:
        candidates = next_families([each.column for each in families], columns, parents, rng)
        for family in candidates:
            if family not in scores:
                scores[family] = dependence_score(codes, family, grid.bins)
        question = Question([scores[each] for each in candidates], each_choice, moved * SCORE_SENSITIVITY)
        families.append(candidates[noise.choice(question)])
    return Network(tuple(families), grid.bins, parents), epsilon * (1 - share)


def _tables(
    codes: Codes, grid: CellGrid, network: Network, epsilon: Fraction, moved: int, noise: ReleaseNoise
) -> list[Floats]:
    """The noisy table of each released family, negative cells raised to 0."""
    families = network.released
    tables = []
    for family in families:
        counts = family.counts(codes, grid.bins)
        noisy, _ = noise.laplace(counts, moved * len(families), epsilon)
        tables.append(np.maximum(noisy, 0).astype(np.float64))
    return tables


def sample(network: Network, tables: list[Floats], size: int, rng: np.random.Generator) -> Codes:
    """Codes of points drawn from the network, shape (size, columns): the first table at once, then every
    further column given its parents.
    """
    drawn = np.zeros((size, len(network.bins)), np.int64)
    first, *rest = network.released
    members = (*first.parents, first.column)
    shape = [network.bins[each] for each in members]
    flat = _choose_cells(tables[0].reshape(1, -1), np.zeros(size, np.int64), rng)
    drawn[:, members] = np.stack(np.unravel_index(flat, shape), axis=1)
    for family, table in zip(rest, tables[1:], strict=True):
        rows = family.parent_cells(drawn, network.bins)
        drawn[:, family.column] = _choose_cells(table.reshape(-1, network.bins[family.column]), rows, rng)
    return drawn


def _choose_cells(table: Floats, rows: Codes, rng: np.random.Generator) -> Codes:
    """For each entry a column of its row of the table, with probability proportional to the cell; a row of
    zeros is uniform.
    """
    table = np.where(table.sum(axis=1, keepdims=True) > 0.0, table, 1.0)
    steps = np.cumsum(table, axis=1) / table.sum(axis=1, keepdims=True)
    # All rows in one sorted list, row r in [r, r + 1]; the last step is 1 exactly, so that no draw falls out.
    steps[:, -1] = 1.0
    places = (steps + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(places, rows + rng.random(len(rows)), side="right")
    cells: Codes = np.clip(found - rows * table.shape[1], 0, table.shape[1] - 1)
    return cells


def _degree(degree: int | str, grid: CellGrid) -> int | None:
    columns = len(grid.bins)
    if degree == "auto":
        return None
    if isinstance(degree, bool) or not isinstance(degree, int) or not 0 <= degree < columns:
        raise UsageError(
            "degree",
            f"must be 'auto' or an integer from 0 to {columns - 1}, one less than the columns",
            got=shown(degree),
            remedy="try 2",
        )
    largest = float(np.prod([float(each) for each in sorted(grid.bins, reverse=True)[: degree + 1]]))
    if largest > MOST_CELLS:
        raise UsageError(
            "bins",
            ("and ", Parameter("parents"), f" must give tables of at most {MOST_CELLS} cells"),
            got="more",
        )
    return degree


METHOD = register(
    Method(
        name=NAME,
        role=COLUMNS,
        release=privbayes,
        approximate=False,
        mechanism=MECHANISM,
        paper="Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017",
    )
)
