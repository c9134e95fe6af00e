"""Private choices against their exact laws, and audited on their worst pairs.

Seeds are fixed, so a run always gives the same answer. For a fresh seed each test would raise a false alarm
with probability below 10⁻⁶: goodness of fit with a p-value limit of 10⁻⁹, audits with Clopper–Pearson bounds
of 5·10⁻⁷ a side. A choice with a fifth less noise (ε/0.8) must be caught; where a power is stated, it is
at least 0.99.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, chi2

import hushsum as hs
from hushsum.privacy import Stopping
from hushsum.privacy.noise import (
    NoiseSource,
    draw_runs,
    exponential_choice,
    exponential_distribution,
    permute_and_flip,
    permute_and_flip_distribution,
)

LIMIT = 1e-9
TAIL = 5e-7
DRAWS = 20_000
LESS = Fraction(4, 5)

MECHANISMS = [
    (permute_and_flip, permute_and_flip_distribution),
    (exponential_choice, exponential_distribution),
]
SCORES = [[0, 1], [0, 0, 0], [5, 3, 4, 0, -2], [0, 10, 9, 9, 9, 9, 9, 9, 9]]
Choose = Callable[[Sequence[int], Fraction, NoiseSource], int]
Law = Callable[[Sequence[int], float], list[float]]


def fit(counts: Sequence[int] | NDArray[np.int64], law: Sequence[float]) -> float:
    """The p-value of Pearson's test over the outcomes with at least five expected; the rest are one."""
    total = sum(counts)
    pairs = [(int(count), total * p) for count, p in zip(counts, law, strict=True)]
    common = [pair for pair in pairs if pair[1] >= 5]
    rare = [pair for pair in pairs if pair[1] < 5]
    if rare:
        common.append((sum(c for c, _ in rare), sum(e for _, e in rare)))
    statistic = sum((count - expected) ** 2 / expected for count, expected in common)
    return float(chi2.sf(statistic, len(common) - 1))


def drawn(choose: Choose, scores: Sequence[int], rate: Fraction, seed: int, draws: int = DRAWS) -> list[int]:
    with NoiseSource.insecure(seed) as source:
        chosen = [choose(scores, rate, source) for _ in range(draws)]
    return [chosen.count(candidate) for candidate in range(len(scores))]


@pytest.mark.parametrize(("choose", "law"), MECHANISMS)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_choices_fit_their_law(choose: Choose, law: Law, scores: list[int]) -> None:
    rate = Fraction(1, 2)
    assert fit(drawn(choose, scores, rate, 1), law(scores, float(rate))) > LIMIT


@pytest.mark.parametrize(("choose", "law"), MECHANISMS)
@pytest.mark.parametrize("scores", [scores for scores in SCORES if len(set(scores)) > 1], ids=str)
def test_choices_with_a_fifth_less_noise_are_caught(choose: Choose, law: Law, scores: list[int]) -> None:
    rate = Fraction(1, 2)
    # The weakest of them, two candidates of the exponential mechanism, is caught with probability 0.9998.
    draws = 2 * DRAWS if len(scores) > 5 else 26_000
    assert fit(drawn(choose, scores, rate / LESS, 2, draws), law(scores, float(rate))) < LIMIT


def test_the_two_mechanisms_are_reported_apart() -> None:
    assert fit(drawn(permute_and_flip, [0, 2], Fraction(1), 3), exponential_distribution([0, 2], 1.0)) < LIMIT


def audited(likely: int, unlikely: int, draws: int) -> float:
    """A lower bound on ε from one outcome of two neighbours."""
    low = float(beta.ppf(TAIL, likely, draws - likely + 1))
    high = float(beta.ppf(1 - TAIL, unlikely + 1, draws - unlikely))
    return math.log(low / high)


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(3)])
def test_permute_and_flip_keeps_epsilon_on_its_worst_pair_and_no_more(epsilon: Fraction) -> None:
    """Scores (−2, 0) and (−1, −1), Δ = 1: the first candidate has probability e^(−ε)/2 and 1/2."""
    for rate, holds in ((epsilon / 2, True), (epsilon / 2 / LESS, False)):
        likely = drawn(permute_and_flip, [-1, -1], rate, 4)[0]
        unlikely = drawn(permute_and_flip, [-2, 0], rate, 5)[0]
        bound = audited(likely, unlikely, DRAWS)
        assert (bound <= epsilon) == holds
        assert bound > 0.85 * float(epsilon)


@pytest.mark.parametrize(("epsilon", "holds"), [(1.0, True), (1.25, False)])
def test_a_private_median_keeps_epsilon_on_its_worst_pair(epsilon: float, holds: bool) -> None:
    """A record between two grid points is as far from either; one more above both moves them apart by 2Δ.

    The whole call, claimed at ε = 1 and run at ε/0.8 for the mutant.
    """
    # So many catch the mutant with probability 0.99; that the sound one holds is asserted of half as many.
    draws = 4_000 if holds else 10_000

    def lowest(data: list[list[float]], seed: int) -> int:
        return sum(
            hs.private_quantiles(
                data, 0.5, bounds=(0, 1), grid=1, epsilon=epsilon, insecure_noise_seed=seed + i
            ).values
            == ((0.0,),)
            for i in range(draws)
        )

    bound = audited(lowest([[0.5]], 0), lowest([[0.5], [2.0]], draws), draws)
    assert (bound <= 1.0) == holds
    assert bound > 0.65


@pytest.mark.parametrize("name", ["geometric", "logarithmic"])
def test_the_number_of_runs_fits_its_law(name: str) -> None:
    rule = Stopping.with_mean(name, 5)
    with NoiseSource.insecure(6) as source:
        runs = [len(draw_runs(rule, 3, source)) for _ in range(DRAWS)]
    law = [rule.probability(k) for k in range(1, 200)]
    assert fit(np.bincount(runs, minlength=200)[1:200], law) > LIMIT
    other = Stopping(name, rule.gamma * LESS)
    assert fit(np.bincount(runs, minlength=200)[1:200], [other.probability(k) for k in range(1, 200)]) < LIMIT


@pytest.mark.parametrize("name", ["geometric", "logarithmic"])
def test_the_best_of_a_random_number_of_runs_fits_the_law_of_the_proof(name: str) -> None:
    """Runs with four results, the best reported: G(a) − G(b) of the generating function."""
    rule, results = Stopping.with_mean(name, 5), 4
    gamma = float(rule.gamma)

    def generating(t: float) -> float:
        if name == "geometric":
            return gamma * t / (1 - (1 - gamma) * t)
        return math.log1p(-(1 - gamma) * t) / math.log(gamma)

    law = [generating((y + 1) / results) - generating(y / results) for y in range(results)]
    with NoiseSource.insecure(7) as source:
        best = [max(draw_runs(rule, results, source)) for _ in range(DRAWS)]
    assert fit(np.bincount(best, minlength=results), law) > LIMIT


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_quantile_is_as_near_as_the_docstring_says(epsilon: float) -> None:
    """The error in ranks, over 100 draws: the mean below 2·ln(steps)/ε."""
    data = np.sort(np.random.default_rng(8).normal(size=20_000))
    errors = []
    for seed in range(100):
        ((value,),) = hs.private_quantiles(
            data, 0.3, bounds=(-10, 10), grid=4000, epsilon=epsilon, insecure_noise_seed=seed
        ).values
        errors.append(abs(int(np.searchsorted(data, value)) - 6000))
    assert np.mean(errors) < 2 * math.log(4000) / epsilon
