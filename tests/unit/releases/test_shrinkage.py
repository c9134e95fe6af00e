"""Totals that agree and cells taken as empty: post-processing that keeps what it should."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.releases import TableFunction
from hushsum.releases.shrinkage import shrunk_sums, with_equal_totals

RECORDS = np.random.default_rng(0).normal(size=(3000, 3))


def released(epsilon: float = 0.5) -> TableFunction:
    f = hs.race(hs.AngularKernel(dim=3, bits=2), rows=200).add(RECORDS).release(epsilon=epsilon, rows=200)
    assert isinstance(f, TableFunction)
    return f


def test_equal_totals_lower_the_noise_of_narrow_rows() -> None:
    """Four cells a row: a quarter of the noise is common to a row. The mean square over 200 × 4 cells of
    Laplace noise strays by 8 % (one standard deviation), of a difference of such by less; 0.9 is far away.
    """
    exact = hs.race(hs.AngularKernel(dim=3, bits=2), rows=200).add(RECORDS)._state()["table"]
    ratios = []
    for _ in range(20):
        f = released()
        before, after = (((g.table - exact) ** 2).mean() for g in (f, with_equal_totals(f)))
        ratios.append(after / before)
    assert 0.65 < np.mean(ratios) < 0.85


def test_equal_totals_are_the_count() -> None:
    f = released()
    totals = with_equal_totals(f).table.sum(axis=1)
    assert np.abs(totals - f.count).max() <= f.basis.shape[1]
    assert np.ptp(f.table.sum(axis=1)) > np.ptp(totals)


def test_nothing_is_shrunk_at_zero_deviations() -> None:
    f = released()
    queries = RECORDS[:7]
    shrunk = shrunk_sums(f, queries, deviations=0.0)
    np.testing.assert_allclose(shrunk.value, f.sum(queries))
    assert (shrunk.bias == 0.0).all()


def test_value_less_bias_is_the_plain_answer_and_everything_can_be_shrunk() -> None:
    f = released()
    queries = RECORDS[:7]
    shrunk = shrunk_sums(f, queries, deviations=2.0)
    np.testing.assert_allclose(shrunk.value - shrunk.bias, f.sum(queries))
    assert (shrunk_sums(f, queries, deviations=1e9).value == 0.0).all()


@pytest.mark.parametrize("deviations", [-1.0, float("nan"), float("inf")])
def test_senseless_thresholds_are_refused(deviations: float) -> None:
    with pytest.raises(UsageError, match="deviations must be at least 0"):
        shrunk_sums(released(), RECORDS[:1], deviations=deviations)
