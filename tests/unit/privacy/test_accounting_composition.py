"""Fixed lists: exact at δ = 0, and against closed forms and our own accountant at δ > 0."""

from __future__ import annotations

import builtins
import math
from fractions import Fraction

import pytest
from tests.ledger_fixtures import claim_of

from hushsum.errors import ClaimError, UsageError
from hushsum.privacy import Relation
from hushsum.privacy.accounting import (
    GaussianTable,
    LaplaceTable,
    compose,
    discrete_gaussian_delta,
    noise_allowed,
)

TABLE = LaplaceTable(Fraction(1000), 100)


def test_pure_epsilon_adds_exactly() -> None:
    assert compose([claim_of(epsilon=0.1)] * 10) == 1
    assert compose([TABLE, claim_of(epsilon=0.2)]) == Fraction(3, 10)
    assert compose([]) == 0


def test_one_gaussian_table_agrees_with_the_exact_bound() -> None:
    epsilon = compose([GaussianTable(Fraction(1800), 100)], delta=1e-6)
    assert discrete_gaussian_delta(float(epsilon), cells=100, variance=1800) <= 1e-6 * (1 + 1e-6)
    assert discrete_gaussian_delta(float(epsilon) - 1e-3, cells=100, variance=1800) > 1e-6


def test_randomised_response_is_the_worst_of_a_claim() -> None:
    """The exact δ of n composed randomised responses is a binomial sum (Kairouz, Oh & Viswanath 2015)."""
    n, epsilon, bound = 10, 0.5, 1e-5
    composed = float(compose([claim_of(epsilon=epsilon)] * n, delta=bound))

    def delta(total: float) -> float:
        top = math.exp(epsilon) / (1 + math.exp(epsilon))
        return sum(
            math.comb(n, k)
            * top**k
            * (1 - top) ** (n - k)
            * max(0.0, 1 - math.exp(total - epsilon * (2 * k - n)))
            for k in range(n + 1)
        )

    assert delta(composed) <= bound * (1 + 1e-9)
    assert delta(composed - 0.01) > bound


def test_tables_compose_better_than_their_claims() -> None:
    tables = compose([TABLE] * 40, delta=1e-6)
    claims = compose([claim_of(epsilon=0.1)] * 40, delta=1e-6)
    assert tables < claims < 4


def test_delta_makes_pure_releases_no_worse_than_their_sum() -> None:
    assert compose([TABLE], delta=1e-9) <= 0.1


def test_noise_allowed_is_the_least() -> None:
    assert noise_allowed([TABLE] * 5, epsilon=1, l1=10) == 20
    assert noise_allowed([TABLE] * 10, epsilon=1) is None
    scale = noise_allowed([TABLE] * 20, epsilon=2, delta=1e-6, l1=100)
    assert scale is not None
    assert compose([*[TABLE] * 20, LaplaceTable(scale, 100)], delta=1e-6) <= 2
    assert compose([*[TABLE] * 20, LaplaceTable(scale / 2, 100)], delta=1e-6) > 2


def test_what_has_no_proof_is_refused() -> None:
    for wrong in (
        [claim_of(epsilon=1, mechanism="magic")],
        [claim_of(epsilon=1, secure=False)],
        [claim_of(rho=1)],
        [claim_of(epsilon=1), claim_of(epsilon=1, relation=Relation.REPLACE)],
    ):
        with pytest.raises(ClaimError):
            compose(wrong, delta=1e-6)
    with pytest.raises(ClaimError, match="no pure epsilon"):
        compose([GaussianTable(Fraction(100), 1)])
    with pytest.raises(ClaimError, match="use up"):
        compose([claim_of(epsilon=1, delta=1e-3)], delta=1e-6)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: object) -> object:
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UsageError, match=r"hushsum\[ledger\]"):
        compose([TABLE], delta=1e-6)
