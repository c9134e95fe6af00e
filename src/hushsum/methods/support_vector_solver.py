"""The support vector machine by an interior-point method, with a certificate of how exact it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushsum._types import Floats

_MOST_STEPS = 2000
"""Some thirty are usual; rounding errors end a path that they keep from its gap long before."""
_TO_THE_WALL = 0.995
_ROWS_AT_A_TIME = 1 << 12


class SignedGram(Protocol):
    """Q = (y_i y_j k(x_i, x_j)), as far as the solver needs it."""

    def times(self, vector: Floats) -> Floats:
        """Q·vector."""

    def solver(self, diagonal: Floats, weight: float) -> _Solve:
        """A function that solves (diag(diagonal) + weight·Q)·x = r."""


class _Solve(Protocol):
    def __call__(self, right: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class FeatureGram:
    """Q = Z Zᵀ with rows y_i φ(x_i): n × D, solved in D dimensions (Ferris and Munson 2002)."""

    rows: Floats

    def times(self, vector: Floats) -> Floats:
        """Z(Zᵀ·vector)."""
        product: Floats = self.rows @ (self.rows.T @ vector)
        return product

    def solver(self, diagonal: Floats, weight: float) -> _Solve:
        """By Woodbury's identity: one Cholesky factor of I + weight·Zᵀ diag⁻¹ Z."""
        from scipy.linalg import cho_factor, cho_solve

        scaled = self.rows / diagonal[:, np.newaxis]
        inner = weight * (self.rows.T @ scaled)
        inner[np.diag_indices_from(inner)] += 1.0
        factor = cho_factor(inner)

        def once(right: Floats) -> Floats:
            first = right / diagonal
            result: Floats = first - weight * (scaled @ cho_solve(factor, self.rows.T @ first))
            return result

        def solve(right: Floats) -> Floats:
            # One step of refinement: the identity loses digits where the diagonal spans many orders.
            x = once(right)
            return x + once(right - diagonal * x - weight * self.times(x))

        return solve


@dataclass(frozen=True, slots=True, eq=False)
class MatrixGram:
    """Q as a matrix, n × n, for kernels without finite features."""

    matrix: Floats

    def times(self, vector: Floats) -> Floats:
        """Q·vector."""
        product: Floats = self.matrix @ vector
        return product

    def solver(self, diagonal: Floats, weight: float) -> _Solve:
        """One Cholesky factor of the whole."""
        from scipy.linalg import cho_factor, cho_solve

        whole = weight * self.matrix
        whole[np.diag_indices_from(whole)] += diagonal
        factor = cho_factor(whole)
        return lambda right: np.asarray(cho_solve(factor, right), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class HingeSolution:
    """Dual variables α in [0, c], and the duality gap of w = Σ α_i y_i φ(x_i)."""

    alpha: Floats
    gap: float


def solve_hinge(gram: SignedGram, number: int, c: float, *, gap: float) -> HingeSolution:
    """Minimise ½‖w‖² + c·Σ max(0, 1 − y_i w·φ(x_i)) over w, down to a duality gap.

    No intercept: put a constant into the features. The dual is min ½c·aᵀQa − Σa over 0 ≤ a ≤ 1, α = c·a,
    followed along its central path by Mehrotra's predictor and corrector. The gap returned is that of the
    point returned, whatever the path did; it may be above the requested one.

    Notes
    -----
    P is 1-strongly convex, so P(w) − P(w*) ≥ ½‖w − w*‖², and a gap g means ‖w − w*‖ ≤ √(2g).
    """
    a = np.full(number, 0.5)
    low, high = np.ones(number), np.ones(number)
    best = HingeSolution(c * a, _gap(gram, a, c))
    for _ in range(_MOST_STEPS):
        if best.gap <= gap or number == 0:
            break
        gradient = c * gram.times(a) - 1.0
        residual = gradient - low + high
        middle = float(a @ low + (1.0 - a) @ high) / (2 * number)
        try:
            solve = gram.solver(low / a + high / (1.0 - a), c)
        except np.linalg.LinAlgError:
            break
        da, dl, dh = _step(solve, residual, a, low, high, a * low, (1.0 - a) * high)
        affine = _length(a, low, high, da, dl, dh, 1.0)
        after = float(
            (a + affine * da) @ (low + affine * dl) + (1.0 - a - affine * da) @ (high + affine * dh)
        ) / (2 * number)
        centre = middle * (after / middle) ** 3
        da, dl, dh = _step(
            solve, residual, a, low, high, a * low + da * dl - centre, (1.0 - a) * high - da * dh - centre
        )
        length = _length(a, low, high, da, dl, dh, _TO_THE_WALL)
        a, low, high = a + length * da, low + length * dl, high + length * dh
        if not (np.isfinite(a).all() and middle > 0.0):
            break
        found = _gap(gram, a, c)
        if found < best.gap:
            best = HingeSolution(c * np.clip(a, 0.0, 1.0), found)
        if length < 1e-10:
            break
    return best


def certified_gap(rows: Floats, alpha: Floats, weights: Floats, c: float) -> float:
    """P(weights) − D(alpha) in extended precision, for dual variables clipped to [0, c].

    ``rows`` are y_i φ(x_i). The result errs by at most `certificate_error`.
    """
    inside = np.clip(alpha, 0.0, c).astype(np.longdouble)
    exact = weights.astype(np.longdouble)
    hinge, combined = np.longdouble(0.0), np.zeros(len(weights), np.longdouble)
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        part = rows[start : start + _ROWS_AT_A_TIME].astype(np.longdouble)
        hinge += np.maximum(1.0 - part @ exact, 0.0).sum()
        combined += inside[start : start + _ROWS_AT_A_TIME] @ part
    primal = 0.5 * (exact @ exact) + c * hinge
    dual = inside.sum() - 0.5 * (combined @ combined)
    return float(primal - dual)


def certificate_error(shape: tuple[int, ...], c: float, square: float) -> float:
    """A bound on the rounding of `certified_gap` for n × D rows with ‖φ‖² ≤ ``square``, and c·n = ``c``.

    Every sum has at most n + D terms, so its relative error is at most (n + D)·u; the sums of absolute values
    are at most C, C·√κ·‖w‖ and ‖w‖², with ‖w‖ ≤ C√κ; and there are fewer than 8 of them.
    """
    unit = float(np.finfo(np.longdouble).eps)
    return 8.0 * (shape[0] + shape[1]) * unit * c * (1.0 + c * square)


def _gap(gram: SignedGram, a: Floats, c: float) -> float:
    """P(w) − D(a) for the clipped a: ‖w‖² + c·Σ hinge − c·Σ a, without the loss of a difference of sums."""
    inside = np.clip(a, 0.0, 1.0)
    margins = c * gram.times(inside)
    # ‖w‖² = c·aᵀm with m the margins, so the gap is c·Σ [max(0, 1 − m) − a(1 − m)], each term ≥ 0.
    slack = 1.0 - margins
    return float(c * (np.maximum(slack, 0.0) - inside * slack).sum())


def _step(
    solve: _Solve, residual: Floats, a: Floats, low: Floats, high: Floats, to_low: Floats, to_high: Floats
) -> tuple[Floats, Floats, Floats]:
    """Newton's step: Q' da − dl + dh = −residual, low·da + a·dl = −to_low, −high·da + (1−a)·dh = −to_high."""
    room = 1.0 - a
    da = solve(-residual - to_low / a + to_high / room)
    dl = (-to_low - low * da) / a
    dh = (-to_high + high * da) / room
    return da, dl, dh


def _length(a: Floats, low: Floats, high: Floats, da: Floats, dl: Floats, dh: Floats, share: float) -> float:
    """How far one may go so that everything stays positive."""
    longest = 1.0
    for value, step in ((a, da), (1.0 - a, -da), (low, dl), (high, dh)):
        falling = step < 0.0
        if falling.any():
            longest = min(longest, share * float((-value[falling] / step[falling]).min()))
    return longest
