"""Every calibration at extreme ε, δ and ρ, against high-precision arithmetic.

A calibration may refuse, and it may ask for a little more noise than is needed; it never spends more than was
claimed. Each reference below is a formula of its mechanism in 60 digits or more, written without the code it
checks. The ordinary grids are small, the wide ones are in ``make test-slow``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from hushsum.errors import ClaimError
from hushsum.methods import SCORE_SENSITIVITY, dependence_of_counts, fit_adaops, perturbation
from hushsum.methods._linear_models import PublishedNoise
from hushsum.parties.summarization import (
    SummaryFeatures,
    answers_rho,
    plan_terms,
    record_squared,
    sum_squared,
    sum_variance,
    target_variance,
)
from hushsum.privacy import (
    AS_PUBLISHED,
    Promise,
    Sensitivity,
    UnitChange,
    calibrate,
    gamma_noise,
    laplace_noise,
    largest_leverage,
    largest_precision,
    lattice_variance,
    path_scale,
    root_above,
    rounded,
    rounded_reach,
    sample_delta,
    standard_normal,
)
from hushsum.privacy.accounting import (
    DiscreteGaussian,
    LaplaceTable,
    analytic_gaussian_sigma,
    compose,
    discrete_gaussian_delta,
    gaussian_delta_above,
    gaussian_variances,
    group_delta,
    group_epsilon,
    group_rho,
    vector_delta,
    vector_variances,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from hushsum.privacy.noise import NoiseSource

EPSILONS = (1e-6, 0.1, 1.0, 15.0, 700.0)
DELTAS = (1e-300, 1e-199, 1e-12, 1e-6, 0.5)
RHOS = (1e-12, 1e-6, 0.02, 3.0, 1e3)
WIDE_EPSILONS = (
    1e-9,
    *EPSILONS,
    1e-5,
    1e-3,
    1e-2,
    0.3,
    0.5,
    3.0,
    7.0,
    30.0,
    60.0,
    100.0,
    300.0,
    599.0,
    601.0,
    2e3,
)
WIDE_DELTAS = (*DELTAS, 1e-40, 1e-200, 1e-100, 1e-25, 1e-16, 3e-12, 1e-9, 1e-3, 0.1, 0.9, 1 - 1e-9)
WIDE_RHOS = (1e-300, 1e-30, *RHOS, 1e-9, 1e-3, 0.5, 30.0, 1e6)


def grid(small: tuple[Any, ...], wide: tuple[Any, ...]) -> list[Any]:
    """Ordinary cases, and those of the wide grid that are slow."""
    more = [pytest.param(each, marks=pytest.mark.slow) for each in wide if each not in small]
    return [*small, *more]


@pytest.fixture(autouse=True)
def digits() -> Any:
    with mpmath.workdps(80):
        yield


def real(value: float | Fraction) -> Any:
    """The very number that a float or a fraction is."""
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


def upper(x: Any) -> Any:
    """The normal law's tail above x."""
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def normal_delta(epsilon: float | Fraction, separation: Any) -> Any:
    """δ(ε) of two normal laws so many deviations apart (Balle & Wang 2018)."""
    ratio = real(epsilon) / separation
    return upper(ratio - separation / 2) - mpmath.exp(real(epsilon)) * upper(ratio + separation / 2)


def concentrated_delta(rho: Any, epsilon: float) -> Any:
    """The least δ that ρ implies, over Rényi orders 1 + x; the root of a derivative that grows with x."""
    low, high = mpf(-80), mpmath.log10(real(epsilon) / (2 * rho) + 1 / mpmath.sqrt(2 * rho) + 1)

    def ahead(x: Any) -> Any:
        return (1 + 2 * x) * rho - real(epsilon) - mpmath.log1p(1 / x)

    for _ in range(90):
        middle = (low + high) / 2
        low, high = (low, middle) if ahead(mpf(10) ** middle) > 0 else (middle, high)
    x = mpf(10) ** high
    exponent = x * (1 + x) * rho - x * real(epsilon) - x * mpmath.log1p(1 / x) - mpmath.log1p(x)
    return min(mpmath.exp(exponent), mpf(1))


def lattice_delta(epsilon: float, variance: Any, shift: int) -> Any:
    """δ(ε) of shifting a discrete Gaussian, summed term by term.

    The terms F(m) − e^ε·F(m + R) are summed pair by pair from the threshold on, where each is positive.
    """
    threshold = real(epsilon) * variance / shift - mpf(shift) / 2
    first = int(mpmath.floor(threshold)) + 1

    def weight(s: int) -> Any:
        return mpmath.exp(-(mpf(s) ** 2) / (2 * variance))

    total, s = mpf(0), first
    while True:
        term = weight(s) - mpmath.exp(real(epsilon)) * weight(s + shift)
        total += max(term, mpf(0))
        if s > 0 and term < total * mpf(10) ** -25 / (s + 10):
            break
        s += 1
        if s - first > 60_000:
            raise AssertionError("too wide a law for a sum")
    return total / lattice_sum(variance)


def lattice_sum(variance: Any) -> Any:
    """Σ exp(−s²/2V) over all integers, by the side of Poisson's formula that converges."""
    if variance < 1:
        return 1 + 2 * sum(mpmath.exp(-(mpf(s) ** 2) / (2 * variance)) for s in range(1, 40))
    return mpmath.sqrt(2 * mpmath.pi * variance) * theta(variance)


def theta(variance: Any) -> Any:
    if variance < mpf("0.05"):
        return lattice_sum(variance) / mpmath.sqrt(2 * mpmath.pi * variance)
    return 1 + 2 * sum(mpmath.exp(-2 * mpmath.pi**2 * variance * k * k) for k in range(1, 40))


def excess(cells: int, variance: Any) -> Any:
    """e^τ of the law of a sum of cells against one discrete Gaussian; the product of the proof."""
    result = theta(cells * variance) / theta(variance)
    for k in range(1, cells):
        result *= theta(k * variance / (k + 1)) / theta(variance)
    return result


def sampled_delta(epsilon: float, precision: float, leverage: float, residual: float) -> Any:
    """What a posterior sample spends, in both directions, as differences of probabilities in many digits."""
    h = real(leverage)
    mean = real(residual) * mpmath.sqrt(real(precision) * h) / (1 + h)
    root, slope = mpmath.sqrt(1 + h), (1 + h) * mean
    level = (1 + h) * mean**2 / 2 - mpmath.log1p(h) / 2
    factor = mpmath.exp(real(epsilon))

    def ends(threshold: Any) -> tuple[Any, Any] | None:
        square = slope**2 - 2 * h * (level - threshold)
        if square <= 0:
            return None
        return (slope - mpmath.sqrt(square)) / h, (slope + mpmath.sqrt(square)) / h

    low, high = ends(real(epsilon)) or (mpf(0), mpf(0))
    first = upper(high) + upper(-low)
    second = upper((high - mean) * root) + upper(-(low - mean) * root)
    forwards, backwards = first - factor * second, mpf(0)
    inner = ends(-real(epsilon))
    if inner is not None:
        low, high = inner
        second = upper((low - mean) * root) - upper((high - mean) * root)
        backwards = second - factor * (upper(low) - upper(high))
    return max(forwards, backwards, mpf(0))


def refused(call: Callable[[], Any]) -> Any:
    """The result, or None where the calibration refuses the claim."""
    try:
        return call()
    except ClaimError:
        return None


@pytest.mark.parametrize("epsilon", grid(EPSILONS, WIDE_EPSILONS))
@pytest.mark.parametrize("delta", grid(DELTAS, WIDE_DELTAS))
class TestEpsilonAndDelta:
    def test_analytic_gaussian(self, epsilon: float, delta: float) -> None:
        sigma = refused(lambda: analytic_gaussian_sigma(epsilon, delta))
        if sigma is None:
            assert delta < 1e-200
            return
        assert normal_delta(epsilon, 1 / real(sigma)) <= real(delta)
        if epsilon >= 1e-3:
            assert normal_delta(epsilon, 1 / (real(sigma) * mpf("0.999"))) > real(delta), "not too much noise"

    def test_rho_from_epsilon_and_delta(self, epsilon: float, delta: float) -> None:
        rho = refused(lambda: zcdp_rho(epsilon, delta))
        if rho is not None:
            assert concentrated_delta(real(rho), epsilon) <= real(delta)
            assert concentrated_delta(real(rho) * mpf("1.001"), epsilon) > real(delta)

    def test_groups_and_replace(self, epsilon: float, delta: float) -> None:
        for size in (1, 2, 3, 50):
            spent = refused(lambda size=size: group_delta(epsilon, delta, size))  # type: ignore[misc]
            exact = real(delta) * sum(mpmath.exp(real(epsilon) * i) for i in range(size))
            if spent is None:
                assert exact > 1 - mpf(10) ** -9 or delta < 1e-200
            else:
                assert exact <= real(spent) <= exact * (1 + mpf(10) ** -11)
            assert group_epsilon(epsilon, size) == Fraction(epsilon) * size
            assert group_rho(epsilon, size) == Fraction(epsilon) * size**2

    def test_functions(self, epsilon: float, delta: float) -> None:
        promise = Promise.of(epsilon=epsilon, delta=delta)
        assert promise.epsilon is not None
        scale = refused(lambda: path_scale(3.7, promise))
        if scale is not None:
            assert normal_delta(promise.epsilon, real(3.7) / real(scale)) <= real(promise.delta)
        published = refused(lambda: path_scale(3.7, promise, calibration=AS_PUBLISHED))
        if published is not None:
            assert normal_delta(promise.epsilon, real(3.7) / real(published)) <= real(promise.delta)
        for length, cells in ((1, 1), (1 << 20, 1000)):
            variance = refused(lambda: lattice_variance(length, cells, promise))  # noqa: B023
            if variance is not None:
                self.check_lattice(promise, length, cells, variance)

    def check_lattice(self, promise: Promise, length: int, cells: int, variance: Fraction) -> None:
        """Either of two proofs: rounded noise plus what discrete noise differs by, or ρ."""
        assert promise.epsilon is not None
        gap = (1 + mpmath.exp(real(promise.epsilon))) * cells / (24 * real(variance))
        rounded_noise = normal_delta(promise.epsilon, length / mpmath.sqrt(real(variance))) + gap
        rho = real(Fraction(length**2) / (2 * variance))
        spent = min(rounded_noise, concentrated_delta(rho, float(promise.epsilon)))
        assert spent <= real(promise.delta)

    def test_vectors_of_integers(self, epsilon: float, delta: float) -> None:
        promise = Promise.of(epsilon=epsilon, delta=delta)
        for square, cells in ((1, 10), (9, 1000), (1 << 40, 1000)):
            found = refused(
                lambda: vector_variances(epsilon=epsilon, delta=delta, l2_squared=square, cells=cells)  # noqa: B023
            )
            if found is not None:
                self.check_vector(epsilon, promise, square, cells, found.variance)

    def check_vector(
        self, epsilon: float, promise: Promise, square: int, cells: int, variance: Fraction
    ) -> None:
        gap = (1 + mpmath.exp(real(epsilon))) * cells / (24 * real(variance))
        separation = mpmath.sqrt(real(Fraction(square) / variance))
        exact = normal_delta(epsilon, separation) + gap
        bound = vector_delta(epsilon, l2_squared=square, cells=cells, variance=variance)
        if epsilon <= 700:
            assert min(exact, mpf(1)) <= real(bound)
        rho = real(Fraction(square) / (2 * variance))
        assert min(exact, concentrated_delta(rho, epsilon)) <= real(promise.delta) * (1 + mpf(10) ** -15)

    def test_discrete_gaussian(self, epsilon: float, delta: float) -> None:
        """The variance that is returned, with every cell's law summed; with many cells through the e^τ."""
        for cells in (1, 7):
            found = refused(lambda: gaussian_variances(epsilon=epsilon, delta=delta, cells=cells))  # noqa: B023
            if found is None:
                assert delta < 1e-200
                continue
            variance = real(found.variance)
            if cells * variance < 10**6:
                spent = lattice_delta(epsilon, cells * variance, cells)
                assert spent * min(excess(cells, variance), 1) <= real(delta)
                if variance >= mpf("0.25"):
                    assert spent * excess(cells, variance) <= real(delta) * (1 + mpf(10) ** -9)

    def test_objective_perturbation(self, epsilon: float, delta: float) -> None:
        ridge, scale = perturbation(epsilon, gradient=3.0, curvature=0.25)
        assert mpmath.log1p(mpf("0.25") / real(ridge)) + 3 / real(scale) <= real(epsilon)

    def test_published_constants(self, epsilon: float, delta: float) -> None:
        noise = PublishedNoise(epsilon, delta)
        exact = normal_delta(epsilon, mpmath.sqrt(3) / real(noise.sigma))
        assert exact <= real(noise.spent_delta(3))

    def test_posterior_sample(self, epsilon: float, delta: float) -> None:
        most = refused(lambda: largest_leverage(epsilon, delta))
        if most is None:
            return
        assert sampled_delta(epsilon, 1e-300, most, 1.0) <= real(delta)
        for part, residual in ((0.5, 2.0), (1e-4, 30.0)):
            leverage = part * most
            precision = refused(
                lambda: largest_precision(epsilon, delta, leverage=leverage, residual=residual)  # noqa: B023
            )
            if precision is None:
                continue
            for smaller in (1.0, 0.3, 1e-3):
                spent = sampled_delta(epsilon, precision, smaller * leverage, residual)
                assert spent <= real(delta)
            if 1e-3 <= epsilon <= 100 and delta >= 1e-40:
                larger = residual * math.sqrt(1 + leverage)
                assert sampled_delta(epsilon, precision * 1.5, leverage, larger) > real(delta)


@pytest.mark.parametrize("rho", grid(RHOS, WIDE_RHOS))
class TestRho:
    @pytest.mark.parametrize("epsilon", grid(EPSILONS, WIDE_EPSILONS))
    def test_delta(self, rho: float, epsilon: float) -> None:
        exact, found = concentrated_delta(real(rho), epsilon), real(zcdp_delta(rho, epsilon))
        assert exact <= found
        if exact > mpf(10) ** -300:
            assert found <= exact * (1 + mpf(10) ** -6)

    @pytest.mark.parametrize("delta", grid(DELTAS, WIDE_DELTAS))
    def test_epsilon(self, rho: float, delta: float) -> None:
        epsilon = refused(lambda: zcdp_epsilon(rho, delta))
        if epsilon is not None:
            assert concentrated_delta(real(rho), epsilon) <= real(delta)

    def test_noise(self, rho: float) -> None:
        promise = Promise.of(rho=rho)
        assert promise.rho is not None
        assert normal_rho(path_scale(2.5, promise), 2.5) <= real(promise.rho)
        assert Fraction(49) / (2 * lattice_variance(7, 10, promise)) == promise.rho
        table, count = calibrate(promise, UnitChange(Sensitivity(9, 49, 7), 3, 3), cells=10)
        assert Fraction(49) / (2 * table.parameter) + Fraction(9) / (2 * count.parameter) == promise.rho

    def test_summaries(self, rho: float) -> None:
        features = SummaryFeatures(dim=2, bandwidth=1.0, features=20, seed=1)
        whole = Fraction(rho)
        assert Fraction(record_squared(features)) / (2 * target_variance(features, whole)) == whole
        for rule, rate in (("threshold", None), ("fresh", None), ("auction", Fraction(rho) ** 2)):
            terms = plan_terms(features, ("a", "b"), 12, whole, rule=rule, rounds=4, rate=rate)
            spending = refused(lambda terms=terms: sum_variance(terms))  # type: ignore[misc]
            if spending is None:
                assert answers_rho(terms) >= whole
            else:
                assert answers_rho(terms) + Fraction(sum_squared(terms)) / (2 * spending) == whole


def normal_rho(sigma: float, sensitivity: float) -> Any:
    return real(sensitivity) ** 2 / (2 * real(sigma) ** 2)


@pytest.mark.parametrize("epsilon", grid(EPSILONS, WIDE_EPSILONS))
class TestPure:
    def test_integer_noise(self, epsilon: float) -> None:
        promise = Promise.of(epsilon=epsilon)
        assert promise.epsilon is not None
        table, count = calibrate(promise, UnitChange(Sensitivity(9, 49, 7), 3, 3), cells=1 << 20)
        assert 9 / table.parameter + 3 / count.parameter == promise.epsilon
        for l1 in (1, 1000, 1 << 40):
            assert Fraction(l1) / laplace_noise(l1, promise.epsilon).parameter == promise.epsilon

    def test_gamma_radius(self, epsilon: float) -> None:
        exact = Fraction(epsilon)
        for square in (1, 2, 1000 << 20):
            assert root_above(square) ** 2 >= square
            noise = refused(lambda square=square: gamma_noise(square, 10, exact))  # type: ignore[misc]
            assert noise is None or noise.parameter * exact >= root_above(square)


@pytest.mark.parametrize("epsilon", grid((1e-3, 1.0, 15.0, 599.0), (1e-6, 0.1, 3.0, 40.0, 601.0, 700.0)))
@pytest.mark.parametrize("variance", grid((0.05, 0.7, 30.0), (4e5, 1e-3, 0.01, 0.25, 3.0, 1e3, 2.6e5)))
@pytest.mark.parametrize("shift", [1, 40])
def test_the_divergence_of_shifted_discrete_gaussians(epsilon: float, variance: float, shift: int) -> None:
    found = real(float(DiscreteGaussian(variance).divergence(np.array([epsilon]), shift)[0]))
    exact = lattice_delta(epsilon, real(variance), shift)
    assert exact <= found
    if shift == 1 and exact < 1:
        assert exact <= real(discrete_gaussian_delta(epsilon, cells=1, variance=variance))
    if exact > mpf(10) ** -250 and epsilon <= 600:
        assert found <= exact * (1 + mpf(10) ** -3)


@pytest.mark.parametrize("epsilon", [0.7, 7.0, 15.0, 30.0, 100.0, 599.0])
def test_a_threshold_on_the_lattice_drops_no_outcome(epsilon: float) -> None:
    """Where the loss of an outcome is ε up to rounding, that outcome may carry nearly all of δ.

    At ε = 100 and a variance just below 0.015 the outcome 1 has a loss of 100 plus a rounding error. Its part
    of δ is 1e−29, and δ without it 1e−58.
    """
    for place in (0, 1, 2, 4, 8, 16):
        variance = (place + 0.5) / epsilon
        for _ in range(4):
            exact = lattice_delta(epsilon, real(variance), 1)
            assert exact <= real(float(DiscreteGaussian(variance).divergence(np.array([epsilon]), 1)[0]))
            assert exact <= real(discrete_gaussian_delta(epsilon, cells=1, variance=variance))
            variance = math.nextafter(variance, 0.0)


@dataclass(frozen=True)
class Mixed:
    """A fine table and a count, with the loss of the count averaged over its law."""

    square: int
    cells: int
    variance: Fraction
    count: int
    count_variance: Fraction

    def delta(self, epsilon: float) -> Any:
        spread = real(self.count_variance)
        separation = mpmath.sqrt(real(Fraction(self.square) / self.variance))
        reach = int(mpmath.sqrt(spread) * 30) + 2
        total = mpf(0)
        for z in range(-reach, reach + 1):
            chance = mpmath.exp(-(mpf(z) ** 2) / (2 * spread))
            loss = (mpf(self.count) ** 2 + 2 * self.count * z) / (2 * spread)
            left = real(epsilon) - loss
            ratio = left / separation
            part = upper(ratio - separation / 2) - mpmath.exp(left) * upper(ratio + separation / 2)
            total += chance * part
        return total / lattice_sum(spread)


@pytest.mark.parametrize("epsilon", grid((0.01, 1.0, 30.0), (1e-3, 0.1, 3.0, 10.0, 100.0)))
@pytest.mark.parametrize("delta", grid((1e-12, 1e-3), (1e-60, 1e-6, 0.3)))
def test_a_table_and_a_count(epsilon: float, delta: float) -> None:
    """Against the law over the reals, of which the integer table is a post-processing up to a gap."""
    square, cells, count = 1 << 60, 100, 1
    table, of_count = vector_variances(
        epsilon=epsilon, delta=delta, l2_squared=square, cells=cells, count=count, count_share=Fraction(1, 2)
    )
    assert of_count is not None
    if of_count < 4000:
        assert Mixed(square, cells, table, count, of_count).delta(epsilon) <= real(delta)


@pytest.mark.parametrize("epsilon", [1e-4, 0.5, 15.0, 200.0])
@pytest.mark.parametrize("leverage", [1e-10, 1e-3, 0.5, 50.0])
@pytest.mark.parametrize("precision", [1e-250, 1e-8, 0.1, 30.0, 1e6])
def test_what_a_posterior_sample_spends(epsilon: float, leverage: float, precision: float) -> None:
    found = real(sample_delta(epsilon, precision=precision, leverage=leverage, residual=7.0))
    exact = sampled_delta(epsilon, precision, leverage, 7.0)
    assert exact <= found
    if exact > mpf(10) ** -250 and epsilon * leverage > 1e-12:
        assert found <= exact * (1 + mpf(10) ** -4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "leverage", "residual"),
    [
        (13.0, 1e-14, 7.178284159806927e-4, 7.307502021705002),
        (13.0, 1e-14, 1.2526943250635492e-05, 1.0636451918782241),
        (13.0, 1e-13, 5.976590792551427e-4, 3.3143344181475203),
        (20.0, 1e-10, 0.08931676117886317, 1.1593703111637195),
    ],
)
def test_samples_that_lost_their_digits(
    epsilon: float, delta: float, leverage: float, residual: float
) -> None:
    """Differences of distribution functions, times e^ε, let these spend 100 to 1,000 times their δ."""
    precision = largest_precision(epsilon, delta, leverage=leverage, residual=residual)
    worst = residual * math.sqrt(1.0 + leverage)
    assert sampled_delta(epsilon, precision, leverage, worst) <= real(delta)


def test_a_fit_at_a_large_epsilon_and_a_small_delta() -> None:
    features = np.random.default_rng(1).uniform(-0.5, 0.5, (500, 2))
    assert np.isfinite(fit_adaops(features, features[:, 0], epsilon=30.0, delta=3e-12)).all()


@pytest.mark.parametrize("tail", [*DELTAS[1:], 1e-6 / 6, 1e-3])
def test_a_rounded_number_exceeds_its_reach_as_rarely_as_promised(tail: float) -> None:
    """Half a step of rounding, and two steps of the lattice that noise is drawn on, are covered."""
    for sigma in (1.0, 1.9999, 3.7):
        step = 2.0 ** (math.floor(math.log2(sigma)) - 10)
        assert float(rounded(np.array([0.499 * step]), sigma)[0]) == 0.0
        margin = real(step / 2 / sigma) + mpf(2) ** -29
        assert upper(real(rounded_reach(tail)) - margin) <= real(tail)
    assert upper(real(rounded_reach(tail))) >= real(tail) * mpf("0.97") or tail < 1e-12


def test_what_is_drawn_stays_within_the_reach() -> None:
    """400,000 rounded draws exceed the reach of 0.1 as often as promised, within 5 deviations, not more."""
    drawn = rounded(3.7 * standard_normal(400_000, NoiseSource.insecure(5)), 3.7)
    share = float((drawn > 3.7 * rounded_reach(0.1)).mean())
    assert 0.1 * 0.97 < share < 0.1 + 5 * math.sqrt(0.09 / 400_000)


@pytest.mark.parametrize("scale", grid((3.0, 1000.0), (0.5,)))
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_a_composed_table(scale: float, delta: float) -> None:
    """One Laplace table at a δ: Σ max(0, p − e^ε q) of the law itself at the ε that is reported."""
    epsilon = compose([LaplaceTable(Fraction(scale), 1)], delta=delta)
    q = mpmath.exp(-1 / real(scale))
    # The log ratio is 1/scale on one side of the shift and −1/scale on the other.
    spent = max(mpf(0), (1 - mpmath.exp(real(epsilon)) * q) / (1 + q))
    assert spent <= real(delta)


def test_bounds_of_the_normal_delta() -> None:
    for epsilon, separation in product(
        (1e-6, 1e-3, 1.0, 30.0, 700.0, 1e4), (1e-7, 1e-3, 0.3, 3.0, 40.0, 150.0)
    ):
        assert normal_delta(epsilon, real(separation)) <= real(gaussian_delta_above(epsilon, separation))


def test_scores_of_dependence_do_not_overflow() -> None:
    """Of billions of records the sums of a score exceed 64 bits; a record must still move it by 2 at most."""
    counts = np.diag([2_217_911_574 // 16] * 16).astype(np.int64)
    more = counts.copy()
    more[0, 0] += 1
    scores = [dependence_of_counts(each) for each in (counts, more)]
    assert all(score > 0 for score in scores)
    assert abs(scores[1] - scores[0]) <= SCORE_SENSITIVITY
