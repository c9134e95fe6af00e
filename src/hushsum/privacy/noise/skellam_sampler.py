"""The Skellam law, a difference of two Poisson variables, drawn exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from hushsum.privacy.noise.decimal_intervals import Interval, decimals, fraction
from hushsum.privacy.noise.poisson_sampler import PoissonLaw, poisson, poisson_law
from hushsum.privacy.noise.source import NoiseSource, check_draw, check_parameter

SMALLEST_SKELLAM = Fraction(1, 1 << 20)
LARGEST_SKELLAM = Fraction(1 << 12)


def skellam(size: int, variance: Fraction, source: NoiseSource, *, threads: int = 1) -> NDArray[np.int64]:
    """Independent integers A − B with A and B Poisson of mean ``variance/2``, exactly.

    Draws add up to Skellam variables: so many of one variance to one of so many times the variance. This
    makes the law suitable for noise in shares, however small a share is.

    Limits: variances from 2⁻²⁰ to 2¹².

    Parameters
    ----------
    size : int
        Number of draws.
    variance : Fraction
        The sum of both means.
    source : NoiseSource
        The randomness of this release; the call takes four streams from it.

    References
    ----------
    Agarwal, Kairouz & Liu 2021, "The Skellam mechanism for differentially private federated learning".

    Examples
    --------
    >>> skellam(5, Fraction(1, 2), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    law = _half(check_parameter("variance", variance, SMALLEST_SKELLAM, LARGEST_SKELLAM))
    gained, lost = poisson(size, law, source), poisson(size, law, source)
    return gained - lost


@lru_cache(maxsize=64)
def _half(variance: Fraction) -> PoissonLaw:
    return poisson_law(partial(_mean, variance / 2))


def _mean(mean: Fraction, digits: int) -> Interval:
    return fraction(mean, decimals(digits + 20))
