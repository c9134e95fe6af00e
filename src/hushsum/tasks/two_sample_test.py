"""The distance of two distributions in a kernel's space, and a test whether they are the same, from noisy
values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.releases.answers import Points

_TRACE: Final = 0.999
"""Of the kernel's squared length at the points, the part that the coordinates have."""

_SLOPE: Final = 0.25
"""Bandwidths to either side over which a slope is taken."""

_UNKNOWN: Final = 0.1
"""Of the total sampling variance, what every direction may have beyond the estimate: an estimate of almost
nothing is not relied on. With less, the test rejects too often where there is hardly any noise.
"""

_NEGATIVE: Final = 1e-4
"""Relative to the largest: matrices with eigenvalues below minus that much are not of a kernel."""


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

    def values(self, differences: Floats) -> Floats:
        """The coordinates of a function with these values."""
        return np.asarray(self.matrix.T @ differences)

    def covariance(self, covariance: Floats) -> Floats:
        """The covariance of coordinates, from that of values."""
        return np.asarray(self.matrix.T @ covariance @ self.matrix)

    def moves(self, values: Callable[[Floats], Floats], kernel: Kernel, points: Points) -> Floats | None:
        """What small moves of all records along each column change, shape (coordinates, columns), from the
        slopes of a function at the points; None for a kernel that does not compare columns of numbers.
        """
        if not isinstance(kernel, ColumnKernel) or not isinstance(points, np.ndarray):
            return None
        steps = np.diag(_SLOPE * np.array(kernel.column_bandwidths()))
        return np.stack(
            [self.values(values(points + step) - values(points - step)) for step in steps], axis=1
        )


def squared_distance(coordinates: Floats, covariance: Floats) -> SquaredDistance:
    """‖E c‖² from one c with a known covariance.

    E‖c‖² = ‖E c‖² + tr V, and for normal c its variance is 2·tr V² + 4·(E c)ᵀV(E c).
    """
    square = float(np.square(covariance).sum())
    mean = max(float(coordinates @ covariance @ coordinates) - square, 0.0)
    value = float(coordinates @ coordinates) - float(np.trace(covariance))
    return SquaredDistance(value, float(np.sqrt(2.0 * square + 4.0 * mean)))


def filtered_test(
    coordinates: Floats, sampling: Floats, noise: Floats, moves: Floats | None = None
) -> TwoSampleTest:
    """A test of E c = 0 for c with covariance ``sampling + noise``.

    The statistic is cᵀFc with F = S^½(S + N)⁻¹S^½: without noise it is ‖c‖², the statistic of the ordinary
    kernel test; directions that hold more noise than sampling error count less. With ``moves``, the
    coordinates of what small moves of the distribution change, shape (coordinates, moves), the score
    statistic of these directions is added, and both parts are in units of their standard deviation: a move
    may change what hardly differs from sample to sample. The null distribution is that of a weighted sum of
    squares of normal numbers.
    """
    whole = sampling + noise
    forms = [_filter(sampling, noise)]
    if moves is not None and float(np.square(moves).sum()) > 0.0:
        forms.append(_score(moves, whole + _UNKNOWN * float(np.trace(sampling)) * np.eye(len(whole))))
    total: Floats = np.zeros_like(whole)
    for form in forms:
        spread = form @ whole
        total += form / np.sqrt(2.0 * max(float(np.trace(spread @ spread)), 1e-300))
    root = _root(whole)
    statistic = float(coordinates @ total @ coordinates)
    weights = np.asarray(np.linalg.eigvalsh(root @ total @ root), np.float64)
    return TwoSampleTest(weighted_square_tail(weights, statistic), statistic, "principal coordinates")


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
