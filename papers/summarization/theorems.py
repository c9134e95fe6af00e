"""The paper's theorems and lemmas, as functions of numbers.

Letters: d the width of h1, q vectors in h2's set, T its iterations, η its grid step, p the summary's size, K
owners, N points in all, m validation points. Statements are the paper's; where its privacy proof leaves out
that one record shifts every later round, these numbers leave it out too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


def submodular(kernel_matrix: ArrayLike, size: int | None = None) -> bool:
    """A condition under which greedy choice is known to work: equal diagonal k*, and every other entry from 0
    to k*/(12p), for summaries of p = ``size`` points; by default of half the matrix.

    Theorem 1 of the paper asks for entries below k*/((N + 1)(N² + 3N + 1)) and concludes that J is
    non-negative, monotone and submodular. J(∅) = 0 and J({u}) ≈ −k*, so it is none of them at the empty set,
    and negative everywhere else. What holds: G(∅) = 0 and G(S) = J(S) + 3k*/2 is all three.

    *Proof.* Let B bound the entries off the diagonal and s = |S| ≥ 1. In J(S + u) + J(S + v) − J(S + u + v) −
    J(S) the diagonal adds 2k*/(s(s + 1)(s + 2)). Of the other terms those with a negative sign are validation
    against S, at most 4B/((s + 1)(s + 2)), and S against u and v, at most 4sB(2s + 3)/((s + 1)²(s + 2)²) ≤
    8B/((s + 1)(s + 2)). So it is not negative where B ≤ k*/(6s). In J(S + u) − J(S) the diagonal adds
    k*/(s(s + 1)), and the negative terms are at most 4B/(s + 1): B ≤ k*/(4s) suffices. At S = ∅: G({u}) ≥
    k*/2, and G({u}) + G({v}) − G({u, v}) = (m_u + m_v)/2 + k_uv/2 ≥ 0 with m_u = 2·mean k(V, u). The greedy
    argument compares sets of at most 2p points. ∎
    """
    matrix = np.asarray(kernel_matrix, dtype=np.float64)
    n = len(matrix)
    if matrix.shape != (n, n) or n < 2:
        raise ValueError("the kernel matrix must be square with at least 2 rows")
    diagonal = matrix.diagonal()
    others = matrix[~np.eye(n, dtype=np.bool_)]
    most = diagonal[0] / (6 * (n if size is None else 2 * size))
    return bool((diagonal == diagonal[0]).all() and (others >= 0).all() and others.max() <= most)


def approximation_bound(best: float, error: float, peak: float = 1.0) -> float:
    """(1 − 1/e)·J(OPT) − 3k*/(2e) − A: what J of a greedy summary is at least, where `submodular` holds.

    ``error`` is A, `additive_error`, and ``peak`` is k*. Nemhauser's bound for G = J + 3k*/2. Theorem 2 of
    the paper has no middle term: with no two points alike and p = 3, J(OPT) = −1/3 and it promises −0.211,
    more than the best summary has.

    >>> best = -1.0 / 3.0
    >>> round((1.0 - 1.0 / math.e) * best, 3), round(approximation_bound(best, 0.0), 3)
    (-0.211, -0.763)
    """
    return (1.0 - 1.0 / math.e) * best - 1.5 * peak / math.e - error


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


def expected_marginal_error(width: int, vectors: int, epsilon: float, step: float) -> float:
    """Theorem 3: the expected largest error over coordinates of h2's mean, with T = d² iterations.

    2√(2·ln(2/η))/d + 11√2·ln d/(q·ε·√d) + 4/d + 2d·e^{−q/4} + η, in units in which a coordinate of h1 is at
    most √(2/d): MWEM's error (Theorem 4 with c = 3), its failure, and rounding (Lemma 2).
    """
    return (
        2.0 * math.sqrt(2.0 * math.log(2.0 / step)) / width
        + 11.0 * math.sqrt(2.0) * math.log(width) / (vectors * epsilon * math.sqrt(width))
        + 4.0 / width
        + 2.0 * width * math.exp(-vectors / 4.0)
        + step
    )


def marginal_error(
    width: int, vectors: int, iterations: int, epsilon: float, steps: int, *, c: float = 3.0
) -> tuple[float, float]:
    """Theorem 4: (bound on the largest error of a coordinate's sum, probability that it is exceeded).

    2q√(d·ln|S|/T) + (3c + 2)·ln d/ε but with probability 2T/d^c, for coordinates scaled to [−1, 1] and a grid
    of |S| = ``steps`` + 1 values.
    """
    bound = 2.0 * vectors * math.sqrt(width * math.log(steps + 1) / iterations)
    return bound + (3.0 * c + 2.0) * math.log(width) / epsilon, 2.0 * iterations / width**c


@dataclass(frozen=True, slots=True)
class Requirements:
    """What Lemma 4 needs: the width of h1, validation points and seed points."""

    width: float
    validation: float
    seeds: float


def requirements(
    points: int, size: int, delta: float, constant: float, width: int | None = None
) -> Requirements:
    """Lemma 4's conditions on d, m and the seed set.

    d ≥ 16·ln(2N)·ln²p/a², m ≥ 44√2·√d·ln d·ln²p, and |D_init| ≥ 968·d²·ln²d·ln(1/δ)·ln³p.
    ``width`` is the d of the last two; by default the least that the first allows.
    """
    log_size = math.log(size)
    least = 16.0 * math.log(2.0 * points) * log_size**2 / constant**2
    d = least if width is None else float(width)
    validation = 44.0 * math.sqrt(2.0) * math.sqrt(d) * math.log(d) * log_size**2
    seeds = 968.0 * d**2 * math.log(d) ** 2 * math.log(1.0 / delta) * log_size**3
    return Requirements(least, validation, seeds)


def greedy_error(width: int, size: int, epsilon: float, constant: float) -> float:
    """Lemma 4: A ≤ 7ξ·ln p with ξ = a/ln p + 4√(ln(2d)/d) + 6√(2/d) + 1/(ε·ln²p), under `requirements`.

    The objective is at most 1, so a bound above 1 says nothing.
    """
    log_size = math.log(size)
    error = (
        constant / log_size
        + 4.0 * math.sqrt(math.log(2.0 * width) / width)
        + 6.0 * math.sqrt(2.0 / width)
        + 1.0 / (epsilon * log_size**2)
    )
    return 7.0 * error * log_size


def auction_parameters(epsilon: float, delta: float, owners: int) -> tuple[float, int]:
    """Theorem 6: (ε_auc, τ) = (ε/(3√2·ln(1/δ))·K^{−1/3}, K^{2/3}).

    >>> rate, repeats = auction_parameters(1.0, 1e-4, 100)
    >>> round(rate, 4), repeats
    (0.0055, 22)
    """
    rate = epsilon / (3.0 * math.sqrt(2.0) * math.log(1.0 / delta)) * owners ** (-1.0 / 3.0)
    return rate, max(1, round(owners ** (2.0 / 3.0)))


def broadcast_epsilons(epsilon: float, delta: float, iterations: int, size: int) -> tuple[list[float], float]:
    """Theorem 6: ε of one of the T iterations in round ℓ = 1 … p, and for the validation set.

    ε/√(16·T·ℓ·ln(1/δ)·ln p) and ε/√(16·T·ln(1/δ)).
    """
    base = 16.0 * iterations * math.log(1.0 / delta)
    rounds = [epsilon / math.sqrt(base * turn * math.log(size)) for turn in range(1, size + 1)]
    return rounds, epsilon / math.sqrt(base)


def composed(epsilons: Sequence[float], delta: float) -> float:
    """Theorem 7 (Kairouz, Oh and Viswanath): ε of mechanisms run one after the other, at a slack δ.

    Σ ε(e^ε − 1)/(e^ε + 1) + √(2·ln(1/δ)·Σε²), or Σε where that is less.

    >>> round(composed([0.01] * 1656, 0.01), 2)
    1.32
    """
    each = np.asarray(epsilons, np.float64)
    drift = float((each * np.expm1(each) / (np.exp(each) + 1.0)).sum())
    spread = math.sqrt(2.0 * math.log(1.0 / delta) * float((each**2).sum()))
    return min(float(each.sum()), drift + spread)


def expected_requests(owners: int, rate: float) -> float:
    """Proof of Lemma 5: points requested in a round by rank, (1 − e^{−Kε})/(1 − e^{−ε}) of K.

    >>> round(expected_requests(100, 0.0055), 1)
    77.1
    """
    return -math.expm1(-owners * rate) / -math.expm1(-rate)


def characteristic(points: ArrayLike, numbers: ArrayLike, gamma: float) -> float:
    """Lemmas 6 and 7, Theorem 9: E exp(i·Σ k_j·θ_j) of the angles θ_j = w·x_j + b mod 2π of one feature.

    ``points`` of shape (n, columns), ``numbers`` the integers k. With w ~ N(0, 2γI) and b uniform it is 0
    unless Σk = 0 (Lemma 6), and then a product of kernel values exp(−γ‖x_i − x_j‖²) of pairs to the powers
    m_ij = −k_i·k_j (Lemma 7): a function of distances alone, so hashes reveal no more of the points.
    """
    x, k = np.asarray(points, np.float64), np.asarray(numbers, np.int64)
    if k.sum():
        return 0.0
    first, second = np.triu_indices(len(x), 1)
    squares = ((x[first] - x[second]) ** 2).sum(axis=1)
    return float(np.exp(gamma * (k[first] * k[second] * squares).sum()))
