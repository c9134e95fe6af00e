"""Shares of noise: their sum has exactly the law that is claimed, whatever sites collude."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import chi2

from hushsum.auditing import noise_cases
from hushsum.errors import ClaimError, UsageError
from hushsum.privacy import (
    GAUSSIAN,
    LAPLACE,
    NO_NOISE,
    IntegerNoise,
    Promise,
    Sensitivity,
    UnitChange,
    noise_shares,
)
from hushsum.privacy import noise as samplers
from hushsum.privacy.accounting import (
    binomial_delta,
    binomial_trials,
    gaussian_variances,
    promise_for_sum,
    sum_distance,
)
from hushsum.privacy.noise import LazyUniform, NoiseSource, centred_binomial, discrete_laplace_share


@pytest.mark.parametrize("parts", [2, 3, 14, 20])
def test_the_shares_add_up_to_the_discrete_laplace_law_exactly(parts: int) -> None:
    # P(k) of NB(1/parts, q) is a_k·(1 − q)^(1/parts)·q^k with a_k = Γ(k + 1/parts)/(k!·Γ(1/parts)), a
    # rational.
    # The sum of `parts` is geometric, P(k) = (1 − q)·q^k, if and only if the coefficients convolve to 1.
    size = 12
    a = [Fraction(1)]
    for k in range(1, size):
        a.append(a[-1] * (Fraction(1, parts) + k - 1) / k)
    total = [Fraction(1)] + [Fraction(0)] * (size - 1)
    for _ in range(parts):
        total = [sum((total[j] * a[k - j] for j in range(k + 1)), Fraction(0)) for k in range(size)]
    assert total == [Fraction(1)] * size


def share_distribution(scale: float, parts: int, reach: int) -> NDArray[np.float64]:
    """P(−reach), …, P(reach) of the difference of two negative binomials, by their formula."""
    q, r = math.exp(-1 / scale), 1 / parts
    k = np.arange(4 * reach + 1)
    logs = gammaln(k + r) - gammaln(k + 1) - gammaln(r) + r * math.log1p(-q) + k * math.log(q)
    weights = np.exp(logs)
    both = np.convolve(weights, weights[::-1])
    return both[4 * reach - reach : 4 * reach + reach + 1]


def fits(drawn: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    """A chi-square test at 10⁻⁷; ``law`` is centred, and what lies beyond it is one class."""
    reach = len(law) // 2
    counts = np.array([(drawn == value).sum() for value in range(-reach, reach + 1)])
    expected = law * len(drawn)
    observed = np.append(counts, len(drawn) - counts.sum())
    wanted = np.append(expected, len(drawn) - expected.sum())
    kept = wanted > 5
    statistic = ((observed[kept] - wanted[kept]) ** 2 / wanted[kept]).sum()
    return bool(chi2.sf(statistic, kept.sum() - 1) > 1e-7)


@pytest.mark.parametrize(("scale", "parts"), [(Fraction(5), 3), (Fraction(1, 2), 2), (Fraction(20), 14)])
def test_draws_of_a_share_have_its_law(scale: Fraction, parts: int) -> None:
    drawn = discrete_laplace_share(200_000, scale, parts, NoiseSource.insecure(4))
    law = share_distribution(float(scale), parts, 40)
    assert fits(drawn, law)
    # The test can fail: a copy with 20 % less noise does not fit.
    assert not fits(
        discrete_laplace_share(200_000, scale * Fraction(4, 5), parts, NoiseSource.insecure(5)), law
    )


def test_sums_of_drawn_shares_are_discrete_laplace() -> None:
    share = IntegerNoise(LAPLACE, Fraction(7), parts=5)
    drawn = share.draw(500_000, NoiseSource.insecure(6)).reshape(5, -1).sum(axis=0)
    q = math.exp(-1 / 7)
    law = (1 - q) / (1 + q) * q ** np.abs(np.arange(-40, 41))
    assert fits(drawn, law)
    assert not fits(drawn[drawn != 0], law)


def test_the_exact_path_decides_as_doubles_do() -> None:
    for scale, parts in ((Fraction(1000), 3), (Fraction(1, 3), 2), (Fraction(10**7), 8)):
        quick = discrete_laplace_share(300, scale, parts, NoiseSource.insecure(8))
        exact = discrete_laplace_share(300, scale, parts, NoiseSource.insecure(8), widen=1e30)
        assert np.array_equal(quick, exact)


def test_doubtful_words_of_the_poisson_law_are_refined() -> None:
    law = samplers._share_distribution(Fraction(1000), 20)
    first = int(law.number.low[0])
    below, above = (lambda _: 0), (lambda _: (1 << 64) - 1)
    assert samplers._decide_poisson(law.number, LazyUniform(first - 10, 64, above)) == 0
    assert samplers._decide_poisson(law.number, LazyUniform(first + 10, 64, below)) == 1
    assert {
        samplers._decide_poisson(law.number, LazyUniform(first, 64, more)) for more in (below, above)
    } == {0, 1}
    # Far in the tail the table is extended.
    assert samplers._decide_poisson(law.number, LazyUniform((1 << 64) - 1, 64, lambda _: 1 << 60)) > 10


@pytest.mark.parametrize(
    "wrong", [{"scale": Fraction(1, 100)}, {"parts": 0}, {"parts": 1 << 21}, {"size": -1}]
)
def test_parameters_of_shares_are_checked(wrong: dict[str, int]) -> None:
    given: dict[str, Any] = {"size": 3, "scale": Fraction(3), "parts": 2} | wrong
    with pytest.raises(UsageError):
        discrete_laplace_share(**given, source=NoiseSource.insecure(1))


@pytest.mark.parametrize("trials", [2, 10, 400])
def test_centred_binomial_noise_has_its_law(trials: int) -> None:
    reach = min(trials // 2, 40)
    law = np.array([math.comb(trials, trials // 2 + z) / 2**trials for z in range(-reach, reach + 1)])
    drawn = centred_binomial(200_000, trials, NoiseSource.insecure(3))
    assert fits(drawn, law)
    assert np.abs(drawn).max() <= trials // 2


def test_bounds_of_the_binomial_law_enclose_it() -> None:
    for trials in (6, 50):
        half = trials // 2
        bounds = samplers._survivals(trials, 80, half + 1)
        for k, (low, high) in enumerate(bounds, start=1):
            exact = Fraction(2 * sum(math.comb(trials, half + j) for j in range(k, half + 1)), 2**trials)
            assert low <= exact * 2**80 <= high <= low + 2
    surely: Callable[[int], int] = lambda _: 0  # noqa: E731
    assert samplers._decide_binomial(10, LazyUniform(0, 63, surely)) == 5


def test_trials_are_checked() -> None:
    for wrong in (3, 0, -2, (1 << 22) + 2):
        with pytest.raises(UsageError):
            centred_binomial(1, wrong, NoiseSource.insecure(1))


def gaussian_sum_law(variance: float, shares: int, reach: int) -> NDArray[np.float64]:
    support = np.arange(-reach, reach + 1)
    one = np.exp(-(support**2) / (2 * variance))
    one /= one.sum()
    total = one
    for _ in range(shares - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    return total[middle - reach : middle + reach + 1]


@pytest.mark.parametrize("shares", [2, 5, 14])
def test_the_sum_of_gaussian_shares_is_within_the_bound_of_one(shares: int) -> None:
    reach = 60
    whole = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * 4.0 * shares))
    whole /= np.exp(-(np.arange(-400, 401) ** 2) / (2 * 4.0 * shares)).sum()
    near = np.abs(np.arange(-reach, reach + 1)) < 4 * math.sqrt(4.0 * shares)
    off = np.abs(np.log(gaussian_sum_law(4.0, shares, reach)[near] / whole[near])).max()
    # The bound is 10⁻¹⁶ here, below what doubles show.
    assert sum_distance(shares) < 1e-15
    assert off < 1e-12
    # With less variance than a share may have, the distance shows and follows the same formula.
    little = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * 0.5 * shares))
    little /= little.sum()
    near = np.abs(np.arange(-reach, reach + 1)) < 4 * math.sqrt(0.5 * shares)
    off = np.abs(np.log(gaussian_sum_law(0.5, shares, reach)[near] / little[near])).max()
    assert 1e-4 < off < (shares - 1) * 3 * math.exp(-(math.pi**2) * 0.5)


def test_a_smaller_promise_pays_for_the_distance() -> None:
    for promise in (Promise.of(rho=0.5), Promise.of(epsilon=1.0, delta=1e-6)):
        smaller = promise_for_sum(promise, shares=20, cells=10**6)
        for mine, given in ((smaller.rho, promise.rho), (smaller.epsilon, promise.epsilon)):
            if mine is not None and given is not None:
                assert 0 < 1 - mine / given < Fraction(1, 10**5)
    with pytest.raises(ClaimError, match="too small"):
        promise_for_sum(Promise.of(rho=1e-13), shares=1000, cells=10**9)


@pytest.mark.parametrize("honest", [1, 3, 14])
def test_the_noise_of_the_honest_sites_is_that_of_a_central_release(honest: int) -> None:
    moved = UnitChange(Sensitivity(1000, 1000, 1), 1, 1)
    how: dict[str, Any] = {"cells": 10**6, "count_share": Fraction(1, 50), "honest": honest}
    table, count = noise_shares(Promise.of(epsilon=1.0), moved, **how)
    assert IntegerNoise.sum_of([(honest, table)]) == IntegerNoise(LAPLACE, Fraction(50_000, 49))
    assert IntegerNoise.sum_of([(honest, count)]) == IntegerNoise(LAPLACE, Fraction(50))
    table, count = noise_shares(Promise.of(rho=0.5), moved, **how)
    central = Fraction(1000) / (2 * Fraction(1, 2) * Fraction(49, 50))
    assert 1 <= table.parameter * honest / central < 1 + 1e-5
    table, count = noise_shares(Promise.of(epsilon=1.0, delta=1e-6), moved, **how)
    wanted = gaussian_variances(epsilon=1.0, delta=1e-6, cells=1000, count_share=0.02).variance
    assert 1 - 1e-3 <= table.parameter * honest / wanted < 1 + 1e-3


@pytest.mark.parametrize("honest", [1, 2, 14])
@pytest.mark.parametrize("epsilon", [40.0, 100.0, 1e5])
def test_shares_of_any_large_epsilon_can_be_drawn(epsilon: float, honest: int) -> None:
    """A site draws after its ledger was debited: what terms allow must not fail then."""
    promise, moved = Promise.of(epsilon=epsilon), UnitChange(Sensitivity(1, 1, 1), 1, 1)
    pair = noise_shares(promise, moved, cells=9, count_share=Fraction(1, 50), honest=honest)
    for share, part in zip(pair, (Fraction(49, 50), Fraction(1, 50)), strict=True):
        assert share.draw(1000, NoiseSource.insecure(3)).shape == (1000,)
        whole = IntegerNoise.sum_of([(honest, share)])
        assert whole.parameter >= 1 / (Fraction(epsilon) * part)
        assert whole.parameter == 1 / (Fraction(epsilon) * part) or whole.parameter == Fraction(1, 64)


def test_gaussian_shares_have_a_smallest_variance_and_public_counts_no_noise() -> None:
    how: dict[str, Any] = {"cells": 100, "count_share": Fraction(1, 50), "honest": 14}
    moved = UnitChange(Sensitivity(2, 4, 2), 0, 2)
    table, count = noise_shares(Promise.of(epsilon=2.0, delta=1e-6), moved, **how)
    assert (table.mechanism, table.parameter) == (GAUSSIAN, Fraction(4))
    assert count == NO_NOISE
    table, count = noise_shares(Promise.of(epsilon=1.0), moved, **how)
    assert (table.parts, count) == (14, NO_NOISE)


def test_audits_of_shares_catch_a_fifth_less_with_colluding_sites_removed() -> None:
    chosen = [each for each in noise_cases() if "honest" in each.pair or each.sampler == "centred_binomial"]
    assert len(chosen) == 5
    for case in chosen:
        assert case.run(NoiseSource.insecure(11), 1.0).holds
        caught = case.run(NoiseSource.insecure(12), 0.8)
        assert not caught.holds
        assert caught.power >= 0.99


def test_delta_of_binomial_noise_bounds_what_is_computed_directly() -> None:
    # One cell: the hockey-stick divergence by its definition.
    trials, epsilon = 60, 0.8
    p = [math.comb(trials, b) / 2**trials for b in range(trials + 1)]
    shifted = [0.0, *p[:-1]]
    exact = sum(max(0.0, left - math.exp(epsilon) * right) for left, right in zip(p, shifted, strict=True))
    assert exact <= binomial_delta(epsilon, cells=1, trials=trials) < 30 * exact + 1e-12
    # Two cells, by their joint law.
    joint = sum(
        max(0.0, p[i] * p[j] - math.exp(epsilon) * shifted[i] * shifted[j])
        for i in range(trials + 1)
        for j in range(trials + 1)
    )
    assert joint <= binomial_delta(epsilon, cells=2, trials=trials) < 30 * joint + 1e-12


def test_the_fewest_trials_keep_the_promise_and_a_fifth_less_does_not() -> None:
    trials, count = binomial_trials(epsilon=1.0, delta=1e-6, cells=50, count_share=0.02)
    assert count is not None
    assert binomial_delta(1.0, cells=50, trials=trials, count_trials=count) <= 1e-6
    less = 2 * round(trials * 0.64 / 2)
    assert binomial_delta(1.0, cells=50, trials=less, count_trials=count) > 1e-6
    with pytest.raises(ClaimError, match="coins"):
        binomial_trials(epsilon=0.01, delta=1e-6, cells=1000)
