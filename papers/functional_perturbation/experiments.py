"""Figures 1 to 6 as numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from papers.functional_perturbation import data
from papers.functional_perturbation.data import Floats
from papers.functional_perturbation.mechanisms import (
    FUNCTIONAL,
    HISTOGRAM_BINS,
    KDE_BANDWIDTH,
    MECHANISMS,
    NONE,
    SVM_BANDWIDTH,
    SVM_C,
    Budget,
    density,
    divergence,
    error,
    histogram,
    machines,
    posterior,
)

import hushsum as hs
from hushsum.models import (
    PrivateDensity,
    PrivateGaussianProcessRegressor,
    PrivateHistogram,
    PrivateKernelSVC,
)
from hushsum.served import density_function, gaussian_process_function, kernel_svm_functions, serve

Panels = dict[str, dict[str, Any]]
Score = Callable[[str, Budget, int, int, int], float]
"""Of a mechanism: budget, sizes of the training and the test set, seed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is run."""

    repetitions: int = 10
    tests: Sequence[int] = (5, 10, 20, 50, 100, 200, 500, 1000)
    epsilons: Sequence[float] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    deltas: Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    sizes: Sequence[int] = (1000, 2000, 5000, 10_000)
    exact_sizes: Sequence[int] = (500, 1000, 2000)
    train: int = 5000
    test: int = 500


QUICK = Settings(2, (10, 100), (0.4, 1.0), (1e-4, 1e-3), (500, 1000), (200, 400), 1000, 100)


def _lines(
    xs: Sequence[float], names: Sequence[str], score: Callable[[str, float, int], float], times: int
) -> Any:
    lines = {}
    for name in names:
        found = np.array([[score(name, x, seed) for seed in range(times)] for x in xs])
        lines[name] = {"mean": found.mean(axis=1).tolist(), "std": found.std(axis=1).tolist()}
    return {"x": list(xs), "lines": lines}


def histogram_score(mechanism: str, budget: Budget, train: int, test: int, seed: int) -> float:
    """KL divergence of the census histogram of ages from itself without noise."""
    sample = data.ages(train, test, seed)
    answers = [
        histogram(sample.X, sample.X_test, data.AGE_BOUNDS, each, budget) for each in (NONE, mechanism)
    ]
    return divergence(answers[0], answers[1], 1.0)


def density_score(mechanism: str, budget: Budget, train: int, test: int, seed: int) -> float:
    """KL divergence of the kernel density of ages from itself without noise."""
    sample = data.ages(train, test, seed)
    answers = [
        density(sample.X, sample.X_test, data.AGE_BOUNDS, KDE_BANDWIDTH, each, budget)
        for each in (NONE, mechanism)
    ]
    return divergence(answers[0], answers[1], 1.0 / train / (KDE_BANDWIDTH * np.sqrt(2.0 * np.pi)))


def posterior_score(mechanism: str, budget: Budget, train: int, test: int, seed: int) -> float:
    """RMSE of hourly earnings."""
    sample = data.earnings(train, test, seed)
    return error(sample.y_test, _earnings_posterior(train, seed)(sample.X_test, mechanism, budget))


@lru_cache(maxsize=10)
def _earnings_posterior(train: int, seed: int) -> Callable[[Floats, str, Budget], Floats]:
    return posterior(data.earnings(train, 0, seed), data.EARNINGS_BOUNDS, 0.7, 6.0, seed)


@lru_cache(maxsize=10)
def _income_machines(train: int, seed: int) -> Callable[[Floats, Floats, Budget | None], float]:
    return machines(data.incomes(train, 0, seed), 2, SVM_C, SVM_BANDWIDTH, seed)


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
        name: _lines(xs, names, partial(ask, score), settings.repetitions) for name, score in _CENSUS.items()
    }


def figure_1(settings: Settings) -> Panels:
    """Against the number of answers."""

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        return score(line, Budget(0.4, 0.001), settings.train, int(x), seed)

    return _census(settings, settings.tests, (*MECHANISMS, NONE), ask)


def figure_2(settings: Settings) -> Panels:
    """Against ε at δ = 0.001."""

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        return score(line, Budget(x, 0.001), settings.train, settings.test, seed)

    return _census(settings, settings.epsilons, (*MECHANISMS, NONE), ask)


def figure_3(settings: Settings) -> Panels:
    """Against δ at ε = 0.4."""

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        return score(line, Budget(0.4, x), settings.train, settings.test, seed)

    return _census(settings, settings.deltas, (*MECHANISMS, NONE), ask)


def figure_4(settings: Settings) -> Panels:
    """Functional perturbation against ε for several numbers of records, δ = 0.0001."""

    def svm(line: str, x: float, seed: int) -> float:
        sample = data.incomes(int(line), 2000, seed)
        wrong = _income_machines(int(line), seed)
        return wrong(sample.X_test, sample.y_test, Budget(x, 1e-4))

    sizes = [str(size) for size in settings.sizes]

    def ask(score: Score, line: str, x: float, seed: int) -> float:
        return score(FUNCTIONAL, Budget(x, 1e-4), int(line), settings.test, seed)

    panels = _census(settings, settings.epsilons, sizes, ask)
    panels["kernel SVM"] = _lines(settings.epsilons, sizes, svm, max(2, settings.repetitions // 2))
    return panels


def _milliseconds(ask: Callable[[], object], questions: int) -> float:
    """CPU time a question, the best of three."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        ask()
        best = min(best, time.process_time() - start)
    return 1000.0 * best / questions


def _constant_time(name: str, number: int, epsilon: float) -> float:
    at_ages = data.ages(number, 1000, 0)
    common: Any = {"epsilon": epsilon, "delta": 1e-6, "random_state": 0}
    model: Any
    if name == "histogram":
        model = PrivateHistogram(bins=HISTOGRAM_BINS, bounds=data.AGE_BOUNDS, **common).fit(at_ages.X)
    elif name == "kernel density":
        model = PrivateDensity(
            method="functional", bandwidth=KDE_BANDWIDTH, bounds=data.AGE_BOUNDS, **common
        ).fit(at_ages.X)
    elif name == "Gaussian process":
        at_ages = data.earnings(number, 1000, 0)
        model = PrivateGaussianProcessRegressor(target_bounds=data.EARNINGS_BOUNDS, **common)
        model.fit(at_ages.X, at_ages.y)
    else:
        at_ages = data.incomes(number, 1000, 0)
        model = PrivateKernelSVC(classes=[0, 1], **common).fit(at_ages.X, at_ages.y.astype(int))
    model.release()
    return _milliseconds(lambda: model.predict(at_ages.X_test), len(at_ages.X_test))


def _exact(name: str, number: int, epsilon: float) -> float:
    """Milliseconds per new query, mean over the first 200, each sent alone."""
    sample = data.ages(number, 200, 0)
    if name == "kernel density":
        kernel = hs.GaussianKernel(dim=1, bandwidth=KDE_BANDWIDTH)
        function = density_function(sample.X, kernel, bounds=data.AGE_BOUNDS)
    elif name == "Gaussian process":
        sample = data.earnings(number, 200, 0)
        function = gaussian_process_function(
            sample.X,
            sample.y,
            hs.GaussianKernel(dim=2, bandwidth=0.7),
            bounds=(-1, 1),
            target_bounds=data.EARNINGS_BOUNDS,
            noise=6.0,
        )
    else:
        sample = data.incomes(number, 200, 0)
        kernel = hs.GaussianKernel(dim=6, bandwidth=SVM_BANDWIDTH)
        (function,) = kernel_svm_functions(sample.X, sample.y.astype(int), 2, kernel, bounds=(-1, 1), C=SVM_C)
    served = serve(function, epsilon=epsilon, delta=1e-6)
    points = sample.X_test + 1e-3 * np.random.default_rng(0).random(sample.X_test.shape)
    start = time.process_time()
    for point in points:
        served(point[np.newaxis])
    return 1000.0 * (time.process_time() - start) / len(points)


def figure_5(settings: Settings) -> Panels:
    """CPU milliseconds a question, in the constant-time mode and exactly; against ε, and against n."""
    models = ("histogram", "kernel density", "Gaussian process", "kernel SVM")
    by_epsilon = _lines(
        settings.epsilons,
        models,
        lambda line, x, seed: _constant_time(line, settings.train, x),
        1,
    )
    by_size = _lines(settings.sizes, models, lambda line, x, seed: _constant_time(line, int(x), 0.2), 1)
    exact = _lines(settings.exact_sizes, models[1:], lambda line, x, seed: _exact(line, int(x), 0.2), 1)
    return {"constant time, by ε": by_epsilon, "constant time, by n": by_size, "exact, by n": exact}


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
        answer = posterior(sample, data.HEIGHT_BOUNDS, 0.5, 2.0, seed)
        return error(sample.y_test, answer(sample.X_test, line, Budget(x, 1e-4)))

    def of_machines(line: str, x: float, seed: int) -> float:
        budget = Budget(x, 1e-4) if line == FUNCTIONAL else None
        sample = data.iris(seed)
        return machines(sample, 3, 10.0, 1.0, seed)(sample.X_test, sample.y_test, budget)

    wide = (*settings.epsilons, 2.0, 5.0, 10.0)
    scores = {
        "histogram, normal sample": (of_histogram, settings.epsilons),
        "kernel density, normal sample": (of_density, settings.epsilons),
        "Gaussian process, !Kung women": (of_posterior, wide),
        "kernel SVM, iris": (of_machines, wide),
    }
    return {
        name: _lines(xs, (FUNCTIONAL, NONE), score, settings.repetitions)
        for name, (score, xs) in scores.items()
    }


FIGURES: dict[str, Callable[[Settings], Panels]] = {
    "figure_1": figure_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "figure_5": figure_5,
    "figure_6": figure_6,
}
