from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hushsum._types import Floats, Integers
from hushsum.privacy import Factorisation, View, root_coefficients
from hushsum.privacy._over_time import DECAY_BITS, length_above, strategy_as_json, strategy_from_json

VIEWS = [View(), View(window=5), View(decay=Fraction(9, 10))]


def exact_coefficients(plan: Factorisation) -> list[Fraction]:
    rates = [Fraction(p, 1 << DECAY_BITS) for p in plan.decays]
    lags, pairs = range(plan.horizon - 1), list(zip(plan.weights, rates, strict=True))
    return [
        Fraction(plan.unit),
        *(
            sum((Fraction(w, 1 << DECAY_BITS) * plan.unit * r**k for w, r in pairs), Fraction(0))
            for k in lags
        ),
    ]


def outputs(plan: Factorisation, increments: Integers) -> Integers:
    """All outputs without noise, shape (steps, cells)."""
    secret = np.zeros((plan.tables, increments.shape[1]), np.int64)
    return np.array([plan.advance(secret, x, t + 1) for t, x in enumerate(increments)])


def slow_outputs(plan: Factorisation, increments: Integers) -> list[list[int]]:
    """The recursion of the module's text in Python's integers."""
    cells = increments.shape[1]
    state = [[0] * cells for _ in plan.decays]
    found = []
    for x in increments.tolist():
        found.append([plan.unit * x[j] + sum(s[j] for s in state) for j in range(cells)])
        for s, p, w in zip(state, plan.decays, plan.weights, strict=True):
            for j in range(cells):
                s[j] = (s[j] * p + w * plan.unit * x[j] + (1 << (DECAY_BITS - 1))) // (1 << DECAY_BITS)
    return found


@pytest.mark.parametrize(("steps", "most"), [(1, 1.0), (12, 1.86), (52, 2.34), (365, 2.96), (1000, 3.29)])
def test_the_largest_deviation_is_near_that_of_the_exact_weights(steps: int, most: float) -> None:
    plan = Factorisation.best(steps, View(), fraction_bits=20)
    ideal = float((root_coefficients(steps) ** 2).sum())
    deviation = np.sqrt((plan.coefficients() ** 2).sum() * plan.gains(View())[-1])
    assert ideal - 1e-6 <= deviation <= min(most, 1.006 * ideal)
    assert plan.tables <= 3, "a few buffers suffice, whatever the number of steps"


@pytest.mark.parametrize("view", VIEWS)
def test_gains_are_those_of_the_dense_matrices(view: View) -> None:
    steps = 40
    plan = Factorisation.best(steps, view, fraction_bits=16)
    c = plan.coefficients()
    matrix = np.array([[c[t - s] if t >= s else 0.0 for s in range(steps)] for t in range(steps)])
    ones = view.series(np.eye(steps)[0])
    shown = np.array([[ones[t - s] if t >= s else 0.0 for s in range(steps)] for t in range(steps)])
    rows = shown @ np.linalg.inv(matrix)
    np.testing.assert_allclose(plan.gains(view), (rows**2).sum(axis=1), rtol=1e-9)
    for step in (1, 2, 17, steps):
        np.testing.assert_allclose(plan.row(step, view), rows[step - 1, :step], atol=1e-12 * rows.max())


def test_advance_is_the_recursion_in_integers() -> None:
    plan = Factorisation.best(30, View(), fraction_bits=22)
    increments = np.random.default_rng(0).integers(-(2**33), 2**33, (30, 5))
    assert outputs(plan, increments).tolist() == slow_outputs(plan, increments)


@pytest.mark.parametrize("view", VIEWS)
def test_reading_gives_the_increments_back(view: View) -> None:
    plan = Factorisation.best(60, view, fraction_bits=20)
    increments = np.random.default_rng(1).integers(0, 1000, (60, 7))
    public = np.zeros((plan.tables, 7))
    read = [plan.read(public, out, t + 1) for t, out in enumerate(outputs(plan, increments))]
    np.testing.assert_allclose(np.array(read), increments, atol=1e-3)


def test_the_bounds_are_above_exact_rationals_and_close() -> None:
    plan = Factorisation.best(50, View(), fraction_bits=14)
    c = exact_coefficients(plan)
    bounds = plan.bounds()
    column = sum(each**2 for each in c)
    assert column <= bounds.column_squared <= column * Fraction(1001, 1000)
    assert sum(c) <= bounds.gain <= sum(c) * Fraction(1001, 1000)


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
@pytest.mark.parametrize("fraction_bits", [12, 20])
def test_no_change_of_a_unit_moves_the_outputs_by_more_than_declared(name: str, fraction_bits: int) -> None:
    """Among other records too, whose sums decide how buffers are rounded."""
    steps = 24
    plan = Factorisation.best(steps, View(), fraction_bits=fraction_bits)
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
    plan = Factorisation(40, 4, ((1 << DECAY_BITS) - 100_000, 9_000_000), (7_000_000, 5_000_000))
    linear = sum(each**2 for each in exact_coefficients(plan))
    declared = length_above(1, 1, plan.bounds())
    random = np.random.default_rng(4)
    found = [distance(plan, [], [(0, 0, 1)], random.integers(0, 60, (40, 1))) for _ in range(200)]
    assert max(found) <= declared
    assert max(found) > linear, "rounding moves the outputs further than exact weights would"


def test_all_weights_are_non_negative_and_all_numbers_public() -> None:
    for steps, view in itertools.product((2, 30), VIEWS):
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
        {"weights": [(1 << DECAY_BITS) + 1], "decays": [1]},
        {"extra": 1},
    ],
)
def test_weights_of_files_are_checked(change: dict[str, object]) -> None:
    data = strategy_as_json(Factorisation(5, 12, (100,), (200,))) | change
    with pytest.raises(ValueError, match=r"\w"):
        strategy_from_json(data)
