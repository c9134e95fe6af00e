"""The difference of two released functions, and its errors by noise and by sampling.

How much a mean kernel value would differ for another sample of as many records is the covariance of k(x, q)
over the records. It is not a kernel sum of the same kernel, so it cannot be read directly. Instead, weights
on public points are found whose kernel sums agree with the released ones within their noise; the covariance
over these weighted points stands for that over the records. Where noise leaves the weights open they are
equal, and there noise is what matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers, is_number
from hushsum.errors import UsageError, shown
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.records import Bounds
from hushsum.releases import (
    Answers,
    NoisyTable,
    Points,
    ReleasedFunction,
    check_question,
    normal_answers,
    normal_quantile,
    query_points,
    simultaneous_reach,
)

__all__ = ["fit_records"]

_ITERATIONS: Final = 100
_CONVERGED: Final = 1e-8
_SHORTEST: Final = 1e-8
_MISSING: Final = 1e-12
# The part of the largest value that weighted points may miss beside the noise.
_MISFIT: Final = 0.001

_DIVERGENCE: Final = 0.3
"""What a natural unit of divergence from equal weights costs, as a log likelihood. With 1 or 3 p-values of
pairs without a difference were larger: salaries, skin tones and RNA were tuned on.
"""


@dataclass(frozen=True, slots=True, eq=False)
class RecordModel:
    """Weighted public points in place of the records; weights are not negative and add up to 1 at most. The
    rest is elsewhere, where no query meets it.
    """

    weights: Floats

    def covariance(self, answers: Floats, *, centred: bool = True) -> Floats:
        """The covariance of what one record adds to the answers; the rows of ``answers`` are what each point
        adds: shape (queries, queries).

        Without ``centred`` the mean products, which is the covariance of a sum over a Poisson number of
        records, per record.
        """
        products = (answers.T * self.weights) @ answers
        if not centred:
            return np.asarray(products)
        means = self.weights @ answers
        return np.asarray(products - np.outer(means, means))

    def variance(self, answers: Floats, *, centred: bool = True) -> Floats:
        """The diagonal of the same."""
        squares = self.weights @ np.square(answers)
        return np.asarray(squares - np.square(self.weights @ answers) if centred else squares)


def fit_records(answers: Floats, values: Floats, noise: Floats, *, total: float = 1.0) -> RecordModel:
    """Weights of points with which their mean kernel values are the released ones, within the noise.

    Parameters
    ----------
    answers : array of shape (points, queries)
        What a record at each point adds to the answer at each query.
    values : array of shape (queries,)
        Released mean kernel values.
    noise : array of shape (queries, queries) or (queries,)
        The covariance of their noise, or the variances alone.
    total : float, default 1
        What the weights add up to as far as the values do not tell it, at most 1.

    Notes
    -----
    The least half squared misfit, in standard errors, plus `_DIVERGENCE` times the divergence from equal
    weights; what is missing to 1 lies where every answer is 0. An entropy, unlike a square, lets weights
    gather in a few points where values require it, so that records in tight clusters are not taken for spread
    ones. Newton's method for the dual problem, in the directions that the answers have.
    """
    covariance = np.diag(noise) if noise.ndim == 1 else noise
    least = (_MISFIT * max(float(np.abs(values).max(initial=0.0)), 1e-9)) ** 2
    variances, vectors = np.linalg.eigh(covariance)
    scaled = vectors / np.sqrt(np.maximum(variances, 0.0) + least)
    left, sizes, right = np.linalg.svd(answers @ scaled, full_matrices=False)
    kept = sizes > 1e-6 * sizes[0]
    seen = np.vstack([left[:, kept] * sizes[kept], np.zeros(int(kept.sum()))])
    wanted = right[kept] @ (scaled.T @ values)
    prior = np.log(np.append(np.full(len(answers), total / len(answers)), max(1.0 - total, _MISSING)))

    def dual(misfit: Floats) -> tuple[float, Floats]:
        exponents = prior - seen @ misfit / _DIVERGENCE
        highest = float(exponents.max())
        weights = np.exp(exponents - highest)
        size = float(weights.sum())
        value = float(misfit @ (0.5 * misfit + wanted)) + _DIVERGENCE * (highest + math.log(size))
        return value, weights / size

    misfit = np.zeros(len(wanted))
    value, weights = dual(misfit)
    for _ in range(_ITERATIONS):
        means = weights @ seen
        spread = (seen.T * weights) @ seen - np.outer(means, means)
        slope = misfit + wanted - means
        step = np.linalg.solve(np.eye(len(misfit)) + spread / _DIVERGENCE, slope)
        fall = float(slope @ step)
        length = 1.0
        while (found := dual(misfit - length * step))[
            0
        ] > value - 0.25 * length * fall and length > _SHORTEST:
            length /= 2.0
        if fall < _CONVERGED or length <= _SHORTEST:
            break
        misfit = misfit - length * step
        value, weights = found
    return RecordModel(weights[:-1])


_CANDIDATES: Final = 4096
# The part of the points that is spread over the whole box.
_IN_BOX: Final = 0.25

_CLIMBS: Final = 12
_MOVES: Final = 24
# Lengths of moves, in bandwidths.
_SCALES: Final = (0.3, 1.0, 3.0)

# A mean kernel value is smoother than the density of the records; a power of it is narrower again.
_POWERS: Final = (1.0, 2.0, 4.0, 8.0)

# Standard errors below which a value shows nothing.
_HIDDEN: Final = 2.0

_SEED: Final = 0
_FEWEST_GIVEN: Final = 2
_MOST_GIVEN: Final = 1000


def check_settings(name: str, probability: float, cluster_size: float, *, example: str) -> None:
    """Refuse a probability that is none, and a size of clusters below 1."""
    if not is_number(probability) or not 0.0 < probability < 1.0:
        raise UsageError(name, "must be between 0 and 1", got=shown(probability), remedy=f"try {example}")
    if not is_number(cluster_size) or not 1.0 <= cluster_size < math.inf:
        remedy = "leave it out for 1"
        raise UsageError("cluster_size", "must be at least 1", got=shown(cluster_size), remedy=remedy)


def mean_of(functions: Sequence[ReleasedFunction], Q: object) -> Floats:
    """The mean of the functions at queries."""
    return np.asarray(sum(each(Q) for each in functions) / float(len(functions)))


def public_points(functions: Sequence[ReleasedFunction], at: object, number: int) -> Points:
    """The points that were given, checked; or ``number`` points where the functions show records.

    Raises
    ------
    UsageError
        for too few or too many points, and where none are given and nothing says where to choose them.
    """
    first = functions[0]
    if at is not None:
        points = query_points(at, dim=first.dim, columns=first.columns)
        if not _FEWEST_GIVEN <= len(points) <= _MOST_GIVEN:
            rule = f"must be {_FEWEST_GIVEN} to {_MOST_GIVEN} points"
            remedy = "a few hundred where records are expected"
            raise UsageError("at", rule, got=len(points), remedy=remedy)
        return points
    sets = first.dim is None or any(each.dim is None for each in first.kernel.parts())
    if sets or first.bounds is None:
        rule = "must be given for functions without bounds, or with sets"
        raise UsageError("at", rule, remedy="give public points where records are expected")
    # The standard error of a mean kernel value in the middle of the box; 0 where it is not known.
    middle = np.asarray(first.bounds.centre, np.float64)[np.newaxis]
    noises = [float(np.nan_to_num(each.query(middle).stderr)[0]) for each in functions]
    noise = sum(noises) / len(noises)
    return probe_points(lambda at: mean_of(functions, at), noise, first.kernel, first.bounds, number)


def probe_points(
    values: Callable[[Floats], Floats], noise: float, kernel: Kernel, box: Bounds, number: int
) -> Floats:
    """Public points for functions of columns in a box, shape (number, dim).

    A quarter of them covers the box evenly. The others are samples of distributions that are proportional to
    powers of what ``values`` show above ``noise``, their standard error, by Metropolis' algorithm. It starts
    from where an even cover of the box shows most; in many columns few of its points see any record, so the
    first moves keep the better ones. All are pseudo-random with a fixed seed: equal functions have equal
    points.
    """
    from scipy.stats.qmc import Halton

    rng = np.random.default_rng(_SEED)
    low, high = np.asarray(box.low, np.float64), np.asarray(box.high, np.float64)
    side = high - low
    # Halton points with digits permuted at random, which they need in many columns (Owen 2017).
    spread = low + side * Halton(box.dim, rng=rng).random(_CANDIDATES)
    around = max(1, round(number * (1.0 - _IN_BOX)))
    hidden = max(noise, np.finfo(float).tiny)

    def height(points: Floats) -> Floats:
        return np.maximum(values(points) - _HIDDEN * hidden, 0.01 * hidden)

    heights = height(spread)
    chosen = _resampled(rng, heights, around)
    points, heights = spread[chosen], heights[chosen]
    widths = np.array(kernel.column_bandwidths()) if isinstance(kernel, ColumnKernel) else side / 10.0
    powers = np.resize(_POWERS, around)
    for move in range(_CLIMBS + _MOVES):
        step = np.minimum(_SCALES[move % len(_SCALES)] * widths, side / 2.0) / np.sqrt(box.dim)
        moved = np.clip(points + step * rng.standard_normal(points.shape), low, high)
        new = height(moved)
        better = rng.random(around) < (new / heights) ** powers
        points, heights = np.where(better[:, None], moved, points), np.where(better, new, heights)
        if move < _CLIMBS and box.dim > 1:
            kept = _resampled(rng, heights, around)
            points, heights = points[kept], heights[kept]
    return np.concatenate([points, spread[: number - around]])


def _resampled(rng: np.random.Generator, heights: Floats, number: int) -> NDArray[np.intp]:
    """Systematic resampling in proportion to heights."""
    places = (np.arange(number) + rng.random()) / number
    found = np.searchsorted(np.cumsum(heights) / heights.sum(), places)
    return np.minimum(found, len(heights) - 1)


MOST_TOGETHER: Final = 1200
"""For more queries covariances are not computed: simultaneous intervals are Bonferroni's."""


Pair = tuple[ReleasedFunction, ReleasedFunction]
Tables = tuple[NoisyTable, NoisyTable]


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceErrors:
    """The known errors of ``f − g``.

    Attributes
    ----------
    functions : pair of ReleasedFunction
    tables : pair of NoisyTable, optional
        The functions, if they are tables of one basis. Then the dependence of errors at different queries is
        known, and the basis's own error is the same for the same records and has no part in a difference of
        distributions that are equal.
    points : queries
        Public points that stand for the records.
    models : pair of RecordModel
        Their weights for either function.
    cluster_size : float
        The mean number of correlated records; sampling variances are multiplied by it.
    """

    functions: Pair
    tables: Tables | None
    points: Points
    models: tuple[RecordModel, RecordModel]
    cluster_size: float = 1.0

    @classmethod
    def at(
        cls, functions: Pair, tables: Tables | None, points: Points, *, cluster_size: float
    ) -> DifferenceErrors:
        """Errors by what the functions say at public points."""
        answers = _answers(functions, tables, points, points)
        if tables is None:
            noises = [np.square(_stderr(each, points, "mean")) for each in functions]
        else:
            noises = _noises(tables, points, "mean")
        f, g = (
            fit_records(answers, each(points), noise) for each, noise in zip(functions, noises, strict=True)
        )
        return cls(functions, tables, points, (f, g), cluster_size)

    def values(self, Q: object, *, of: str = "mean") -> Floats:
        """f − g at queries."""
        f, g = (each(Q) if of == "mean" else each.sum(Q) for each in self.functions)
        return np.asarray(f - g)

    def noise(self, Q: object, *, of: str = "mean") -> Floats:
        """The covariance of the noise in the difference, where the dependence is known."""
        assert self.tables is not None
        f, g = _noises(self.tables, Q, of)
        return np.asarray(f + g)

    def sampling(self, Q: object, *, of: str = "mean") -> Floats:
        """The covariance that another sample of as many records would give the difference, from the weighted
        points of each function.
        """
        # Of tables of one basis, and of kernels otherwise, they are the same for both.
        answers = _answers(self.functions, self.tables, self.points, Q)
        one, other = (
            factor * model.covariance(answers, centred=of == "mean")
            for factor, model in zip(self._factors(of), self.models, strict=True)
        )
        return np.asarray(one + other)

    def variances(
        self, Q: object, *, of: str = "mean", sampling: bool = True, alpha: float | None = None
    ) -> Floats:
        """The variance of the difference at each query.

        With ``alpha``, of functions whose dependence is not known, as large as their own intervals at that
        level require, which may be Student's.
        """
        if self.tables is not None:
            return np.maximum(np.diag(self._covariance(Q, of, sampling)), 0.0)
        f, g = (_stderr(each, Q, of, alpha) for each in self.functions)
        total = np.square(f) + np.square(g)
        if sampling:
            answers = _answers(self.functions, self.tables, self.points, Q)
            for factor, model in zip(self._factors(of), self.models, strict=True):
                total = total + factor * model.variance(answers, centred=of == "mean")
        return np.asarray(np.maximum(total, 0.0))

    def query(self, Q: object, *, of: str, level: float, simultaneous: bool, sampling: bool) -> Answers:
        """The difference with standard errors and intervals."""
        check_question(of, level)
        f = self.functions[0]
        points = query_points(Q, dim=f.dim, columns=f.columns)
        number = len(points)
        value = self.values(points, of=of)
        if self.tables is None or number > MOST_TOGETHER:
            alpha = (1.0 - level) / (max(number, 1) if simultaneous else 1)
            starts = range(0, max(number, 1), MOST_TOGETHER)
            parts = (points[start : start + MOST_TOGETHER] for start in starts)
            variances = [self.variances(each, of=of, sampling=sampling, alpha=alpha) for each in parts]
            stderr = np.sqrt(np.concatenate(variances))
            return normal_answers(value, stderr, level, points, simultaneous=simultaneous)
        covariance = self._covariance(points, of, sampling)
        stderr = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        if not simultaneous:
            return normal_answers(value, stderr, level, points)

        def maxima(rng: np.random.Generator, draws: int) -> Floats:
            scale = np.where(stderr > 0.0, stderr, np.inf)
            values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
            paths = (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((number, draws))
            return np.asarray(np.abs(paths).max(axis=0))

        reach = simultaneous_reach(level, number, normal_quantile, maxima) * stderr
        return Answers(value, stderr, value - reach, value + reach, stderr.copy(), level, points, True)

    def _covariance(self, Q: object, of: str, sampling: bool) -> Floats:
        noise = self.noise(Q, of=of)
        return noise + self.sampling(Q, of=of) if sampling else noise

    def _factors(self, of: str) -> list[float]:
        """The factors of the variance of one record, for either function."""
        numbers = (max(each.count, 1.0) for each in self.functions)
        return [self.cluster_size * (number if of == "sum" else 1.0 / number) for number in numbers]


def _noises(tables: Tables, Q: object, of: str) -> list[Floats]:
    unit = tables[0].unit_covariance(Q)
    return [each.noise_covariance(Q, of=of, unit=unit) for each in tables]


def _answers(functions: Pair, tables: Tables | None, points: Points, Q: object) -> Floats:
    """The amounts that a record at each point adds at each query."""
    if tables is not None:
        return tables[0].record_answers(points, Q)
    return functions[0].kernel.similarity(points, Q)


def _stderr(function: ReleasedFunction, Q: object, of: str, alpha: float | None = None) -> Floats:
    level = 0.95 if alpha is None else 1.0 - alpha
    answers = function.query(Q, of=of, level=level)
    if not np.isfinite(answers.stderr).all():
        rule, remedy = "functions are compared by their standard errors", "compare releases of tallies"
        raise UsageError(rule, got="one whose method has no error estimate", remedy=remedy)
    if alpha is None:
        return answers.stderr
    half = (answers.upper - answers.lower) / 2.0
    return np.maximum(answers.stderr, half / normal_quantile(level))


def share_release(f: NoisyTable, g: NoisyTable) -> bool:
    """Whether two tables of one basis have the same draw of noise, because both are the same release or one
    is a rounding of the other.
    """
    if f.noisy_count != g.noisy_count or f.basis.shape != g.basis.shape:
        return False
    one, other = _some_cells(f), _some_cells(g)
    shared = min(len(one), len(other))
    apart = np.abs(one[:shared] - other[:shared]).max(initial=0)
    return bool(apart <= math.ceil((f.step + g.step) / 2))


def _some_cells(table: NoisyTable) -> Integers:
    """All cells, or the first block of a large table."""
    cells = table.cells if isinstance(table.cells, np.ndarray) else next(iter(table.cells.blocks()))
    return cells.reshape(-1).astype(np.int64)
