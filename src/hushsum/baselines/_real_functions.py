"""Published methods that release weighted points or a curve: a weight for each cell of a box (a noisy
histogram, and MWEM), points from a public seed (PrivBayes, and kernel mean embedding), or the mean of the
records' kernel curves, smoothed, with Gaussian-process noise along the line (PFDA).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb, prod
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum import kernels, methods, privacy, releases
from hushsum._types import Floats, Integers, Rows
from hushsum.declaration import shows_keywords
from hushsum.errors import Argument, DataRefused, Parameter, UsageError, shown
from hushsum.files import Header
from hushsum.kernels import Batch, ColumnKernel, GaussianKernel, GaussianProfileKernel, Kernel
from hushsum.methods import DeclaredBox, Method, OneCallKeywords, OneCallRelease
from hushsum.privacy import Mechanism, Question, Relation, ReleaseNoise
from hushsum.records import Bounds, CellGrid, Codes, DeclaredBounds, bins_for_bandwidth
from hushsum.releases import (
    Answers,
    CoefficientFunction,
    Detail,
    Payload,
    Points,
    PointsFunction,
    PublicFacts,
    QueryOptions,
    RealFunction,
    ReleasedFunction,
)
from hushsum.tables import Bins
from hushsum.tally import Tally

__all__ = [
    "CurveFunction", "CurveSpace", "histogram", "histogram_tally", "kme", "largest_distance", "mwem", "pfda",
    "privbayes",
]  # fmt: skip

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

    def counts(self, codes: Codes, bins: Sequence[int]) -> Integers:
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
    The same number as `hushsum.methods.dependence_of_counts`, so the same sensitivity:
    `SCORE_SENSITIVITY` for one record present or absent, twice that for one replaced.

    Examples
    --------
    >>> codes = np.array([[0, 0], [1, 1]] * 50)
    >>> dependence_score(codes, Family(0, (1,)), [2, 2]) / methods.FINENESS
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
    joint_counts = methods.exact_counts(counts, records)
    product = (
        methods.exact_counts(column, records)[joint % bins[family.column]]
        * parents[joint // bins[family.column]]
    )
    total = int(np.abs(records * joint_counts - product).sum()) + records**2 - int(product.sum())
    return total * methods.FINENESS // (2 * records)


USEFULNESS = 4.0
MOST_CELLS = 1 << 24
MOST_DRAWN = 1 << 24


@shows_keywords(OneCallKeywords, relation=Relation.ADD_REMOVE)
def privbayes(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    bins: int | Sequence[int] = 16,
    degree: int | str = "auto",
    size: int = 20_000,
    network_share: float = 0.3,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
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
        four times the scale of its noise (θ-usefulness with θ = 4), from the noisy count.
    size : int
        How many points are drawn from the network.
    network_share : float
        The part of the budget that pays for the choice of the network; β in the paper, 0.3 there.
    seed : int
        Public: which points are drawn from the network, which column comes first, and which candidates are
        looked at where there are more than a few thousand.
    columns, **keywords
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
    prepared = OneCallRelease.of(PRIVBAYES, **keywords)
    grid = CellGrid.of(box, bins)
    given = _degree(degree, grid)
    points = kernels.positive_integer("size", size, at_most=MOST_DRAWN)
    share = methods.part_of_budget("network_share", network_share)
    rows = declared.records(X)

    def make() -> PointsFunction:
        rng = np.random.default_rng(seed)
        codes = grid.codes(rows)
        with prepared.noise() as noise:
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
        question = Question(
            [scores[each] for each in candidates], each_choice, moved * methods.SCORE_SENSITIVITY
        )
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
    return np.asarray(np.clip(found - rows * table.shape[1], 0, table.shape[1] - 1))


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


def reduced_set(pool: Floats, features: Floats, target: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Points chosen by herding, and the weights that bring their mean features nearest to the target.

    The weights solve ``min ‖Σ w·φ(z) − target‖² + ridge·‖w‖²``. A ridge of the noise's variance times the
    number of features keeps them from following the noise where the pool has more points than the target has
    coordinates.

    Parameters
    ----------
    pool : array of shape (n_pool, columns)
        Points to choose from.
    features : array of shape (n_pool, n_features)
        Theirs, each of length 1.
    target : array of shape (n_features,)
        The noisy mean.
    sigma : float
        The standard deviation of the noise in each coordinate.

    Returns
    -------
    points, weights
        At most as many as the pool has, in the pool's order.
    """
    from scipy.linalg import solve

    chosen = herd(features, target, len(pool))
    some = features[chosen]
    gram = some @ some.T
    gram[np.diag_indices_from(gram)] += sigma**2 * len(target) + 1e-6
    weights: Floats = solve(gram, some @ target, assume_a="pos")
    return pool[chosen], weights


def herd(features: Floats, target: Floats, rounds: int) -> Integers:
    """The different points that kernel herding visits in ``rounds`` rounds, in ascending order.

    Each round takes the point whose features go furthest along what the mean of those before still lacks
    (Chen, Welling and Smola 2010).

    >>> herd(np.eye(3), np.array([0.5, 0.5, 0.0]), 10).tolist()
    [0, 1]
    """
    gains = features @ target
    lack = gains.copy()
    visited = np.zeros(len(features), dtype=bool)
    for _ in range(rounds):
        best = int(np.argmax(lack))
        visited[best] = True
        lack += gains - features @ features[best]
    return np.flatnonzero(visited)


_NUMBERS_AT_A_TIME = 1 << 22


@dataclass(frozen=True, slots=True)
class Lattice:
    """Points at the middles of cells, and the Cholesky factor of their kernel matrix, column by column.

    With ``K_j`` the matrix of column j the whole is ``K = K_1 ⊗ … ⊗ K_d``. A ridge on each of them makes
    ``(K_1 + λ) ⊗ … ⊗ (K_d + λ)``, which is not below K, so coordinates are not longer than without it; its
    factor is ``L_1 ⊗ … ⊗ L_d``.
    """

    kernel: GaussianKernel
    """In one column."""
    places: tuple[Floats, ...]
    roots: tuple[Floats, ...]

    @classmethod
    def of(cls, kernel: GaussianProfileKernel, grid: CellGrid, ridge: float) -> Lattice:
        """The middles of the grid's cells, relative to the centre of its box."""
        line = GaussianKernel(dim=1, bandwidth=kernel.gaussian_width())
        half = (np.array(grid.bounds.high) - np.array(grid.bounds.low)) / 2.0
        places = tuple(
            (np.arange(number) + 0.5) * width - side
            for number, width, side in zip(grid.bins, grid.width, half, strict=True)
        )
        roots: list[Floats] = []
        for each in places:
            batch = Batch((each[:, None],), len(each))
            gram = line._pairwise(batch, batch) + ridge * np.eye(len(each))
            roots.append(np.linalg.cholesky(gram).astype(np.float64))
        return cls(line, places, tuple(roots))

    def mean_kernel_values(self, rows: Rows) -> Floats:
        """The mean over records of k(x, z) at every point; secret. Costs records × points multiplications."""
        records, counts = np.unique(rows, axis=0, return_counts=True)
        shape = tuple(len(each) for each in self.places)
        total = np.zeros((shape[0], prod(shape[1:])))
        step = max(1, _NUMBERS_AT_A_TIME // max(total.shape))
        for start in range(0, len(records), step):
            first, *others = (
                self._values(records[start : start + step, column], column)
                for column in range(len(self.places))
            )
            product = counts[start : start + step, None].astype(np.float64)
            for values in others:
                product = (product[:, :, None] * values[:, None, :]).reshape(len(values), -1)
            total += first.T @ product
        return total.reshape(shape) / len(rows)

    def coordinates(self, values: Floats) -> Floats:
        """``L⁻¹`` times the values at the points."""
        return self._solved(values, "N")

    def weights(self, coordinates: Floats) -> Floats:
        """``L⁻ᵀ`` times the coordinates: the weights of the points."""
        return self._solved(coordinates, "T")

    def _values(self, column: NDArray[np.float32], index: int) -> Floats:
        records, points = column.astype(np.float64)[:, None], self.places[index][:, None]
        return self.kernel._pairwise(Batch((records,), len(records)), Batch((points,), len(points)))

    def _solved(self, values: Floats, trans: Literal["N", "T"]) -> Floats:
        from scipy.linalg import solve_triangular

        for axis, root in enumerate(self.roots):
            moved = np.moveaxis(values, axis, 0)
            solved = solve_triangular(root, moved.reshape(len(root), -1), lower=True, trans=trans)
            values = np.moveaxis(solved.reshape(moved.shape), 0, axis)
        return values


ALGORITHMS = ("subspace", "features")
SENSITIVITIES = {"published": 2.0, "tight": math.sqrt(2.0)}
RIDGE = 1e-6
MOST_POINTS = 1 << 15
MOST_LATTICE_POINTS = 1 << 21
MOST_FEATURES = 1 << 16
_CELLS_AT_A_TIME = 1 << 21


@shows_keywords(OneCallKeywords, relation=Relation.REPLACE, delta=methods.DEFAULT_DELTA)
def kme(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    algorithm: str = "subspace",
    points: int | object = 1000,
    lattice: int | Sequence[int] | None = None,
    features: int = 1000,
    sensitivity: str = "published",
    seed: int = 0,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
) -> PointsFunction:
    """Public points, weighted so that their kernel mean is the records'. Spends ``epsilon`` and ``delta``.

    Works well if the points cover the data at the scale of the bandwidth: in one to three columns, or with
    public points like the records. In the gaps between points it answers too little. Costs records × points,
    and points³ for the weights unless they form a lattice.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private; their number is public.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared; points are spread evenly in it.
    algorithm : {"subspace", "features"}
        The first algorithm of the paper projects the mean on the span of the points' features and perturbs
        its coordinates. The second perturbs the mean of random Fourier features, and then looks for points
        and weights that have it, by herding and a reduced set; for the Gaussian kernel alone.
    points : int or array of shape (n_points, columns)
        How many, or which: public data, as the claim then states. The private records are refused.
    lattice : int or list of int, optional
        For the first algorithm and the Gaussian kernel: in place of ``points`` the middles of this many cells
        along each column. The kernel matrix is then a product over columns, and 300,000 points take seconds.
        A spacing of one bandwidth is fine enough.
    features : int
        The number of random features of the second algorithm.
    sensitivity : {"published", "tight"}
        For the first algorithm: the paper's 2/n, or √2/n, which holds as well where no kernel value is below
        0; both times √sup k(x, x), which is 1 for a kernel without a weight.
    seed : int
        Public: of points and features.
    columns, **keywords
        As for `histogram`. The default of ``delta`` is 1e-6. ``relation`` is ``"replace"``, the only one,
        since the mean divides by the number of records.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; a delta above 0 is needed.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    (ε, δ) under replace, real arithmetic. In the space of a positive definite kernel a record has length
    √k(x, x) ≤ √κ, so one record replaced moves the mean by at most 2√κ/n; with k ≥ 0 by
    ``√(2κ − 2k)/n ≤ √(2κ)/n``. *Subspace*: with ``LLᵀ`` the points' kernel matrix plus a ridge, coordinates
    are ``L⁻¹·mean_x k(z, x)``. Their length is at most that of the
    projection on the points' span, the ridge only shortening it, so Δ is that of the mean. *Features*: a
    record's features have length 1, and Δ is 2/n. Gaussian noise by Balle & Wang's formula.

    Notes
    -----
    Balog, Tolstikhin and Schölkopf, *Differentially private database release via kernel mean embeddings*,
    ICML 2018, Algorithms 1 and 2.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import kme
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=0.1)
    >>> f = kme([[0.3]] * 20000, kernel, bounds=(0, 1), epsilon=1.0, points=100)
    >>> f([[0.3], [0.9]]).round(1) + 0.0, f.claim.relation.value
    (array([1., 0.]), 'replace')
    """
    from scipy.linalg import solve_triangular

    kernels.POSITIVE_DEFINITE.check(kernel, "kme")
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    kernels.one_of("algorithm", algorithm, ALGORITHMS)
    kernels.one_of("sensitivity", sensitivity, SENSITIVITIES)
    if sensitivity == "tight" and kernel.signed:
        raise UsageError(
            "sensitivity", "must be 'published' for a kernel that takes negative values", got="'tight'"
        )
    if algorithm == "features" or lattice is not None:
        kernels.GAUSSIAN.check(kernel, "kme with features or a lattice")
    if algorithm == "features" and lattice is not None:
        raise UsageError("lattice", ("is for ", Argument("algorithm", "subspace")), got="'features'")
    cells = None if lattice is None else CellGrid.of(box, lattice, most_cells=MOST_LATTICE_POINTS)
    given = None if isinstance(points, int | np.integer) or cells is not None else points
    declared.refuse_private(given, X, "points")
    public = _public_points(points, kernel, box, seed) if cells is None else cells.centres() - box.centre
    number = kernels.positive_integer("features", features, at_most=MOST_FEATURES)
    prepared = OneCallRelease.of(KME, *(() if given is None else (methods.PUBLIC_POINTS,)), **keywords)
    rows = declared.records(X)
    # Before the debit: what is public can be refused there.
    root = None if algorithm == "features" or cells is not None else _root(public, kernel)

    def make() -> PointsFunction:
        with prepared.noise() as noise:

            def perturbed(mean: Floats, moved: float) -> tuple[Floats, float]:
                return noise.gaussian(mean, moved / len(rows), prepared.epsilon, prepared.delta)

            chosen, stderr = public, None
            moved = SENSITIVITIES[sensitivity] * math.sqrt(kernel.size_bound())
            if algorithm == "features":
                chosen, weights = _features(rows, public, kernel, number, seed, perturbed)
            elif root is not None:
                # The noise at q has the variance σ²·k_qᵀ(K + λ)⁻¹k_q, at most σ²·k(q, q).
                coordinates = solve_triangular(root, mean_kernel_values(rows, public, kernel), lower=True)
                noisy, stderr = perturbed(coordinates, moved)
                weights = solve_triangular(root, noisy, lower=True, trans="T")
            else:
                assert cells is not None
                of_cells = Lattice.of(_gaussian(kernel), cells, RIDGE)
                noisy, stderr = perturbed(of_cells.coordinates(of_cells.mean_kernel_values(rows)), moved)
                weights = of_cells.weights(noisy).reshape(-1)
        return prepared.points_function(
            declared,
            points=np.clip(chosen + box.centre, box.low, box.high),
            weights=len(rows) * weights,
            count=float(len(rows)),
            feature_errors=None if stderr is None else releases.all_measured(len(chosen), stderr**2),
        )

    return prepared.released(make, algorithm=algorithm, points=len(public), seed=seed)


def mean_kernel_values(rows: Rows, points: Floats, kernel: Kernel) -> Floats:
    """The mean over records of k(x, z) at each point; secret. Equal records are compared once."""
    records, counts = np.unique(rows, axis=0, return_counts=True)
    queries = Batch((points,), len(points))
    total = np.zeros(len(points))
    step = max(1, _CELLS_AT_A_TIME // len(points))
    for start in range(0, len(records), step):
        some = records[start : start + step]
        total += counts[start : start + step] @ kernel._pairwise(Batch((some,), len(some)), queries)
    return total / len(rows)


def _root(points: Floats, kernel: Kernel) -> Floats:
    """L of ``LLᵀ = K + λ``, the kernel matrix of the points with a ridge in proportion to sup k(x, x)."""
    from scipy.linalg import LinAlgError, cholesky

    batch = Batch((points,), len(points))
    gram = kernel._pairwise(batch, batch)
    gram[np.diag_indices_from(gram)] += RIDGE * kernel.size_bound()
    try:
        return np.asarray(cholesky(gram, lower=True, overwrite_a=True), np.float64)
    except LinAlgError:
        raise UsageError(
            "kernel",
            "must be positive definite at the points, for kme",
            got=f"the {kernel.name} kernel, which is not",
            remedy="use another kernel, such as gaussian",
        ) from None


def _features(
    rows: Rows,
    pool: Floats,
    kernel: Kernel,
    features: int,
    seed: int,
    perturbed: Callable[[Floats, float], tuple[Floats, float]],
) -> tuple[Floats, Floats]:
    """Points of the pool and their weights."""
    frequencies = random_frequencies(_gaussian(kernel), features, seed)
    total = np.zeros(2 * len(frequencies))
    step = max(1, _CELLS_AT_A_TIME // len(frequencies))
    for start in range(0, len(rows), step):
        total += fourier_features(rows[start : start + step].astype(np.float64), frequencies).sum(axis=0)
    noisy, sigma = perturbed(total / len(rows), 2.0)
    return reduced_set(pool, fourier_features(pool, frequencies), noisy, sigma)


def _gaussian(kernel: Kernel) -> GaussianProfileKernel:
    """The kernel, which was checked to have the Gaussian shape."""
    assert isinstance(kernel, GaussianProfileKernel)
    return kernel


def random_frequencies(kernel: GaussianProfileKernel, features: int, seed: int) -> Floats:
    """Draws from the spectral measure of the Gaussian kernel, one for two features; public."""
    pairs = max(1, features // 2)
    scale = 1.0 / kernel.gaussian_width()
    return np.random.default_rng([seed, 1]).normal(scale=scale, size=(pairs, kernel.dim))


def fourier_features(rows: Floats, frequencies: Floats) -> Floats:
    """Cosines and sines, scaled so that every record has length 1, shape (n, 2·frequencies)."""
    angles = rows @ frequencies.T
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(len(frequencies))


def _public_points(points: int | object, kernel: Kernel, box: Bounds, seed: int) -> Floats:
    """Public points relative to the centre of the box: given, or a scrambled Halton sequence in it."""
    from scipy.stats import qmc

    if isinstance(points, int | np.integer) and not isinstance(points, bool):
        number = kernels.positive_integer("points", int(points), at_most=MOST_POINTS)
        spread = qmc.Halton(d=box.dim, scramble=True, seed=np.random.default_rng([seed, 0])).random(number)
        return np.asarray(qmc.scale(spread, box.low, box.high) - box.centre)
    given = kernel.prepare(points, box).arrays[0].astype(np.float64)
    if len(given) > MOST_POINTS:
        raise UsageError("points", f"must be at most {MOST_POINTS}", got=len(given))
    return np.unique(given, axis=0)


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
    function = methods.release_counted(
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
    prepared = OneCallRelease.of(MWEM, *(() if queries is None else (methods.PUBLIC_POINTS,)), **keywords)
    cells = _fine_bins(box, kernel, _MOST_DEFAULT_CELLS) if bins is None else bins
    grid = CellGrid.of(box, cells, most_cells=MOST_ENTRIES)
    points = _queries(queries, kernel, box)
    number = kernels.positive_integer("rounds", rounds, at_most=len(points))
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


def answers_of(counts: Integers, table: Floats) -> Integers:
    """The exact answer of every query; secret. Integers below 2⁵³, so that their sums in float64 are
    exact.
    """
    return (table @ counts.astype(np.float64)).astype(np.int64)


def _fitted(
    exact: Integers,
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


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveFunction(RealFunction):
    """Values at even steps from one end of the bounds to the other, straight lines between them.

    Made by ``pfda`` or by ``hushsum.load``; not by hand. Outside the bounds the nearest end answers. The
    kernel is fixed: another one needs another release.

    Parameters
    ----------
    values : array of shape (n_points,)
        Mean kernel values, noise included.
    errors : array of shape (n_points,)
        The standard deviation of the noise in each of them; the noise is correlated along the curve.
    kernel : Kernel
        Of one column.
    bounds : Bounds
        Of one column; the first value is at its low end, the last at its high end.
    count, count_variance, facts, method, columns
        As for `RealFunction`.

    Privacy
    -------
    The values were released together, so using them spends nothing.
    """

    kind = "curve"

    values: Floats
    errors: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds.dim != 1 or self.values.ndim != 1 or len(self.values) < 2:
            raise UsageError("a curve has one column and at least two values", got="another shape")
        if self.values.shape != self.errors.shape:
            raise UsageError("a curve has one error for each value", got="another number")

    def __repr__(self) -> str:
        return self._shown(f"curve={len(self.values)}")

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._read(Q, self.values)

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q), shape (n_queries,)."""
        return self.count * self(Q)

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """Without intervals: all errors are NaN.

        Much of the error is the bias of the smoothing penalty, of which the release says nothing; ``errors``
        has the standard deviation of the noise alone.
        """
        value = self._read(points, self.values)
        unknown = np.full(len(value), np.nan)
        total = value if options.of == "mean" else self.count * value
        return releases.normal_answers(total, unknown, options.level, points)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of steps."""
        number = len(self.values)
        return (
            Detail("method", self.method, self.method),
            Detail("steps", number, f"{number} values, straight lines between them", label="curve"),
            Detail("error_bars", releases.UNKNOWN_ERRORS, releases.UNKNOWN_ERRORS, label="error bars"),
        )

    def _payload(self) -> Payload:
        return {"values": len(self.values)}, releases.encode_reals(self.values, self.errors), None

    @cached_property
    def _places(self) -> Floats:
        centre = float(self.bounds.centre[0])
        places = np.linspace(self.bounds.low[0] - centre, self.bounds.high[0] - centre, len(self.values))
        places.flags.writeable = False
        return places

    def _read(self, Q: object, numbers: Floats) -> Floats:
        return np.interp(self._queries(Q)[:, 0], self._places, numbers)


MOST_STEPS = 4096
# Relative to the largest: directions below it carry no curve, and are left out of curve and noise alike.
_SMALLEST_EIGENVALUE = 1e-12


@dataclass(frozen=True, slots=True)
class CurveSpace:
    """Curves on a grid of a line, in the eigenvectors of the noise's covariance; public.

    ``basis`` has one column an eigenvector, orthonormal in the line's L2 norm; ``curves`` the coordinates of
    the kernel curve of a record at each grid point, one row each.
    """

    basis: Floats
    eigenvalues: Floats
    curves: Floats

    @classmethod
    def of(cls, kernel: Kernel, covariance: Kernel, low: float, high: float, steps: int) -> CurveSpace:
        """From the covariance of the noise at ``steps`` even points; the line is scaled to length 1."""
        from scipy.linalg import eigh

        places = np.linspace(low, high, steps)[:, None]
        batch = Batch((places,), steps)
        spacing = 1.0 / (steps - 1)
        eigenvalues, vectors = eigh(spacing * covariance._pairwise(batch, batch))
        kept = eigenvalues > _SMALLEST_EIGENVALUE * eigenvalues[-1]
        basis = vectors[:, kept] / math.sqrt(spacing)
        return cls(basis, eigenvalues[kept], spacing * (kernel._pairwise(batch, batch) @ basis))

    def smoothed(self, penalty: float) -> Floats:
        """The curves after the penalty, in units of the noise: coordinate j times ``√λ_j/(λ_j + φ)``.

        The mean with least ``Σ‖X_i − m‖²/n + φ·‖m‖²_C`` has coordinates λ_j/(λ_j + φ) times the plain mean's;
        noise has √λ_j in that direction.
        """
        return self.curves * (np.sqrt(self.eigenvalues) / (self.eigenvalues + penalty))


@shows_keywords(OneCallKeywords, relation=Relation.REPLACE, delta=methods.DEFAULT_DELTA)
def pfda(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    penalty: float = 0.01,
    covariance: Kernel | None = None,
    steps: int = 1024,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
) -> CurveFunction:
    """The mean of kernel curves as functional data, in one dimension. Spends ``epsilon`` and ``delta``.

    Works well for one column and a penalty far below the largest eigenvalue of the covariance, which is about
    2.5 bandwidths over the width of the bounds; above it the curve is smoothed away. The penalty's bias is no
    part of the standard errors.

    Parameters
    ----------
    X : records of shape (n, 1)
        Private; their number is public.
    kernel : Kernel
        Of one column. Each record becomes the curve ``k(x, ·)``.
    bounds : (low, high)
        Declared. Records are clipped to it and rounded to the nearest of ``steps`` points.
    penalty : float
        φ, the smoothing, on the line scaled to length 1, in units of sup k(x, x) of the covariance.
    covariance : Kernel, optional
        Covariance of the Gaussian process that is the noise, positive definite; default the kernel itself.
    steps : int
        Points of the grid; one decomposition of steps × steps, whatever the number of records.
    columns, **keywords
        As for `histogram`. The default of ``delta`` is 1e-6. ``relation`` is ``"replace"``, the only one,
        since the mean divides by the number of records.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; a delta above 0 is needed.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    (ε, δ) under replace, real arithmetic. In the eigenvectors of the covariance, scaled by the noise, the
    smoothed mean is a mean of vectors of which there are ``steps``, one for each place a record can be
    rounded to. One record replaced moves it by at most Δ = (their largest distance)/n, computed from all
    pairs, and Gaussian noise is calibrated to that Δ by Balle & Wang's formula, for every ε. The dropped
    eigenvectors are chosen without the data.

    Notes
    -----
    Mirshani, Reimherr and Slavković, *Formal privacy for functional data with Gaussian perturbations*, ICML
    2019. There Δ² is bounded by the sup of the curves' norms over φ, and the noise by ``2·ln(2/δ)·Δ²/ε²``,
    which holds for ε ≤ 1.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import pfda
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=0.1)
    >>> f = pfda([[0.3]] * 20000, kernel, bounds=(0, 1), epsilon=1.0, penalty=1e-4, steps=200)
    >>> f([[0.3], [0.9]]).round(1) + 0.0, f.claim.arithmetic
    (array([1., 0.]), 'real arithmetic')
    """
    kernels.POSITIVE_DEFINITE.check(kernel, "pfda")
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    if box.dim != 1:
        raise UsageError("bounds", "must be of one column for pfda", got=box.dim, remedy="use kme, or a grid")
    process = kernel if covariance is None else covariance
    kernels.POSITIVE_DEFINITE.check(process, "the noise of pfda")
    DeclaredBox.of(process, box, None)
    kernels.positive_number("penalty", penalty, remedy="try 0.01")
    number = kernels.positive_integer("steps", steps, at_most=MOST_STEPS)
    if number < 8:
        raise UsageError("steps", "must be at least 8", got=f"{number}", remedy="try 1024")
    prepared = OneCallRelease.of(PFDA, **keywords)
    rows = declared.records(X)
    low, high = (float(end - box.centre[0]) for end in (box.low[0], box.high[0]))

    def make() -> CurveFunction:
        smoothing = penalty * process.size_bound()
        space, vectors, furthest = _public_part(kernel, process, low, high, number, smoothing)
        place = np.rint((rows[:, 0].astype(np.float64) - low) * ((number - 1) / (high - low)))
        shares = np.bincount(np.clip(place, 0, number - 1).astype(np.int64), minlength=number) / len(rows)
        with prepared.noise() as noise:
            noisy, sigma = noise.gaussian(
                shares @ vectors, furthest / len(rows), prepared.epsilon, prepared.delta
            )
        paths = space.basis * np.sqrt(space.eigenvalues)
        return CurveFunction(
            values=paths @ noisy,
            errors=sigma * np.sqrt(np.einsum("ij,ij->i", paths, paths)),
            kernel=kernel,
            bounds=box,
            count=float(len(rows)),
            count_variance=0.0,
            facts=PublicFacts(prepared.claim),
            method=PFDA.name,
            columns=declared.columns,
        )

    return prepared.released(make, penalty=penalty, steps=number)


@lru_cache(maxsize=1)
def _public_part(
    kernel: Kernel, covariance: Kernel, low: float, high: float, steps: int, penalty: float
) -> tuple[CurveSpace, Floats, float]:
    """What does not depend on the records: the space, the smoothed curves, their largest distance."""
    space = CurveSpace.of(kernel, covariance, low, high, steps)
    vectors = space.smoothed(penalty)
    return space, vectors, largest_distance(vectors)


def largest_distance(vectors: Floats) -> float:
    """The largest Euclidean distance between two rows, rounded up by what the squares lose.

    >>> round(largest_distance(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])), 9)
    5.0
    """
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    squared = lengths[:, None] + lengths[None, :] - 2.0 * (vectors @ vectors.T)
    rounding = 4.0 * (vectors.shape[1] + 2) * float(np.finfo(np.float64).eps) * float(lengths.max())
    return math.sqrt(max(float(squared.max()), 0.0) + rounding)


def _shapes(header: Header) -> list[tuple[int, ...]]:
    return [(releases.stored_integer(header["values"], 1, releases.MOST_NUMBERS),)] * 2


def _curve(header: Header, values: Floats, errors: Floats) -> CurveFunction:
    if (errors < 0.0).any():
        raise ValueError("errors")
    return CurveFunction(values=values, errors=errors, **releases.common_fields(header))


releases.register_reals(CurveFunction.kind, "values", _shapes, _curve)


_CHOICES: Any = {"approximate": False, "mechanism": Mechanism.of(privacy.PERMUTE_AND_FLIP, privacy.LAPLACE)}
_ON_REALS: Any = {
    "pure": False,
    "relations": (Relation.REPLACE,),
    "mechanism": Mechanism.of(privacy.REAL_GAUSSIAN),
    "arithmetic": privacy.REAL_ARITHMETIC,
}
_PRIVBAYES_PAPER = "Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017"
_HISTOGRAM_PAPER = "Dwork, McSherry, Nissim and Smith 2006"
_PFDA_PAPER = "Mirshani, Reimherr and Slavković 2019"
_COUNTED: Any = {"mechanism": Mechanism.of(privacy.LAPLACE), "tally": histogram_tally}
PRIVBAYES = Method("privbayes", kernels.COLUMNS, _PRIVBAYES_PAPER, one_call=privbayes, **_CHOICES)
MWEM = Method(
    "mwem", kernels.COLUMNS, "Hardt, Ligett and McSherry 2012", one_call=mwem, most_columns=3, **_CHOICES
)
HISTOGRAM = Method(
    "histogram", kernels.COLUMNS, _HISTOGRAM_PAPER, one_call=histogram, most_columns=3, **_COUNTED
)
KME = Method(
    "kme", kernels.POSITIVE_DEFINITE, "Balog, Tolstikhin and Schölkopf 2018", one_call=kme, **_ON_REALS
)
PFDA = Method("pfda", kernels.POSITIVE_DEFINITE, _PFDA_PAPER, one_call=pfda, most_columns=1, **_ON_REALS)
for _each in (PRIVBAYES, KME, HISTOGRAM, MWEM, PFDA):
    methods.register(_each)
