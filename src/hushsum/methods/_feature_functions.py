"""Functions of private data in a finite feature space, made private there: f(q) = w·φ(q) with noise on w.

The noise w' − w is Gaussian with the same variance in every coordinate, so f' − f is a Gaussian process whose
covariance is φ·φ, the kernel of the space in which f lies. Both live in the same space, and that is what the
proof needs: noise made of finitely many features does not hide a function of an infinite-dimensional kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import DataRefused
from hushsum.privacy import ANALYTIC, Promise, lattice_variance, perturb_lattice

__all__ = [
    "GAP_REACHED", "GAP_SHARE", "TARGET_BITS", "Machines", "MatrixGram", "allowed_gap", "fit_machines",
    "gap_missed", "perturbed_machines", "perturbed_posterior", "smoother", "solve_hinge", "svm_sensitivity",
]  # fmt: skip

# Some thirty are usual; rounding errors end a path that they keep from its gap long before.
_MOST_STEPS = 2000
_TO_THE_WALL = 0.995
_ROWS_AT_A_TIME = 1 << 12


Solve = Callable[[Floats], Floats]
"""Solves a linear system for a right-hand side."""


class SignedGram(Protocol):
    """Q = (y_i y_j k(x_i, x_j)), as far as the solver needs it."""

    def times(self, vector: Floats) -> Floats:
        """Q·vector."""

    def solver(self, diagonal: Floats, weight: float) -> Solve:
        """A function that solves (diag(diagonal) + weight·Q)·x = r."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureGram:
    """Q = Z Zᵀ with rows y_i φ(x_i): n × D, solved in D dimensions (Ferris and Munson 2002)."""

    rows: Floats

    def times(self, vector: Floats) -> Floats:
        """Z(Zᵀ·vector)."""
        return np.asarray(self.rows @ (self.rows.T @ vector))

    def solver(self, diagonal: Floats, weight: float) -> Solve:
        """By Woodbury's identity: one Cholesky factor of I + weight·Zᵀ diag⁻¹ Z."""
        from scipy.linalg import cho_factor, cho_solve

        scaled = self.rows / diagonal[:, np.newaxis]
        inner = weight * (self.rows.T @ scaled)
        inner[np.diag_indices_from(inner)] += 1.0
        factor = cho_factor(inner)

        def once(right: Floats) -> Floats:
            first = right / diagonal
            return np.asarray(first - weight * (scaled @ cho_solve(factor, self.rows.T @ first)))

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
        return np.asarray(self.matrix @ vector)

    def solver(self, diagonal: Floats, weight: float) -> Solve:
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

    ``rows`` are y_i φ(x_i). The error of the result is at most `certificate_error`.
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
    solve: Solve, residual: Floats, a: Floats, low: Floats, high: Floats, to_low: Floats, to_high: Floats
) -> tuple[Floats, Floats, Floats]:
    """Newton's step: Q' da − dl + dh = −residual, low·da + a·dl = −to_low, −high·da + (1−a)·dh = −to_high."""
    room = 1.0 - a
    da = solve(-residual - to_low / a + to_high / room)
    dl = (-to_low - low * da) / a
    dh = (-to_high + high * da) / room
    return da, dl, dh


def _length(a: Floats, low: Floats, high: Floats, da: Floats, dl: Floats, dh: Floats, share: float) -> float:
    """The length of a step: ``share`` times the longest one that leaves all variables positive, at most 1."""
    longest = 1.0
    for value, step in ((a, da), (1.0 - a, -da), (low, dl), (high, dh)):
        falling = step < 0.0
        if falling.any():
            longest = min(longest, share * float((-value[falling] / step[falling]).min()))
    return longest


TARGET_BITS = 12
"""A target is rounded to integers of at most 2¹² either way of the middle of its bounds."""

_SMOOTHER_BITS = 17
_MOST_RECORDS = 1 << 22
_LATTICE_BITS = 26
GAP_SHARE = 0.05
"""The duality gap allowed to a machine, as the part of its sensitivity that it adds."""

GAP_REACHED = "the solver reaches its duality gap on the records and on all of their neighbours"
"""What the claim of a machine assumes: a machine that misses the gap is refused, and nothing bounds what that
reveals.
"""

LARGEST_SQUARE = 1.0001
"""Above ‖φ(x)‖² of every record: features are cosines and sines to within 2·10⁻⁵."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyWeights:
    """Coefficients w' in integers, one row for each function; public.

    ``step`` is the value of 1, and ``variance`` that of the noise in steps².
    """

    weights: Integers
    step: float
    variance: Fraction

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of f at a point where ‖φ‖ = 1."""
        return self.step * math.sqrt(float(self.variance))

    @property
    def values(self) -> Floats:
        """w', shape (functions, features)."""
        return np.asarray(self.step * self.weights.astype(np.float64))


def smoother(features: Floats, noise_variance: float) -> Floats:
    """The matrix A with w = A·y of the posterior mean of a Gaussian process, shape (D, n).

    A = (ΦᵀΦ + σ²I)⁻¹Φᵀ = Φᵀ(ΦΦᵀ + σ²I)⁻¹, so that w·φ(q) = k(q, X)·C⁻¹·y with C = K + σ²I.
    """
    inner = features.T @ features
    inner[np.diag_indices_from(inner)] += noise_variance
    return np.linalg.solve(inner, features.T).astype(np.float64)


def perturbed_posterior(
    matrix: Floats,
    targets: Integers,
    promise: Promise,
    *,
    calibration: str = ANALYTIC,
    insecure_noise_seed: int | None = None,
) -> NoisyWeights:
    """The posterior mean of public inputs and private targets, its coefficients made private.

    Parameters
    ----------
    matrix : array of shape (D, n)
        From `smoother`; depends on the public inputs alone.
    targets : int array of shape (n,)
        Within ±2¹², secret; a value of 2¹² stands for half the width of the declared range.

    Privacy
    -------
    The matrix is rounded to integers T, and Σ y_i T_i is computed without rounding: every partial sum
    stays below 2⁵³. One target replaced moves it by at most B·max_i‖T_i‖ with B = 2·2¹² exactly, which is
    B²·max_i [C⁻¹KC⁻¹]_ii in the units of the rounding. Nothing here depends on how exact the matrix is.
    """
    if matrix.shape[1] > _MOST_RECORDS:
        raise DataRefused(f"at most {_MOST_RECORDS} records fit this method", remedy="take a sample of them")
    longest = float(np.sqrt((matrix**2).sum(axis=0)).max(initial=0.0)) or 1.0
    step = 2.0 ** math.ceil(math.log2(longest) - _SMOOTHER_BITS)
    rounded = np.rint(matrix / step)
    largest = int((rounded**2).sum(axis=0).max(initial=1.0))
    moved = 2 * (1 << TARGET_BITS) * (math.isqrt(largest) + 1)
    exact = (rounded @ np.clip(targets, -(1 << TARGET_BITS), 1 << TARGET_BITS).astype(np.float64)).astype(
        np.int64
    )
    variance = lattice_variance(moved, exact.size, promise, calibration=calibration)
    noisy = perturb_lattice(exact, variance, insecure_noise_seed=insecure_noise_seed)
    return NoisyWeights(noisy[np.newaxis], step / (1 << TARGET_BITS), variance)


def svm_sensitivity(c: float, number: int, square: float, gap: float) -> float:
    """How far replacing one of n records moves the solution that was found: 2C√κ/n + 2√(2g).

    w* minimises the 1-strongly convex ½‖w‖² + (C/n)·Σ hinge. Replacing one record changes the objective by a
    difference of two hinges, which is 2(C/n)√κ-Lipschitz, so w* moves by at most that; and either solution
    found is within √(2g) of its own w*.

    >>> round(svm_sensitivity(1.0, 100, 1.0, 0.0), 6)
    0.02
    """
    return 2.0 * c * math.sqrt(square) / number + 2.0 * math.sqrt(2.0 * gap)


def allowed_gap(c: float, number: int, square: float) -> float:
    """The duality gap that adds `GAP_SHARE` to the sensitivity; fixed by public numbers alone."""
    return (GAP_SHARE * c * math.sqrt(square) / number) ** 2 / 2.0


def gap_missed(c: float) -> DataRefused:
    """The refusal of a machine whose solver has not reached its gap; shows public numbers only."""
    return DataRefused(
        "C",
        "must allow the machine to be solved to its duality gap",
        got=f"{c:g}, with which it was not",
        remedy="use a smaller C",
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Machines:
    """Fitted support vector machines, one row of weights per machine, and a bound on how far one record moves
    all weights together; secret.
    """

    weights: Floats
    sensitivity: float


def fit_machines(features: Floats, codes: Integers, classes: int, c: float) -> Machines:
    """Support vector machines with hinge loss: one for two classes, or one for each of several against the
    rest.

    Parameters
    ----------
    features : array of shape (n, D)
        φ with ‖φ‖² ≤ 1.0001; a constant 1 is appended for the intercept, so the last weight is that.
    codes : int array of shape (n,)
        Classes from 0 to ``classes − 1``.
    c : float
        Of ½‖w‖² + (C/n)·Σ hinge. (scikit-learn's C multiplies the sum: it is this one over n.)

    Privacy
    -------
    n is public, and one record is replaced. κ = sup‖φ‖² + 1, with the constant. Each machine moves by
    Δ = `svm_sensitivity`; K machines of the same records move together by √K·Δ. The gap is certified in
    extended precision, and half of it is kept for its error (`certified_gap`).

    **The claim assumes that the solver reaches the gap on the records and on all their neighbours.** Where it
    does not, the fit is refused, and that it was refused reveals one bit about the records which nothing here
    bounds. Of about 250 fits in a search for such cases two missed it, both with C ≥ 3·10⁸.

    Raises
    ------
    DataRefused
        if the solver misses the gap.
    """
    number = len(features)
    square = LARGEST_SQUARE + 1.0
    rows = np.column_stack((features, np.ones(number)))
    gap = max(allowed_gap(c, number, square), 2.0 * certificate_error(rows.shape, c, square))
    machines = 1 if classes <= 2 else classes
    found = np.zeros((machines, rows.shape[1]))
    for machine in range(machines):
        signs = np.where(codes == (1 if machines == 1 else machine), 1.0, -1.0)
        signed = signs[:, np.newaxis] * rows
        solution = solve_hinge(FeatureGram(signed), number, c / number, gap=gap / 2.0)
        weights = signed.T @ solution.alpha
        if not certified_gap(signed, solution.alpha, weights, c / number) <= gap / 2.0:
            raise gap_missed(c)
        found[machine] = weights
    return Machines(found, math.sqrt(machines) * svm_sensitivity(c, number, square, gap))


def perturbed_machines(
    machines: Machines,
    promise: Promise,
    *,
    calibration: str = ANALYTIC,
    insecure_noise_seed: int | None = None,
) -> NoisyWeights:
    """The machines, made private together.

    Privacy
    -------
    Weights are rounded to a lattice, which moves every coordinate by half a step for either of two
    neighbours: √cells steps are added to the sensitivity. Then exact discrete Gaussian noise.
    """
    found = machines.weights
    step = 2.0 ** math.floor(math.log2(machines.sensitivity) - _LATTICE_BITS)
    moved = math.ceil(machines.sensitivity / step * (1.0 + 1e-9)) + math.isqrt(found.size) + 1
    variance = lattice_variance(moved, found.size, promise, calibration=calibration)
    noisy = perturb_lattice(
        np.rint(found / step).astype(np.int64), variance, insecure_noise_seed=insecure_noise_seed
    )
    return NoisyWeights(noisy, step, variance)
