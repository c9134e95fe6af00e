"""Kernel mean embedding: weighted public points whose mean in feature space is that of the records, up to
noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Rows
from hushsum.errors import Argument, UsageError
from hushsum.kernels import (
    GAUSSIAN,
    POSITIVE_DEFINITE,
    Batch,
    GaussianKernel,
    GaussianProfileKernel,
    Kernel,
    one_of,
    positive_integer,
)
from hushsum.methods import PUBLIC_POINTS, DeclaredBox, Method, OneCallRelease, ReleaseKeywords, register
from hushsum.privacy import REAL_ARITHMETIC, REAL_GAUSSIAN, Mechanism, Relation, release_noise
from hushsum.records import Bounds, CellGrid, DeclaredBounds
from hushsum.releases import PointsFunction, all_measured


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


def herd(features: Floats, target: Floats, rounds: int) -> NDArray[np.int64]:
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


NAME = "kme"
ALGORITHMS = ("subspace", "features")
SENSITIVITIES = {"published": 2.0, "tight": math.sqrt(2.0)}
RIDGE = 1e-6
MOST_POINTS = 1 << 15
MOST_LATTICE_POINTS = 1 << 21
MOST_FEATURES = 1 << 16
_CELLS_AT_A_TIME = 1 << 21


def kme(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    epsilon: float,
    delta: float | None = 1e-6,
    algorithm: str = "subspace",
    points: int | object = 1000,
    lattice: int | Sequence[int] | None = None,
    features: int = 1000,
    sensitivity: str = "published",
    seed: int = 0,
    relation: str | Relation = Relation.REPLACE,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[ReleaseKeywords],
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
        Of the first algorithm, for the Gaussian kernel: in place of ``points`` the middles of this many cells
        along each column. The kernel matrix is then a product over columns, and 300,000 points take seconds.
        A spacing of one bandwidth is fine enough.
    features : int
        Of the second algorithm: how many random features.
    sensitivity : {"published", "tight"}
        Of the first algorithm: the paper's 2/n, or √2/n, which holds as well where no kernel value is below
        0; both times √sup k(x, x), which is 1 for a kernel without a weight.
    seed : int
        Public: of points and features.
    relation : {"replace"}
        The only one, since the mean divides by the number of records.
    columns, **keywords
        As for `histogram`.

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

    POSITIVE_DEFINITE.check(kernel, "kme")
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    one_of("algorithm", algorithm, ALGORITHMS)
    one_of("sensitivity", sensitivity, SENSITIVITIES)
    if sensitivity == "tight" and kernel.signed:
        raise UsageError(
            "sensitivity", "must be 'published' for a kernel that takes negative values", got="'tight'"
        )
    if algorithm == "features" or lattice is not None:
        GAUSSIAN.check(kernel, "kme with features or a lattice")
    if algorithm == "features" and lattice is not None:
        raise UsageError("lattice", ("is for ", Argument("algorithm", "subspace")), got="'features'")
    cells = None if lattice is None else CellGrid.of(box, lattice, most_cells=MOST_LATTICE_POINTS)
    given = None if isinstance(points, int | np.integer) or cells is not None else points
    declared.refuse_private(given, X, "points")
    public = _public_points(points, kernel, box, seed) if cells is None else cells.centres() - box.centre
    number = positive_integer("features", features, at_most=MOST_FEATURES)
    prepared = OneCallRelease.of(
        METHOD,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        assumptions=() if given is None else (PUBLIC_POINTS,),
        **keywords,
    )
    rows = declared.records(X)
    # Before the debit: what is public can be refused there.
    root = None if algorithm == "features" or cells is not None else _root(public, kernel)

    def make() -> PointsFunction:
        with release_noise(prepared.insecure_noise_seed) as noise:

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
            feature_errors=None if stderr is None else all_measured(len(chosen), stderr**2),
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
        number = positive_integer("points", int(points), at_most=MOST_POINTS)
        spread = qmc.Halton(d=box.dim, scramble=True, seed=np.random.default_rng([seed, 0])).random(number)
        return np.asarray(qmc.scale(spread, box.low, box.high) - box.centre)
    given = kernel.prepare(points, box).arrays[0].astype(np.float64)
    if len(given) > MOST_POINTS:
        raise UsageError("points", f"must be at most {MOST_POINTS}", got=len(given))
    return np.unique(given, axis=0)


METHOD = register(
    Method(
        name=NAME,
        role=POSITIVE_DEFINITE,
        release=kme,
        pure=False,
        relations=(Relation.REPLACE,),
        mechanism=Mechanism.of(REAL_GAUSSIAN),
        arithmetic=REAL_ARITHMETIC,
        paper="Balog, Tolstikhin and Schölkopf 2018",
    )
)
