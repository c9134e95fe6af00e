"""The terms of a dataset: which budgets they make, and which are refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hushsum.errors import ClaimError, UsageError
from hushsum.ledger import DatasetTerms


def test_terms_choose_their_accounting_and_check_delta() -> None:
    assert DatasetTerms.of(epsilon=1).accounting == "pure"
    assert DatasetTerms.of(epsilon=1, delta=1e-6).accounting == "basic"
    assert DatasetTerms.of(rho=1).accounting == "zcdp"
    concentrated = DatasetTerms.of(epsilon=1, delta=1e-6, accounting="zcdp")
    assert concentrated.budget.rho == pytest.approx(0.02436, abs=1e-5)
    assert concentrated.report_delta == Fraction(1, 10**6)
    with pytest.raises(ClaimError, match="10 × population"):
        DatasetTerms.of(epsilon=1, delta=1e-3, population=1000)
    with pytest.raises(ClaimError, match="10 × population"):
        DatasetTerms.of(rho=1, delta=1e-3, population=1000)
    assert DatasetTerms.of(epsilon=1, delta=1e-3, population=1000, allow_large_delta=True).population == 1000


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": 1, "accounting": "basic"},
        {"epsilon": 1, "delta": 1e-6, "accounting": "pure"},
        {"rho": 1, "accounting": "pure"},
        {"epsilon": 1, "accounting": "zcdp"},
        {"epsilon": 1, "accounting": "moments"},
        {"epsilon": 1, "unit": "household"},
        {"epsilon": 1, "max_per_unit": 2},
        {"epsilon": 1, "unit": "person", "max_per_unit": 0},
        {"epsilon": 1, "partition": ("a",)},
        {"epsilon": 1, "partition": ("a", "a")},
    ],
)
def test_terms_that_make_no_budget_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        DatasetTerms.of(**wrong)  # type: ignore[arg-type]


def test_terms_survive_their_json() -> None:
    terms = DatasetTerms.of(rho=0.3, delta=1e-9, unit="person", max_per_unit=4, partition=("a", "b"))
    assert DatasetTerms.from_json(terms.as_json()) == terms
