"""The random number of runs: its law, its cost on every small mechanism, its refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest

from hushsum.errors import UsageError
from hushsum.privacy import Stopping
from hushsum.privacy.noise import MOST_RUNS, NoiseSource, draw_runs

NAMES = ["geometric", "logarithmic"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mean", [1, 1.5, 8, 100, MOST_RUNS])
def test_the_mean_is_the_one_asked_for(name: str, mean: float) -> None:
    rule = Stopping.with_mean(name, mean)
    assert rule.mean == pytest.approx(mean, rel=1e-6)
    assert 0 < rule.gamma <= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_law_sums_to_one_and_has_its_mean(name: str) -> None:
    rule = Stopping.with_mean(name, 6)
    law = [rule.probability(runs) for runs in range(1, 2000)]
    assert sum(law) == pytest.approx(1.0, abs=1e-9)
    assert sum(runs * p for runs, p in enumerate(law, 1)) == pytest.approx(6.0, rel=1e-6)


def winner_law(rule: Stopping, run: tuple[float, ...]) -> list[float]:
    """The best of K runs whose results 0, 1, … have these probabilities and rising scores."""

    def generating(t: float) -> float:
        gamma = float(rule.gamma)
        if rule.name == "geometric":
            return gamma * t / (1 - (1 - gamma) * t)
        return math.log1p(-(1 - gamma) * t) / math.log(gamma)

    below = [sum(run[:i]) for i in range(len(run) + 1)]
    return [generating(min(b, 1.0)) - generating(a) for a, b in pairwise(below)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mean", [2, 50, 5000])
def test_no_pair_of_small_mechanisms_breaks_the_price(name: str, mean: float) -> None:
    """Runs with three results whose probabilities differ by e^±ε: the best never by more than e^(cost·ε).

    Every pair of laws on the lattice, both directions; with many runs the price is reached within a tenth.
    """
    rule = Stopping.with_mean(name, mean)
    epsilon = 0.5
    factors = (math.exp(-epsilon), 1.0, math.exp(epsilon))
    worst = 0.0
    for first, second in product((1e-8, 1e-4, 1e-3, 1e-2, 0.1, 0.3), repeat=2):
        run = (1 - first - second, first, second)
        for one, two in product(factors, repeat=2):
            other = (1 - first * one - second * two, first * one, second * two)
            if not factors[0] <= other[0] / run[0] <= factors[2]:
                continue
            pairs = zip(winner_law(rule, run), winner_law(rule, other), strict=True)
            worst = max(worst, *(abs(math.log(p / q)) for p, q in pairs))
    assert worst <= rule.cost * epsilon + 1e-6
    if mean == 5000:
        assert worst > 0.9 * rule.cost * epsilon


def test_the_costs_are_three_and_two() -> None:
    assert [Stopping.with_mean(name, 10).cost for name in NAMES] == [3, 2]


def test_one_run_on_average_is_one_run() -> None:
    for name in NAMES:
        rule = Stopping.with_mean(name, 1)
        assert {len(draw_runs(rule, 2, NoiseSource.insecure(seed))) for seed in range(50)} == {1}


def test_candidates_are_in_range_and_all_come() -> None:
    chosen = draw_runs(Stopping.with_mean("geometric", 400), 5, NoiseSource.insecure(3))
    assert set(chosen) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("name", "gamma"),
    [
        ("poisson", Fraction(1, 2)),
        ("geometric", 0.5),
        ("geometric", Fraction(0)),
        ("geometric", Fraction(3, 2)),
        ("geometric", Fraction(1, 1 << 63)),
    ],
)
def test_other_laws_are_refused(name: str, gamma: Any) -> None:
    with pytest.raises(UsageError):
        Stopping(name, gamma)


@pytest.mark.parametrize("runs", [0.5, MOST_RUNS + 1, math.nan, math.inf])
def test_other_means_are_refused(runs: float) -> None:
    with pytest.raises(UsageError):
        Stopping.with_mean("geometric", runs)
