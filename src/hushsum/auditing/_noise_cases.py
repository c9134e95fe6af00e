"""The worst pairs of every sampler of noise, and of mechanisms that add noise to a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.auditing._noise import Draw, NoiseAudit, audit_choice, audit_gaussian, audit_laplace
from hushsum.auditing._registry import MechanismCase, register_mechanism
from hushsum.auditing._smoke import Chances, Separated, allowed_distance, lattice_chances, normal_chances
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

Run = Callable[[NoiseSource, float], NoiseAudit]
"""Runs an audit with noise from the source, times the given factor: 1 for the audit, less for a mutant."""


@dataclass(frozen=True, slots=True)
class NoiseCase:
    """One worst pair of a sampler. ``sampler`` is the name of the function in `hushsum.privacy.noise`."""

    sampler: str
    pair: str
    run: Run
    thorough: bool = False


def _summed(share: IntegerNoise, sites: int, source: NoiseSource) -> Draw:
    """The sum of the noise of the honest sites of a secure aggregation, without those that collude."""

    def draw(size: int) -> Integers:
        return np.asarray(share.draw(size * sites, source).reshape(sites, size).sum(axis=0))

    return draw


def _of_sites(noise: str, sites: int) -> str:
    return f"{sites} shares of {noise}" if sites > 1 else noise


def _moved(shift: int, cells: int = 1, *, count: bool = False, sites: int = 1) -> str:
    pair = f"{cells} cells moved by {shift}" if cells > 1 else f"one cell moved by {shift}"
    return pair + (" and the count" if count else "") + (f", {sites} honest sites" if sites > 1 else "")


def _laplace(epsilon: float, shift: int, *, sites: int = 1, thorough: bool = False) -> NoiseCase:
    """Laplace's distribution, whole or as the sum of shares."""
    claimed = exact("epsilon", epsilon)

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        scale = laplace_noise(shift, claimed).parameter * exact("factor", factor)
        draw = _summed(IntegerNoise(LAPLACE, scale, parts=sites), sites, source)
        return replace(audit_laplace(draw, claimed, shift=shift), mechanism=_of_sites(LAPLACE, sites))

    sampler = "discrete_laplace" if sites == 1 else "discrete_laplace_share"
    return NoiseCase(sampler, _moved(shift, sites=sites), run, thorough)


def _gaussian(
    variance: float,
    cells: int = 1,
    *,
    count: float | None = None,
    shift: int = 1,
    sites: int = 1,
    sampler: str = "discrete_gaussian",
    mechanism: str = GAUSSIAN,
    thorough: bool = False,
) -> NoiseCase:
    """Against one discrete Gaussian: the same, the sum of smaller ones, or Skellam noise, which at the
    variance below is a Gaussian but for a few hundredths of a per cent.
    """

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        def draw(whole: float) -> Draw:
            share = exact("variance", whole) * exact("factor", factor) ** 2 / sites
            return _summed(IntegerNoise(mechanism, share), sites, source)

        also = None if count is None else (draw(count), count)
        audit = audit_gaussian(draw(variance), variance, cells=cells, shift=shift, count=also)
        return replace(audit, mechanism=_of_sites(mechanism, sites))

    return NoiseCase(sampler, _moved(shift, cells, count=count is not None, sites=sites), run, thorough)


def _binomial(trials: int, shift: int) -> NoiseCase:
    """Many coins, whose sum is a Gaussian of a quarter of the trials but for a thousandth."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        drawn = 2 * round(trials * factor**2 / 2)
        audit = audit_gaussian(lambda size: centred_binomial(size, drawn, source), trials / 4, shift=shift)
        return replace(audit, mechanism=BINOMIAL)

    return NoiseCase("centred_binomial", _moved(shift), run)


def _gamma(scale: int, name: str, draw_one: Callable[[Fraction, NoiseSource], int]) -> NoiseCase:
    """One cell, where the Gamma-radius distribution is Laplace's, rounded: its worst pair, since in more
    cells losses are smaller but for noise along the move. A thousandth of the scale is lost to rounding, far
    less than the test sees.
    """

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        smaller = scale * exact("factor", factor)

        def draw(size: int) -> Integers:
            return np.array([draw_one(smaller, source) for _ in range(size)], np.int64)

        return replace(audit_laplace(draw, 1, shift=scale), mechanism=GAMMA)

    return NoiseCase(name, _moved(scale), run)


def _gamma_integer(scale: Fraction, source: NoiseSource) -> int:
    return int(gamma_radius(1, scale, source)[0])


def _gamma_real(scale: Fraction, source: NoiseSource) -> int:
    return round(float(ReleaseNoise(source).gamma_vector(1, float(scale))[0]))


def _choice(
    sampler: str,
    mechanism: str,
    words: str,
    inputs: tuple[Any, Any],
    draw: Callable[[Any, Fraction, int, NoiseSource], Sequence[int]],
    probabilities: Callable[[Any, float], list[float]],
) -> NoiseCase:
    """Two inputs of a mechanism that is run at ε = 1 and has a few outcomes.

    ``draw(input, epsilon, size, source)`` gives outcomes, ``probabilities(input, epsilon)`` their
    distribution.
    """

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        epsilon = 1 / exact("factor", factor)
        left, right = (
            lambda size, given=given: np.array(draw(given, epsilon, size, source), np.int64)
            for given in inputs
        )

        def distributions(at: float) -> tuple[list[float], list[float]]:
            return probabilities(inputs[0], at), probabilities(inputs[1], at)

        seed = source.stream().more_bits(0)(0)
        return audit_choice(left, right, 1.0, distributions, mechanism=mechanism, seed=seed)

    return NoiseCase(sampler, f"{words} {inputs[0]} and {inputs[1]}", run)


def _chosen(
    choose: Callable[[Sequence[int], Fraction, NoiseSource], int],
    probabilities: Callable[[Sequence[int], float], list[float]],
    *scores: list[int],
) -> NoiseCase:
    """A choice by scores of sensitivity 1, so that the rate is ε/2."""
    return _choice(
        choose.__name__,
        choose.__name__.replace("_", " "),
        "scores",
        (scores[0], scores[1]),
        lambda given, epsilon, size, source: [choose(given, epsilon / 2, source) for _ in range(size)],
        lambda given, epsilon: probabilities(given, epsilon / 2),
    )


def _coin(rank: int, epsilon: float) -> list[float]:
    """The probabilities of a coin whose log-odds fall by ε with each rank."""
    falls = 1.0 / (1.0 + math.exp(epsilon * rank))
    return [1.0 - falls, falls]


_CASES = (
    _laplace(1.0, 1),
    _laplace(1.0, 5),
    _laplace(0.1, 1),
    _laplace(3.0, 1),
    _laplace(0.01, 1, thorough=True),
    _laplace(1.0, 1000, thorough=True),
    _laplace(8.0, 1, thorough=True),
    _gamma(1000, "gamma_radius", _gamma_integer),
    _gamma(1000, "gamma_vector", _gamma_real),
    _laplace(1.0, 100, sites=5),
    _laplace(1.0, 10, sites=2),
    _gaussian(100.0, shift=10, sites=5),
    _binomial(40_000, 100),
    _gaussian(400.0, shift=20, sites=5, sampler="skellam", mechanism=SKELLAM),
    _gaussian(1.0),
    _gaussian(16.0, 16),
    _gaussian(16.0, 16, count=4.0),
    _gaussian(0.5, 4, thorough=True),
    _gaussian(1e4, 100, count=500.0, thorough=True),
    _gaussian(9.0, 9, count=9.0, shift=3, thorough=True),
    _chosen(permute_and_flip, permute_and_flip_law, [-2, 0], [-1, -1]),
    _chosen(exponential_choice, exponential_distribution, [1, 0, 0, 0], [0, 1, 1, 1]),
    _choice(
        "log_odds_coins",
        "log-odds coin",
        "ranks",
        (1, 2),
        lambda rank, epsilon, size, source: log_odds_coins([Fraction(epsilon * rank)] * size, source),
        _coin,
    ),
)


def noise_cases(*, thorough: bool = True) -> list[NoiseCase]:
    """The worst pairs of every sampler, without the long ones unless ``thorough``."""
    return [case for case in _CASES if thorough or not case.thorough]


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
    terms: dict[str, Any] = {
        "epsilon": float(promise.epsilon),
        "delta": float(promise.delta),
        "relation": relation,
    }

    def released(side: int, seed: int | None) -> CoefficientFunction:
        function = tallies[side].release(**terms, insecure_noise_seed=seed)
        assert isinstance(function, CoefficientFunction)
        return function

    exact = [tally._state()["table"][0].astype(np.float64) for tally in tallies]
    # A record that is replaced moves two cells, and the difference of both by two.
    moved = 1 if relation is Relation.ADD_REMOVE else 2
    chances = lattice_chances(float(released(0, None).noise.parameter), cells=moved, move=moved)
    return _along_difference(
        exact, lambda *of: np.asarray(released(*of).table[0], np.float64), promise, chances
    )


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
    exact: Sequence[Floats],
    release: Callable[[int, int | None], Floats],
    promise: Promise,
    chances: Chances,
    *,
    also: Floats | None = None,
) -> Separated:
    """Noise is equal in all coordinates, so the difference itself is the best direction."""
    difference = (exact[1] - exact[0])[np.newaxis]
    directions = difference if also is None else np.concatenate((difference, also))
    return Separated((exact[0], exact[1]), release, directions, allowed_distance(promise), chances)


register_mechanism(
    MechanismCase("PrivateHistogram", "one record replaced", partial(_histogram, Relation.REPLACE), _SMALLER),
    MechanismCase(
        "PrivateHistogram", "one record", partial(_histogram, Relation.ADD_REMOVE), _SMALLER, thorough=True
    ),
    MechanismCase("PrivateGaussianProcessRegressor", "one target", _posterior, PROMISE),
    MechanismCase("PrivateKernelSVC", "one label of two classes", partial(_machines, 2), PROMISE),
    MechanismCase("PrivateKernelSVC", "one label of three classes", partial(_machines, 3), PROMISE),
)
