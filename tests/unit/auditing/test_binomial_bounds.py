from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from hushsum.auditing._statistics import at_most, binomial_bounds, lower_bounds, most_hits_below


@pytest.mark.parametrize(("number", "probability"), [(1, 0.5), (30, 0.01), (30, 0.99), (700, 0.3)])
def test_cumulative_probabilities(number: int, probability: float) -> None:
    hits = np.arange(-1.0, number + 2)
    expected = binom.cdf(hits, number, probability)
    np.testing.assert_allclose(
        at_most(hits, np.full(hits.shape, float(number)), probability), expected, rtol=1e-9
    )


@pytest.mark.parametrize("probability", [0.02, 0.37, 0.9])
@pytest.mark.parametrize("tail", [1e-2, 1e-9])
def test_the_critical_value_is_where_the_upper_bound_passes(probability: float, tail: float) -> None:
    numbers = np.array([1.0, 10.0, 100.0, 777.0])
    critical = most_hits_below(numbers, np.full(4, probability), tail)
    for number, hits in zip(numbers.astype(int).tolist(), critical.astype(int).tolist(), strict=True):
        if hits >= 0:
            assert binomial_bounds(hits, number, tail)[1] < probability
        assert binomial_bounds(hits + 1, number, tail)[1] >= probability


def test_many_lower_bounds_at_once() -> None:
    hits = np.array([1.0, 50.0, 100.0])
    expected = [binomial_bounds(int(each), 100, 1e-4)[0] for each in hits]
    np.testing.assert_allclose(lower_bounds(hits, 100, 1e-4), expected)


@pytest.mark.parametrize("probability", [0.003, 0.2, 0.97])
def test_bounds_cover(probability: float) -> None:
    """Exactly, by summing over all outcomes: each bound fails with probability ``tail`` at most."""
    number, tail = 200, 0.01
    bounds = [binomial_bounds(hits, number, tail) for hits in range(number + 1)]
    weights = binom.pmf(np.arange(number + 1), number, probability)
    assert sum(w for w, (low, _) in zip(weights, bounds, strict=True) if low > probability) <= tail
    assert sum(w for w, (_, high) in zip(weights, bounds, strict=True) if high < probability) <= tail
