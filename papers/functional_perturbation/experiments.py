"""Figures 1 to 6 as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from papers.functional_perturbation import data
from papers.functional_perturbation.mechanisms import (
    AS_PUBLISHED,
    CONSTANT,
    FUNCTIONAL,
    HISTOGRAM_BINS,
    KDE_BANDWIDTH,
    MECHANISMS,
    NONE,
    SVM_BANDWIDTH,
    Answering,
    Budget,
    density,
    divergence,
    error,
    histogram,
    machines,
    more_frequent,
    posterior,
)

Panels = dict[str, dict[str, Any]]
Score = Callable[[str, Budget, int, int, int, int | None], float]
"""Of a mechanism: budget, sizes of the training and the test set, seed, and the number of answers."""

MACHINE_CHOICES = (3.0, 30.0, 300.0, 3000.0)
_DRAWS = 10
"""Of noise for every machine while C is chosen."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is run."""

    repetitions: int = 10
    answers: Sequence[int] = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
    epsilons: Sequence[float] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    deltas: Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    sizes: Sequence[int] = (1000, 2000, 5000, 10_000)
    exact_sizes: Sequence[int] = (500, 1000, 2000, 5000, 10_000)
    largest_fit: int = 2000
    """Records up to which the exact mode of models that solve an n × n system is timed."""

    machine_repetitions: int = 30
    train: int = 5000
    test: int = 500


QUICK = Settings(2, (1, 10, 100), (0.4, 1.0), (1e-4, 1e-3), (500, 1000), (200, 400), 400, 2, 1000, 100)


def curves(
    xs: Sequence[float], names: Sequence[str], score: Callable[[str, float, int], float], times: int
) -> dict[str, Any]:
    """Means and standard deviations over ``times`` seeds, a line for each name."""
    lines = {}
    for name in names:
        found = np.array([[score(name, x, seed) for seed in range(times)] for x in xs])
        lines[name] = {"mean": found.mean(axis=1).tolist(), "std": found.std(axis=1).tolist()}
    return {"x": list(xs), "repetitions": times, "lines": lines}


def histogram_score(
    mechanism: str, budget: Budget, train: int, test: int, seed: int, answers: int | None = None
) -> float:
    """KL divergence of the census histogram of ages from itself without noise."""
    sample = data.ages(train, test, seed)
    found = [
        histogram(sample.X, sample.X_test, data.AGE_BOUNDS, each, budget, answers)
        for each in (NONE, mechanism)
    ]
    return divergence(found[0], found[1], 1.0)


def density_score(
    mechanism: str, budget: Budget, train: int, test: int, seed: int, answers: int | None = None
) -> float:
    """KL divergence of the kernel density of ages from itself without noise."""
    sample = data.ages(train, test, seed)
    found = [
        density(sample.X, sample.X_test, data.AGE_BOUNDS, KDE_BANDWIDTH, each, budget, answers)
        for each in (NONE, mechanism)
    ]
    return divergence(found[0], found[1], 1.0 / train / (KDE_BANDWIDTH * np.sqrt(2.0 * np.pi)))


def posterior_score(
    mechanism: str, budget: Budget, train: int, test: int, seed: int, answers: int | None = None
) -> float:
    """RMSE of hourly earnings."""
    sample = data.earnings(train, test, seed)
    answer = _earnings_posterior(train, seed)
    return error(sample.y_test, answer(sample.X_test, mechanism, budget, answers))


@lru_cache(maxsize=40)
def _earnings_posterior(train: int, seed: int) -> Answering:
    return posterior(data.earnings(train, 0, seed), data.EARNINGS_BOUNDS, 0.7, None, seed)


@lru_cache(maxsize=40)
def _income_machines(train: int, seed: int, c: float) -> Callable[..., float]:
    return machines(data.incomes(train, 0, seed), 2, c, SVM_BANDWIDTH, seed)


def chosen_c(train: int, seeds: int, budgets: Sequence[Budget]) -> dict[str, Any]:
    """For each budget C of a machine of these records, of least mean error on the records kept for that.

    A machine is fitted once for each C and seed, and perturbed several times.
    """
    errors = {}
    for c in MACHINE_CHOICES:
        found = np.zeros(len(budgets))
        for seed in range(seeds):
            sample = data.incomes(train, 2000, seed, tuning=True)
            wrong = machines(sample, 2, c, SVM_BANDWIDTH, seed)
            for place, budget in enumerate(budgets):
                drawn = [wrong(sample.X_test, sample.y_test, budget) for _ in range(_DRAWS)]
                found[place] += np.mean(drawn) / seeds
        errors[c] = found
    best = [min(MACHINE_CHOICES, key=lambda c: errors[c][place]) for place in range(len(budgets))]
    return {"C": best, "error_by_C": {f"{c:g}": each.tolist() for c, each in errors.items()}}


_CENSUS: dict[str, Score] = {
    "histogram": histogram_score,
    "kernel density": density_score,
    "Gaussian process": posterior_score,
}


def _census(
    settings: Settings,
    xs: Sequence[float],
    names: Sequence[str],
    ask: Callable[[Score, str, float, int], float],
) -> Panels:
    """One panel for each model of the census."""
    return {
        name: curves(xs, names, partial(ask, score), settings.repetitions) for name, score in _CENSUS.items()
    }


def figure_1(settings: Settings) -> Panels:
    """Against the number of answers.

    Errors are always measured at enough points that a divergence has a meaning: fewer answers than points
    stand for several users, each with that many.
    """

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        points = max(int(x), settings.test)
        return score(line, Budget(0.4, 0.001), settings.train, points, seed, int(x))

    return _census(settings, settings.answers, (*MECHANISMS, CONSTANT, NONE), ask)


def figure_2(settings: Settings) -> Panels:
    """Against ε at δ = 0.001."""

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        return score(line, Budget(x, 0.001), settings.train, settings.test, seed, None)

    return _census(settings, settings.epsilons, (*MECHANISMS, CONSTANT, NONE), ask)


def figure_3(settings: Settings) -> Panels:
    """Against δ at ε = 0.4."""

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        return score(line, Budget(0.4, x), settings.train, settings.test, seed, None)

    return _census(settings, settings.deltas, (*MECHANISMS, CONSTANT, NONE), ask)


def figure_4(settings: Settings) -> Panels:
    """Functional perturbation against ε for several numbers of records, δ = 0.0001."""
    return _by_records(settings, settings.epsilons, lambda x: Budget(x, 1e-4))


def figure_4_delta(settings: Settings) -> Panels:
    """The same against δ, ε = 0.4: what the paper has no space for."""
    return _by_records(settings, settings.deltas, lambda x: Budget(0.4, x))


def _by_records(settings: Settings, xs: Sequence[float], budget: Callable[[float], Budget]) -> Panels:
    sizes = [str(size) for size in settings.sizes]
    seeds, budgets = max(2, settings.repetitions // 2), [budget(x) for x in xs]
    choices = {size: chosen_c(int(size), seeds, budgets) for size in sizes}
    places = {x: place for place, x in enumerate(xs)}

    def svm(line: str, x: float, seed: int) -> float:
        sample = data.incomes(int(sizes[0] if line == CONSTANT else line), 2000, seed)
        if line == CONSTANT:
            return more_frequent(sample, 2)
        wrong = _income_machines(int(line), seed, choices[line]["C"][places[x]])
        return wrong(sample.X_test, sample.y_test, budget(x))

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        if line == CONSTANT:
            return score(CONSTANT, budget(x), int(sizes[0]), settings.test, seed, None)
        return score(FUNCTIONAL, budget(x), int(line), settings.test, seed, None)

    lines = [*sizes, CONSTANT]
    panels = _census(settings, xs, lines, ask)
    panels["kernel SVM"] = {**curves(xs, lines, svm, settings.machine_repetitions), "parameters": choices}
    return panels


def figure_6(settings: Settings) -> Panels:
    """The paper's benchmarks against ε, δ = 0.0001; the true density for the first two."""
    at = np.linspace(-1.5, 5.5, 200)[:, np.newaxis]
    truth = data.gaussian_density(at)

    def of_histogram(line: str, x: float, seed: int) -> float:
        drawn = data.gaussian(settings.train, seed)
        found = histogram(drawn, at, data.GAUSSIAN_BOUNDS, line, Budget(x, 1e-4))
        width = (data.GAUSSIAN_BOUNDS[1] - data.GAUSSIAN_BOUNDS[0]) / HISTOGRAM_BINS
        return divergence(truth, found / settings.train / width, 1.0 / settings.train / width)

    def of_density(line: str, x: float, seed: int) -> float:
        drawn = data.gaussian(settings.train, seed)
        found = density(drawn, at, data.GAUSSIAN_BOUNDS, 0.25, line, Budget(x, 1e-4))
        return divergence(truth, found, 1.0 / settings.train)

    def of_posterior(line: str, x: float, seed: int) -> float:
        sample = data.kung_women(seed)
        answer = posterior(sample, data.HEIGHT_BOUNDS, 0.5, None, seed)
        return error(sample.y_test, answer(sample.X_test, line, Budget(x, 1e-4)))

    def of_machines(line: str, x: float, seed: int) -> float:
        budget = None if line == NONE else Budget(x, 1e-4)
        sample = data.iris(seed)
        if line == CONSTANT:
            return more_frequent(sample, 3)
        return machines(sample, 3, 10.0, 1.0, seed)(sample.X_test, sample.y_test, budget, line)

    wide = (1.0, 2.0, 5.0, 10.0)
    scores = {
        "histogram, normal sample": (of_histogram, settings.epsilons),
        "kernel density, normal sample": (of_density, settings.epsilons),
        "Gaussian process, !Kung women": (of_posterior, settings.epsilons),
        "kernel SVM, iris": (of_machines, settings.epsilons),
        "Gaussian process, larger ε": (of_posterior, wide),
        "kernel SVM, larger ε": (of_machines, wide),
    }
    return {
        name: curves(xs, (FUNCTIONAL, AS_PUBLISHED, CONSTANT, NONE), score, settings.repetitions)
        for name, (score, xs) in scores.items()
    }
