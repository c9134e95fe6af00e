"""Two-sample tests of released functions: can their records come from one distribution?

`table_test` compares two tables of one basis in principal coordinates, `filtered_test` tests any coordinates
with known noise and sampling covariances, and `separate_test` compares values point by point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.privacy import GAMMA, LAPLACE
from hushsum.releases import NoisyTable, Points

from ._difference import RecordModel, Tables, fit_records

__all__ = [
    "Coordinates", "SquaredDistance", "TwoSampleTest", "filtered_test", "separate_test", "squared_distance",
    "weighted_square_tail",
]  # fmt: skip

# The part of the kernel's squared length at the points that the coordinates have.
_TRACE: Final = 0.999

# Bandwidths to either side over which a slope is taken.
_SLOPE: Final = 0.25

# The part of the total sampling variance that every direction may have beyond the estimate: an estimate of
# almost nothing is not relied on. With less, the test rejects too often where there is hardly any noise.
_UNKNOWN: Final = 0.1

# Standard deviations above a noisy count that the number of records is assumed to stay below.
_FAR: Final = 4.0

_FEWEST_SHARE: Final = 1e-6
# How far, in natural logarithms, the ratio may lie from that of the noisy numbers, and from 1.
_FURTHEST: Final = 2.5

# Cells from which on a vector of exponentially distributed length is taken as normal.
_NEARLY_NORMAL: Final = 60
# The weight of the score part: where noise hides most directions, moves are what can be found.
_SCORE: Final = 2.0
_ONE_SCALE: Final = np.ones(4)

# The variance of an exact count, so that covariances can be inverted.
_EXACT: Final = 1e-6

# Relative to the largest: matrices with eigenvalues below minus that much are not of a kernel.
_NEGATIVE: Final = 1e-4


@dataclass(frozen=True, slots=True)
class TwoSampleTest:
    """Whether the records of two functions can come from one distribution.

    Attributes
    ----------
    p_value : float
        The probability of a statistic as large as this if they do; noise and sampling are both part of it.
    statistic : float
        The filtered squared distance, or the largest difference in standard errors.
    method : {"principal coordinates", "separate points"}
        The second one where the dependence of errors at different points is not known, or the functions were
        counted with different bases: Bonferroni's inequality over points.
    """

    p_value: float
    statistic: float
    method: str


@dataclass(frozen=True, slots=True)
class SquaredDistance:
    """An estimate of MMD² without the bias that noise (and sampling) add, and its standard error."""

    value: float
    stderr: float


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Orthonormal coordinates in the kernel's space: c = matrixᵀ·(values at the points).

    ``captured`` is the part of the kernel's squared length at the points that they have.
    """

    matrix: Floats
    captured: float

    @classmethod
    def of(cls, similar: Floats) -> Coordinates | None:
        """The principal coordinates of points with these kernel values; None if they are not of a kernel."""
        symmetric = (similar + similar.T) / 2.0
        values, vectors = np.linalg.eigh(symmetric)
        values, vectors = values[::-1], vectors[:, ::-1]
        if not values[0] > 0.0 or values[-1] < -_NEGATIVE * values[0]:
            return None
        total = np.cumsum(np.maximum(values, 0.0))
        kept = int(np.searchsorted(total, _TRACE * total[-1])) + 1
        return cls(vectors[:, :kept] / np.sqrt(values[:kept]), float(total[kept - 1] / total[-1]))

    @classmethod
    def of_table(cls, table: NoisyTable, points: Points) -> Coordinates | None:
        """The coordinates of a table's own answers, or of its kernel if the matrix of the answers is not that
        of a kernel.
        """
        found = cls.of(table.record_answers(points, points))
        return cls.of(table.kernel.similarity(points, points)) if found is None else found

    def values(self, differences: Floats) -> Floats:
        """The coordinates of a function with these values."""
        return np.asarray(self.matrix.T @ differences)

    def covariance(self, covariance: Floats) -> Floats:
        """The covariance of coordinates, from that of values."""
        return np.asarray(self.matrix.T @ covariance @ self.matrix)

    def moves(self, values: Callable[[Floats], Floats], kernel: Kernel, points: Points) -> Floats | None:
        """The changes that small moves of all records along each column make, shape (coordinates, columns),
        from the slopes of a function at the points; None for a kernel that does not compare columns of
        numbers.
        """
        if not isinstance(kernel, ColumnKernel) or not isinstance(points, np.ndarray):
            return None
        steps = np.diag(_SLOPE * np.array(kernel.column_bandwidths()))
        changes = [self.values(values(points + step) - values(points - step)) for step in steps]
        return np.stack(changes, axis=1)


def squared_distance(coordinates: Floats, covariance: Floats) -> SquaredDistance:
    """‖E c‖² from one c with a known covariance.

    E‖c‖² = ‖E c‖² + tr V, and for normal c its variance is 2·tr V² + 4·(E c)ᵀV(E c).
    """
    square = float(np.square(covariance).sum())
    mean = max(float(coordinates @ covariance @ coordinates) - square, 0.0)
    value = float(coordinates @ coordinates) - float(np.trace(covariance))
    return SquaredDistance(value, float(np.sqrt(2.0 * square + 4.0 * mean)))


def filtered_test(
    coordinates: Floats,
    sampling: Floats,
    noise: Floats,
    moves: Floats | None = None,
    *,
    whole: Floats | None = None,
) -> TwoSampleTest:
    """A test of E c = 0 for c with covariance ``whole``, by default ``sampling + noise``.

    The statistic is cᵀFc with F = S^½(S + N)⁻¹S^½: without noise it is ‖c‖², the statistic of the ordinary
    kernel test; directions that hold more noise than sampling error count less. With ``moves``, the
    coordinates of what small moves of the distribution change, shape (coordinates, moves), the score
    statistic of these directions is added, and both parts are in units of their standard deviation: a move
    may change what hardly differs from sample to sample. The null distribution is that of a weighted sum of
    squares of normal numbers.
    """
    whole = sampling + noise if whole is None else whole
    total = _form(sampling, noise, moves, whole)
    statistic = float(coordinates @ total @ coordinates)
    return TwoSampleTest(_tail(total, whole, statistic), statistic, "principal coordinates")


def _form(sampling: Floats, noise: Floats, moves: Floats | None, whole: Floats) -> Floats:
    """The matrix F of the statistic cᵀFc."""
    forms = [_filter(sampling, noise)]
    if moves is not None and float(np.square(moves).sum()) > 0.0:
        forms.append(_score(moves, whole + _UNKNOWN * float(np.trace(sampling)) * np.eye(len(whole))))
    total: Floats = np.zeros_like(whole)
    for weight, form in zip((1.0, _SCORE), forms, strict=False):
        spread = form @ whole
        total += weight * form / np.sqrt(2.0 * max(float(np.trace(spread @ spread)), 1e-300))
    return total


def _tail(form: Floats, covariance: Floats, statistic: float) -> float:
    """The probability that cᵀFc reaches the statistic, for normal c with this covariance."""
    root = _root(covariance)
    return weighted_square_tail(np.asarray(np.linalg.eigvalsh(root @ form @ root), np.float64), statistic)


def table_test(
    tables: Tables, points: Points, coordinates: Coordinates, *, cluster_size: float = 1.0
) -> TwoSampleTest:
    """Whether two tables of one basis hold records of one distribution, whatever their numbers of records.

    No mean is computed, since the quotient of a sum by a noisy number has no useful error where that number
    is hidden. Under the hypothesis the kernel sums are c_f = N_f·μ and c_g = N_g·μ, up to noise and sampling,
    with one μ. With the ratio t = N_f/N_g, z = c_f − t·c_g has expectation 0; the noisy counts are one more
    coordinate of it, with noise of their own. An error of t moves z along (μ, 1): t is fitted by generalised
    least squares, and that direction is taken out of z and of its covariance.
    """
    from scipy.optimize import minimize_scalar

    one = tables[0]
    unit = one.unit_covariance(points)
    slope = one.number_slope
    answers = one.record_answers(points, points) + slope
    sums = [np.append(each.sum(points) + slope * each.count, each.noisy_count) for each in tables]
    noises = [_with_count(each.cell_variance * unit, each.count_noise.variance) for each in tables]

    # Weighted points for the records of both together; the counts are answered by every record alike.
    total, noise = sums[0] + sums[1], noises[0] + noises[1]
    counted = tables[0].count + tables[1].count
    most = counted + _FAR * math.hypot(tables[0].count_stderr, tables[1].count_stderr)
    fitted = fit_records(
        np.column_stack([answers, np.ones(len(answers))]), total / most, noise / most**2, total=counted / most
    )
    share = max(float(fitted.weights.sum()), _FEWEST_SHARE)
    number, model = most * share, RecordModel(fitted.weights / share)

    mean = np.append(coordinates.values(model.weights @ answers), 1.0)
    sampling = cluster_size * number * coordinates.covariance(model.covariance(answers))
    f, g = (np.append(coordinates.values(each[:-1]), each[-1]) for each in sums)
    noise_f, noise_g = (
        _with_count(coordinates.covariance(each[:-1, :-1]), float(each[-1, -1])) for each in noises
    )

    def covariance(ratio: float, scales: Floats = _ONE_SCALE) -> Floats:
        # N_f + t²·N_g = t·N where N_f + N_g = N.
        noise = _scaled(noise_f, *scales[:2]) + ratio**2 * _scaled(noise_g, *scales[2:])
        return noise + ratio * _with_count(sampling, 0.0)

    def misfit(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        z = f - ratio * g
        return float(z @ np.linalg.solve(covariance(ratio), z))

    near = math.log(tables[0].count / tables[1].count)
    bounds = (min(near, 0.0) - _FURTHEST, max(near, 0.0) + _FURTHEST)
    ratio = math.exp(minimize_scalar(misfit, bounds=bounds, method="bounded").x)
    whole = covariance(ratio)
    weights = np.linalg.solve(whole, mean)
    project = (np.eye(len(mean)) - np.outer(mean, weights) / (weights @ mean))[:-1]
    z = project @ (f - ratio * g)
    moves = coordinates.moves(
        lambda at: np.asarray((tables[0].sum(at) + tables[1].sum(at)) / number), one.kernel, points
    )
    noise = (noise_f + ratio**2 * noise_g)[:-1, :-1]
    form = _form(ratio * sampling, noise, moves, project @ whole @ project.T)
    statistic = float(z @ form @ z)
    p_value = sum(
        probability * _tail(form, project @ covariance(ratio, scales) @ project.T, statistic)
        for scales, probability in _noise_scales(tables)
    )
    return TwoSampleTest(float(min(p_value, 1.0)), statistic, "principal coordinates")


def _scaled(noise: Floats, table: float, count: float) -> Floats:
    """The covariance of coordinates and count, with either multiplied."""
    factors = np.append(np.full(len(noise) - 1, math.sqrt(table)), math.sqrt(count))
    return noise * np.outer(factors, factors)


def _noise_scales(tables: Tables) -> Iterator[tuple[Floats, float]]:
    """Factors of the variances of table and count of both, and their probabilities: given them, the noise is
    normal.

    A vector of k cells with a density in proportion to exp(−ε‖z‖) is √τ times a normal one, τ Gamma
    distributed with the shape (k + 1)/2; a Laplace number is the same with k = 1. The sums of many
    independent Laplace cells are taken as normal.
    """
    shapes = []
    for each in tables:
        cells = math.prod(each.basis.shape) if each.noise.mechanism == GAMMA else math.inf
        shapes += [cells, 1.0 if each.count_noise.mechanism == LAPLACE else math.inf]
    rules = [_scales_of(cells, nodes) for cells, nodes in zip(shapes, (4, 3, 4, 3), strict=True)]
    for chosen in product(*rules):
        yield np.array([scale for scale, _ in chosen]), math.prod(part for _, part in chosen)


def _scales_of(cells: float, nodes: int) -> list[tuple[float, float]]:
    """Gauss quadrature of τ/E τ."""
    from scipy.special import roots_genlaguerre

    if cells > _NEARLY_NORMAL:
        return [(1.0, 1.0)]
    shape = (cells + 1.0) / 2.0
    at, weights = roots_genlaguerre(nodes, shape - 1.0)
    return list(zip((at / shape).tolist(), (weights / weights.sum()).tolist(), strict=True))


def _with_count(covariance: Floats, variance: float) -> Floats:
    """The covariance with one more coordinate, which is independent of the others."""
    size = len(covariance)
    whole = np.zeros((size + 1, size + 1))
    whole[:size, :size] = covariance
    # Numerically invertible, also where the count is exact and where coordinates have hardly any noise.
    whole[np.diag_indices(size)] += 1e-10 * max(float(np.trace(covariance)), 1e-300) / size
    whole[size, size] = variance + _EXACT
    return whole


def _filter(signal: Floats, noise: Floats) -> Floats:
    """S^½(S + N)⁻¹S^½: near 1 in directions where the signal exceeds the noise, near 0 where it does not."""
    root = _root(signal)
    return np.asarray(root @ np.linalg.lstsq(signal + noise, root, rcond=1e-10)[0])


def _score(moves: Floats, covariance: Floats) -> Floats:
    """V⁻¹M(MᵀV⁻¹M)⁺MᵀV⁻¹: the squared length of what generalised least squares find of the moves."""
    weighted = np.linalg.lstsq(covariance, moves, rcond=1e-10)[0]
    return np.asarray(weighted @ np.linalg.pinv(moves.T @ weighted, rcond=1e-8, hermitian=True) @ weighted.T)


def weighted_square_tail(weights: Floats, value: float) -> float:
    """P(Σ w·z² ≥ value) for independent standard normal z: a saddlepoint approximation (Kuonen 1999).

    Its relative error is a few per cent, far out too.

    >>> round(weighted_square_tail(np.ones(10), 18.307), 3)
    0.05
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtr

    kept = weights[weights > 1e-9 * max(float(weights.max(initial=0.0)), 1e-300)]
    if not len(kept) or value <= 0.0:
        return 1.0
    # In units of the largest weight.
    scaled, x = kept / kept.max(), value / float(kept.max())

    def slope(t: float) -> float:
        return float((scaled / (1.0 - 2.0 * t * scaled)).sum()) - x

    low = -1.0
    while slope(low) > 0.0 and low > -1e12:
        low *= 4.0
    if slope(low) > 0.0:
        return 1.0
    t = float(brentq(slope, low, 0.5 - 1e-13, xtol=1e-14)) if slope(0.5 - 1e-13) > 0.0 else 0.5 - 1e-13
    if abs(t) < 1e-5:
        # The formula is 0/0 at the mean: between two values on either side of it.
        step = 0.02 * float(np.sqrt(2.0 * np.square(scaled).sum()))
        sides = [weighted_square_tail(scaled, x + side * step) for side in (-1.0, 1.0)]
        return sum(sides) / 2.0
    cumulant = -0.5 * float(np.log1p(-2.0 * t * scaled).sum())
    w = float(np.sign(t) * np.sqrt(max(2.0 * (t * x - cumulant), 0.0)))
    v = t * float(np.sqrt(2.0 * np.square(scaled / (1.0 - 2.0 * t * scaled)).sum()))
    reach = w + np.log(v / w) / w
    tail = float(np.exp(log_ndtr(-reach))) if reach > 5.0 else float(ndtr(-reach))
    return min(max(tail, 0.0), 1.0)


def separate_test(differences: Floats, stderr: Floats) -> TwoSampleTest:
    """The largest difference in standard errors; by Bonferroni's inequality, whatever the dependence."""
    from scipy.special import ndtr

    ratio = float(np.max(np.abs(differences) / np.where(stderr > 0.0, stderr, np.inf), initial=0.0))
    return TwoSampleTest(min(1.0, 2.0 * len(differences) * float(ndtr(-ratio))), ratio, "separate points")


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
