from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hushsum.privacy import TreeSums, View
from hushsum.privacy._over_time import strategy_as_json, strategy_from_json

PLANS = [TreeSums(30, 2, 5), TreeSums(30, 3, 3), TreeSums(30, 5, 2), TreeSums(30, 2, 1)]


def run(plan: TreeSums, increments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact outputs, and what reading makes of them."""
    cells = increments.shape[1]
    secret = np.zeros((plan.tables, cells), np.int64)
    public = np.zeros((plan.tables, cells))
    outputs, growths = [], []
    for t, x in enumerate(increments):
        outputs.append(plan.advance(secret, x, t + 1))
        growths.append(plan.read(public, outputs[-1], t + 1))
    return np.array(outputs), np.array(growths)


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_outputs_are_sums_of_intervals_and_running_sums_sums_of_outputs(plan: TreeSums) -> None:
    increments = np.random.default_rng(0).integers(0, 100, (30, 3))
    outputs, growths = run(plan, increments)
    sums = np.cumsum(increments, axis=0)
    np.testing.assert_array_equal(np.cumsum(growths, axis=0), sums)
    assert len(outputs) == 30


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_one_step_is_in_as_many_outputs_as_there_are_levels_at_most(plan: TreeSums) -> None:
    """The sensitivity: 20 % less would be caught, since some step is in all of them."""
    shown = [int(np.abs(run(plan, np.eye(30, dtype=np.int64)[:, j : j + 1])[0]).sum()) for j in range(30)]
    assert max(shown) == plan.levels


def rows(plan: TreeSums, view: View, steps: int) -> np.ndarray:
    """What each output weighs in what each step shows: by reading outputs of 1 at one step, 0 at others."""
    public, growths = np.zeros((plan.tables, steps)), []
    for t in range(steps):
        growths.append(plan.read(public, np.eye(steps)[t], t + 1))
    lags = np.subtract.outer(np.arange(steps), np.arange(steps))
    rate = 1.0 if view.decay is None else float(view.decay)
    shown = np.where((lags >= 0) & (lags < (view.window or steps)), rate ** np.maximum(lags, 0), 0.0)
    return shown @ np.array(growths)


@pytest.mark.parametrize("plan", [*PLANS, TreeSums(None, 3, 2)], ids=repr)
@pytest.mark.parametrize("view", [View(), View(window=1), View(window=7), View(window=29)])
def test_covariances_are_those_of_rows(plan: TreeSums, view: View) -> None:
    found, every = rows(plan, view, 30), np.arange(1, 31)
    np.testing.assert_array_equal(plan.gains(view, every), (found**2).sum(axis=1))
    np.testing.assert_array_equal(plan.covariances(view, *np.meshgrid(every, every)), found @ found.T)


def test_decayed_sums_are_sums_of_single_steps() -> None:
    view = View(decay=Fraction(1, 2))
    plan = TreeSums.best(30, view)
    assert plan.levels == 1
    found, every = rows(plan, view, 30), np.arange(1, 31)
    np.testing.assert_allclose(plan.covariances(view, *np.meshgrid(every, every)), found @ found.T)


def test_the_best_plan_beats_the_binary_tree_and_fresh_sums() -> None:
    best, binary, fresh = (
        plan.levels * float(plan.gains(View(), np.arange(1, 366)).max()) ** 0.5
        for plan in (TreeSums.best(365, View()), TreeSums(365, 2, 9), TreeSums(365, 2, 1))
    )
    assert (round(best, 1), round(binary, 1), round(fresh, 1)) == (12.0, 25.5, 19.1)


@pytest.mark.parametrize("change", [{"base": 1}, {"levels": 0}, {"levels": 9}, {"horizon": 2.0}, {"x": 1}])
def test_plans_of_files_are_checked(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        strategy_from_json(strategy_as_json(TreeSums(30, 2, 5)) | change)
