"""Sums with a share of noise: the rows in order, the count last, and noise as stated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import hushsum as hs
from hushsum.privacy import GAUSSIAN, LAPLACE, NO_NOISE, IntegerNoise
from hushsum.tally import sums_with_share


def counted() -> hs.Tally:
    return hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=8, width=10).add(
        [[0.3]] * 700 + [[5.0]] * 50
    )


def test_without_noise_the_vector_is_the_table_and_the_count() -> None:
    vector = sums_with_share(counted(), 5, NO_NOISE, NO_NOISE)
    assert vector.shape == (51,)
    assert vector[-1] == 750
    assert (vector[:-1].reshape(5, 10).sum(axis=1) == 750).all()


def test_noise_is_drawn_for_every_cell_and_differs_between_calls() -> None:
    shares = IntegerNoise(LAPLACE, Fraction(1000), parts=2), IntegerNoise(GAUSSIAN, Fraction(10**6))
    exact = sums_with_share(counted(), 8, NO_NOISE, NO_NOISE)
    first, second = (sums_with_share(counted(), 8, *shares) - exact for _ in range(2))
    assert not np.array_equal(first, second)
    # About a fifth of the draws of such a share are 0.
    assert (first != 0).mean() > 0.5
    one, again = (sums_with_share(counted(), 8, *shares, insecure_noise_seed=3) for _ in range(2))
    assert np.array_equal(one, again)
