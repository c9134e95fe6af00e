"""The four models with and without noise: what each answers at test points, by each mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from papers.functional_perturbation.data import Floats, Sample

import hushsum as hs
from hushsum.methods.feature_functions import (
    fit_machines,
    perturbed_machines,
    perturbed_posterior,
    smoother,
)
from hushsum.models.feature_space import feature_space, vectors_within
from hushsum.privacy.claim import Promise
from hushsum.privacy.function_noise import path_scale
from hushsum.privacy.real_noise import real_noise
from hushsum.served import answer_once, density_function
from hushsum.served.output_perturbation import laplace_rate

FUNCTIONAL, GAUSSIAN, LAPLACE, NONE = "functional", "gaussian", "laplace", "no privacy"
MECHANISMS = (FUNCTIONAL, GAUSSIAN, LAPLACE)

HISTOGRAM_BINS = 20
KDE_BANDWIDTH = 3.0
SVM_BANDWIDTH, SVM_C = 1.5, 300.0
FEATURES = 128


@dataclass(frozen=True, slots=True)
class Budget:
    """ε and δ of all answers together. Laplace noise spends ε alone, as in the paper."""

    epsilon: float
    delta: float

    @property
    def promise(self) -> Promise:
        """For Gaussian noise."""
        return Promise.of(epsilon=self.epsilon, delta=self.delta)


def fresh(exact: Floats, pointwise: float, mechanism: str, budget: Budget) -> Floats:
    """Noise on every answer, for as many answers as there are."""
    number = len(exact)
    with real_noise() as noise:
        if mechanism == GAUSSIAN:
            return exact + path_scale(pointwise * math.sqrt(number), budget.promise) * noise.normal(number)
        rate = float(laplace_rate(Promise.of(epsilon=budget.epsilon), number))
        squares = noise.normal(4 * number).reshape(4, number) ** 2
        # A difference of two exponential numbers, each half a sum of two squared normal ones.
        noise_of_laplace = 0.5 * (squares[0] + squares[1] - squares[2] - squares[3])
        return np.asarray(exact + pointwise / rate * noise_of_laplace, np.float64)


def histogram(X: Floats, at: Floats, bounds: tuple[float, float], mechanism: str, budget: Budget) -> Floats:
    """Counts of the bins in which test points lie. One record is replaced; n is public."""
    edges = np.linspace(*bounds, HISTOGRAM_BINS + 1)
    counts = np.histogram(np.clip(X[:, 0], *bounds), edges)[0].astype(np.float64)
    places = np.clip(np.searchsorted(edges, at[:, 0], side="right") - 1, 0, HISTOGRAM_BINS - 1)
    if mechanism == FUNCTIONAL:
        with real_noise() as noise:
            counts = counts + path_scale(math.sqrt(2.0), budget.promise) * noise.normal(len(counts))
        return counts[places]
    exact = counts[places]
    return exact if mechanism == NONE else fresh(exact, 1.0, mechanism, budget)


def density(
    X: Floats, at: Floats, bounds: tuple[float, float], bandwidth: float, mechanism: str, budget: Budget
) -> Floats:
    """A kernel density at test points. One record is replaced; n is public."""
    f = density_function(X, hs.GaussianKernel(dim=1, bandwidth=bandwidth), bounds=bounds, relation="replace")
    if mechanism == FUNCTIONAL:
        answers = answer_once(f, at, epsilon=budget.epsilon, delta=budget.delta, allow_large_delta=True)
        return answers.values
    exact = f.at(f.prepared(at))
    return f.scale * (exact if mechanism == NONE else fresh(exact, f.pointwise, mechanism, budget))


def posterior(
    sample: Sample, bounds: tuple[float, float], bandwidth: float, noise: float, seed: int
) -> Callable[[Floats, str, Budget], Floats]:
    """The posterior mean at test points, in a feature space; inputs are public and one target is replaced."""
    dim = sample.X.shape[1]
    kernel = hs.GaussianKernel(dim=dim, bandwidth=bandwidth)
    space = feature_space(kernel, features=FEATURES, seed=seed, box=[(-1.0, 1.0)] * dim)
    matrix = smoother(vectors_within(space, sample.X), noise**2)
    middle, half = sum(bounds) / 2.0, (bounds[1] - bounds[0]) / 2.0
    targets = np.rint((sample.y - middle) / half * 4096).astype(np.int64)
    weights = matrix @ (targets / 4096.0)
    pointwise = 2.0 * float(np.linalg.norm(matrix, axis=0).max())

    def answer(at: Floats, mechanism: str, budget: Budget) -> Floats:
        vectors = vectors_within(space, at)
        if mechanism == FUNCTIONAL:
            values = vectors @ perturbed_posterior(matrix, targets, budget.promise).values[0]
        else:
            values = vectors @ weights
            values = values if mechanism == NONE else fresh(values, pointwise, mechanism, budget)
        return np.asarray(np.clip(middle + half * values, *bounds), np.float64)

    return answer


def machines(
    sample: Sample, classes: int, c: float, bandwidth: float, seed: int
) -> Callable[[Floats, Floats, Budget | None], float]:
    """Support vector machines, fitted once: their classification error at test points for any budget."""
    dim = sample.X.shape[1]
    kernel = hs.GaussianKernel(dim=dim, bandwidth=bandwidth)
    space = feature_space(kernel, features=FEATURES // 2, seed=seed, box=[(-1.0, 1.0)] * dim)
    fitted = fit_machines(vectors_within(space, sample.X), sample.y.astype(np.int64), classes, c)

    def wrong(at: Floats, labels: Floats, budget: Budget | None) -> float:
        weights = fitted.weights if budget is None else perturbed_machines(fitted, budget.promise).values
        values = vectors_within(space, at) @ weights[:, :-1].T + weights[:, -1]
        said = (values[:, 0] > 0.0).astype(np.int64) if classes == 2 else values.argmax(axis=1)
        return float((said != labels).mean())

    return wrong


def divergence(truth: Floats, estimate: Floats, floor: float) -> float:
    """KL divergence over the test points, both made to sum to 1 after raising values to a floor."""
    p, q = np.maximum(truth, floor), np.maximum(estimate, floor)
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())


def error(truth: Floats, estimate: Floats) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((truth - estimate) ** 2)))
