"""A few points of a pool, and weights, whose mean feature vector is a given one: post-processing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats


def reduced_set(pool: Floats, features: Floats, target: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Points chosen by herding, and the weights that bring their mean features nearest to the target.

    The weights solve ``min ‖Σ w·φ(z) − target‖² + ridge·‖w‖²``. A ridge of the noise's variance times the
    number of features keeps them from following the noise where the pool has more points than the target has
    coordinates.

    Parameters
    ----------
    pool : array of shape (n_pool, columns)
        Points to choose from.
    features : array of shape (n_pool, n_features)
        Theirs, each of length 1.
    target : array of shape (n_features,)
        The noisy mean.
    sigma : float
        The standard deviation of the noise in each coordinate.

    Returns
    -------
    points, weights
        At most as many as the pool has, in the pool's order.
    """
    from scipy.linalg import solve

    chosen = herd(features, target, len(pool))
    some = features[chosen]
    gram = some @ some.T
    gram[np.diag_indices_from(gram)] += sigma**2 * len(target) + 1e-6
    weights: Floats = solve(gram, some @ target, assume_a="pos")
    return pool[chosen], weights


def herd(features: Floats, target: Floats, rounds: int) -> NDArray[np.int64]:
    """The different points that kernel herding visits in ``rounds`` rounds, in ascending order.

    Each round takes the point whose features go furthest along what the mean of those before still lacks
    (Chen, Welling and Smola 2010).

    >>> herd(np.eye(3), np.array([0.5, 0.5, 0.0]), 10).tolist()
    [0, 1]
    """
    gains = features @ target
    lack = gains.copy()
    visited = np.zeros(len(features), dtype=bool)
    for _ in range(rounds):
        best = int(np.argmax(lack))
        visited[best] = True
        lack += gains - features @ features[best]
    return np.flatnonzero(visited)
