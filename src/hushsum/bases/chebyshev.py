"""Chebyshev's polynomials of records, and the coefficients of a kernel in them."""

from __future__ import annotations

import numpy as np

from hushsum._types import Floats
from hushsum.kernels.base import ColumnProfile, Kernel, ProfileKernel
from hushsum.kernels.registry import PRODUCT

_NOTHING = 2e-8


def column_profile(kernel: Kernel, asker: str) -> ColumnProfile:
    """k as a function of the difference in one column; refuses a kernel that is not a product over them."""
    PRODUCT.check(kernel, asker)
    profile = kernel.column_profile() if isinstance(kernel, ProfileKernel) else None
    assert profile is not None
    return profile


def reach_of(profile: ColumnProfile, width: float, farthest: float, size: float = 1.0) -> float:
    """A distance beyond which the kernel is below 2e-8 of its ``size``, or ``farthest`` where it has not
    fallen by then. A difference of kernels may be 0 in between.
    """
    places = [width]
    while places[-1] < farthest:
        places.append(1.25 * places[-1])
    seen = np.flatnonzero(np.abs(profile(np.array(places[:-1]))) > _NOTHING * size)
    return places[int(seen[-1]) + 1] if len(seen) else width


def chebyshev_coefficients(
    profile: ColumnProfile, half: float, queries: Floats, degree: int, nodes: int
) -> Floats:
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
