"""The four models with and without noise: what each answers at test points, by each mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from papers.functional_perturbation import paper_calibration as paper
from papers.functional_perturbation.data import Floats, Sample

import hushsum as hs
from hushsum.methods import fit_machines, perturbed_machines, perturbed_posterior, smoother
from hushsum.models import feature_space, vectors_within
from hushsum.privacy import Promise, path_scale, release_noise
from hushsum.secret_functions import answer_once, density_function, laplace_rate
from hushsum.tables import FourierFeatures

FUNCTIONAL, GAUSSIAN, LAPLACE, NONE = "functional", "gaussian", "laplace", "no privacy"
CONSTANT = "constant"
"""A uniform density, the mean of the training targets, and the class that has most of them; not private."""
AS_PUBLISHED = "functional, paper's calibration"
MECHANISMS = (FUNCTIONAL, GAUSSIAN, LAPLACE)

HISTOGRAM_BINS = 20
KDE_BANDWIDTH = 3.0
SVM_BANDWIDTH = 1.5
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

    @property
    def published(self) -> float:
        """The paper's c(δ)/ε, √(2·ln(2/δ))/ε: noise for a function of sensitivity 1."""
        return paper.factor(self.epsilon, self.delta)


def fresh(
    exact: Floats, pointwise: float, mechanism: str, budget: Budget, answers: int | None = None
) -> Floats:
    """Noise on every answer, of the size that ``answers`` of them need: as many as there are by default.

    Given fewer, the errors are those of several users with that many answers each.
    """
    number = len(exact)
    answers = number if answers is None else answers
    with release_noise() as noise:
        if mechanism == GAUSSIAN:
            return exact + path_scale(pointwise * math.sqrt(answers), budget.promise) * noise.normal(number)
        rate = float(laplace_rate(Promise.of(epsilon=budget.epsilon), answers))
        squares = noise.normal(4 * number).reshape(4, number) ** 2
        # A difference of two exponential numbers, each half a sum of two squared normal ones.
        noise_of_laplace = 0.5 * (squares[0] + squares[1] - squares[2] - squares[3])
        return np.asarray(exact + pointwise / rate * noise_of_laplace, np.float64)


def histogram(
    X: Floats,
    at: Floats,
    bounds: tuple[float, float],
    mechanism: str,
    budget: Budget,
    answers: int | None = None,
) -> Floats:
    """Counts of the bins in which test points lie. One record is replaced; n is public."""
    edges = np.linspace(*bounds, HISTOGRAM_BINS + 1)
    counts = np.histogram(np.clip(X[:, 0], *bounds), edges)[0].astype(np.float64)
    if mechanism == CONSTANT:
        return np.full(len(at), len(X) / HISTOGRAM_BINS)
    places = np.clip(np.searchsorted(edges, at[:, 0], side="right") - 1, 0, HISTOGRAM_BINS - 1)
    if mechanism in (FUNCTIONAL, AS_PUBLISHED):
        published = mechanism == AS_PUBLISHED
        scale = (
            paper.HISTOGRAM * budget.published if published else path_scale(math.sqrt(2.0), budget.promise)
        )
        with release_noise() as noise:
            counts = counts + scale * noise.normal(len(counts))
        return counts[places]
    exact = counts[places]
    return exact if mechanism == NONE else fresh(exact, 1.0, mechanism, budget, answers)


def density(
    X: Floats,
    at: Floats,
    bounds: tuple[float, float],
    bandwidth: float,
    mechanism: str,
    budget: Budget,
    answers: int | None = None,
) -> Floats:
    """A kernel density at test points. One record is replaced; n is public."""
    if mechanism == CONSTANT:
        return np.full(len(at), 1.0 / (bounds[1] - bounds[0]))
    f = density_function(X, hs.GaussianKernel(dim=1, bandwidth=bandwidth), bounds=bounds, relation="replace")
    if mechanism == FUNCTIONAL:
        found = answer_once(f, at, epsilon=budget.epsilon, delta=budget.delta, allow_large_delta=True)
        return found.values
    exact = f.at(f.prepared(at))
    if mechanism == AS_PUBLISHED:
        scale = paper.density_sensitivity(len(X), bandwidth) * budget.published
        return f.scale * exact + scale * paper.gaussian_path(at, bandwidth)
    return f.scale * (exact if mechanism == NONE else fresh(exact, f.pointwise, mechanism, budget, answers))


class Answering(Protocol):
    """A fitted posterior: answers at points by a mechanism."""

    def __call__(self, at: Floats, mechanism: str, budget: Budget, answers: int | None = None) -> Floats:
        """Shape (n_points,)."""


def posterior(
    sample: Sample, bounds: tuple[float, float], bandwidth: float, noise: float | None, seed: int
) -> Answering:
    """The posterior mean at test points, in a feature space; inputs are public and one target is replaced.

    ``noise`` is the standard deviation of targets around the function, in half widths of their range; None
    takes the one of `SPREADS` with the least error that public numbers predict for the budget.
    """
    dim = sample.X.shape[1]
    kernel = hs.GaussianKernel(dim=dim, bandwidth=bandwidth)
    space = feature_space(kernel, features=FEATURES, seed=seed, box=[(-1.0, 1.0)] * dim)
    inputs = vectors_within(space, sample.X)
    spreads = SPREADS if noise is None else (noise,)
    smoothers = {spread: smoother(inputs, spread**2) for spread in spreads}
    middle, half = sum(bounds) / 2.0, (bounds[1] - bounds[0]) / 2.0
    targets = np.rint((sample.y - middle) / half * 4096).astype(np.int64)
    predicted = {spread: predicted_square(inputs, each) for spread, each in smoothers.items()}
    pointwise: dict[float, float] = {}

    def chosen(budget: Budget) -> float:
        noise = path_scale(1.0, budget.promise) ** 2
        return min(predicted, key=lambda each: predicted[each][0] + noise * predicted[each][1])

    def answer(at: Floats, mechanism: str, budget: Budget, answers: int | None = None) -> Floats:
        vectors = vectors_within(space, at)
        if mechanism == CONSTANT:
            return np.full(len(at), float(sample.y.mean()))
        spread = chosen(budget)
        matrix = smoothers[spread]
        weights = matrix @ (targets / 4096.0)
        if mechanism == FUNCTIONAL:
            values = vectors @ perturbed_posterior(matrix, targets, budget.promise).values[0]
        elif mechanism == AS_PUBLISHED:
            scale = paper.posterior_sensitivity(inputs, spread**2) * budget.published
            values = vectors @ (weights + paper.normal(scale, len(weights)))
        else:
            values = vectors @ weights
            if mechanism != NONE:
                if spread not in pointwise:
                    pointwise[spread] = 2.0 * largest_influence(space, matrix, dim)
                values = fresh(values, pointwise[spread], mechanism, budget, answers)
        return np.asarray(np.clip(middle + half * values, *bounds), np.float64)

    return answer


SPREADS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_AMPLITUDE, _RESIDUAL = 0.5, 0.25
"""Of the function, and of targets around it, in half widths of the range: half and a quarter of the way."""


def predicted_square(inputs: Floats, matrix: Floats) -> tuple[float, float]:
    """The expected squared error at the inputs without noise, and the factor of the variance of noise.

    From public numbers alone: the function is taken to be one of the Gaussian process with the kernel and the
    amplitude above, and targets to lie around it. What counts is what smoothing takes away of the function
    and lets through of the targets; noise is as large as the inputs and the range of the targets need.
    """
    lost = inputs - inputs @ (matrix @ inputs)
    through = float(np.sum((inputs.T @ inputs) * (matrix @ matrix.T))) / len(inputs)
    error = _AMPLITUDE**2 * float(np.square(lost).sum(axis=1).mean()) + _RESIDUAL**2 * through
    length = 2.0 * float(np.linalg.norm(matrix, axis=0).max())
    return error, length**2 * float(np.square(inputs).sum(axis=1).mean())


def largest_influence(space: FourierFeatures, matrix: Floats, dim: int) -> float:
    """An upper bound on |A_i·φ(q)| over all records i and all q of [−1, 1]^d: how far one target's unit moves
    an answer anywhere, which is what output perturbation needs.

    The largest value on a lattice, plus ‖A_i‖ times the largest ‖φ(q) − φ(q′)‖ from a node to a corner of its
    cell. That distance is the same everywhere, since features are pairs of cosine and sine, and convex in
    q − q′ for cells so small. It is at most max_i ‖A_i‖, the length that functional perturbation needs.
    """
    nodes = {1: 801, 2: 101}[dim]
    axes = [np.linspace(-1.0, 1.0, nodes)] * dim
    lattice = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, dim)
    half = 1.0 / (nodes - 1)
    corners = half * (np.stack(np.meshgrid(*[[-1.0, 1.0]] * dim), axis=-1).reshape(-1, dim))
    middle = vectors_within(space, np.zeros((1, dim)))
    apart = float(np.linalg.norm(vectors_within(space, corners) - middle, axis=1).max())
    columns = np.unique(matrix.T, axis=0)
    lengths = np.linalg.norm(columns, axis=1)
    values = np.zeros(len(columns))
    for part in np.array_split(lattice, max(1, len(lattice) // 2048)):
        values = np.maximum(values, np.abs(columns @ vectors_within(space, part).T).max(axis=1))
    return float(np.minimum(values + apart * lengths, lengths).max())


def machines(sample: Sample, classes: int, c: float, bandwidth: float, seed: int) -> Callable[..., float]:
    """Support vector machines, fitted once: their classification error at test points for any budget."""
    dim = sample.X.shape[1]
    kernel = hs.GaussianKernel(dim=dim, bandwidth=bandwidth)
    space = feature_space(kernel, features=FEATURES // 2, seed=seed, box=[(-1.0, 1.0)] * dim)
    fitted = fit_machines(vectors_within(space, sample.X), sample.y.astype(np.int64), classes, c)

    def wrong(at: Floats, labels: Floats, budget: Budget | None, mechanism: str = FUNCTIONAL) -> float:
        weights = fitted.weights
        if budget is not None and mechanism == AS_PUBLISHED:
            scale = paper.machine_sensitivity(c, len(sample.y)) * budget.published
            weights = weights + paper.normal(scale, weights.size).reshape(weights.shape)
        elif budget is not None:
            weights = perturbed_machines(fitted, budget.promise).values
        values = vectors_within(space, at) @ weights[:, :-1].T + weights[:, -1]
        said = (values[:, 0] > 0.0).astype(np.int64) if classes == 2 else values.argmax(axis=1)
        return float((said != labels).mean())

    return wrong


def more_frequent(sample: Sample, classes: int) -> float:
    """The test error of the class that has the most training records, for everybody."""
    largest = int(np.bincount(sample.y.astype(np.int64), minlength=classes).argmax())
    return float((sample.y_test != largest).mean())


def divergence(truth: Floats, estimate: Floats, floor: float) -> float:
    """KL divergence over the test points, both made to sum to 1 after raising values to a floor."""
    p, q = np.maximum(truth, floor), np.maximum(estimate, floor)
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())


def error(truth: Floats, estimate: Floats) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((truth - estimate) ** 2)))
