"""Noise on real numbers, for methods whose proof is about reals: normal, and the Gamma-radius (L2) law.

Both are made of `standard_normal`, which leaves no lattice by which exact values could be distinguished. The
numbers they are added to are rounded by floating point; what uses them rounds once more, to a public step,
and claims ``"real arithmetic"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np

from hushsum._types import Floats
from hushsum.privacy.noise import NoiseSource
from hushsum.privacy.noise.coin_sampler import flip
from hushsum.privacy.release_noise import standard_normal


class RealNoise:
    """What one release may draw; made by `real_noise` and over when its block ends."""

    __slots__ = ("_source",)

    def __init__(self, source: NoiseSource) -> None:
        self._source = source

    def normal(self, size: int) -> Floats:
        """Independent standard normal numbers."""
        return standard_normal(size, self._source)

    def symmetric(self, size: int) -> Floats:
        """A symmetric matrix, its upper triangle independent standard normal numbers."""
        upper = np.triu(self.normal(size * size).reshape(size, size))
        whole: Floats = upper + np.triu(upper, 1).T
        return whole

    def coin(self, exponent: float) -> bool:
        """True with probability e^(−exponent), exactly, for a float that is not negative."""
        return flip(Fraction(exponent), self._source.stream().more_bits(0))

    def gamma_vector(self, size: int, scale: float) -> Floats:
        """A vector b of density ∝ exp(−‖b‖/scale): a uniform direction, and a Gamma(size, scale) length.

        Half the sum of 2·size squared normal numbers has the Gamma(size, 1) law.
        """
        length = 0.5 * float(np.sum(self.normal(2 * size) ** 2))
        direction = self.normal(size)
        vector: Floats = direction * (scale * length / float(np.linalg.norm(direction)))
        return vector


@contextmanager
def real_noise(insecure_noise_seed: int | None = None) -> Iterator[RealNoise]:
    """A fresh key of the operating system for one release, wiped at the end; a seed makes it repeatable, for
    tests.

    >>> with real_noise(insecure_noise_seed=1) as noise:
    ...     noise.gamma_vector(3, 1.0).shape
    (3,)
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        yield RealNoise(source)
