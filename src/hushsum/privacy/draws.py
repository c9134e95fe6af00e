"""The draws of one release that chooses, counts and perturbs in several steps, all from one fresh key.

Each step is calibrated here from its sensitivity and its share of the budget; a method only says which
share a step gets. Integer steps are exact. Gaussian noise on real numbers is drawn on a lattice 2³⁰ times
finer than its standard deviation, so that no gap of a floating-point sampler tells anything, but adding it to
real numbers rounds: such a release claims real arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum.privacy.accounting.analytic import analytic_gaussian_sigma
from hushsum.privacy.calibration import IntegerNoise, laplace_noise
from hushsum.privacy.noise import NoiseSource, discrete_gaussian
from hushsum.privacy.noise.choice import EXPONENTIAL, PERMUTE_AND_FLIP, exponential_choice, permute_and_flip
from hushsum.privacy.selection import Question

__all__ = ["EXPONENTIAL", "PERMUTE_AND_FLIP", "Draws", "Question", "drawing", "gaussian_sigma"]

REAL_ARITHMETIC = "real arithmetic"
EXACT_INTEGERS = "exact integers"
REAL_GAUSSIAN = "gaussian"
_LATTICE_BITS = 30

Floats = NDArray[np.float64]


class Draws:
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

    def integer_gaussian(self, values: NDArray[np.int64], variance: Fraction) -> NDArray[np.int64]:
        """Integers with discrete Gaussian noise of that variance: Δ2²/(2·variance)-zCDP, exactly."""
        noise = discrete_gaussian(values.size, variance, self._source)
        return values + noise.reshape(values.shape)

    def gaussian(self, values: Floats, l2: float, epsilon: Fraction, delta: Fraction) -> tuple[Floats, float]:
        """Real numbers that one unit moves by at most ``l2`` in L2, made (ε, δ)-private, and their σ."""
        sigma = gaussian_sigma(l2, epsilon, delta)
        return values + sigma * standard_normal(values.size, self._source).reshape(values.shape), sigma


@contextmanager
def drawing(insecure_noise_seed: int | None) -> Iterator[Draws]:
    """A fresh key of the operating system for one release, wiped at the end; a seed makes it repeatable, for
    tests.
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        yield Draws(source)


def gaussian_sigma(l2: float, epsilon: Fraction, delta: Fraction) -> float:
    """The least σ for an L2 sensitivity: the analytic Gaussian mechanism, for every ε.

    >>> round(gaussian_sigma(2.0, Fraction(1), Fraction(1, 10**6)), 2)
    8.45
    """
    return analytic_gaussian_sigma(epsilon, delta, l2)


def standard_normal(size: int, source: NoiseSource) -> Floats:
    """Independent normal numbers on a lattice of step 2⁻³⁰.

    >>> standard_normal(3, NoiseSource.insecure(1)).shape
    (3,)
    """
    step = 2.0**-_LATTICE_BITS
    return step * discrete_gaussian(size, Fraction(1 << (2 * _LATTICE_BITS)), source).astype(np.float64)
