from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hushsum.errors import ClaimError, UsageError
from hushsum.privacy import (
    Factorisation,
    IntegerNoise,
    Promise,
    Relation,
    Sensitivity,
    StreamNoise,
    StreamUnit,
    View,
    spent_delta,
    spent_epsilon,
    spent_rho,
    stream_noise,
)

ROWS = 50
RECORD = {
    Relation.ADD_REMOVE: Sensitivity(ROWS, ROWS, 1),
    Relation.REPLACE: Sensitivity(2 * ROWS, 2 * ROWS, 1),
}
SHARE = Fraction(1, 50)
UNITS = [
    StreamUnit(RECORD, relation, per_unit, removals, ROWS * 40)
    for relation in Relation
    for per_unit in (None, 3)
    for removals in (False, True)
]


def noise_for(
    unit: StreamUnit, horizon: int | None = 30, view: View | None = None, **promise: float
) -> StreamNoise:
    return stream_noise(Promise.of(**promise), unit, horizon=horizon, view=view or View(), count_share=SHARE)


@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("horizon", [30, None])
def test_all_of_the_promise_is_spent_and_no_more(unit: StreamUnit, horizon: int | None) -> None:
    assert spent_epsilon(noise_for(unit, horizon, epsilon=0.5), unit) == Fraction(1, 2)
    rho = spent_rho(noise_for(unit, horizon, rho=0.1), unit)
    assert Fraction(999, 10000) < rho <= Fraction(1, 10)
    delta = spent_delta(noise_for(unit, horizon, epsilon=1.0, delta=1e-6), unit, Fraction(1))
    assert 0.99e-6 < delta <= 1e-6


@pytest.mark.parametrize("horizon", [30, None])
def test_rounding_costs_the_number_of_records_as_little_as_a_finer_table(horizon: int | None) -> None:
    """Of a grid, whose cells count in small fractions of a record."""
    fine = dict.fromkeys(Relation, Sensitivity(1 << 20, 1 << 38, 1 << 19))
    noise = noise_for(StreamUnit(fine, Relation.ADD_REMOVE, None, False, 50), horizon, rho=0.1)
    assert noise.count_bits > 0
    assert isinstance(noise.strategy, Factorisation)
    least = noise.strategy.bounds().column_squared / (2 * 0.1 * float(SHARE))
    assert 1.0 <= noise.count_variance / least < 1.01


@pytest.mark.parametrize("unit", UNITS[:2], ids=repr)
def test_a_fifth_less_noise_spends_more_than_the_promise(unit: StreamUnit) -> None:
    def less(noise: StreamNoise, factor: Fraction) -> StreamNoise:
        table = IntegerNoise(noise.table.mechanism, noise.table.parameter * factor)
        return replace(noise, table=table)

    assert spent_epsilon(less(noise_for(unit, epsilon=0.5), Fraction(4, 5)), unit) > Fraction(1, 2)
    assert spent_rho(less(noise_for(unit, rho=0.1), Fraction(16, 25)), unit) > Fraction(1, 10)
    few = less(noise_for(unit, epsilon=1.0, delta=1e-6), Fraction(16, 25))
    assert spent_delta(few, unit, Fraction(1)) > 1e-5


def test_a_record_that_moves_costs_what_replacing_it_inside_a_step_may_hide() -> None:
    """A constant coordinate: replaced in a step nothing moves in it, but between steps it does."""
    constant = {Relation.ADD_REMOVE: Sensitivity(3, 5, 2), Relation.REPLACE: Sensitivity(1, 1, 1)}
    table, count = StreamUnit(constant, Relation.REPLACE, None, False, 10).changes(endless=False)
    assert (table.l1, table.l2_squared) == (6, 10)
    assert (count.l1, count.l2_squared) == (2, 2), "the number of records of a step is private"


@pytest.mark.parametrize(
    ("relation", "per_unit", "removals", "l1", "squared"),
    [
        (Relation.ADD_REMOVE, None, False, 1, 1),
        (Relation.ADD_REMOVE, 3, False, 3, 9),
        (Relation.ADD_REMOVE, None, True, 2, 2),
        (Relation.ADD_REMOVE, 3, True, 3, 9),
        (Relation.REPLACE, None, False, 2, 2),
        (Relation.REPLACE, 3, False, 6, 18),
        (Relation.REPLACE, None, True, 4, 8),
        (Relation.REPLACE, 3, True, 6, 36),
    ],
)
def test_the_change_of_every_unit_bounds_every_placement(
    relation: Relation, per_unit: int | None, removals: bool, l1: int, squared: int
) -> None:
    """Against a search over steps, signs and cells, convolved with positive weights of length 1."""
    moved = {Relation.ADD_REMOVE: Sensitivity(1, 1, 1), Relation.REPLACE: Sensitivity(2, 2, 1)}
    change, _ = StreamUnit(moved, relation, per_unit, removals, 100).changes(endless=False)
    assert (change.l1, change.l2_squared) == (l1, squared)
    weights = np.array([3.0, 2.0, 1.5, 1.0, 0.5])
    weights /= np.sqrt((weights**2).sum())
    random = np.random.default_rng(0)

    def unit() -> np.ndarray:
        """What one unit adds, shape (steps, cells)."""
        added = np.zeros((5, 2))
        for _ in range(per_unit or 1):
            step, cell, sign = random.integers(5), random.integers(2), 1
            if removals and per_unit is not None:
                sign = random.choice([-1, 1])
            added[step, cell] += sign
            if removals and per_unit is None:
                added[random.integers(step, 5), cell] -= 1
        return added

    longest = largest = 0.0
    for _ in range(400):
        difference = unit() - (unit() if relation is Relation.REPLACE else 0.0)
        outputs = [np.convolve(difference[:, cell], weights)[:5] for cell in range(2)]
        longest = max(longest, float(np.square(outputs).sum()))
        largest = max(largest, float(np.abs(difference).sum()))
    assert longest <= squared + 1e-9
    assert largest <= l1
    assert longest > 0.3 * squared


def test_the_noise_of_a_step_is_that_of_all_draws_before() -> None:
    noise = noise_for(UNITS[0], epsilon=1.0, delta=1e-6)
    for step in (1, 7, 30):
        cell, count = noise.at(step)
        gain = noise.covariances([step])[0, 0]
        assert cell.variance == pytest.approx(gain * noise.table.variance, rel=1e-5)
        assert count.variance == pytest.approx(gain * noise.count_variance, rel=1e-5)
    assert StreamNoise.from_json(noise.as_json()) == noise


def test_a_step_draws_noise_of_the_stated_variance() -> None:
    """Within five standard errors: a right sampler fails once in 10⁶."""
    noise = noise_for(UNITS[0], epsilon=1.0, delta=1e-6)
    output = np.zeros(40_001, np.int64)
    noise.add_to(output, 3, insecure_noise_seed=1)
    again = np.zeros(40_001, np.int64)
    noise.add_to(again, 4, insecure_noise_seed=1)
    assert not np.array_equal(output, again), "every step has draws of its own"
    spread = float((output[:-1].astype(float) ** 2).mean()) / noise.table.variance
    assert abs(spread - 1.0) < 5.0 * (2.0 / 40_000) ** 0.5


@pytest.mark.parametrize("share", [0, 1, Fraction(3, 2)])
def test_shares_of_the_count_are_checked(share: Fraction) -> None:
    with pytest.raises(ClaimError):
        stream_noise(Promise.of(rho=1.0), UNITS[0], horizon=3, view=View(), count_share=Fraction(share))


@pytest.mark.parametrize("given", [(0, None), (2.5, None), (3, 0.5), (None, 1.0), (None, 0.0), (True, None)])
def test_views_are_checked(given: tuple[object, object]) -> None:
    with pytest.raises(UsageError):
        View.of(*given)


def test_windows_and_decays_have_less_noise_than_all_steps() -> None:
    largest = [
        float(noise_for(UNITS[0], 365, view, epsilon=1.0, delta=1e-6).at(365)[0].variance)
        for view in (View(), View(window=7), View(decay=Fraction(9, 10)))
    ]
    assert largest[1] < 0.6 * largest[0]
    assert largest[2] < 0.4 * largest[0]
