"""Whole methods on a pair of neighbours: a smoke test, which catches gross faults and proves nothing.

The neighbours differ in one record at a place where there is no other. For pure ε the event "more than half a
record there" must not be e^ε times as likely with it as without. For (ε, δ) the two normal laws of the answer
must not lie further apart than calibrated. Seeds are fixed; under fresh ones a sound method would be accused
once in 10⁸, by binomial bounds of that level or by six standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaincinv

import hushsum as hs
from hushsum.baselines import histogram, kme, mwem, pfda, privbayes
from hushsum.privacy import IntegerNoise, exact
from hushsum.privacy import _calibration as draws
from hushsum.privacy.noise import NoiseSource

Release = Callable[[Any, int], Any]


def measured_once(X: Any, seed: int, epsilon: float = 1.0) -> Any:
    """One round, so that the answer rises with the one measurement; replace, so that the count is fixed."""
    options: dict[str, Any] = {"rounds": 1, "queries": PLACE, "bins": 10, "relation": "replace"}
    return mwem(X, KERNEL, bounds=(0, 1), epsilon=epsilon, insecure_noise_seed=seed, **options)


KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.02)
PLACE = [[0.85]]
CROWD = [[0.15]] * 30
LEVEL = 1e-8
PROMISE = exact("epsilon", 1.0), exact("delta", 1e-6)

PURE: dict[str, Release] = {
    "histogram": lambda X, seed: histogram(
        X, KERNEL, bounds=(0, 1), epsilon=1.0, bins=10, insecure_noise_seed=seed
    ),
    "privbayes": lambda X, seed: privbayes(
        X, KERNEL, bounds=(0, 1), epsilon=1.0, bins=[2], size=400, seed=seed, insecure_noise_seed=seed
    ),
    "mwem": lambda X, seed: measured_once(X, seed),
}
NORMAL: dict[str, Release] = {
    "kme": lambda X, seed: kme(
        X,
        KERNEL,
        bounds=(0, 1),
        epsilon=1.0,
        points=[[0.15], *PLACE],
        sensitivity="tight",
        insecure_noise_seed=seed,
    ),
    "pfda": lambda X, seed: pfda(
        X, KERNEL, bounds=(0, 1), epsilon=1.0, penalty=1e-6, steps=101, insecure_noise_seed=seed
    ),
}


def answers(release: Release, X: Any, first: int, number: int) -> NDArray[np.float64]:
    """What is said at the place, in records."""
    return np.array([release(X, first + i).sum(PLACE)[0] for i in range(number)])


def upper_half(f: Any) -> float:
    return float(f.weights[f.points[:, 0] > 0.5].sum())


def least_epsilon(often: int, seldom: int, number: int) -> float:
    """A lower bound of ln(p/q) at `LEVEL`, by Clopper and Pearson's bounds of both."""
    low = betaincinv(often, number - often + 1, LEVEL / 2) if often else 0.0
    high = betaincinv(seldom + 1, number - seldom, 1 - LEVEL / 2) if seldom < number else 1.0
    return math.log(low / high) if low else -math.inf


def found_epsilon(name: str, number: int) -> float:
    """From releases of both neighbours."""
    more, less, middle = [*CROWD, *PLACE], CROWD, 0.5
    if name == "mwem":
        more = more[1:]
        middle = float(np.mean([measured_once(X, 1, epsilon=1e6).sum(PLACE)[0] for X in (more, less)]))

    def said(X: Any, first: int) -> NDArray[np.float64]:
        if name == "privbayes":
            return np.array([upper_half(PURE[name](X, first + i)) for i in range(number)])
        return answers(PURE[name], X, first, number)

    with_it, without = said(more, 0), said(less, number)
    return least_epsilon(int((with_it > middle).sum()), int((without > middle).sum()), number)


def found_separation(name: str, number: int) -> float:
    """How many standard deviations the two laws are apart, less six standard errors."""
    with_it = answers(NORMAL[name], [*CROWD[1:], *PLACE], 0, number)
    without = answers(NORMAL[name], CROWD, number, number)
    spread = math.sqrt((with_it.var(ddof=1) + without.var(ddof=1)) / 2)
    apart = abs(float(with_it.mean() - without.mean())) / spread
    return apart - 6.0 * math.sqrt((2.0 + apart**2 / 4) / number)


@pytest.fixture
def quarter_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the noise everywhere."""
    draw, sigma = IntegerNoise.draw, draws.gaussian_sigma

    def less(noise: IntegerNoise, size: int, source: NoiseSource, *, threads: int = 1) -> Any:
        return draw(IntegerNoise(noise.mechanism, noise.parameter / 4), size, source, threads=threads)

    monkeypatch.setattr(IntegerNoise, "draw", less)
    monkeypatch.setattr(draws, "gaussian_sigma", lambda *arguments: sigma(*arguments) / 4)


@pytest.mark.parametrize("name", PURE)
def test_pure_methods_hold(name: str) -> None:
    assert found_epsilon(name, 800) <= 1.0


@pytest.mark.parametrize("name", PURE)
@pytest.mark.usefixtures("quarter_noise")
def test_a_quarter_of_the_noise_is_caught(name: str) -> None:
    assert found_epsilon(name, 2000 if name == "mwem" else 800) > 1.0


@pytest.mark.parametrize("name", NORMAL)
def test_normal_methods_hold(name: str) -> None:
    assert found_separation(name, 500) <= 1.0 / draws.gaussian_sigma(1.0, *PROMISE)


@pytest.mark.parametrize("name", NORMAL)
@pytest.mark.usefixtures("quarter_noise")
def test_a_quarter_of_normal_noise_is_caught(name: str) -> None:
    assert found_separation(name, 500) > 1.0 / (4 * draws.gaussian_sigma(1.0, *PROMISE))
