"""The worst pairs of every sampler of noise, and of mechanisms that add noise to a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.auditing._noise import NoiseAudit, audit_choice, audit_gaussian, audit_laplace
from hushsum.auditing._registry import (
    Choose,
    Law,
    MechanismCase,
    NoiseCase,
    register_mechanism,
    register_noise,
)
from hushsum.auditing._smoke import (
    Chances,
    Separated,
    allowed_distance,
    lattice_chances,
    normal_chances,
)
from hushsum.kernels import GaussianKernel
from hushsum.methods import (
    GAP_SHARE,
    TARGET_BITS,
    fit_machines,
    perturbed_machines,
    perturbed_posterior,
    smoother,
)
from hushsum.privacy import (
    BINOMIAL,
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    SKELLAM,
    IntegerNoise,
    Promise,
    Relation,
    ReleaseNoise,
    exact,
    laplace_noise,
)
from hushsum.privacy.noise import (
    NoiseSource,
    centred_binomial,
    exponential_choice,
    exponential_distribution,
    gamma_radius,
    log_odds_coins,
    permute_and_flip,
    permute_and_flip_law,
)
from hushsum.records import Bounds
from hushsum.releases import CoefficientFunction
from hushsum.tables import Bins
from hushsum.tally import Tally


def _laplace(epsilon: float, shift: int, *, thorough: bool = False) -> NoiseCase:
    claimed = exact("epsilon", epsilon)

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        noise = laplace_noise(shift, claimed)
        drawn = IntegerNoise(LAPLACE, noise.parameter * exact("factor", factor))
        return audit_laplace(lambda size: drawn.draw(size, source), claimed, shift=shift)

    return NoiseCase("discrete_laplace", f"one cell moved by {shift}", run, thorough)


def _gaussian(
    variance: float, cells: int, *, count: float | None = None, shift: int = 1, thorough: bool = False
) -> NoiseCase:
    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        square = exact("factor", factor) ** 2
        table = IntegerNoise(GAUSSIAN, exact("variance", variance) * square)
        counts = None if count is None else IntegerNoise(GAUSSIAN, exact("variance", count) * square)
        return audit_gaussian(
            lambda size: table.draw(size, source),
            variance,
            cells=cells,
            shift=shift,
            count=None
            if counts is None or count is None
            else (lambda size: counts.draw(size, source), count),
        )

    pair = f"{cells} cells moved by {shift}" if cells > 1 else f"one cell moved by {shift}"
    return NoiseCase("discrete_gaussian", pair + (" and the count" if count else ""), run, thorough)


def _laplace_shares(scale: int, honest: int) -> NoiseCase:
    """What the honest sites of a secure aggregation add, without those that collude: Laplace's
    distribution."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        share = IntegerNoise(LAPLACE, scale * exact("factor", factor), parts=honest)

        def draw(size: int) -> NDArray[np.int64]:
            total: NDArray[np.int64] = share.draw(size * honest, source).reshape(honest, size).sum(axis=0)
            return total

        return replace(audit_laplace(draw, 1, shift=scale), mechanism=f"{honest} shares of {LAPLACE}")

    return NoiseCase("discrete_laplace_share", f"one cell moved by {scale}, {honest} honest sites", run)


def _gaussian_shares(variance: float, honest: int, shift: int) -> NoiseCase:
    """What the honest sites add, those that collude left out, against one discrete Gaussian."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        square = exact("factor", factor) ** 2
        share = IntegerNoise(GAUSSIAN, exact("variance", variance) * square / honest)

        def draw(size: int) -> NDArray[np.int64]:
            total: NDArray[np.int64] = share.draw(size * honest, source).reshape(honest, size).sum(axis=0)
            return total

        audit = audit_gaussian(draw, variance, shift=shift)
        return replace(audit, mechanism=f"{honest} shares of {GAUSSIAN}")

    return NoiseCase("discrete_gaussian", f"one cell moved by {shift}, {honest} honest sites", run)


def _binomial(trials: int, shift: int) -> NoiseCase:
    """Many coins, whose sum is a Gaussian of a quarter of the trials but for a thousandth."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        drawn = 2 * round(trials * factor**2 / 2)
        audit = audit_gaussian(lambda size: centred_binomial(size, drawn, source), trials / 4, shift=shift)
        return replace(audit, mechanism=BINOMIAL)

    return NoiseCase("centred_binomial", f"one cell moved by {shift}", run)


def _skellam_shares(variance: int, honest: int, shift: int) -> NoiseCase:
    """What the honest sites add in small shares: Skellam noise, a Gaussian but for a few hundredths of a per
    cent at this variance.
    """

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        share = IntegerNoise(SKELLAM, variance * exact("factor", factor) ** 2 / honest)

        def draw(size: int) -> NDArray[np.int64]:
            total: NDArray[np.int64] = share.draw(size * honest, source).reshape(honest, size).sum(axis=0)
            return total

        audit = audit_gaussian(draw, variance, shift=shift)
        return replace(audit, mechanism=f"{honest} shares of {SKELLAM}")

    return NoiseCase("skellam", f"one cell moved by {shift}, {honest} honest sites", run)


def _gamma(scale: int, name: str, draw_one: Callable[[Fraction, NoiseSource], int]) -> NoiseCase:
    """One cell, where the Gamma-radius distribution is Laplace's, rounded: its worst pair, since in more
    cells losses are smaller but for noise along the move. A thousandth of the scale is lost to rounding, far
    less than the test sees.
    """

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        smaller = scale * exact("factor", factor)

        def draw(size: int) -> NDArray[np.int64]:
            return np.array([draw_one(smaller, source) for _ in range(size)], np.int64)

        return replace(audit_laplace(draw, 1, shift=scale), mechanism=GAMMA)

    return NoiseCase(name, f"one cell moved by {scale}", run)


def _gamma_integer(scale: Fraction, source: NoiseSource) -> int:
    return int(gamma_radius(1, scale, source)[0])


def _gamma_real(scale: Fraction, source: NoiseSource) -> int:
    return round(float(ReleaseNoise(source).gamma_vector(1, float(scale))[0]))


def _choice(choose: Choose, law: Law, epsilon: float, pair: tuple[list[int], list[int]]) -> NoiseCase:
    """Scores of sensitivity 1, so that the rate is ε/2."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        rate = exact("epsilon", epsilon) / 2 / exact("factor", factor)

        def side(scores: list[int]) -> Callable[[int], NDArray[np.int64]]:
            return lambda size: np.array([choose(scores, rate, source) for _ in range(size)], np.int64)

        def distributions(at: float) -> tuple[list[float], list[float]]:
            return law(pair[0], at / 2), law(pair[1], at / 2)

        name = choose.__name__.replace("_", " ")
        seed = source.stream().more_bits(0)(0)
        return audit_choice(side(pair[0]), side(pair[1]), epsilon, distributions, mechanism=name, seed=seed)

    return NoiseCase(choose.__name__, f"scores {pair[0]} and {pair[1]}", run)


def _coins(epsilon: float, ranks: tuple[int, int]) -> NoiseCase:
    """One coin whose log-odds fall by ε with each rank, at two neighbouring ranks."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        rate = exact("epsilon", epsilon) / exact("factor", factor)

        def side(rank: int) -> Callable[[int], NDArray[np.int64]]:
            return lambda size: np.array(log_odds_coins([Fraction(rate * rank)] * size, source), np.int64)

        def law(rank: int, at: float) -> list[float]:
            falls = 1.0 / (1.0 + math.exp(at * rank))
            return [1.0 - falls, falls]

        def distributions(at: float) -> tuple[list[float], list[float]]:
            return law(ranks[0], at), law(ranks[1], at)

        seed = source.stream().more_bits(0)(0)
        return audit_choice(
            side(ranks[0]), side(ranks[1]), epsilon, distributions, mechanism="log-odds coin", seed=seed
        )

    return NoiseCase("log_odds_coins", f"ranks {ranks[0]} and {ranks[1]}", run)


cases: Sequence[NoiseCase] = (
    _laplace(1.0, 1),
    _laplace(1.0, 5),
    _laplace(0.1, 1),
    _laplace(3.0, 1),
    _laplace(0.01, 1, thorough=True),
    _laplace(1.0, 1000, thorough=True),
    _laplace(8.0, 1, thorough=True),
    _gamma(1000, "gamma_radius", _gamma_integer),
    _gamma(1000, "gamma_vector", _gamma_real),
    _laplace_shares(100, 5),
    _laplace_shares(10, 2),
    _gaussian_shares(100.0, 5, 10),
    _binomial(40_000, 100),
    _skellam_shares(400, 5, 20),
    _gaussian(1.0, 1),
    _gaussian(16.0, 16),
    _gaussian(16.0, 16, count=4.0),
    _gaussian(0.5, 4, shift=1, thorough=True),
    _gaussian(1e4, 100, count=500.0, thorough=True),
    _gaussian(9.0, 9, count=9.0, shift=3, thorough=True),
    _choice(permute_and_flip, permute_and_flip_law, 1.0, ([-2, 0], [-1, -1])),
    _choice(exponential_choice, exponential_distribution, 1.0, ([1, 0, 0, 0], [0, 1, 1, 1])),
    _coins(1.0, (1, 2)),
)
for case in cases:
    register_noise(case)


PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
_SMALLER = Promise.of(epsilon=4.0, delta=1e-6)
"""For counts, whose lattice is as coarse as their sensitivity: at this claim two neighbours are up to 3 %
further apart than two normal distributions, far within the slack of the bounds, and at a larger ε by more.
"""

_RECORDS = 24
_ONE_CLASS_MARGIN = 0.3
"""C for which no margin is reached, ‖w‖√κ ≤ Cκ < 1: every record pulls with all of C/n, and Δ is attained."""


def _histogram(relation: Relation, promise: Promise = _SMALLER) -> Separated:
    box = Bounds((0.0,), (1.0,))
    basis = Bins((4,), box)
    crowd = [[0.1]] * _RECORDS
    more = [*crowd, [0.9]] if relation is Relation.ADD_REMOVE else [*crowd[1:], [0.9]]
    tallies = [Tally(basis, GaussianKernel(dim=1, bandwidth=0.25)).add(records) for records in (crowd, more)]
    assert promise.epsilon is not None
    epsilon, delta = float(promise.epsilon), float(promise.delta)

    def release(side: int, seed: int | None) -> Floats:
        function = tallies[side].release(
            epsilon=epsilon, delta=delta, relation=relation, insecure_noise_seed=seed
        )
        assert isinstance(function, CoefficientFunction)
        return np.asarray(function.table[0], np.float64)

    exact = tuple(tally._state()["table"][0].astype(np.float64) for tally in tallies)
    planned = tallies[0].release(epsilon=epsilon, delta=delta, relation=relation)
    assert isinstance(planned, CoefficientFunction)
    # A record that is replaced moves two cells, and the difference of both by two.
    moved = 1 if relation is Relation.ADD_REMOVE else 2
    chances = lattice_chances(float(planned.noise.parameter), cells=moved, move=moved)
    return _along_difference((exact[0], exact[1]), release, promise, chances)


def _posterior(promise: Promise = PROMISE) -> Separated:
    """One target goes from one end of its range to the other, at the input that weighs most."""
    matrix = smoother(_directions(_RECORDS, 12), 0.5)
    largest = 1 << TARGET_BITS
    heaviest = int((matrix**2).sum(axis=0).argmax())
    targets = [np.zeros(_RECORDS, np.int64) for _ in range(2)]
    targets[0][heaviest], targets[1][heaviest] = -largest, largest

    def release(side: int, seed: int | None) -> Floats:
        noisy = perturbed_posterior(matrix, targets[side], promise, insecure_noise_seed=seed)
        return noisy.values.reshape(-1)

    exact = (matrix @ targets[0] / largest, matrix @ targets[1] / largest)
    return _along_difference(exact, release, promise, normal_chances(0.99 * allowed_distance(promise)))


def _machines(classes: int, promise: Promise = PROMISE) -> Separated:
    """One label goes over to another class; the last weight of each machine is its intercept."""
    rows = _directions(_RECORDS, 8)
    codes = [np.arange(_RECORDS) % classes for _ in range(2)]
    codes[1][0] = 1
    found = [fit_machines(rows, each, classes, _ONE_CLASS_MARGIN) for each in codes]

    def release(side: int, seed: int | None) -> Floats:
        return perturbed_machines(found[side], promise, insecure_noise_seed=seed).values.reshape(-1)

    exact = found[0].weights.reshape(-1), found[1].weights.reshape(-1)
    intercepts = np.zeros(found[0].weights.shape)
    intercepts[:, -1] = (found[1].weights - found[0].weights)[:, -1]
    # Of K machines a label moves two.
    reach = (1.0 if classes == 2 else (2.0 / classes) ** 0.5) / (1.0 + GAP_SHARE)
    chances = normal_chances(0.99 * reach * allowed_distance(promise))
    return _along_difference(exact, release, promise, chances, also=intercepts.reshape(1, -1))


def _directions(number: int, dim: int) -> Floats:
    """Rows of length 1."""
    rows = np.random.default_rng(5).normal(size=(number, dim))
    lengths: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths


def _along_difference(
    exact: tuple[Floats, Floats],
    release: Callable[[int, int | None], Floats],
    promise: Promise,
    chances: Chances,
    *,
    also: Floats | None = None,
) -> Separated:
    """Noise is equal in all coordinates, so the difference itself is the best direction."""
    difference = (exact[1] - exact[0])[np.newaxis]
    directions = difference if also is None else np.concatenate((difference, also))
    return Separated(exact, release, directions, allowed_distance(promise), chances)


register_mechanism(
    MechanismCase("PrivateHistogram", "one record replaced", partial(_histogram, Relation.REPLACE), _SMALLER)
)
register_mechanism(
    MechanismCase(
        "PrivateHistogram", "one record", partial(_histogram, Relation.ADD_REMOVE), _SMALLER, thorough=True
    )
)
register_mechanism(MechanismCase("PrivateGaussianProcessRegressor", "one target", _posterior, PROMISE))
for classes, words in ((2, "two"), (3, "three")):
    register_mechanism(
        MechanismCase(
            "PrivateKernelSVC", f"one label of {words} classes", partial(_machines, classes), PROMISE
        )
    )
