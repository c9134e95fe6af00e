"""Figure 5: how long a query takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from papers.functional_perturbation import data
from papers.functional_perturbation.experiments import Panels, Settings, curves
from papers.functional_perturbation.mechanisms import HISTOGRAM_BINS, KDE_BANDWIDTH, SVM_BANDWIDTH

import hushsum as hs
from hushsum.models import PrivateDensity, PrivateGaussianProcessRegressor, PrivateHistogram, PrivateKernelSVC
from hushsum.secret_functions import density_function, gaussian_process_function, kernel_svm_functions, serve

_SVM_C = 300.0


def _milliseconds(ask: Callable[[], object], queries: int) -> float:
    """CPU time per query, the best of three."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        ask()
        best = min(best, time.process_time() - start)
    return 1000.0 * best / queries


def _constant_time(name: str, number: int, epsilon: float, seed: int) -> float:
    at_ages = data.ages(number, 1000, seed)
    common: Any = {"epsilon": epsilon, "delta": 1e-6, "random_state": seed}
    model: Any
    if name == "histogram":
        model = PrivateHistogram(bins=HISTOGRAM_BINS, bounds=data.AGE_BOUNDS, **common).fit(at_ages.X)
    elif name == "kernel density":
        model = PrivateDensity(
            method="functional", bandwidth=KDE_BANDWIDTH, bounds=data.AGE_BOUNDS, **common
        ).fit(at_ages.X)
    elif name == "Gaussian process":
        at_ages = data.earnings(number, 1000, seed)
        model = PrivateGaussianProcessRegressor(target_bounds=data.EARNINGS_BOUNDS, **common)
        model.fit(at_ages.X, at_ages.y)
    else:
        at_ages = data.incomes(number, 1000, seed)
        model = PrivateKernelSVC(classes=[0, 1], **common).fit(at_ages.X, at_ages.y.astype(int))
    model.release()
    return _milliseconds(lambda: model.predict(at_ages.X_test), len(at_ages.X_test))


def _exact(name: str, number: int, epsilon: float, seed: int) -> float:
    """Milliseconds per new query, mean over the first 200, each sent alone."""
    sample = data.ages(number, 200, seed)
    if name == "kernel density":
        kernel = hs.GaussianKernel(dim=1, bandwidth=KDE_BANDWIDTH)
        function = density_function(sample.X, kernel, bounds=data.AGE_BOUNDS)
    elif name == "Gaussian process":
        sample = data.earnings(number, 200, seed)
        function = gaussian_process_function(
            sample.X,
            sample.y,
            hs.GaussianKernel(dim=2, bandwidth=0.7),
            bounds=(-1, 1),
            target_bounds=data.EARNINGS_BOUNDS,
            noise=6.0,
        )
    else:
        sample = data.incomes(number, 200, seed)
        kernel = hs.GaussianKernel(dim=6, bandwidth=SVM_BANDWIDTH)
        (function,) = kernel_svm_functions(
            sample.X, sample.y.astype(int), 2, kernel, bounds=(-1, 1), C=_SVM_C
        )
    served = serve(function, epsilon=epsilon, delta=1e-6)
    points = sample.X_test + 1e-3 * np.random.default_rng(0).random(sample.X_test.shape)
    start = time.process_time()
    for point in points:
        served(point[np.newaxis])
    return 1000.0 * (time.process_time() - start) / len(points)


def figure_5(settings: Settings) -> Panels:
    """CPU milliseconds per query, in the constant-time mode and exactly; against ε, and against n."""
    models = ("histogram", "kernel density", "Gaussian process", "kernel SVM")
    times = settings.repetitions
    by_epsilon = curves(
        settings.epsilons, models, lambda line, x, seed: _constant_time(line, settings.train, x, seed), times
    )
    by_size = curves(
        settings.sizes, models, lambda line, x, seed: _constant_time(line, int(x), 0.2, seed), times
    )
    fits = [size for size in settings.exact_sizes if size <= settings.largest_fit]
    exact = {
        f"exact, {model}, by n": curves(
            settings.exact_sizes if model == "kernel density" else fits,
            (model,),
            lambda line, x, seed: _exact(line, int(x), 0.2, seed),
            times,
        )
        for model in models[1:]
    }
    return {"constant time, by ε": by_epsilon, "constant time, by n": by_size, **exact}
