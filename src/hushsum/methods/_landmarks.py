"""Landmarks: public points where the records are, weighted by a few features that were measured there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Unpack

import numpy as np

from hushsum._types import Floats, Integers, Rows
from hushsum.declaration import shows_keywords
from hushsum.kernels import SPECTRAL, Batch, Kernel, SpectralKernel, positive_integer
from hushsum.privacy import GAMMA, LAPLACE, Mechanism, Relation, ReleaseNoise
from hushsum.records import Bounds, CellGrid, DeclaredBounds, clipping_allowed
from hushsum.releases import FeatureErrors, PointsFunction, nearest_probabilities
from hushsum.tables import MAX_DIM

from ._method import (
    PUBLIC_POINTS,
    DeclaredBox,
    Method,
    OneCallKeywords,
    OneCallRelease,
    part_of_budget,
    register,
)
from ._prediction import (
    EFFECTIVE_POWER,
    HEADER_BYTES,
    NORMAL_MEAN_ABSOLUTE,
    SUM,
    Option,
    PredictionRequest,
    errors_at_densities,
)

__all__ = ["LANDMARKS", "LENGTH", "MOST_COLUMNS", "landmarks", "predicted_error"]

TREE_SHARE = Fraction(7, 10)
"""The part of the tree's ε for its shape. The rest is for the counts of its leaves."""

CELLS_PER_BANDWIDTH = 2
_MOST_BINS = 1 << 10
_TREE_COST = 3
_ABOVE_LN_2 = Fraction(6_931_471_806, 10**10)
# The part of a column's histogram that is spread evenly, so that no place in a leaf is impossible.
_SPREAD = 0.05


@dataclass(frozen=True, slots=True)
class Leaves:
    """Boxes that cover the declared one, relative to its centre, and a public weight for each."""

    low: Floats
    high: Floats
    weights: Floats


@dataclass(frozen=True, slots=True)
class PlaceSearch:
    """What both looks at the places of records take: public numbers, and the noise.

    Attributes
    ----------
    widths : sequence of float
        The bandwidth along each column.
    epsilon : Fraction
        Of each look.
    moved : int
        1 under add/remove, 2 under replace.
    count : float
        The public number of records, which weights and histograms are fitted to.
    """

    bounds: Bounds
    widths: Sequence[float]
    epsilon: Fraction
    moved: int
    noise: ReleaseNoise
    count: float


def private_leaves(rows: Rows, search: PlaceSearch) -> Leaves:
    """Boxes that are small where records are dense, halved until they are half a bandwidth wide.

    Parameters
    ----------
    rows : array of shape (n, columns)
        Records, centred on the box; secret.
    search : PlaceSearch

    Privacy
    -------
    Pure ε, exact integers: 7/10 for the shape of the tree, the rest for the counts of its leaves, of which a
    record is in one. All boxes of a depth are halved along the same public column.

    *Shape.* A box with c records at depth i has the score ``b = max(u, −D)``, ``u = c − i·D``, and is halved
    if ``b + Z > 0``, with Z discrete Laplace of scale λ and D ≥ λ·ln 2 an integer. One record more raises c
    by 1 along one path. Let q = e^(−1/λ). The leaf at the end of the path changes the probability of the tree
    by a factor from q to 1. A halved box changes it by a factor of at least 1 and at most e^ρ(b), with

    - ρ = 0 where u < −D, since b stays −D;
    - ρ ≤ 1/λ always;
    - ρ(b) = ln(1 + q^b·(1 − q)/(1 + q − q^b)) ≤ q^b·(1 − q) for b ≥ 1, because P(Z > −b) = 1 − q^b/(1 + q).

    Along the path u falls by D or more from box to box. So one u at most is in [−D, 0), and those from 0 on
    are at least 0, D, 2D, …: their sum is at most 1/λ + 1/λ + (1 − q)·Σ_{k≥1} q^{kD} ≤ 3/λ, since q^D ≤ ½ and
    1 − q ≤ 1/λ. One record replaced is one less and one more.

    Notes
    -----
    Zhang, Xiao and Xie, *PrivTree*, SIGMOD 2016, with two children per box, and with integer noise.
    """
    bounds, epsilon, moved, noise = search.bounds, search.epsilon, search.moved, search.noise
    low = np.array([bounds.low], np.float64) - bounds.centre
    high = np.array([bounds.high], np.float64) - bounds.centre
    shape_epsilon = TREE_SHARE * epsilon
    penalty = depth_penalty(epsilon, moved)
    place = np.zeros(len(rows), np.int64)
    index = np.arange(len(rows))
    lows, highs, counts = [], [], []
    depth = 0
    while len(low):
        inside = np.bincount(place, minlength=len(low)).astype(np.int64)
        sides = (high[0] - low[0]) / np.array(search.widths)
        column = int(np.argmax(sides))
        split = np.zeros(len(low), bool)
        if sides[column] > 1.0 / CELLS_PER_BANDWIDTH:
            score = np.maximum(inside - depth * penalty, -penalty)
            split = noise.laplace(score, _TREE_COST * moved, shape_epsilon)[0] > 0
        lows.append(low[~split])
        highs.append(high[~split])
        counts.append(inside[~split])
        # The halves of the k-th box that was split are boxes 2k and 2k + 1 of the next depth.
        low, high = low[split].repeat(2, axis=0), high[split].repeat(2, axis=0)
        middle = 0.5 * (low[:, column] + high[:, column])
        high[0::2, column] = middle[0::2]
        low[1::2, column] = middle[1::2]
        stays = split[place]
        index, place = index[stays], 2 * (np.cumsum(split) - 1)[place[stays]]
        if len(index):
            place += rows[index, column].astype(np.float64) >= low[place + 1, column]
        depth += 1
    noisy, _ = noise.laplace(np.concatenate(counts), moved, epsilon - shape_epsilon)
    return Leaves(np.concatenate(lows), np.concatenate(highs), nearest_shares(noisy, search.count))


def depth_penalty(epsilon: Fraction, moved: int) -> int:
    """D: the records that a box must hold for each halving before it, to be halved again."""
    return math.ceil(_TREE_COST * moved / (TREE_SHARE * epsilon) * _ABOVE_LN_2)


def full_depth(bounds: Bounds, widths: Sequence[float]) -> int:
    """How often the box is halved until its parts are half a bandwidth wide along every column.

    >>> full_depth(Bounds.of((0, 1), 3), widths=[0.1] * 3)
    15
    """
    sides = ((high - low) / width for low, high, width in zip(bounds.low, bounds.high, widths, strict=True))
    return sum(max(0, math.ceil(math.log2(side * CELLS_PER_BANDWIDTH))) for side in sides)


@dataclass(frozen=True, slots=True)
class ColumnHistograms:
    """The distribution function of each column, piecewise linear, relative to the centre of the box."""

    edges: tuple[Floats, ...]
    steps: tuple[Floats, ...]


def column_histograms(rows: Rows, search: PlaceSearch) -> ColumnHistograms:
    """Noisy histograms with cells half a bandwidth wide, fitted to the public number of records.

    Privacy
    -------
    Pure ε, exact integers. A record is in one cell of every column, so Δ1 is the number of columns, and twice
    that under replace.
    """
    bounds = search.bounds
    spans = np.array(bounds.high) - np.array(bounds.low)
    wanted = np.ceil(spans / np.array(search.widths) * CELLS_PER_BANDWIDTH)
    bins = np.clip(wanted, 1, _MOST_BINS).astype(int).tolist()
    codes = CellGrid.of(bounds, bins).codes(rows)
    edges, steps = [], []
    for column, number in enumerate(bins):
        counts = np.bincount(codes[:, column], minlength=number).astype(np.int64)
        noisy, _ = search.noise.laplace(counts, search.moved * bounds.dim, search.epsilon)
        cells = (1.0 - _SPREAD) * nearest_shares(noisy, search.count) + _SPREAD / number
        low = bounds.low[column] - bounds.centre[column]
        edges.append(low + spans[column] * np.linspace(0.0, 1.0, number + 1))
        steps.append(np.concatenate([[0.0], np.cumsum(cells)]))
    return ColumnHistograms(tuple(edges), tuple(steps))


def draw_points(
    leaves: Leaves, histograms: ColumnHistograms, number: int, rng: np.random.Generator
) -> Floats:
    """Public points: a leaf by its weight, and each column by its histogram within that leaf."""
    chosen = rng.choice(len(leaves.weights), number, p=leaves.weights)
    points = np.empty((number, leaves.low.shape[1]))
    for column, (edges, steps) in enumerate(zip(histograms.edges, histograms.steps, strict=True)):
        first = np.interp(leaves.low[chosen, column], edges, steps)
        last = np.interp(leaves.high[chosen, column], edges, steps)
        points[:, column] = np.interp(first + (last - first) * rng.random(number), steps, edges)
    return points


def nearest_shares(noisy: Integers, count: float) -> Floats:
    """Noisy counts as parts of 1: the nearest numbers, by the sum of squares, that are not negative and sum
    to the number of records.

    They are the counts less one constant, and 0 where that is negative, so most of the noise of empty cells
    is gone.

    >>> nearest_shares(np.array([60, 50, -20, 0]), 100.0).tolist()
    [0.55, 0.45, 0.0, 0.0]
    """
    kept = nearest_probabilities(noisy / max(count, 1.0))
    return np.asarray(kept / kept.sum())


LENGTH = 1 << 20
"""L: a record's integers have at most this length."""

_PRIOR_VARIANCE, _OF_HALVING = 0.03, 8.0
"""Two numbers whose maximum is τ, the assumed variance of a coefficient about that of the points, over its
eigenvalue: the least τ, and a factor of the part of the records that a box must hold for each halving. τ only
decides how many features are measured. The first number was chosen on cod_rna, the second on shuttle,
protein, cod_rna and thyroid at ε = 0.1.
"""

_LEAST_EIGENVALUE = 1e-8
_SIZES = 60
_ITERATIONS = 500
_VALUES_AT_A_TIME = 1 << 22
_SIMILARITY = 2.0**20
# Kernel values are multiples of 2⁻²⁰, and the coefficients of a feature integers whose sizes sum to about
# this: sums of their products are integers below 2⁵³, which doubles hold whatever the order of addition.
_COEFFICIENTS = 2.0**32


@dataclass(frozen=True)
class PrincipalFeatures:
    """The first functions of kernel principal component analysis of public points.

    Parameters
    ----------
    kernel : Kernel
        Positive definite, with k(x, x) = 1.
    points : array of shape (n_points, columns)
        Public, relative to the centre of the box.
    coefficients : array of shape (n_points, n_features)
        Feature j of a record x is ``Σ_i coefficients[i, j]·k(points[i], x)``.
    eigenvalues : array of shape (n_features,)
        The mean square of each feature over the points, falling.

    Privacy
    -------
    The features are orthonormal in the kernel's space, so those of a record are coordinates of a projection
    of k(x, ·), whose length is √k(x, x) = 1. Computed ones are scaled down where rounding made them longer.
    A record's features depend on that record alone, bit for bit: kernel values are computed one by one, and
    the matrix product is one of integers, without any rounding that the place in a batch could change.
    `sums` rounds ``(L − ⌈√m/2⌉ − 1)·features`` to integers; rounding m numbers adds at most √m/2 to their
    length. So one record more or less moves the sums by at most L = 2²⁰ in L2, and one replaced by 2L.
    """

    kernel: Kernel
    points: Floats
    coefficients: Floats
    eigenvalues: Floats

    @classmethod
    def of(cls, kernel: Kernel, points: Floats) -> PrincipalFeatures:
        """All functions whose eigenvalue is not lost in rounding."""
        batch = Batch((points,), len(points))
        gram = kernel._pairwise(batch, batch)
        values, vectors = np.linalg.eigh(gram / len(points))
        kept = np.flatnonzero(values > _LEAST_EIGENVALUE)[::-1]
        scale = np.sqrt(values[kept] * len(points))
        return cls(kernel, points, vectors[:, kept] / scale, values[kept])

    def first(self, number: int) -> PrincipalFeatures:
        """The most important ones."""
        return replace(
            self, coefficients=self.coefficients[:, :number], eigenvalues=self.eigenvalues[:number]
        )

    @property
    def scale(self) -> float:
        """The integer that stands for 1."""
        return float(LENGTH - math.ceil(math.sqrt(len(self.eigenvalues)) / 2.0) - 1)

    @cached_property
    def of_points(self) -> Floats:
        """The features of the points themselves, shape (n_points, n_features)."""
        return self.values(self.points)

    def values(self, rows: Floats | Rows) -> Floats:
        """The features of records, shape (n, n_features), no row longer than 1."""
        similar = self.kernel._pairwise(Batch((rows,), len(rows)), Batch((self.points,), len(self.points)))
        coefficients, units = self._integers
        values: Floats = np.rint(np.clip(similar, -1.0, 1.0) * _SIMILARITY) @ coefficients
        values /= _SIMILARITY * units
        values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1.0)
        return values

    @cached_property
    def _integers(self) -> tuple[Floats, Floats]:
        """The coefficients as integers, and for each feature the power of two that they were multiplied
        by.
        """
        sizes = np.abs(self.coefficients).sum(axis=0)
        units = 2.0 ** np.floor(np.log2(_COEFFICIENTS / sizes))
        return np.rint(self.coefficients * units), units

    def sums(self, rows: Rows) -> Integers:
        """The sum over records of their features as integers; secret."""
        records, repeats = np.unique(rows, axis=0, return_counts=True)
        total = np.zeros(len(self.eigenvalues), np.int64)
        step = max(1, _VALUES_AT_A_TIME // len(self.points))
        for start in range(0, len(records), step):
            rounded = np.rint(self.scale * self.values(records[start : start + step])).astype(np.int64)
            total += repeats[start : start + step] @ rounded
        return total


def prior_variance(penalty: float = 0.0) -> float:
    """τ, where a box must hold this part of the records for each halving before it: 0 for public points. The
    larger it is, the less are points like the records.
    """
    return max(_PRIOR_VARIANCE, _OF_HALVING * penalty)


def best_number(eigenvalues: Floats, deviation: float, tau: float) -> int:
    """How many features to measure, where m of them take noise of variance m·deviation² each.

    With prior variances τ·λ_j, the mean squared error over the points is the sum of λ_j times the posterior
    variance of a measured coefficient, or times the prior variance of one that is not.

    >>> values = 0.5 ** np.arange(1, 20)
    >>> best_number(values, 1e-4, 0.03), best_number(values, 1e-2, 0.03), best_number(values, 1e-2, 0.3)
    (10, 4, 5)
    """
    prior = tau * eigenvalues
    left_out = np.append(np.cumsum((eigenvalues * prior)[::-1])[::-1], 0.0)
    sizes = np.unique(np.rint(np.geomspace(1, len(eigenvalues), _SIZES)).astype(int))

    def error(number: int) -> float:
        noise = number * deviation**2
        measured = prior[:number] * noise / (prior[:number] + noise)
        return float((eigenvalues[:number] * measured).sum() + left_out[number])

    return int(min(sizes, key=error))


def fitted_weights(features: PrincipalFeatures, noisy: Floats, variance: float) -> tuple[Floats, float]:
    """Weights of the points, which sum to about 1, whose features have nearly these noisy means; and τ, where
    τ·λ is the variance of a coefficient about that of the points, λ its eigenvalue.

    First the weights above 0 that are closest to equal ones in relative entropy, with a penalty for missing
    the means by more than their noise: the maximum a posteriori estimate. They also fill in what was not
    measured. What they miss is then added as far as it exceeds the noise (empirical Bayes), with weights of
    any sign.
    """
    weights = _maximum_entropy(features, noisy, variance)
    missed = noisy - features.of_points.T @ weights
    prior = _prior_variance(missed, features.eigenvalues, variance)
    kept = prior * features.eigenvalues / (prior * features.eigenvalues + variance)
    corrected: Floats = weights + features.coefficients @ (kept * missed)
    from_points = noisy - features.of_points.mean(axis=0)
    return corrected, _prior_variance(from_points, features.eigenvalues, variance)


def _maximum_entropy(features: PrincipalFeatures, noisy: Floats, variance: float) -> Floats:
    """softmax(F·θ) at the minimum of ``log Σ exp(F·θ) − θ·noisy + variance·‖θ‖²/2``, which is convex."""
    from scipy.optimize import minimize

    # Each feature is scaled to a mean square of 1, without which the descent is slow.
    unit = np.sqrt(features.eigenvalues)
    scaled, wanted, penalty = features.of_points / unit, noisy / unit, variance / features.eigenvalues

    def weights(theta: Floats) -> tuple[Floats, float]:
        power = scaled @ theta
        raised = np.exp(power - power.max())
        return raised / raised.sum(), float(power.max()) + math.log(raised.sum())

    def objective(theta: Floats) -> tuple[float, Floats]:
        found, log_total = weights(theta)
        value = log_total - float(theta @ wanted) + 0.5 * float((penalty * theta**2).sum())
        return value, scaled.T @ found - wanted + penalty * theta

    start = np.zeros(len(noisy))
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS})
    return weights(found.x)[0]


def _prior_variance(missed: Floats, eigenvalues: Floats, variance: float) -> float:
    """The τ of greatest likelihood, where coefficients have variance τλ and noise of the given one."""
    candidates = np.geomspace(1e-6, 1.0, 80)
    spread = candidates[:, None] * eigenvalues + variance
    return float(candidates[int(np.argmin((np.log(spread) + missed**2 / spread).sum(axis=1)))])


_OF_MODEL, _AT_DEVIATION, _MODEL_POWER = 3.1, 5.6e-4, 0.16
_AT_COLUMNS, _COLUMNS_POWER = 8, 1.5
# Measured errors over those of a model, in which the points are the records themselves: 3.1 in 8 columns,
# where a lone feature has noise of standard deviation 5.6e-4 (Nε = 4000); more with more columns, or with
# less noise, because of what the points miss; and more by the square of how many times the records would have
# to be multiplied for a tree of full depth. Fitted to thyroid, cod_rna, shuttle and protein with 1,500 to
# 20,000 records at ε = 0.1 to 1, but for the power of the columns, which is a compromise between all eleven
# sets that were tried. Measured errors are within 1.5 times the predicted ones in two of three cases; they
# are further off where the density is far from typical.
_OF_PLACES = 0.45

_MOST_FEATURES = 2000
_LEAST = 1e-8


@dataclass(frozen=True, slots=True)
class LandmarkError:
    """Mean absolute errors of the mean kernel value, and how many features they are for."""

    noise: float
    approximation: float
    features: int


def predicted_error(
    widths: Sequence[float], bounds: Bounds, *, density: float, deviation: float, penalty: float
) -> LandmarkError:
    """For normal records that vary along d^0.27 of the d columns, so much that their mean kernel value is
    ``density``.

    Parameters
    ----------
    widths : sequence of float
        The bandwidth along each column.
    deviation : float
        The standard deviation of the noise of one feature where one is measured; m features have √m times
        that.
    penalty : float
        What a box must hold for each halving before it, to be halved again: a part of the records.

    Examples
    --------
    >>> box = Bounds.of((0, 1), 8)
    >>> error = predicted_error([0.1] * 8, box, density=0.2, deviation=1e-4, penalty=1e-4)
    >>> error.features, 0.001 < math.hypot(error.noise, error.approximation) < 0.01
    (40, True)
    """
    values = typical_eigenvalues(density, bounds.dim)
    number = best_number(values, deviation, prior_variance(penalty))
    prior, variance = prior_variance() * values, number * deviation**2
    noise = float((values * prior * variance / (prior + variance))[:number].sum())
    left = float((values * prior)[number:].sum())
    missed = _OF_PLACES * (full_depth(bounds, widths) * penalty) ** 2
    scale = _OF_MODEL * math.hypot((_AT_DEVIATION / deviation) ** _MODEL_POWER, missed)
    scale *= NORMAL_MEAN_ABSOLUTE * (bounds.dim / _AT_COLUMNS) ** _COLUMNS_POWER
    # Where noise hides the records, answers are near 0, and have errors of the size of the density.
    total = scale * math.sqrt(noise + left)
    scale *= -math.expm1(-total / density) * density / total
    return LandmarkError(scale * math.sqrt(noise), scale * math.sqrt(left), number)


def typical_eigenvalues(density: float, dim: int) -> Floats:
    """The eigenvalues of the kernel's integral operator for typical records, in falling order.

    For a Gaussian kernel and normal records of variance a, in bandwidths, they are λ₀·B^k in one column
    (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 4.3.1); in p columns the k-th power
    has λ₀^p and C(k + p − 1, k) functions, and the mean kernel value is (1 + 2a)^(−p/2). The other kernels
    are taken to be like the Gaussian one.
    """
    columns = math.pow(dim, EFFECTIVE_POWER)
    variance = max((math.pow(density, -2.0 / columns) - 1.0) / 2.0, _LEAST)
    a, b = 1.0 / (4.0 * variance), 0.5
    total = a + b + math.sqrt(a * a + 2.0 * a * b)
    ratio, first = b / total, math.sqrt(2.0 * a / total) ** columns
    values: list[float] = []
    power = 0
    while len(values) < _MOST_FEATURES and first * ratio**power > _LEAST:
        logarithm = math.lgamma(power + columns) - math.lgamma(power + 1) - math.lgamma(columns)
        values += [first * ratio**power] * max(1, round(math.exp(logarithm)))
        power += 1
    return np.array(values[:_MOST_FEATURES] or [first])


LANDMARKS = "landmarks"
MECHANISM = Mechanism.of(LAPLACE, GAMMA)
MOST_POINTS = 1 << 13
DEFAULT_POINTS = 2000
MOST_COLUMNS = 20
"""Plans consider the method for up to this many columns; it was not tried with more."""

_LOCATION_SHARE = Fraction(3, 10)
_SECONDS_TO_FIT = 3.0
_NANOSECONDS = 0.15
COUNT_PART = Fraction(1, 10)
"""The part of ε for the number of records.

An answer f has an error of f·√2/(part·ε·N) from it. With a fiftieth of ε this would be the largest of all
errors where answers are near 1.
"""


@shows_keywords(OneCallKeywords, relation=Relation.ADD_REMOVE)
def landmarks(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    points: int = DEFAULT_POINTS,
    public: object = None,
    location_share: float = float(_LOCATION_SHARE),
    seed: int = 0,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
) -> PointsFunction:
    """Weighted public points placed where the records are. Spends ``epsilon``, in two steps.

    For 4 to 20 columns under pure ε, if records fill a small part of the declared box at the scale of the
    bandwidth, or if public records show where they are. Not for records that fill the box, nor for
    bandwidths so narrow, or budgets so small, that the places cannot be found: random features are better
    there. Costs records × points × features. The error bars of ``query`` are those of a model
    (`hushsum.releases.FeatureErrors`): the noise is known, how far records are from the points is estimated.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private.
    kernel : SpectralKernel
        Gaussian, Laplacian, Matérn, or any other with a known spectral measure.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared; the box in which points are placed.
    points : int
        How many points are published.
    public : array of shape (n_public, columns), optional
        Public records like the private ones. At most ``points`` of them become the points, which are
        published, and nothing is spent on finding places. The claim states that they are public; the private
        records themselves are refused.
    location_share : float
        The part of the budget that pays for the places of the points.
    seed : int
        Public: of the places.
    columns : list of str, optional
        What the columns are called, in their order; frames are then read by these names.
    **keywords
        ``epsilon``, ``relation``, ``budget``, ``idempotency_key`` and ``insecure_noise_seed`` as for
        ``Tally.release``.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; ``delta`` is refused.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    Pure ε, exact integers. Under add/remove a tenth of ε pays for the number of records. Of the rest, half of
    ``location_share`` pays for a tree of boxes and half for histograms of the columns (`private_leaves`,
    `column_histograms`). Points drawn from these are public, and so are the features made of them. Their sums
    over the records, integers, move by at most L in L2 (`PrincipalFeatures`), and get a noise vector of
    density ∝ exp(−ε·‖b‖/L), rounded (`hushsum.privacy.gamma_noise`). Weights are computed from
    noisy sums alone. The ε of the steps add up.

    Notes
    -----
    Zhang, Xiao and Xie, *PrivTree*, SIGMOD 2016; Hardt and Talwar, *On the geometry of differential privacy*,
    STOC 2010; Balog, Tolstikhin and Schölkopf, ICML 2018, for released points in a kernel's space.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> from hushsum.methods import landmarks
    >>> X = np.random.default_rng(0).normal(0.5, 0.05, (5000, 6))
    >>> f = landmarks(X, hs.GaussianKernel(dim=6, bandwidth=0.1), bounds=(0, 1), epsilon=1.0, points=300)
    >>> bool(f([[0.5] * 6])[0] > 10 * abs(f([[0.1] * 6])[0])), f.claim.mechanism
    (True, 'discrete laplace + gamma radius')
    """
    SPECTRAL.check(kernel, LANDMARKS)
    declared = DeclaredBox.of(kernel, bounds, columns)
    assert isinstance(kernel, SpectralKernel)
    box = declared.bounds
    number = positive_integer("points", points, at_most=MOST_POINTS)
    share = part_of_budget("location_share", location_share)
    prepared = OneCallRelease.of(METHOD, *(() if public is None else (PUBLIC_POINTS,)), **keywords)
    declared.refuse_private(public, X, "public")
    rng = np.random.default_rng(seed)
    given = None
    if public is not None:
        with clipping_allowed(quiet=True):
            given = _chosen(declared.records(public).astype(np.float64), number, rng)
    rows = declared.records(X)

    def make() -> PointsFunction:
        with prepared.noise() as noise:
            count, count_variance, left = prepared.count(noise, len(rows), COUNT_PART)
            moved = 1 if prepared.private_count else 2
            tau = prior_variance()
            if given is None:
                half, left = left * share / 2, left * (1 - share)
                search = PlaceSearch(box, kernel.column_widths(), half, moved, noise, count)
                leaves, histograms = private_leaves(rows, search), column_histograms(rows, search)
                places = draw_points(leaves, histograms, number, rng)
                tau = prior_variance(depth_penalty(half, moved) / count)
            else:
                places = given
            features = PrincipalFeatures.of(kernel, places)
            deviation = moved / (float(left) * count)
            features = features.first(best_number(features.eigenvalues, deviation, tau))
            sums, square = features.sums(rows), (moved * LENGTH) ** 2
            noisy, drawn = noise.gamma(sums, square, left)
        unit = features.scale * count
        variance = drawn.variance / unit**2
        weights, prior = fitted_weights(features, noisy / unit, variance)
        return prepared.points_function(
            declared,
            points=np.clip(places + box.centre, box.low, box.high),
            weights=count * weights,
            count=count,
            count_variance=count_variance,
            feature_errors=FeatureErrors(len(features.eigenvalues), variance, prior),
        )

    return prepared.released(make, points=number, location_share=str(share), seed=seed)


def _chosen(public: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Different public records, at most this number."""
    distinct = np.unique(public, axis=0)
    return distinct if len(distinct) <= number else rng.permutation(distinct)[:number]


def predict(request: PredictionRequest) -> list[Option]:
    """The option of default sizes, under pure ε in more columns than a grid takes, for records and not
    persons.
    """
    bounds, kernel = request.bounds, request.kernel
    if bounds is None or not request.promise.pure or request.per_unit is not None:
        return []
    if not MAX_DIM < bounds.dim <= MOST_COLUMNS:
        return []
    assert isinstance(kernel, SpectralKernel)
    assert request.promise.epsilon is not None
    paid = 0 if request.relation is Relation.REPLACE else COUNT_PART
    left = request.promise.epsilon * (1 - paid)
    lone = request.moves / (float(left * (1 - _LOCATION_SHARE)) * request.records)
    penalty = depth_penalty(left * _LOCATION_SHARE / 2, request.moves) / request.records
    deviation = math.sqrt(2.0) / float(request.promise.epsilon * paid) if paid else 0.0
    if request.of == SUM:
        deviation = 0.0
    found = [
        predicted_error(kernel.column_widths(), bounds, density=each, deviation=lone, penalty=penalty)
        for each in request.densities
    ]
    of_count = NORMAL_MEAN_ABSOLUTE * deviation / request.records
    noise = np.hypot([each.noise for each in found], request.all_densities * of_count)
    own = np.array([each.approximation for each in found])
    whole = request.mean_reciprocal(deviation**2) * np.hypot(noise, own)
    features = found[1].features
    return [
        Option(
            method=LANDMARKS,
            request=replace(request, count_share=COUNT_PART),
            settings={},
            mechanism=str(MECHANISM),
            shape=(features, 1),
            **errors_at_densities(noise, own, whole),
            size=8 * DEFAULT_POINTS * (bounds.dim + 1) + HEADER_BYTES,
            seconds=_SECONDS_TO_FIT
            + request.records * DEFAULT_POINTS * (features + bounds.dim) * _NANOSECONDS * 1e-9,
        )
    ]


METHOD = register(
    Method(
        name=LANDMARKS,
        role=SPECTRAL,
        one_call=landmarks,
        approximate=False,
        mechanism=MECHANISM,
        paper="Zhang, Xiao and Xie 2016; Hardt and Talwar 2010",
        predict=predict,
    )
)
