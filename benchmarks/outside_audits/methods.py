"""Worlds of methods that release something else than a table: points, curves, choices, parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import hushsum as hs
from benchmarks.outside_audits.worlds import DELTA, Budget, Sampler, World, one_by_one
from hushsum.auditing import allowed_distance
from hushsum.auditing._audit import _directions
from hushsum.baselines import histogram, kme, mwem, pfda, privbayes
from hushsum.methods import (
    TARGET_BITS,
    fit_adaops,
    fit_as_published,
    fit_logistic,
    fit_ops,
    perturbation,
    perturbed_posterior,
    smoother,
)
from hushsum.parties.summarization import NoisySums, factored_coefficients
from hushsum.privacy import ReleaseNoise, Stopping, TreeSums, draw_candidates, release_noise
from hushsum.privacy.noise import NoiseSource, exponential_choice
from hushsum.secret_functions import FreshAnswers, density_function

Floats = NDArray[np.float64]

_KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.02)
_PLACE = [[0.85]]
_CROWD = [[0.15]] * 3
_FEW_OUTCOMES = {0.5: 6_000, 1.0: 3_000, 3.0: 2_000}


def method_worlds() -> Iterator[World]:
    """Methods, private choices, and fits with noise inside."""
    for name, pure, release in (
        ("histogram", True, partial(histogram, bins=10)),
        ("privbayes", True, partial(privbayes, bins=[2], size=200, seed=1)),
        ("mwem", True, partial(mwem, rounds=1, queries=_PLACE, bins=10, relation="replace")),
        ("kme", False, partial(kme, points=[[0.15], *_PLACE], sensitivity="tight")),
        ("pfda", False, partial(pfda, penalty=1e-6, steps=21)),
    ):
        yield World(name, "one record", pure, frozenset({name, "gaussian"}), partial(_answers, release, name))
    yield World(
        "private_quantiles",
        "ranks (−1, −1) and (0, −2)",
        True,
        frozenset({"permute and flip"}),
        _quantiles,
        _FEW_OUTCOMES,
    )
    yield World(
        "choose_kernel",
        "votes (2, 0) and (1, 1)",
        True,
        frozenset({"permute and flip"}),
        _vote,
        _FEW_OUTCOMES,
    )
    yield World(
        "exponential choice", "scores (1, 0, …) and (0, 1, …)", True, frozenset({"exponential"}), _exponential
    )
    for stopping, runs in (("logarithmic", 12.5), ("geometric", 10.0)):
        yield World(
            f"choose, {stopping}",
            "a run that is seldom second best, and more often in the second world",
            True,
            frozenset({"random stopping"}),
            partial(_choose, stopping, runs),
            releases={0.5: 2_000, 1.0: 8_000, 3.0: 40_000} if stopping == "logarithmic" else {},
        )
    yield World(
        "PrivateRegressor, objective",
        "one record against many short ones: full gradient and full curvature at once",
        True,
        frozenset({"PrivateRegressor", "objective perturbation"}),
        _squares,
        releases={0.5: 300_000, 1.0: 200_000, 3.0: 200_000},
    )
    yield World(
        "PrivateLinearSVC, objective",
        "one record against many short ones",
        True,
        frozenset({"PrivateLinearSVC", "objective perturbation"}),
        _logistic,
        attainable=largest_logistic_loss,
    )
    yield World("PrivateRegressor, ops", "one record", True, frozenset({"one posterior sample"}), _ops)
    yield World("PrivateRegressor, adaops", "one record", False, frozenset({"one posterior sample"}), _adaops)
    yield World(
        "NoisySums, factored",
        "one record of the first step",
        False,
        frozenset({"factorised discrete gaussian"}),
        _factored,
    )
    yield World(
        "TreeSums",
        "one record of the first step",
        True,
        frozenset({"interval sums discrete laplace"}),
        _intervals,
    )
    yield World(
        "PrivateGaussianProcessRegressor, as-published",
        "one target",
        False,
        frozenset({"gaussian process path, as-published"}),
        _published_path,
        largest_epsilon=0.5,
    )
    for mechanism, pure in (("laplace", True), ("gaussian", False)):
        yield World(
            f"FreshAnswers, {mechanism}",
            "one record, queried where it is",
            pure,
            frozenset({f"{mechanism}, fresh for each answer"}),
            partial(_fresh_answers, mechanism),
            _FEW_OUTCOMES if pure else {},
        )
    yield World(
        "PrivateRegressor, ssp as-published",
        "one record",
        False,
        frozenset({"PrivateRegressor", "gaussian, as-published"}),
        _published_moments,
    )


def _fresh_answers(mechanism: str, budget: Budget) -> Sampler:
    """One answer where the second world has a record: a single one shows all of ε under Laplace noise."""
    kernel = hs.GaussianKernel(dim=1, bandwidth=2.0)
    worlds = [density_function(each, kernel, bounds=(-9.0, 9.0)) for each in ([[-8.0]], [[-8.0], [4.0]])]
    queries: list[list[float]] = [[4.0]]
    given: dict[str, Any] = {"answers": 1, "mechanism": mechanism, **budget.arguments}

    def score(side: int) -> float:
        return float(FreshAnswers(worlds[side], **given)(queries)[0])

    return one_by_one(score)


def _published_moments(budget: Budget) -> Sampler:
    """One feature, so that the released slope is the ratio of two noisy sums."""
    features, target = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    given: Any = {"epsilon": budget.epsilon, "delta": budget.delta or DELTA, "adaptive": False}

    def score(side: int) -> float:
        rows = slice(side + 1)
        return float(fit_as_published(features[rows], target[rows], **given)[0])

    return one_by_one(score)


def _answers(release: Callable[..., Any], name: str, budget: Budget) -> Sampler:
    """What is released at a place where only the second world has a record."""
    worlds = _CROWD, ([*_CROWD, *_PLACE] if name in ("histogram", "privbayes") else [*_CROWD[1:], *_PLACE])

    def score(side: int) -> float:
        # The pure methods have no parameter delta.
        given = {"epsilon": budget.epsilon} | ({} if budget.delta is None else {"delta": budget.delta})
        function = release(worlds[side], _KERNEL, bounds=(0, 1), **given)
        if name == "privbayes":
            return float(function.weights[function.points[:, 0] > 0.5].sum())
        return float(function.sum(_PLACE)[0])

    return one_by_one(score)


def _quantiles(budget: Budget) -> Sampler:
    """A record below both grid points moves their scores from (−1, −1) to (0, −2): all of ε, for a median."""
    worlds = [[1.5]], [[1.5], [0.0]]

    def score(side: int) -> float:
        found = hs.private_quantiles(
            worlds[side], 0.5, bounds=(0, 3), grid=[1.0, 2.0], epsilon=budget.epsilon
        )
        return -found.values[0][0]

    return one_by_one(score)


def _vote(budget: Budget) -> Sampler:
    """Two blocks of equal records vote for the first kernel. A record far away turns the vote of its block,
    whichever that is: from (2, 0) to (1, 1), which is all of ε.
    """
    kernels = [hs.GaussianKernel(dim=1, bandwidth=width) for width in (1e-3, 1e3)]
    worlds = [[0.0]] * 24, [[0.0]] * 24 + [[1.0]]

    def score(side: int) -> float:
        chosen = hs.methods.choose_kernel(
            worlds[side], kernels, epsilon=budget.epsilon, density=0.999, blocks=2
        )
        return float(chosen.index)

    return one_by_one(score)


def _exponential(budget: Budget) -> Sampler:
    """One candidate against seven that all gain what it loses, so that the normaliser takes little of ε."""
    worlds = [1] + [0] * 7, [0] + [1] * 7
    rate = Fraction(budget.epsilon).limit_denominator(10**6) / 2

    def score(side: int) -> float:
        with NoiseSource.fresh() as source:
            return -float(exponential_choice(worlds[side], rate, source) == 0)

    return one_by_one(score)


def _choose(stopping: str, runs: float, budget: Budget) -> Sampler:
    """The best of a random number of runs, each a private answer that the auditor may choose.

    A run says *best*, *second* or *worst*. In the second world *best* is less likely by e^(−ε') and *second*
    more likely by e^(ε'): the release of *second* then needs both, and no *best* among all runs. The fewer
    *second* and the more runs, the nearer its log ratio to the claim, and the fewer are seen.
    """
    rule = Stopping.with_mean(stopping, runs)
    each = budget.epsilon / rule.cost
    best = 0.99 / (1.0 + math.exp(-each))
    # A larger ε needs a rarer answer; both by the exact distribution, for some ten thousand releases.
    second = min(0.05 if each < 0.8 else 0.015, 0.9 * (1.0 - best))
    chances = (best, second), (best * math.exp(-each), second * math.exp(each))
    rng = np.random.default_rng(7)

    def score(side: int) -> float:
        runs = len(draw_candidates(rule, 1, insecure_noise_seed=None))
        drawn = rng.random(runs).min()
        return float(chances[side][0] <= drawn < sum(chances[side]))

    return one_by_one(score)


def _squares(budget: Budget) -> Sampler:
    """Objective perturbation of least squares in one dimension, where its noise is Laplace's.

    The proof pays half of ε for the gradient and half for the curvature of one record. A single record
    against nothing shows the second half alone: the noise b that explains a θ is the same up to little. Many
    records with short φ = a push θ by n·a, with a curvature of only n·a². Then b is on the far side of zero
    where θ is inside the ball, and the record (φ, v) = (1, 1) brings both halves at once. The score is the
    exact log ratio of the densities of θ, or of its probabilities on the ends of the ball. Noise is drawn for
    many releases at once; a test compares the minimum with that of `fit_squares`.
    """
    # The push and the bound on θ with the largest lower bound from 40,000 releases, by simulation.
    designs = ((0.5, (3.0, 0.4)), (1.0, (2.0, 0.25)), (3.0, (1.3, 0.25)))
    push, bound = min(designs, key=lambda design: abs(math.log(design[0] * 1.1 / budget.epsilon)))[1]
    number = round(push / SHORT)
    ridge, scale = perturbation(budget.epsilon, gradient=1.0 + bound, curvature=1.0)
    gram, cross = number * SHORT**2, -number * SHORT

    def needed(theta: Floats, side: int) -> Floats:
        """The noise for which θ is the minimum."""
        noise: Floats = cross + side - (gram + side + ridge) * theta
        return noise

    def sampler(side: int, releases: int) -> Floats:
        with release_noise() as noise:
            drawn = gamma_numbers(noise, releases, scale)
        theta = squares_minimum(drawn, gram + side + ridge, cross + side, bound)
        first, second = needed(theta, 0), needed(theta, 1)
        inside = (np.abs(first) - np.abs(second)) / scale + math.log((gram + 1.0 + ridge) / (gram + ridge))
        above = np.log(_laplace_below(second, scale) / _laplace_below(first, scale))
        below = np.log(_laplace_below(-second, scale) / _laplace_below(-first, scale))
        return np.where(np.abs(theta) < bound, inside, np.where(theta > 0.0, above, below))

    return sampler


SHORT = 0.05


def gamma_numbers(noise: ReleaseNoise, number: int, scale: float) -> Floats:
    """As many draws of the Gamma radius in one dimension, as `ReleaseNoise.gamma_vector` makes one."""
    lengths = 0.5 * (noise.normal(2 * number).reshape(number, 2) ** 2).sum(axis=1)
    drawn: Floats = np.sign(noise.normal(number)) * scale * lengths
    return drawn


def squares_minimum(linear: Floats, curvature: float, cross: float, bound: float) -> Floats:
    """What `fit_squares` returns in one dimension for given noise, before it is rounded."""
    return np.clip((cross - linear) / curvature, -bound, bound)


def _laplace_below(at: Floats, scale: float) -> Floats:
    """P(b ≤ at)."""
    tail = 0.5 * np.exp(-np.abs(at) / scale)
    return np.where(at < 0.0, tail, 1.0 - tail)


def largest_logistic_loss(epsilon: float) -> float:
    """The largest log ratio of any two neighbours under objective perturbation of logistic loss.

    With s = 1/(1 + e^t) the gradient of a record with margin t is at most s long and its curvature is
    s(1 − s): 1 and ¼ are not reached at once, as the proof allows. Hence no more than the largest
    s·ε/2 + ln(1 + s(1 − s)/Δ), Δ = ¼/(e^(ε/2) − 1).

    >>> round(largest_logistic_loss(1.0), 2)
    0.79
    """
    s = np.linspace(0.0, 1.0, 10_001)
    return float((s * epsilon / 2.0 + np.log1p(4.0 * s * (1.0 - s) * math.expm1(epsilon / 2.0))).max())


def _logistic(budget: Budget) -> Sampler:
    """Objective perturbation of logistic loss in one dimension, against many short records."""
    ridge, scale = perturbation(budget.epsilon, gradient=1.0, curvature=0.25)
    short = 0.02
    number = round(2.0 * (0.7 + 0.85 * ridge) / short)
    features = np.full((number + 1, 1), short)
    sign = np.full(number + 1, -1.0)
    features[-1], sign[-1] = 1.0, 1.0
    signed = (features * sign[:, None])[:, 0]

    def explained(theta: float, rows: Floats) -> tuple[float, float]:
        """The noise and the curvature at a minimum."""
        chance = expit(-rows * theta)
        return float(rows @ chance) - ridge * theta, ridge + float(rows**2 @ (chance * (1.0 - chance)))

    def score(side: int) -> float:
        rows = slice(None) if side else slice(number)
        theta = float(fit_logistic(features[rows], sign[rows], epsilon=budget.epsilon)[0])
        (first, before), (second, after) = explained(theta, signed[:-1]), explained(theta, signed)
        return (abs(first) - abs(second)) / scale + math.log(after / before)

    return one_by_one(score)


def _ops(budget: Budget) -> Sampler:
    """One posterior sample: θ, whose density ratio falls with the distance from the record's target."""
    features, target = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])

    def score(side: int) -> float:
        rows = slice(side + 1)
        return float(fit_ops(features[rows], target[rows], epsilon=budget.epsilon, theta_bound=2.0)[0])

    return one_by_one(score)


def _adaops(budget: Budget) -> Sampler:
    features, target = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])

    def score(side: int) -> float:
        rows = slice(side + 1)
        drawn = fit_adaops(features[rows], target[rows], epsilon=budget.epsilon, delta=budget.delta or DELTA)
        return float(drawn[0])

    return one_by_one(score)


def _factored(budget: Budget) -> Sampler:
    """All outputs along the column of the matrix; ρ = μ²/2 for the μ that (ε, δ) allows."""
    steps = 4
    rho = Fraction(allowed_distance(budget.promise) ** 2 / 2.0).limit_denominator(10**9)
    coefficients = factored_coefficients(steps)
    column = coefficients.astype(np.float64)
    variance = int((coefficients**2).sum()) / (2 * rho)

    def score(side: int) -> float:
        sums = NoisySums(1, coefficients, variance)
        outputs = [sums.release(np.array([side if step == 0 else 0])) for step in range(steps)]
        return float(column @ np.concatenate(outputs))

    return one_by_one(score)


def _intervals(budget: Budget) -> Sampler:
    """The outputs that hold the step of the record, added up: all of ε is in their sum of absolute values."""
    assert budget.promise.epsilon is not None
    plan = TreeSums(4, 2, 3)
    record = np.zeros((4, 1), np.int64)

    def score(side: int) -> float:
        record[0, 0], secret = side, np.zeros((plan.tables, 1), np.int64)
        outputs = np.array([plan.advance(secret, x, t + 1) for t, x in enumerate(record)])
        with release_noise(None) as noise:
            noisy, _ = noise.laplace(outputs, plan.levels, budget.promise.epsilon)  # type: ignore[arg-type]
        return float(np.clip(noisy[[0, 1, 3], 0], 0, 1).sum())

    return one_by_one(score)


def _published_path(budget: Budget) -> Sampler:
    """The published scale is larger than needed: a copy with a fifth less noise keeps the claim."""
    matrix = smoother(_directions(24, 12), 0.5)
    heaviest = int((matrix**2).sum(axis=0).argmax())
    targets = [np.zeros(24, np.int64) for _ in range(2)]
    targets[0][heaviest], targets[1][heaviest] = -(1 << TARGET_BITS), 1 << TARGET_BITS
    along = matrix[:, heaviest]

    def score(side: int) -> float:
        noisy = perturbed_posterior(matrix, targets[side], budget.promise, calibration="as-published")
        return float(along @ noisy.values.reshape(-1))

    return one_by_one(score)
