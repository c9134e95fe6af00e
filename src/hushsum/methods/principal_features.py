"""Orthonormal functions of a kernel's space that matter most for public points, and weights from their noisy
means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushsum._types import Floats, Integers, Rows
from hushsum.kernels.base import Batch, Kernel

LENGTH = 1 << 20
"""L: a record's integers have at most this length."""

_PRIOR_VARIANCE, _OF_HALVING = 0.03, 8.0
"""τ: the assumed variance of a coefficient about that of the points, over its eigenvalue; at least so many
times the part of the records that a box must hold for each halving. It only decides how many features are
measured. The first was chosen on cod_rna, the second on shuttle, protein, cod_rna and thyroid at ε = 0.1.
"""

_LEAST_EIGENVALUE = 1e-8
_SIZES = 60
_ITERATIONS = 500
_VALUES_AT_A_TIME = 1 << 22
_SIMILARITY = 2.0**20
_COEFFICIENTS = 2.0**32
"""Kernel values are multiples of 2⁻²⁰, and the coefficients of a feature integers whose sizes sum to about
this: sums of their products are integers below 2⁵³, which doubles hold whatever the order of addition.
"""


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
        gram = kernel._pairwise(Batch((points,), len(points)), Batch((points,), len(points)))
        values, vectors = np.linalg.eigh(gram / len(points))
        kept = np.flatnonzero(values > _LEAST_EIGENVALUE)[::-1]
        scale = np.sqrt(values[kept] * len(points))
        return cls(kernel, points, vectors[:, kept] / scale, values[kept])

    def first(self, number: int) -> PrincipalFeatures:
        """The most important ones."""
        return PrincipalFeatures(
            self.kernel, self.points, self.coefficients[:, :number], self.eigenvalues[:number]
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
            part = slice(start, start + step)
            rounded = np.rint(self.scale * self.values(records[part])).astype(np.int64)
            total += repeats[part] @ rounded
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
        largest = float(power.max())
        raised = np.exp(power - largest)
        total = float(raised.sum())
        return raised / total, largest + math.log(total)

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
