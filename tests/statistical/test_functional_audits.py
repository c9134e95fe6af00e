"""Whole functional mechanisms: their audits hold, and planted faults are caught.

Audits run with fixed seeds where the mechanism takes one. Where noise is fresh, a sound mechanism is accused
with probability 1e-8, and the faults planted here are missed with less than 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushsum.auditing import (
    STATED_POWER,
    AuditRow,
    MechanismCase,
    Separated,
    allowed_distance,
    audit_separation,
    mechanism_cases,
    normal_chances,
)
from hushsum.auditing import _audit as cases
from hushsum.auditing._statistics import (
    HALF_NOISE,
    INFORMATIVE,
    THOROUGH_RELEASES,
    lattice_chances,
    separation_power,
)
from hushsum.methods import Machines, fit_machines, perturbed_machines, svm_sensitivity
from hushsum.methods._feature_functions import NoisyWeights
from hushsum.privacy import IntegerNoise, Promise, Relation, Sensitivity, _calibration, standard_normal
from hushsum.privacy import noise as samplers
from hushsum.privacy.noise import NoiseSource, discrete_gaussian
from hushsum.secret_functions import GaussianPath, MemoryStore, ServedFunction
from hushsum.secret_functions import _audit_cases as served
from hushsum.secret_functions import _secret_function as served_function
from hushsum.tables import FourierSeries

EVERY = [
    pytest.param(case, marks=[pytest.mark.slow] if case.thorough else [], id=f"{case.name}-{case.pair}")
    for case in mechanism_cases()
]


def run(case: MechanismCase, seed: int, releases: int | None = None) -> AuditRow:
    return audit_separation(case.name, case.set_up(), releases=releases, seed=seed)


def named(name: str, pair: str) -> MechanismCase:
    return next(case for case in mechanism_cases() if (case.name, case.pair) == (name, pair))


def test_every_functional_mechanism_is_registered() -> None:
    assert {case.name for case in mechanism_cases(thorough=False)} == {
        "PrivateHistogram",
        "PrivateDensity, functional",
        "PrivateGaussianProcessRegressor",
        "PrivateKernelSVC",
        "ServedFunction",
        "Stream",
    }


@pytest.mark.parametrize("case", EVERY)
class TestEveryMechanism:
    def test_holds_with_stated_power(self, case: MechanismCase) -> None:
        pair = case.set_up()
        row = audit_separation(case.name, pair, seed=1)
        assert row.holds, row
        assert row.power >= STATED_POWER
        assert pair.informs(row.draws // 2) >= STATED_POWER
        assert row.lower_bound > INFORMATIVE * row.claim, "the audit is too weak to say anything"

    def test_half_the_noise_is_caught(self, case: MechanismCase, monkeypatch: pytest.MonkeyPatch) -> None:
        pair = case.set_up()
        # Noise of the density is fresh: with twice the releases a miss is beyond ten standard errors.
        releases = (2 if case.name.startswith("PrivateDensity") else 1) * pair.releases()
        halve(monkeypatch)
        assert not audit_separation(case.name, pair, releases=releases, seed=2).holds

    @pytest.mark.slow
    @pytest.mark.parametrize("less", [1.0, HALF_NOISE])
    def test_the_stated_power_is_for_the_pair_and_the_test_in_use(
        self, case: MechanismCase, less: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Hits of real releases have the chances that power is computed from.

        Within five standard errors, and 0.025 for what a pair has more than the part of Δ it is stated to
        have; where noise is fresh, a right statement fails once in 10⁶.
        """
        pair, releases = case.set_up(), 1000
        stated = pair.chances(less)
        halve(monkeypatch, less)
        for side, chance in ((1, stated[0]), (0, stated[1])):
            found = pair.hits(side, releases, 8)[0] / releases
            assert abs(found - chance) <= 5.0 * math.sqrt(chance * (1.0 - chance) / releases) + 0.025

    @pytest.mark.slow
    def test_holds_in_a_long_run_and_a_third_less_noise_is_caught(
        self, case: MechanismCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        long = 2 * THOROUGH_RELEASES
        assert run(case, seed=3, releases=long).holds
        halve(monkeypatch, 2.0 / 3.0)
        if case.pair != "one label of three classes":
            assert not run(case, seed=4, releases=long).holds


def halve(monkeypatch: pytest.MonkeyPatch, factor: float = 0.5) -> None:
    """Less noise, wherever one of the mechanisms draws it."""
    draw, square = IntegerNoise.draw, Fraction(factor) ** 2

    def tally(noise: IntegerNoise, size: int, source: NoiseSource, *, threads: int = 1) -> Any:
        return draw(IntegerNoise(noise.mechanism, noise.parameter * square), size, source, threads=threads)

    monkeypatch.setattr(IntegerNoise, "draw", tally)
    monkeypatch.setattr(
        samplers,
        "discrete_gaussian",
        lambda size, variance, source: discrete_gaussian(size, variance * square, source),
    )
    monkeypatch.setattr(
        _calibration, "standard_normal", lambda size, source: factor * standard_normal(size, source)
    )


def caught(pair: Separated, *, releases: int = 500, seed: int | None = 5) -> bool:
    return not audit_separation("fault", pair, releases=releases, seed=seed).holds


class TestPlantedFaults:
    """Faults that published code and first drafts have."""

    def test_the_constant_of_the_normalised_kernel_taken_for_the_sensitivity(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """(2πh²)^(−½) is 0.2 at h = 2; the covariance stays the kernel's own."""
        constant = 1.0 / (math.sqrt(2.0 * math.pi) * 2.0)
        wrong = served.density_pair("add/remove", lambda f: replace(f, sensitivity=constant))
        assert caught(wrong)
        # The exact features, which a Gaussian kernel has on this box.
        right = FourierSeries.sensitivity

        def normalised(basis: FourierSeries, relation: Relation) -> Sensitivity:
            found = right(basis, relation)
            return replace(found, l2_squared=round(found.l2_squared * constant**2))

        monkeypatch.setattr(FourierSeries, "sensitivity", normalised)
        assert caught(named("PrivateDensity, functional", "one record").set_up(), seed=None)

    @pytest.mark.slow
    def test_the_sensitivity_of_another_relation(self) -> None:
        """1 in place of √2 for a record that is replaced."""
        wrong = served.density_pair("replace", lambda f: replace(f, sensitivity=1.0))
        assert caught(wrong, releases=THOROUGH_RELEASES)

    def test_scikit_learns_c(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """C taken to multiply the sum of losses, with the sensitivity of the mean."""

        def misread(rows: Any, codes: Any, classes: int, c: float) -> Machines:
            found = fit_machines(rows, codes, classes, c * len(rows))
            return Machines(found.weights, svm_sensitivity(c, len(rows), 2.0001, 0.0))

        monkeypatch.setattr(cases, "fit_machines", misread)
        assert caught(cases._machines(2))

    def test_an_intercept_without_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def bare(machines: Machines, promise: Promise, **options: Any) -> NoisyWeights:
            noisy = perturbed_machines(machines, promise, **options)
            weights = noisy.weights.copy()
            weights[:, -1] = np.rint(machines.weights[:, -1] / noisy.step).astype(np.int64)
            return replace(noisy, weights=weights)

        monkeypatch.setattr(cases, "perturbed_machines", bare)
        assert caught(cases._machines(2))

    def test_an_intercept_left_out_of_the_sensitivity(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """κ = sup k in place of sup k + 1: noise less by √2."""

        def without(rows: Any, codes: Any, classes: int, c: float) -> Machines:
            found = fit_machines(rows, codes, classes, c)
            return Machines(found.weights, found.sensitivity / math.sqrt(2.0))

        monkeypatch.setattr(cases, "fit_machines", without)
        assert caught(cases._machines(2), releases=2 * THOROUGH_RELEASES)

    def test_a_path_that_does_not_hide_the_intercept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """G with covariance k for a function of k + 1: far away, where k is 0, noise averages out."""

        def bare(covariance: Any, dim: int, **options: Any) -> GaussianPath:
            return GaussianPath(lambda a, b: covariance(a, b) - 1.0, dim, **options)

        monkeypatch.setattr(served_function, "GaussianPath", bare)
        assert caught(served.machine_pair())

    def test_one_machines_noise_for_three(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def alone(rows: Any, codes: Any, classes: int, c: float) -> Machines:
            found = fit_machines(rows, codes, classes, c)
            return Machines(found.weights, found.sensitivity / math.sqrt(3.0))

        monkeypatch.setattr(cases, "fit_machines", alone)
        assert caught(cases._machines(3), releases=2 * THOROUGH_RELEASES)

    def test_a_posterior_with_the_width_of_the_range_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """B taken as half the range: half the noise."""
        right = _calibration.lattice_variance
        monkeypatch.setattr(
            "hushsum.methods._feature_functions.lattice_variance",
            lambda l2, *rest, **options: right(l2 // 2, *rest, **options),
        )
        assert caught(cases._posterior())

    def test_fresh_noise_for_every_question(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = ServedFunction.__call__

        def forgetful(self: ServedFunction, Q: object) -> Any:
            self._store, self._path = MemoryStore(), self._path.emptied()
            return right(self, Q)

        monkeypatch.setattr(ServedFunction, "__call__", forgetful)
        assert caught(served.density_pair("add/remove"), seed=None)

    def test_the_same_noise_for_points_next_to_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Their difference is then a gradient, without noise."""

        def coarse(covariance: Callable[..., Any], dim: int, **options: Any) -> GaussianPath:
            def rounded(a: Any, b: Any) -> Any:
                return covariance(*(np.rint(each * 8).astype(np.float32) / np.float32(8) for each in (a, b)))

            return GaussianPath(rounded, dim, **options)

        monkeypatch.setattr(served_function, "GaussianPath", coarse)
        assert caught(served.density_pair("add/remove"))


def test_sound_pairs_are_not_accused_by_as_many_releases() -> None:
    assert not caught(served.density_pair("add/remove"), seed=None)
    for classes in (2, 3):
        assert not caught(cases._machines(classes), releases=2 * THOROUGH_RELEASES)


@pytest.mark.parametrize("actual", [1.8, 2.2, 2.6])
def test_the_stated_power_is_that_of_simulations(actual: float) -> None:
    """Within six standard errors of 4,000 simulated audits of two normal laws."""
    from scipy.special import ndtr

    from hushsum.auditing._statistics import _shown

    allowed, releases, tail = 1.5, 400, 1e-8 / 2
    rng = np.random.default_rng(6)
    hits = rng.binomial(releases, [ndtr(actual / 2), ndtr(-actual / 2)], size=(4000, 2))
    broken = np.mean([_shown(int(more), int(less), releases, tail) > allowed for more, less in hits])
    stated = separation_power(allowed, normal_chances(actual)(1.0), releases, tail)
    assert abs(broken - stated) <= 6.0 * math.sqrt(max(stated * (1 - stated), 1e-3) / 4000) + 0.01


def test_the_allowed_distance() -> None:
    assert allowed_distance(Promise.of(rho=0.5)) == 1.0
    assert 1.0 / allowed_distance(Promise.of(epsilon=1.0, delta=1e-6)) == pytest.approx(4.22, abs=0.01)


@pytest.mark.parametrize(("cells", "move"), [(1, 1), (2, 2), (1, 4)])
def test_the_chances_on_a_lattice_are_those_of_draws(cells: int, move: int) -> None:
    """Half of what a histogram's bins have at ε = 4: a standard deviation of little more than half a step."""
    with NoiseSource.insecure(11) as source:
        drawn = discrete_gaussian(cells * 40_000, Fraction(9, 25), source).reshape(-1, cells).sum(axis=1)
    likely, unlikely = lattice_chances(0.36, cells=cells, move=move)(1.0)
    assert np.mean(2 * (drawn + move) > move) == pytest.approx(likely, abs=0.012)
    assert np.mean(2 * drawn > move) == pytest.approx(unlikely, abs=0.012)


def test_half_the_noise_caught_does_not_make_a_bound_that_says_something() -> None:
    """With 800 releases of a histogram the first has a power of 0.999 and the second one of 0.93."""
    pair = named("PrivateHistogram", "one record").set_up()
    assert pair.power(800) > 0.999
    assert pair.informs(800) < 0.95
    assert min(pair.power(pair.releases()), pair.informs(pair.releases())) >= STATED_POWER
