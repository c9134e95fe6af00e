from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hushsum._types import Floats, Integers
from hushsum.privacy import Factorisation, View, root_coefficients
from hushsum.privacy._over_time import (
    DECAY_BITS,
    RENEWAL_BITS,
    STATE_BITS,
    length_above,
    strategy_as_json,
    strategy_from_json,
)

VIEWS = [View(), View(window=5), View(decay=Fraction(9, 10))]
# Buffers that decay after 1, 2 and 8 steps, without an end.
ENDLESS = Factorisation(
    None, 20, (9_000_000, 15_000_000, 14_000_000), (9_000_000, 2_000_000, 900_000), (0, 1, 3)
)


def fine_weights(plan: Factorisation) -> list[int]:
    """The weights as they are used, in units of a buffer."""
    return [each << plan.fraction_bits + STATE_BITS >> DECAY_BITS for each in plan.weights]


def exact_weights(plan: Factorisation, steps: int) -> list[list[Fraction]]:
    """c_{t,j} of the module's text, row after row."""
    rates = [Fraction(p, 1 << DECAY_BITS) for p in plan.decays]
    fine = [Fraction(each, 1 << STATE_BITS) for each in fine_weights(plan)]

    def weight(t: int, j: int) -> Fraction:
        if t <= j:
            return Fraction(plan.unit if t == j else 0)
        decays = [(t - 1) // (1 << log) - (j - 1) // (1 << log) for log in plan.periods]
        return sum((w * r**often for w, r, often in zip(fine, rates, decays, strict=True)), Fraction(0))

    return [[weight(t, j) for j in range(1, steps + 1)] for t in range(1, steps + 1)]


def shown_sums(view: View, steps: int) -> Floats:
    """What each step weighs in what each step shows."""
    lags = np.subtract.outer(np.arange(steps), np.arange(steps))
    rate = 1.0 if view.decay is None else float(view.decay)
    inside = (lags >= 0) & (lags < (view.window or steps))
    return np.where(inside, rate ** np.maximum(lags, 0), 0.0)


def outputs(plan: Factorisation, increments: Integers) -> Integers:
    """All outputs without noise, shape (steps, cells)."""
    secret = np.zeros((plan.tables, increments.shape[1]), np.int64)
    return np.array([plan.advance(secret, x, t + 1) for t, x in enumerate(increments)])


def slow_outputs(plan: Factorisation, increments: Integers) -> list[list[int]]:
    """The recursion of the module's text in Python's integers."""
    cells = increments.shape[1]
    state = [[0] * cells for _ in plan.decays]
    found = []
    for t, x in enumerate(increments.tolist(), 1):
        sums = [sum(s[j] for s in state) for j in range(cells)]
        found.append(
            [plan.unit * x[j] + (sums[j] + (1 << STATE_BITS - 1) >> STATE_BITS) for j in range(cells)]
        )
        for s, p, w, log in zip(state, plan.decays, fine_weights(plan), plan.periods, strict=True):
            for j in range(cells):
                s[j] += w * x[j]
                if t % (1 << log) == 0:
                    s[j] = s[j] * p + (1 << DECAY_BITS - 1) >> DECAY_BITS
    return found


def variance(plan: Factorisation, view: View, step: int) -> float:
    """Of what a step shows, where one release has variance 1."""
    return float(plan.bounds().column_squared * plan.gains(view, np.array([step]))[0])


@pytest.mark.parametrize(("steps", "most"), [(1, 1.0), (12, 1.86), (52, 2.34), (365, 2.96), (1000, 3.29)])
def test_the_largest_deviation_is_near_that_of_the_exact_weights(steps: int, most: float) -> None:
    plan = Factorisation.best(steps, View(), fraction_bits=20)
    ideal = float((root_coefficients(steps) ** 2).sum())
    assert ideal - 1e-6 <= variance(plan, View(), steps) ** 0.5 <= min(most, 1.006 * ideal)
    assert plan.tables <= 3, "a few buffers suffice, whatever the number of steps"


def test_without_a_horizon_the_variance_is_near_that_of_the_best_weights_for_one() -> None:
    """At all steps up to 2²⁴, against the exact weights of that horizon: Σ c_k² ≈ 1.0663 + ln(n)/π."""
    plan = Factorisation.best(None, View(), fraction_bits=26)
    steps = np.unique(np.concatenate([np.geomspace(1, 1 << 24, 300).astype(np.int64), [(1 << 24) - 1]]))
    near = np.cumsum(root_coefficients(1000) ** 2)
    bounded = np.where(steps <= 1000, near[np.minimum(steps, 1000) - 1], 1.0663 + np.log(steps) / np.pi)
    ratio = plan.bounds().column_squared * plan.gains(View(), steps) / (bounded * bounded[-1])
    assert ratio.max() < 1.27
    assert plan.tables <= 8, "the state does not grow"
    assert variance(plan, View(), 1 << 28) < 1.21 * (1.0663 + np.log(1 << 28) / np.pi) ** 2


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("horizon", [40, None])
def test_covariances_are_those_of_the_dense_matrices(view: View, horizon: int | None) -> None:
    steps = 40
    plan = ENDLESS if horizon is None else Factorisation.best(horizon, view, fraction_bits=16)
    matrix = np.array(exact_weights(plan, steps), np.float64)
    rows = shown_sums(view, steps) @ np.linalg.inv(matrix)
    every = np.arange(1, steps + 1)
    np.testing.assert_allclose(plan.gains(view, every), (rows**2).sum(axis=1), rtol=1e-9)
    both = plan.covariances(view, *np.meshgrid(every, every))
    np.testing.assert_allclose(both, rows @ rows.T, rtol=1e-9, atol=1e-12 * np.abs(both).max())


@pytest.mark.parametrize("plan", [ENDLESS, None], ids=["endless", "30 steps"])
def test_advance_is_the_recursion_in_integers(plan: Factorisation | None) -> None:
    plan = plan or Factorisation.best(30, View(), fraction_bits=22)
    increments = np.random.default_rng(0).integers(-(2**30), 2**30, (30, 5))
    assert outputs(plan, increments).tolist() == slow_outputs(plan, increments)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("horizon", [60, None])
def test_reading_gives_the_increments_back(view: View, horizon: int | None) -> None:
    plan = Factorisation.best(horizon, view, fraction_bits=20)
    increments = np.random.default_rng(1).integers(0, 1000, (60, 7))
    public = np.zeros((plan.tables, 7))
    read = [plan.read(public, out, t + 1) for t, out in enumerate(outputs(plan, increments))]
    np.testing.assert_allclose(np.array(read), increments, atol=1e-3)


def test_buffers_are_emptied_at_fixed_steps_and_sums_go_on() -> None:
    """At step 2²⁸ and its multiples: outputs after it show nothing of earlier records, and are read alone."""
    last = 1 << RENEWAL_BITS
    secret, public = np.full((3, 2), 10**6), np.full((3, 2), 10.0**6)
    ENDLESS.advance(secret, np.array([5, 7]), last)
    ENDLESS.read(public, np.array([5, 7]), last)
    assert not secret.any()
    assert not public.any()
    once, twice = (ENDLESS.gains(View(), np.array([each * last]))[0] for each in (1, 2))
    assert twice == pytest.approx(2 * once)


def test_the_bounds_are_above_exact_rationals_and_close() -> None:
    for plan, steps in (
        (Factorisation.best(50, View(), fraction_bits=14), 50),
        (replace(ENDLESS, horizon=60), 60),
    ):
        matrix = exact_weights(plan, steps)
        columns = [sum(row[j] ** 2 for row in matrix) for j in range(steps)]
        bound = plan.bounds().column_squared
        assert max(columns) == columns[0], "no column is longer than the first"
        assert columns[0] <= bound <= columns[0] * Fraction(1001, 1000)


def test_a_state_refuses_what_would_leave_64_bits() -> None:
    secret = np.zeros((3, 2), np.int64)
    room = ENDLESS.room(secret)
    assert 2**62 < room * sum(fine_weights(ENDLESS)) < 2**63
    ENDLESS.advance(secret, np.array([room, -room]), 1)
    assert np.abs(secret).sum(axis=0).max() < 2**63
    assert ENDLESS.room(secret) < room


def changes(steps: int) -> dict[str, tuple[list[tuple[int, int, int]], list[tuple[int, int, int]], int]]:
    """Every way a unit can change: two lists of (step, cell, value), and the square of its length."""
    middle, last = steps // 2, steps - 1
    first: list[tuple[int, int, int]] = [(0, 0, 1)]
    return {
        "appears at the first step": ([], first, 1),
        "appears in the middle": ([], [(middle, 0, 1)], 1),
        "disappears at the last step": ([(last, 0, 1)], [], 1),
        "twice in one step": ([], [(0, 0, 2)], 4),
        "twice, at two steps": ([], [(0, 0, 1), (1, 0, 1)], 4),
        "replaced inside a step": (first, [(0, 1, 1)], 2),
        "moved to the next step": (first, [(1, 0, 1)], 2),
        "moved to the last step": (first, [(last, 0, 1)], 2),
        "replaced at another step": (first, [(middle, 1, 1)], 2),
        "removed at the next step": ([], [(0, 0, 1), (1, 0, -1)], 2),
        "removed at the last step": ([], [(0, 0, 1), (last, 0, -1)], 2),
        "removal replaced by an addition": ([(0, 0, -1)], first, 4),
    }


def distance(
    plan: Factorisation, one: list[tuple[int, int, int]], other: list[tuple[int, int, int]], crowd: Integers
) -> float:
    sides = []
    for records in (one, other):
        increments = crowd.copy()
        for step, cell, value in records:
            increments[step, cell] += value
        sides.append(outputs(plan, increments))
    difference: Floats = (sides[1] - sides[0]).astype(np.float64)
    return float((difference**2).sum())


@pytest.mark.parametrize("name", changes(24))
@pytest.mark.parametrize("fraction_bits", [6, 20])
@pytest.mark.parametrize("horizon", [24, None])
def test_no_change_of_a_unit_moves_the_outputs_by_more_than_declared(
    name: str, fraction_bits: int, horizon: int | None
) -> None:
    """Among other records too, whose sums decide how buffers are rounded."""
    steps = 24
    plan = replace(ENDLESS, fraction_bits=fraction_bits)
    if horizon is not None:
        plan = Factorisation.best(horizon, View(), fraction_bits=fraction_bits)
    one, other, squared = changes(steps)[name]
    declared = length_above(squared, 2, plan.bounds())
    random = np.random.default_rng(2)
    for _ in range(30):
        crowd = random.integers(-50, 50, (steps, 2))
        assert distance(plan, one, other, crowd) <= declared


@pytest.mark.parametrize("fraction_bits", [12, 20])
def test_a_fifth_less_declared_is_caught(fraction_bits: int) -> None:
    """Of the length: the attained part of it is above 0.8 for one record, two, and one that moves."""
    plan = Factorisation.best(24, View(), fraction_bits=fraction_bits)
    crowd = np.random.default_rng(3).integers(0, 50, (24, 2))
    for name in ("appears at the first step", "twice in one step", "replaced inside a step"):
        one, other, squared = changes(24)[name]
        declared = length_above(squared, 2, plan.bounds())
        assert math.sqrt(distance(plan, one, other, crowd) / declared) > 0.97


def test_rounding_is_bounded_where_it_matters_most() -> None:
    """With so few fraction bits that rounding is a large part, the bound on it still holds, and is needed."""
    rates = ((1 << DECAY_BITS) - 100_000, 9_000_000)
    plan = Factorisation(40, 0, rates, (4 << DECAY_BITS - 6, 3 << DECAY_BITS - 6), (0, 0))
    linear = sum(row[0] ** 2 for row in exact_weights(plan, 40))
    declared = length_above(1, 1, plan.bounds())
    random = np.random.default_rng(4)
    found = [distance(plan, [], [(0, 0, 1)], random.integers(0, 60, (40, 1))) for _ in range(200)]
    assert max(found) <= declared
    assert max(found) > linear, "rounding moves the outputs further than exact weights would"


def test_all_weights_are_non_negative_and_all_numbers_public() -> None:
    for steps, view in itertools.product((2, 30, None), VIEWS):
        plan = Factorisation.best(steps, view, fraction_bits=16)
        assert min(plan.weights) > 0
        assert strategy_from_json(strategy_as_json(plan)) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"horizon": 0},
        {"fraction_bits": 33},
        {"decays": [1 << DECAY_BITS], "weights": [1]},
        {"decays": [1], "weights": []},
        {"weights": [-1], "decays": [1]},
        {"weights": [(4 << DECAY_BITS) + 1], "decays": [1]},
        {"periods": [28]},
        {"periods": []},
        {"extra": 1},
    ],
)
def test_weights_of_files_are_checked(change: dict[str, object]) -> None:
    data = strategy_as_json(Factorisation(5, 12, (100,), (200,), (0,))) | change
    with pytest.raises(ValueError, match=r"\w"):
        strategy_from_json(data)
