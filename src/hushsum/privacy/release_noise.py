"""The draws of one release that chooses, counts and perturbs in several steps, all from one fresh key.

Each step is calibrated here from its sensitivity and its share of the budget; a method only states which
share a step gets. Integer steps are exact. Gaussian noise on real numbers is an exact draw from a lattice
2³⁰ times finer than its standard deviation, spread evenly between the points of the lattice; a lattice alone
would show, since what it is added to lies anywhere between. Floating-point sums round, so the noisy numbers
are rounded to a public step far coarser than that, and such a release claims real arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.privacy.accounting.continuous_gaussian import analytic_gaussian_sigma
from hushsum.privacy.calibration import gamma_noise, laplace_noise
from hushsum.privacy.integer_noise import IntegerNoise
from hushsum.privacy.noise import NoiseSource, discrete_gaussian
from hushsum.privacy.noise.choice_sampler import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    exponential_choice,
    permute_and_flip,
)
from hushsum.privacy.private_choice import Question

__all__ = [
    "EXPONENTIAL",
    "PERMUTE_AND_FLIP",
    "Question",
    "ReleaseNoise",
    "gaussian_sigma",
    "release_noise",
    "rounded",
    "rounded_reach",
]

REAL_ARITHMETIC = "real arithmetic"
EXACT_INTEGERS = "exact integers"
REAL_GAUSSIAN = "gaussian"
_LATTICE_BITS = 30
_ROUNDING_BITS = 10


class ReleaseNoise:
    """What one release may draw; made by `drawing` and over when its block ends."""

    __slots__ = ("_source",)

    def __init__(self, source: NoiseSource) -> None:
        self._source = source

    def choice(self, question: Question, *, mechanism: str = PERMUTE_AND_FLIP) -> int:
        """The position chosen by the scores; spends ``question.epsilon``, exactly."""
        choose = {PERMUTE_AND_FLIP: permute_and_flip, EXPONENTIAL: exponential_choice}[mechanism]
        return choose(question.scores, question.rate, self._source)

    def laplace(
        self, counts: NDArray[np.int64], l1: int, epsilon: Fraction
    ) -> tuple[NDArray[np.int64], IntegerNoise]:
        """Integer counts that one unit moves by at most ``l1`` together, made ε-private, and their noise."""
        noise = laplace_noise(l1, epsilon)
        return counts + noise.draw(counts.size, self._source).reshape(counts.shape), noise

    def gamma(
        self, values: NDArray[np.int64], l2_squared: int, epsilon: Fraction
    ) -> tuple[NDArray[np.int64], IntegerNoise]:
        """Integers that one unit moves by at most √``l2_squared`` in L2, made ε-private by noise of the
        Gamma-radius law, and that noise.
        """
        noise = gamma_noise(l2_squared, values.size, epsilon)
        return values + noise.draw(values.size, self._source).reshape(values.shape), noise

    def integer_gaussian(self, values: NDArray[np.int64], variance: Fraction) -> NDArray[np.int64]:
        """Integers with discrete Gaussian noise of that variance: Δ2²/(2·variance)-zCDP, exactly."""
        noise = discrete_gaussian(values.size, variance, self._source)
        return values + noise.reshape(values.shape)

    def gaussian(self, values: Floats, l2: float, epsilon: Fraction, delta: Fraction) -> tuple[Floats, float]:
        """Real numbers that one unit moves by at most ``l2`` in L2, made (ε, δ)-private, and their σ.

        They are rounded to a public step (`rounded`).
        """
        sigma = gaussian_sigma(l2, epsilon, delta)
        noise = standard_normal(values.size, self._source).reshape(values.shape)
        return rounded(values + sigma * noise, sigma), sigma


@contextmanager
def release_noise(insecure_noise_seed: int | None) -> Iterator[ReleaseNoise]:
    """A fresh key of the operating system for one release, wiped at the end; a seed makes it repeatable, for
    tests.
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        yield ReleaseNoise(source)


def gaussian_sigma(l2: float, epsilon: Fraction, delta: Fraction) -> float:
    """The least σ for an L2 sensitivity: the analytic Gaussian mechanism, for every ε.

    >>> round(gaussian_sigma(2.0, Fraction(1), Fraction(1, 10**6)), 2)
    8.45
    """
    return analytic_gaussian_sigma(epsilon, delta, l2)


def standard_normal(size: int, source: NoiseSource) -> Floats:
    """Independent normal numbers 2⁻³⁰·(k + U): k discrete Gaussian of variance 2⁶⁰, exactly, and U uniform
    between −½ and ½, of 52 bits.

    k alone would leave a lattice of step σ·2⁻³⁰ around the exact value, which distinguishes values that are
    off each other's lattice. k is within 2⁻⁶⁰/24 in total variation of a normal number of deviation 2³⁰,
    rounded (the lemma of `hushsum.privacy.accounting.discrete_gaussian_vectors`). Between whole numbers the
    density of that one is flat but for a part of |k|·2⁻⁶¹: a total variation below 2⁻³². Sums with exact
    values go through `rounded` before they are released, 2¹⁹ points of the lattice to a step: only those cut
    by the end of a step count then, and less than 2⁻⁵⁰ is left beside the rounding of floating point.

    >>> standard_normal(3, NoiseSource.insecure(1)).shape
    (3,)
    """
    whole = discrete_gaussian(size, Fraction(1 << (2 * _LATTICE_BITS)), source).astype(np.float64)
    between = ((source.stream().words(size) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52 - 0.5
    normal: Floats = 2.0**-_LATTICE_BITS * (whole + between)
    return normal


def rounded(values: Floats, sigma: float) -> Floats:
    """Noisy numbers to the nearest multiples of a power of two, at most σ/2¹⁰: post-processing, σ is public.

    The lowest bits of a floating-point sum depend on how large the exact value was; none of them is left. It
    adds less than 10⁻⁷ to the variance.

    >>> rounded(np.array([0.30004]), 1.0) * 1024
    array([307.])
    """
    step = 2.0 ** (math.floor(math.log2(sigma)) - _ROUNDING_BITS)
    rounded: Floats = step * np.rint(values / step)
    return rounded


def rounded_reach(tail: float) -> float:
    """The number of σ by which a number with noise σ·`standard_normal`, then `rounded`, exceeds the exact one
    with probability at most ``tail``.

    That is a quantile of the normal law, plus what drawing and rounding can add. Rounding moves a number by
    half a step, 2⁻¹¹·σ, at most. The noise is above r only if its lattice point k ≥ r·2³⁰ − ½, and the sum of
    a falling function from k on is below its integral from k − 1 on, so its tail beyond r is at most that of
    the normal law beyond r − 2·2⁻³⁰. A part of 1e−12 covers the rounding of the quantile.

    >>> rounded_reach(1e-6)  # doctest: +ELLIPSIS
    4.7539...
    """
    from scipy.special import ndtri

    quantile = float(-ndtri(tail))
    return quantile + abs(quantile) * 1e-12 + 2.0 ** -(_ROUNDING_BITS + 1) + 2.0 ** (1 - _LATTICE_BITS)
