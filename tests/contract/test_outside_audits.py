"""The committed table of outside audits has every mechanism of the library, and no bound above a claim.

After a mechanism was added, run ``benchmarks/outside_audits/run.sh``, which runs only what is missing. A
mechanism that is in none of the registries read there needs a world in ``benchmarks/outside_audits`` first.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from benchmarks.outside_audits.methods import SHORT, gamma_numbers, largest_logistic_loss, squares_minimum
from benchmarks.outside_audits.run import EPSILONS, every_world, key_of
from benchmarks.outside_audits.table import best, is_caught, keeps_claim, published_rows
from benchmarks.outside_audits.worlds import DELTA, LESS_NOISE, Budget, World

import hushsum as hs
from hushsum import models
from hushsum.auditing import audited_bases, mechanism_cases
from hushsum.methods import fit_squares, method_named, method_names, perturbation
from hushsum.privacy import known_mechanisms, release_noise
from hushsum.privacy.accounting import analytic_gaussian_sigma
from hushsum.releases import NoisyTable

EXACT_LAWS = frozenset({"binomial", "hadamard response", "hadamard response, shuffled"})
"""Mechanisms whose whole law is compared with the claim in ``tests/unit/privacy``, outcome by outcome."""

SMOKE_TESTED = frozenset(
    {
        "adaptive_grid",
        "landmarks",
        "PrivateKMeans",
        "PrivateMixture",
        "PrivateKMeans and PrivateMixture, all steps",
        "PrivateClassifier, all gradient steps",
        "PrivateClassifier, columns in units of their own",
        "PrivateOutlierDetector, density of columns in units of their own",
    }
)
"""Methods and models of several steps, which ``tests/statistical`` audits step by step and as a whole. Each
step of the two clusterings, and the second of the classifier by class means, is a table of class moments,
which has a world; a gradient step is a table of monomials, and a density of outliers one of Fourier features.
"""


@cache
def worlds() -> list[World]:
    return list(every_world())


@cache
def covered() -> frozenset[str]:
    return frozenset().union(*(world.covers for world in worlds()))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return published_rows()


def test_every_world_is_in_the_table(rows: list[dict[str, Any]]) -> None:
    expected = {
        (world.name, world.pair, epsilon, None if world.pure else DELTA)
        for world in worlds()
        for epsilon in EPSILONS
        if epsilon <= world.largest_epsilon
    }
    assert {key_of(row) for row in rows} == expected, "run benchmarks/outside_audits/run.sh"


@pytest.mark.parametrize(
    "name",
    [
        *audited_bases(),
        *known_mechanisms(),
        *sorted({case.name for case in mechanism_cases()}),
        *(name for name in models.__all__ if name.startswith("Private") and name != "PrivateModel"),
    ],
)
def test_every_registered_name_has_a_world(name: str) -> None:
    assert name in covered() | EXACT_LAWS | SMOKE_TESTED


@pytest.mark.parametrize("name", method_names())
def test_every_method_has_a_world_or_releases_a_table_that_has_one(name: str) -> None:
    if name not in covered() | SMOKE_TESTED:
        method = method_named(name)
        kernel = next(
            kernel
            for kernel in (hs.GaussianKernel(dim=1, bandwidth=0.5), hs.EuclideanKernel(dim=1, bandwidth=0.5))
            if method.suits(kernel)
        )
        function = method.release([[0.5]] * 50, kernel, bounds=(0, 1), epsilon=1.0)
        assert isinstance(function, NoisyTable)
        assert function.basis.name in covered()


def test_no_claim_is_exceeded(rows: list[dict[str, Any]]) -> None:
    assert [row for row in rows if best(row["bound"]) > row["epsilon"]] == []


def test_a_copy_that_keeps_its_claim_is_not_accused(rows: list[dict[str, Any]]) -> None:
    assert [row for row in rows if keeps_claim(row) and is_caught(row)] == []


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_copy_has_a_fifth_less_noise(epsilon: float) -> None:
    assert Budget(epsilon).with_less_noise().epsilon == pytest.approx(epsilon / LESS_NOISE)
    copy = Budget(epsilon, DELTA).with_less_noise()
    sigmas = [analytic_gaussian_sigma(each, DELTA, 1.0) for each in (copy.epsilon, epsilon)]
    assert sigmas[0] / sigmas[1] == pytest.approx(LESS_NOISE, rel=1e-6)


def test_logistic_objective_perturbation_spends_less_than_it_claims() -> None:
    """At most 0.81 of ε: with a fifth less noise it would still keep ε = 0.5 and 1."""
    assert largest_logistic_loss(0.5 / LESS_NOISE) < 0.5
    assert largest_logistic_loss(1.0 / LESS_NOISE) < 1.0
    assert largest_logistic_loss(3.0) < 0.81 * 3.0


@pytest.mark.parametrize("seed", range(5))
def test_minima_of_many_draws_are_those_of_the_fit(seed: int) -> None:
    features, target = np.array([[SHORT]] * 40 + [[1.0]]), np.array([-1.0] * 40 + [1.0])
    fitted = fit_squares(features, target, epsilon=1.0, theta_bound=0.25, insecure_noise_seed=seed)
    ridge, scale = perturbation(1.0, gradient=1.25, curvature=1.0)
    with release_noise(seed) as noise:
        drawn = gamma_numbers(noise, 1, scale)
    gram, cross = float(features[:, 0] @ features[:, 0]), float(features[:, 0] @ target)
    assert squares_minimum(drawn, gram + ridge, cross, 0.25) == pytest.approx(fitted, abs=1e-6)
