"""The baseline of figure 4: logistic regression by objective perturbation.

Chaudhuri, Monteleoni and Sarwate, *Differentially private empirical risk minimization*, JMLR 2011,
Algorithm 2. Noise comes from a seeded generator, so these models measure accuracy and protect nobody.
"""

from __future__ import annotations

import numpy as np
from papers.private_race.data import Floats

_SMOOTHNESS = 0.25
"""The largest second derivative of the logistic loss."""


def into_ball(box: Floats) -> Floats:
    """Points of [0, 1]^d, centred and with a constant column, inside the unit ball as the proof needs."""
    centred = np.hstack([2.0 * box - 1.0, np.ones((len(box), 1))])
    return centred / np.sqrt(centred.shape[1])


def perturbed_logistic(
    X: Floats, signs: Floats, epsilon: float, regularisation: float, rng: np.random.Generator
) -> Floats:
    """Weights of a private logistic regression, shape (n_features,).

    Parameters
    ----------
    X : array of shape (n_records, n_features)
        Every record within the unit ball.
    signs : array of shape (n_records,)
        −1 or 1.
    epsilon, regularisation : float
        The promise (one record *replaced*; the number of records is public), and Λ.
    rng : Generator
        Draws the perturbation.
    """
    from scipy.optimize import minimize

    number, dim = X.shape
    curvature = _SMOOTHNESS / (number * regularisation)
    left, extra = epsilon - 2.0 * np.log1p(curvature), 0.0
    if left <= 0.0:
        left = epsilon / 2.0
        extra = _SMOOTHNESS / (number * np.expm1(epsilon / 4.0)) - regularisation
    direction = rng.normal(size=dim)
    push = direction * (rng.gamma(dim, 2.0 / left) / np.linalg.norm(direction)) / number
    ridge = regularisation + extra

    def objective(weights: Floats) -> tuple[float, Floats]:
        margins = signs * (X @ weights)
        loss = np.logaddexp(0.0, -margins).mean() + 0.5 * ridge * (weights @ weights) + push @ weights
        slopes = -signs / (1.0 + np.exp(np.minimum(margins, 700.0)))
        return float(loss), slopes @ X / number + ridge * weights + push

    weights: Floats = minimize(objective, np.zeros(dim), jac=True, method="L-BFGS-B").x
    return weights
