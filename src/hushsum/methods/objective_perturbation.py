"""Objective perturbation: the minimum of a loss with a random linear term; for squares and logistic loss."""

from __future__ import annotations

import math

import numpy as np

from hushsum._types import Floats
from hushsum.kernels.parameters import positive_number
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.real_noise import real_noise
from hushsum.privacy.release_noise import rounded

MECHANISM = Mechanism.of("objective perturbation")
_NEWTON_STEPS = 200
_TOLERANCE = 1e-11
_FINEST_SPREAD = 2.0**-22
"""A minimum is rounded to a thousandth of it: post-processing that takes away the lowest bits of its sums."""


def perturbation(epsilon: float, *, gradient: float, curvature: float) -> tuple[float, float]:
    """The ridge Δ and the scale of b with which the minimum of Σℓ + Δ‖θ‖²/2 + b·θ is ε-private.

    One record present or absent moves the gradient by at most ``gradient`` and the Hessian by a matrix of
    rank one with an eigenvalue from 0 to ``curvature``. For a given minimum θ the linear terms of two
    neighbours then differ by at most ``gradient`` in length, so their densities ∝ exp(−‖b‖/scale) by at most
    e^(gradient/scale); the Jacobians of b as a function of θ are the Hessians, whose determinants have a
    ratio of at most 1 + curvature/Δ. Half of ε pays for each:

        scale = gradient/(ε/2),      Δ = curvature/(e^(ε/2) − 1).

    Chaudhuri, Monteleoni and Sarwate (2011), with the condition on rank and the bounded domain of Kifer,
    Smith and Thakurta (2012), Theorem 2, whose Δ = 2·curvature/ε is a little larger.

    >>> ridge, scale = perturbation(1.0, gradient=1.0, curvature=0.25)
    >>> round(ridge, 3), round(scale, 3)
    (0.385, 2.0)
    """
    half = epsilon / 2.0 * (1.0 - 1e-14)
    # Beyond 700 e^(ε/2) overflows; a larger ridge keeps the claim as well.
    return curvature / math.expm1(min(half, 700.0)), gradient / half


def fit_squares(
    features: Floats,
    target: Floats,
    *,
    epsilon: float,
    theta_bound: float,
    insecure_noise_seed: int | None = None,
) -> Floats:
    """The minimum of Σ(v − θ·φ)²/2 + Δ‖θ‖²/2 + b·θ over ‖θ‖ ≤ ``theta_bound``. Pure ε.

    Works well with few columns; the length of b grows with their number. A larger bound fits more, and needs
    more noise.

    Parameters
    ----------
    features : array of shape (n, m)
        Rows of length at most 1.
    target : array of shape (n,)
        Between −1 and 1.

    Privacy
    -------
    Within the ball |v − θ·φ| ≤ 1 + bound, which bounds a record's gradient; the curvature is at most
    ‖φ‖² ≤ 1. The minimum over the ball is found exactly, up to rounding: from the eigenvalues of the Hessian.
    """
    positive_number("theta_bound", theta_bound, remedy="try 2")
    ridge, scale = perturbation(epsilon, gradient=1.0 + theta_bound, curvature=1.0)
    with real_noise(insecure_noise_seed) as noise:
        linear = noise.gamma_vector(features.shape[1], scale)
    found = minimum_in_ball(features.T @ features, features.T @ target - linear, ridge, theta_bound)
    return rounded(found, _FINEST_SPREAD)


def minimum_in_ball(gram: Floats, cross: Floats, ridge: float, bound: float) -> Floats:
    """The θ of length at most ``bound`` that minimises θᵀ(gram + ridge·I)θ/2 − cross·θ.

    On the sphere the multiplier μ ≥ 0 solves ‖(gram + (ridge + μ)I)⁻¹cross‖ = bound, which falls in μ.
    """
    values, vectors = np.linalg.eigh(gram)
    along = vectors.T @ cross
    height = np.maximum(values, 0.0) + ridge

    def theta(multiplier: float) -> Floats:
        result: Floats = along / (height + multiplier)
        return result

    low, high = 0.0, 0.0
    if np.linalg.norm(theta(0.0)) > bound:
        high = float(np.linalg.norm(cross)) / bound
        for _ in range(200):
            middle = (low + high) / 2.0
            if np.linalg.norm(theta(middle)) > bound:
                low = middle
            else:
                high = middle
    result: Floats = vectors @ theta(high)
    return result


def fit_logistic(
    features: Floats,
    sign: Floats,
    *,
    epsilon: float,
    ridge: float = 0.0,
    insecure_noise_seed: int | None = None,
) -> Floats:
    """The minimum of Σ ln(1 + exp(−y·θ·φ)) + (Δ + ridge)‖θ‖²/2 + b·θ, y = ±1. Pure ε.

    Parameters
    ----------
    features : array of shape (n, m)
        Rows of length at most 1.
    sign : array of shape (n,)
        −1 or 1.
    ridge : float
        More regularisation than privacy needs; public.

    Privacy
    -------
    A record's gradient is at most ‖φ‖ ≤ 1 long and its curvature at most 1/4. The proof is about the exact
    minimum; Newton's method ends with a gradient of length below 1e−11 times the number of terms, the size of
    rounding errors.
    """
    needed, scale = perturbation(epsilon, gradient=1.0, curvature=0.25)
    with real_noise(insecure_noise_seed) as noise:
        linear = noise.gamma_vector(features.shape[1], scale)
    return rounded(minimum_logistic(features * sign[:, None], linear, needed + ridge), _FINEST_SPREAD)


def minimum_logistic(signed: Floats, linear: Floats, ridge: float) -> Floats:
    """The θ that minimises Σ ln(1 + exp(−θ·row)) + ridge‖θ‖²/2 + linear·θ, by damped Newton steps."""
    from scipy.special import expit

    theta = np.zeros(signed.shape[1])

    def value(at: Floats) -> float:
        losses = np.logaddexp(0.0, -(signed @ at))
        return float(losses.sum() + ridge * (at @ at) / 2.0 + linear @ at)

    for _ in range(_NEWTON_STEPS):
        chance = expit(-(signed @ theta))
        gradient = ridge * theta + linear - signed.T @ chance
        if float(np.linalg.norm(gradient)) <= _TOLERANCE * (len(signed) + float(np.linalg.norm(linear))):
            break
        hessian = (signed * (chance * (1.0 - chance))[:, None]).T @ signed
        hessian[np.diag_indices(len(theta))] += ridge
        step = np.linalg.solve(hessian, gradient)
        size, before = 1.0, value(theta)
        while size > 1e-12 and value(theta - size * step) > before - 1e-4 * size * float(gradient @ step):
            size /= 2.0
        theta = theta - size * step
    return theta
