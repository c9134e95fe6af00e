"""The worst pairs of every sampler of noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.choice_audit import audit_choice
from hushsum.auditing.privacy_loss_lower_bound import NoiseAudit, audit_gaussian, audit_laplace
from hushsum.auditing.registry import Choose, Law, NoiseCase, register_noise
from hushsum.privacy.calibration import laplace_noise
from hushsum.privacy.claim import exact
from hushsum.privacy.integer_noise import BINOMIAL, GAMMA, GAUSSIAN, LAPLACE, SKELLAM, IntegerNoise
from hushsum.privacy.noise import NoiseSource, centred_binomial, gamma_radius
from hushsum.privacy.noise.choice_sampler import (
    exponential_choice,
    exponential_law,
    permute_and_flip,
    permute_and_flip_law,
)
from hushsum.privacy.noise.coin_sampler import log_odds_coins
from hushsum.privacy.real_noise import RealNoise


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
    """What the honest sites of a secure aggregation add, without those that collude: Laplace's law."""

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
    """One cell, where the Gamma-radius law is Laplace's, rounded: its worst pair, since in more cells losses
    are smaller but for noise along the move. A thousandth of the scale is lost to rounding, far less than the
    test sees.
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
    return round(float(RealNoise(source).gamma_vector(1, float(scale))[0]))


def _choice(choose: Choose, law: Law, epsilon: float, pair: tuple[list[int], list[int]]) -> NoiseCase:
    """Scores of sensitivity 1, so that the rate is ε/2."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        rate = exact("epsilon", epsilon) / 2 / exact("factor", factor)

        def side(scores: list[int]) -> Callable[[int], NDArray[np.int64]]:
            return lambda size: np.array([choose(scores, rate, source) for _ in range(size)], np.int64)

        def laws(at: float) -> tuple[list[float], list[float]]:
            return law(pair[0], at / 2), law(pair[1], at / 2)

        name = choose.__name__.replace("_", " ")
        seed = source.stream().more_bits(0)(0)
        return audit_choice(side(pair[0]), side(pair[1]), epsilon, laws, mechanism=name, seed=seed)

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

        def laws(at: float) -> tuple[list[float], list[float]]:
            return law(ranks[0], at), law(ranks[1], at)

        seed = source.stream().more_bits(0)(0)
        return audit_choice(
            side(ranks[0]), side(ranks[1]), epsilon, laws, mechanism="log-odds coin", seed=seed
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
    _choice(exponential_choice, exponential_law, 1.0, ([1, 0, 0, 0], [0, 1, 1, 1])),
    _coins(1.0, (1, 2)),
)
for case in cases:
    register_noise(case)
