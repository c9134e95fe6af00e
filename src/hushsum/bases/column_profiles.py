"""Kernels column by column: what a product of one-dimensional expansions can read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hushsum.bases.base import Floats
from hushsum.errors import UsageError
from hushsum.kernels import EuclideanKernel, GaussianKernel, Kernel, LaplacianKernel, ManhattanKernel

Profile = Callable[[Floats], Floats]
_NOTHING = 2e-8


def column_profile(kernel: Kernel, method: str) -> Profile:
    """k as a function of the difference in one column, where k is the product over the columns.

    That is the Gaussian and the Laplacian kernel in any dimension, and the others of numbers in one. Not for
    records: the values may depend on the platform in the last bit.
    """
    if isinstance(kernel, GaussianKernel):
        rate = 0.5 * kernel.power / kernel.bandwidth**2
        return lambda difference: np.exp(-rate * difference * difference)
    if isinstance(kernel, LaplacianKernel):
        slope = kernel.power / kernel.bandwidth
        return lambda difference: np.exp(-slope * np.abs(difference))
    if isinstance(kernel, EuclideanKernel | ManhattanKernel) and kernel.dim == 1:
        return lambda difference: kernel.similarity([[0.0]], difference.reshape(-1, 1)).reshape(
            difference.shape
        )
    raise UsageError(
        f"{method} needs a kernel that is a product over columns, got {kernel.name} of several columns; "
        "use GaussianKernel, or hushsum.race"
    )


def reach_of(profile: Profile, bandwidth: float, farthest: float) -> float:
    """A distance beyond which the kernel is below 2e-8, or ``farthest`` where it has not fallen by then."""
    reach = bandwidth
    while reach < farthest and profile(np.array([reach]))[0] > _NOTHING:
        reach *= 1.25
    return reach


def chebyshev_coefficients(profile: Profile, half: float, queries: Floats, degree: int, nodes: int) -> Floats:
    """Coefficients of x ↦ profile(half·x − q) in T₀ … T_degree on [−1, 1].

    Shape (*queries.shape, degree + 1). A discrete cosine transform at Chebyshev's nodes, exact for
    polynomials of degrees below ``nodes``.
    """
    angle = (np.arange(nodes) + 0.5) * (np.pi / nodes)
    values = profile(half * np.cos(angle) - queries[..., np.newaxis])
    waves = np.cos(np.outer(angle, np.arange(degree + 1))) * (2.0 / nodes)
    waves[:, 0] *= 0.5
    coefficients: Floats = values @ waves
    return coefficients


def chebyshev_values(points: Floats, degree: int) -> Floats:
    """T₀ … T_degree at points of [−1, 1], shape (degree + 1, *points.shape), by their recurrence.

    Elementwise and from correctly rounded operations, so that records may use it; kept within [−1, 1].

    >>> chebyshev_values(np.array([1.0, 0.5]), 2).tolist()
    [[1.0, 1.0], [1.0, 0.5], [1.0, -0.5]]
    """
    values = np.ones((degree + 1, *points.shape))
    if degree:
        values[1] = points
    for k in range(2, degree + 1):
        values[k] = np.clip(2.0 * points * values[k - 1] - values[k - 2], -1.0, 1.0)
    return values
