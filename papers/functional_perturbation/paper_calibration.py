"""The noise as the paper calibrates it: c(δ)/ε times its sensitivities, for figures in its own form.

Nothing is claimed for it here. The histogram's 2 is more than is needed (√2). For the Gaussian process the
paper's d‖(K + σ²I)⁻¹‖_∞ is read with d as the range of the targets, as in Smith et al. (2016): the dimension
that the paper names is no sensitivity. The machine's 2C/n leaves out its intercept, and the three machines of
iris are not composed.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from papers.functional_perturbation.data import Floats

from hushsum.privacy import release_noise

HISTOGRAM: Final = 2.0
"""In counts."""

_RIDGE = 1e-10


def factor(epsilon: float, delta: float) -> float:
    """c(δ)/ε with c(δ) = √(2·ln(2/δ)).

    >>> round(factor(1.0, 1e-4), 3)
    4.451
    """
    return math.sqrt(2.0 * math.log(2.0 / delta)) / epsilon


def density_sensitivity(records: int, bandwidth: float) -> float:
    """√2/(n·√(2πh²)) of a density of one column."""
    return math.sqrt(2.0) / (records * math.sqrt(2.0 * math.pi) * bandwidth)


def posterior_sensitivity(features: Floats, noise_variance: float) -> float:
    """d‖(K + σ²I)⁻¹‖_∞ with K from features of the inputs and targets in [−1, 1]: d = 2."""
    matrix = features @ features.T
    matrix[np.diag_indices_from(matrix)] += noise_variance
    return 2.0 * float(np.abs(np.linalg.inv(matrix)).sum(axis=1).max())


def machine_sensitivity(c: float, records: int) -> float:
    """2C/n."""
    return 2.0 * c / records


def normal(scale: float, number: int) -> Floats:
    """Independent noise."""
    with release_noise() as noise:
        return np.asarray(scale * noise.normal(number), np.float64)


def gaussian_path(points: Floats, bandwidth: float) -> Floats:
    """A Gaussian process with the Gaussian kernel as covariance, at points of shape (n, 1)."""
    squares = (points - points.T) ** 2
    values, vectors = np.linalg.eigh(np.exp(-0.5 * squares / bandwidth**2))
    kept = values > _RIDGE
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])) @ normal(1.0, int(kept.sum())), np.float64)
