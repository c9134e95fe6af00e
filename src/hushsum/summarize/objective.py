"""The objective of summarization and the paper's bounds, as functions of kernels and numbers.

Letters: V the validation set, S the summary, m = |V|, p = |S|, K owners, N points in all.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel


def squared_discrepancy(kernel: Kernel, validation: ArrayLike, summary: ArrayLike) -> float:
    """MMD² of two sets: mean k(V, V) + mean k(S, S) − 2·mean k(V, S).

    >>> from hushsum.kernels import GaussianKernel
    >>> kernel = GaussianKernel(dim=1, bandwidth=1.0)
    >>> round(squared_discrepancy(kernel, [[0.0]], [[0.0], [2.0]]), 4)
    0.4323
    """
    return _mean(kernel, validation, validation) - objective(kernel, validation, summary)


def objective(kernel: Kernel, validation: ArrayLike, summary: ArrayLike) -> float:
    """J(S) = 2·mean k(V, S) − mean k(S, S), which is mean k(V, V) − MMD²; 0 for the empty summary."""
    if not len(np.asarray(summary)):
        return 0.0
    return 2.0 * _mean(kernel, validation, summary) - _mean(kernel, summary, summary)


def marginal_gains(attraction: Floats, crowding: Floats, norms: Floats, taken: int, level: float) -> Floats:
    """J(S + x) − J(S) of every candidate x, for S of ``taken`` points.

    ``attraction`` is mean k(V, x), ``crowding`` Σ_S k(s, x), ``norms`` k(x, x); ``level`` is
    ``2·Σ_S mean k(V, s)`` and ``Σ_S,S k`` folded into J(S)'s own terms by `summary_level`.
    """
    after = taken + 1
    gains: Floats = 2.0 * attraction / after - (norms + 2.0 * crowding) / after**2 + level
    return gains


def summary_level(attracted: float, crowded: float, taken: int) -> float:
    """The part of a marginal gain that is equal for all candidates.

    ``attracted`` is Σ_S mean k(V, s), ``crowded`` Σ_S,S k(s, s').
    """
    if not taken:
        return 0.0
    after = taken + 1
    return 2.0 * attracted * (1.0 / after - 1.0 / taken) - crowded * (1.0 / after**2 - 1.0 / taken**2)


def submodular(kernel_matrix: ArrayLike) -> bool:
    """Theorem 1's condition: equal diagonal k*, and every other entry at most k*/((N + 1)(N² + 3N + 1)).

    Sufficient for J to be monotone and submodular, and far stronger than data meet: values below 1/N³.
    With J = 〈A(S), k〉, a(S) = −1/|S| is what the diagonal adds and b(S) = 1 + 1/|S| what ones elsewhere
    would; a pair of points passes if k/k* ≤ (a(S+u) + a(S+v) − a(S+u+v) − a(S))/(b(S) + b(S+u+v)), which is
    1/((s + 1)(s² + 3s + 1)) for |S| = s.
    """
    matrix = np.asarray(kernel_matrix, dtype=np.float64)
    n = len(matrix)
    if matrix.shape != (n, n) or n < 2:
        raise UsageError(
            parameter="kernel_matrix",
            rule="must be square with at least 2 rows",
            remedy="give k of all pairs of points",
        )
    diagonal = matrix.diagonal()
    others = matrix[~np.eye(n, dtype=np.bool_)]
    bound = diagonal[0] / ((n + 1) * (n**2 + 3 * n + 1))
    return bool((diagonal == diagonal[0]).all() and (others >= 0).all() and others.max() <= bound)


def approximation_bound(best: float, error: float) -> float:
    """Theorem 2: J of the protocol's summary is at least (1 − 1/e)·J(OPT) − A.

    ``error`` is A; see `additive_error`. It holds where `submodular` does.
    """
    return (1.0 - 1.0 / math.e) * best - error


def additive_error(size: int, noise: float) -> float:
    """Lemma 3: A ≤ 7·ξ·ln p, where ξ bounds the expected error of both means in a gain.

    >>> round(additive_error(2000, 0.01), 3)
    0.532
    """
    return 7.0 * noise * math.log(size)


def points_seen_bound(size: int, owners: int, rate: float, repeats: int) -> float:
    """Lemma 5: the published auction is sent at most p·(1 + 1/ε + K/τ) points in expectation.

    ``rate`` is the auction's ε a rank, ``repeats`` its τ. With τ = K^{2/3} the last term is K^{1/3}.

    >>> points_seen_bound(1000, owners=27, rate=1.0, repeats=9)
    5000.0
    """
    return size * (1.0 + 1.0 / rate + owners / repeats)


def parsimony_order(owners: int) -> float:
    """K^{1/3}: the order of points seen per summary point in Theorem 2, without its constant."""
    return math.pow(owners, 1.0 / 3.0)


def _mean(kernel: Kernel, left: ArrayLike, right: ArrayLike) -> float:
    """The mean of k over all pairs, in blocks."""
    a, b = np.asarray(left, np.float64), np.asarray(right, np.float64)
    total = sum(float(kernel.exact_sum(a, b[i : i + 512]).sum()) for i in range(0, len(b), 512))
    return total / (len(a) * len(b))
