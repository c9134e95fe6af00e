"""How far the answers of released points are from those of the records, by what was measured of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.kernels.base import Batch, Kernel

LEAST_EIGENVALUE = 1e-8
"""Relative to sup k(x, x): functions below are lost in rounding."""

MOST_POINTS = 1 << 12
"""Of more points, the functions take too long to find."""

_LEFT = 1e-10
"""Of the trace, what a factorisation may leave out."""

_FINER = 8.0
"""The variance of coefficients of small eigenvalues, over that of those which decide τ: the geometric mean on
the tuning half of ``benchmarks/coverage.py`` (skin, cod_rna, shuttle), where it is 4 to 24.
"""

_ANY = 1e30
"""A variance that says nothing of a coefficient before it is measured."""


@dataclass(frozen=True, slots=True)
class FeatureErrors:
    """Points whose weights were fitted to noisy means of their first principal functions.

    The principal functions ψ of the points are orthonormal in the kernel's space, with eigenvalues λ. A mean
    kernel value is Σ c·ψ(q) with the records' coefficients c. About those of equal weights, a coefficient has
    the variance 8τ·λ, and what was measured of it has noise; so its error has the variance
    ``8τλ·v/(8τλ + v)``. Where it was not measured, that is 8τλ, and what the fitted weights differ from equal
    ones is an error too. The factor is there because points are placed by the same coarse shape of the data
    that decides the value of τ: within it, in functions of small λ, records are less like the points. Of the
    kernel at q the part ``1 − Σψ²/k(q, q)`` is in no ψ, so that the points say nothing of it: it counts as an
    error of that part of the answer, or of a typical answer where that is larger.

    Parameters
    ----------
    measured : int
        How many functions were measured, those of the largest eigenvalues.
    noise_variance : float
        v, of the noise in each coefficient.
    prior_variance : float
        τ, found from the released coefficients: the value of greatest likelihood.
    """

    measured: int
    noise_variance: float
    prior_variance: float

    def as_json(self) -> list[float]:
        """For the header of a file."""
        return [self.measured, self.noise_variance, self.prior_variance]


def all_measured(points: int, noise_variance: float) -> FeatureErrors:
    """Of a projection on the span of the points: every function was measured, and nothing was assumed."""
    return FeatureErrors(points, noise_variance, _ANY)


class PrincipalErrors:
    """The variance of mean kernel values at queries; the functions are found once."""

    def __init__(self, kernel: Kernel, points: Floats, weights: Floats, errors: FeatureErrors) -> None:
        batch = Batch((points,), len(points))
        similar = kernel._pairwise(batch, batch)
        # The root mean square answer at the points, which are where the records are.
        self._typical = float(np.sqrt(np.mean(np.square(weights @ similar))))
        values, vectors = _principal(similar / len(points))
        self._largest = kernel.size_bound()
        kept = np.flatnonzero(values > LEAST_EIGENVALUE * self._largest)[::-1]
        self._kernel, self._points = kernel, batch
        self._coefficients = vectors[:, kept] / np.sqrt(values[kept] * len(points))
        functions = similar @ self._coefficients
        self._moved = (weights - weights.sum() / len(weights)) @ functions
        self._moved[: errors.measured] = 0.0
        prior, noise = _FINER * errors.prior_variance * values[kept], errors.noise_variance
        number = errors.measured
        self._variances = prior.copy()
        self._variances[:number] = prior[:number] * noise / np.maximum(prior[:number] + noise, 1e-300)

    def variance(self, queries: Floats, means: Floats) -> Floats:
        """At prepared queries, where the answers are ``means``."""
        similar = self._kernel._pairwise(self._points, Batch((queries,), len(queries)))
        functions = similar.T @ self._coefficients
        squares = np.square(functions)
        outside = np.clip(1.0 - squares.sum(axis=1) / self._largest, 0.0, 1.0)
        variance: Floats = squares @ self._variances + np.square(functions @ self._moved)
        variance += np.square(outside * np.maximum(np.abs(means), self._typical))
        return variance


def _principal(gram: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues in rising order, and eigenvectors, of a matrix of kernel values.

    Those of a smooth kernel are nearly all below rounding, and are left out: a Cholesky factorisation with
    pivots ends at the numerical rank r, and the eigenvectors follow from r × r products of its factor. What
    is left of the matrix has a trace below n²·ε times the largest diagonal element. A matrix of a high rank,
    or one that is not positive semidefinite, is decomposed as it is.
    """
    from scipy.linalg.lapack import dpstrf

    factor, pivots, rank, _ = dpstrf(gram, lower=1)
    lower = np.tril(factor)[:, :rank]
    left = abs(float(np.trace(gram)) - float(np.square(lower).sum()))
    if 2 * rank > len(gram) or left > _LEFT * float(np.trace(gram)):
        return np.linalg.eigh(gram)
    ordered = np.empty_like(lower)
    ordered[pivots - 1] = lower
    values, turned = np.linalg.eigh(ordered.T @ ordered)
    return values, ordered @ (turned / np.sqrt(np.maximum(values, 1e-300)))
