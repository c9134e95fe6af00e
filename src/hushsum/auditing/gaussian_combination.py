"""The law of an integer combination of discrete Gaussians, computed for audits only.

Deliberately not the accountant's code: an audit that shared its formulas would share its mistakes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats

_REACH = 12.0
_LARGEST_DEVIATION = 20_000.0


@dataclass(frozen=True, slots=True)
class Term:
    """``cells`` independent discrete Gaussians of one variance, each times an integer ``weight``."""

    cells: int
    variance: float
    weight: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class LatticeLaw:
    """P(T ≥ k) of a symmetric integer statistic T."""

    deviation: float
    survival: Floats | None

    def reaches(self, threshold: int | NDArray[np.int64]) -> Floats:
        """P(T ≥ threshold), one value for each threshold.

        Up to a deviation of 20,000 by Fourier sums, right to 1e−13. Beyond, the normal law with the threshold
        moved by ½, whose relative error is of the order of 1/deviation², far below what draws can see.
        """
        thresholds = np.asarray(threshold)
        if self.survival is None:
            from scipy.special import ndtr

            smooth: Floats = ndtr((0.5 - thresholds) / self.deviation)
            return smooth
        middle = len(self.survival) // 2
        values: Floats = self.survival[np.clip(thresholds + middle, 0, len(self.survival) - 1)]
        return values


@lru_cache(maxsize=64)
def law_of(*terms: Term) -> LatticeLaw:
    """The law of the sum of the terms.

    >>> law = law_of(Term(cells=1, variance=1.0))
    >>> round(float(law.reaches(1)), 4)
    0.3005
    """
    deviation = math.sqrt(sum(term.cells * term.variance * term.weight**2 for term in terms))
    if deviation > _LARGEST_DEVIATION:
        return LatticeLaw(deviation, None)
    half = math.ceil(_REACH * max(deviation, 1.0)) + 8 * max(term.weight for term in terms)
    size = 2 * half
    transform = np.ones(half + 1, dtype=np.complex128)
    for term in terms:
        reach = math.ceil(_REACH * max(math.sqrt(term.variance), 1.0))
        steps = np.arange(-reach, reach + 1)
        weights = np.exp(-(steps.astype(np.float64) ** 2) / (2.0 * term.variance))
        wrapped = np.zeros(size)
        np.add.at(wrapped, steps * term.weight % size, weights / weights.sum())
        transform *= np.fft.rfft(wrapped) ** term.cells
    masses = np.roll(np.fft.irfft(transform, size), half)
    survival = np.cumsum(masses[::-1])[::-1]
    return LatticeLaw(deviation, np.clip(survival, 0.0, 1.0))
