"""Audits of finite choices, on the exponential mechanism and on randomised answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.auditing import AuditRow, audit_choice
from hushsum.auditing._statistics import Distributions
from hushsum.errors import UsageError

Choose = Callable[[int], NDArray[np.int64]]


def exponential(outcomes: int) -> Distributions:
    """One candidate's score falls by Δ where all others' rise by it: the worst pair."""

    def laws(epsilon: float) -> tuple[list[float], list[float]]:
        up = math.exp(epsilon / 2)
        left = [up / (up + outcomes - 1)] + [1 / (up + outcomes - 1)] * (outcomes - 1)
        total = 1 + (outcomes - 1) * up
        return left, [1 / total] + [up / total] * (outcomes - 1)

    return laws


def answers(epsilon: float) -> tuple[list[float], list[float]]:
    """Randomised response: the truth with odds e^ε."""
    truth = 1 / (1 + math.exp(-epsilon))
    return [truth, 1 - truth], [1 - truth, truth]


def chooser(law: list[float], rng: np.random.Generator) -> Choose:
    return lambda size: rng.choice(len(law), size, p=law)


def run(
    laws: Distributions, epsilon: float, *, at: float, seed: int = 1, draws: int | None = None
) -> AuditRow:
    """Audit the claim ``epsilon`` of a mechanism that is really run at ``at``."""
    rng = np.random.default_rng(seed)
    left, right = laws(at)
    return audit_choice(
        chooser(list(left), rng),
        chooser(list(right), rng),
        epsilon,
        laws,
        what="choice",
        draws=draws,
        seed=seed,
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("laws", [answers, exponential(2), exponential(12)], ids=["answers", "two", "twelve"])
def test_holds_and_a_fifth_less_noise_is_caught(laws: Distributions, epsilon: float) -> None:
    sound = run(laws, epsilon, at=epsilon)
    assert sound.holds
    assert sound.power >= 0.99
    assert sound.claim <= epsilon + 1e-12
    assert sound.lower_bound > 0.6 * sound.claim
    assert not run(laws, epsilon, at=epsilon / 0.8, seed=2).holds


def test_randomised_answers_reach_their_epsilon() -> None:
    assert run(answers, 1.0, at=1.0).claim == pytest.approx(1.0)


@pytest.mark.slow
def test_the_stated_power_is_the_real_one() -> None:
    """400 runs where the power is in the middle; 5.5 deviations, false alarms 4e-8 (and seeds are fixed)."""
    number = 3500
    audits = [run(answers, 1.0, at=1.25, seed=seed, draws=number) for seed in range(400)]
    caught = sum(audit.verdict == "BROKEN" for audit in audits) / 400
    one_outcome = audits[0].power
    assert 0.05 < one_outcome < 0.95
    # Two outcomes in each direction: at least as good as the best, at most the sum.
    assert one_outcome - 0.14 < caught < 2 * one_outcome + 0.14
    sound = [run(answers, 1.0, at=1.0, seed=seed, draws=number) for seed in range(400)]
    assert not any(audit.verdict == "BROKEN" for audit in sound)


def test_an_outcome_of_one_side_only_is_refused() -> None:
    with pytest.raises(UsageError, match="gives it away"):
        run(lambda epsilon: ([1.0, 0.0], [0.5, 0.5]), 1.0, at=1.0)


def test_outcomes_out_of_range_are_refused() -> None:
    wild: Choose = lambda size: np.full(size, 7)  # noqa: E731
    with pytest.raises(UsageError, match="from 0 to 1"):
        audit_choice(wild, wild, 1.0, answers, what="wild", seed=1)
