"""The stated power is the real one: compared with simulation where it is far from 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushsum.auditing import audit_gaussian, audit_laplace
from hushsum.auditing._statistics import (
    GaussianPair,
    binomial_bounds,
    laplace_draws,
    laplace_power,
    one_direction_power,
)
from hushsum.errors import UsageError

RUNS = 4000
REACH = 5.5 * math.sqrt(0.25 / RUNS)
"""Shares of RUNS differ from their mean by more than this with probability below 4e-8; seeds are fixed."""


def simulated(number: int, near: float, ratio: float, least: float, tail: float) -> float:
    """How often the upper bound on far given near falls below ``least``."""
    rng = np.random.default_rng(1)
    hits = rng.binomial(number, near, RUNS)
    far = rng.binomial(hits, ratio)
    pairs = zip(far.tolist(), hits.tolist(), strict=True)
    return float(np.mean([binomial_bounds(a, b, tail)[1] < least for a, b in pairs]))


@pytest.mark.parametrize(("epsilon", "number"), [(1.0, 1500), (1.0, 2000), (0.1, 15_000), (3.0, 2000)])
def test_laplace(epsilon: float, number: int) -> None:
    actual = epsilon / 0.8
    near = 1 / (1 + math.exp(-actual))
    expected = simulated(number, near, math.exp(-actual), math.exp(-epsilon), 5e-9)
    stated = laplace_power(epsilon, number)
    assert 0.2 < stated < 0.95, "choose a number that can tell"
    assert abs(stated - expected) < REACH


@pytest.mark.parametrize("pair", [GaussianPair(1.0), GaussianPair(9.0, 4), GaussianPair(9.0, 9, 1, 3.0)])
def test_gaussian(pair: GaussianPair) -> None:
    """Both bounds, as the audit takes them, from the real law of a sampler with a fifth less noise."""
    law, near = pair.distribution(0.8), 0
    chance, further = float(law.reaches(near)), float(law.reaches(near + pair.move))
    tail, number = 2.5e-9, 2000
    rng = np.random.default_rng(2)
    hits = rng.binomial(number, chance, RUNS)
    far = rng.binomial(hits, further / chance)
    broken = 0
    for a, b in zip(far.tolist(), hits.tolist(), strict=True):
        low = binomial_bounds(b, number, tail)[0]
        broken += binomial_bounds(a, b, tail)[1] < float(pair.least_ratio(np.array([low]))[0])
    stated = one_direction_power(
        number, chance, further / chance, pair.least_ratio, near_tail=tail, far_tail=tail
    )
    assert 0.05 < stated < 0.999
    assert abs(stated - broken / RUNS) < REACH


def test_a_false_alarm_is_as_rare_as_stated_at_the_edge() -> None:
    """At the claim itself, with a tail of 1 % in place of 1e-8, so that alarms happen: at most 1 % of runs.

    4000 runs: 2 % would be 6 deviations away.
    """
    near = 1 / (1 + math.exp(-1.0))
    assert simulated(3000, near, math.exp(-1.0), math.exp(-1.0), 0.01) < 0.02


def test_fewer_draws_are_needed_where_losses_are_near_one() -> None:
    assert laplace_draws(1.0) < 10_000
    assert laplace_draws(0.1) < 100_000
    assert laplace_draws(10.0) > laplace_draws(3.0)


@pytest.mark.parametrize("epsilon", [1e-7, 40.0])
def test_what_cannot_be_sampled_is_refused(epsilon: float) -> None:
    with pytest.raises(UsageError, match="too strong to be audited"):
        laplace_draws(epsilon)


def test_skewed_noise_is_caught_in_its_direction() -> None:
    """Noise that is right upwards and too little downwards; 0.8 of the scale on one side alone."""
    rng = np.random.default_rng(3)

    def draw(size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        magnitude = rng.geometric(1 - math.exp(-1), size) - 1
        small = rng.geometric(1 - math.exp(-1 / 0.6), size) - 1
        return np.where(rng.random(size) < 0.5, magnitude, -small).astype(np.int64)

    assert not audit_laplace(draw, 1.0).holds
    assert not audit_laplace(lambda size: -draw(size), 1.0).holds


def test_silence_is_no_noise() -> None:
    for audit in (
        audit_laplace(lambda size: np.zeros(size, np.int64), 1.0),
        audit_gaussian(lambda size: np.zeros(size, np.int64), 4.0, cells=3),
    ):
        assert not audit.holds


@pytest.mark.parametrize("wrong", [{"variance": 0.0}, {"variance": 1.0, "cells": 0}])
def test_gaussians_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="variance must be above 0"):
        audit_gaussian(
            lambda size: np.zeros(size, np.int64), wrong["variance"], cells=int(wrong.get("cells", 1))
        )
