"""Accounts: exact sums, parallel composition against a brute-force bound, and what may come next."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsum.errors import BudgetExhausted, ClaimError, UsageError
from hushsum.ledger import Account, Charge, DatasetTerms
from hushsum.ledger.account import charge_for
from hushsum.privacy.claim import UNITS, Relation
from tests.ledger_fixtures import claim_of

PARTS = ("north", "south", "west")
spendings = st.lists(
    st.tuples(st.sampled_from([None, *PARTS]), st.fractions(min_value=0, max_value=1, max_denominator=20)),
    max_size=12,
)


def account_of(relation: str, spent: list[tuple[str | None, Fraction]]) -> Account:
    account = Account.opened(DatasetTerms.of(epsilon=100, relation=relation, partition=PARTS))
    for part, amount in spent:
        account = account.charged(Charge(amount), part=part)
    return account


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@given(spendings)
def test_the_whole_and_the_largest_part_are_spent(
    relation: str, spent: list[tuple[str | None, Fraction]]
) -> None:
    worst = max(
        sum((amount for part, amount in spent if part in (None, home)), Fraction(0)) for home in PARTS
    )
    assert account_of(relation, spent).spent == Charge(worst)


@given(spendings)
def test_a_unit_that_moves_loses_at_most_the_larger_of_two_parts(
    spent: list[tuple[str | None, Fraction]],
) -> None:
    """Amounts are add/remove claims: one step in each of two parts, two of the whole."""
    terms = DatasetTerms.of(epsilon=100, relation="replace", partition=PARTS)
    account = Account.opened(terms)
    for part, amount in spent:
        if amount:
            account = account.charged(charge_for(claim_of(epsilon=amount), terms, part=part), part=part)
    for homes in combinations(PARTS, 2):
        moved = sum((amount * (2 if part is None else part in homes) for part, amount in spent), Fraction(0))
        assert moved <= account.spent.epsilon


@given(spendings, st.sampled_from(["add/remove", "replace"]), st.sampled_from([None, *PARTS]))
def test_what_is_left_fits_exactly(
    spent: list[tuple[str | None, Fraction]], relation: str, part: str | None
) -> None:
    account = account_of(relation, spent)
    left = account.remaining_in(part)
    account.debited(left, part=part, dataset="d")
    with pytest.raises(BudgetExhausted):
        account.debited(left + Charge(Fraction(1, 10**9)), part=part, dataset="d")
    assert Account.from_json(account.as_json()) == account


def test_a_part_is_charged_like_the_whole_under_replace() -> None:
    terms = DatasetTerms.of(epsilon=9, relation="replace", partition=PARTS)
    assert charge_for(claim_of(epsilon=1), terms, part="north") == Charge(Fraction(2))
    assert charge_for(claim_of(epsilon=1), terms) == Charge(Fraction(2))
    with pytest.raises(ClaimError, match="moves to another part"):
        charge_for(claim_of(epsilon=1, relation=terms.relation), terms, part="north")


def test_unknown_parts_are_refused() -> None:
    with pytest.raises(UsageError, match="'north'"):
        account_of("add/remove", []).remaining_in("east")


def test_the_largest_next_epsilon_fits_and_the_next_float_does_not() -> None:
    for terms in (DatasetTerms.of(epsilon=0.3), DatasetTerms.of(rho=0.3)):
        account = Account.opened(terms)
        largest = account.largest_pure_epsilon
        account.debited(charge_for(claim_of(epsilon=largest), terms), part=None, dataset="d")
        more = charge_for(claim_of(epsilon=largest * (1 + 1e-12)), terms)
        with pytest.raises(BudgetExhausted):
            account.debited(more, part=None, dataset="d")
    assert Account.opened(DatasetTerms.of(epsilon=0.3)).least_laplace_scale(3) == 10
    assert Account.opened(DatasetTerms.of(rho=0.5)).least_gaussian_variance(4) == 4


def test_rho_is_told_once_at_the_datasets_delta() -> None:
    account = Account.opened(DatasetTerms.of(rho=1, delta=1e-6)).charged(Charge(rho=Fraction(1, 50)))
    assert account.epsilon_at(account.spent) == pytest.approx(0.8999, abs=1e-4)
    assert account.epsilon_at(Charge()) == 0
    assert Account.opened(DatasetTerms.of(rho=1)).epsilon_at(Charge(rho=Fraction(1))) is None


REPLACE = Relation.REPLACE


def test_the_same_unit_and_relation_cost_the_claim() -> None:
    assert charge_for(claim_of(epsilon=0.1), DatasetTerms.of(epsilon=1)) == Charge(Fraction(1, 10))
    both = charge_for(claim_of(epsilon=0.1, delta=1e-7), DatasetTerms.of(epsilon=1, delta=1e-6))
    assert both == Charge(Fraction(1, 10), Fraction(1, 10**7))
    assert charge_for(claim_of(rho=0.25), DatasetTerms.of(rho=1)) == Charge(rho=Fraction(1, 4))


def test_pure_epsilon_enters_rho_as_half_its_square() -> None:
    assert charge_for(claim_of(epsilon=0.5), DatasetTerms.of(rho=1)) == Charge(rho=Fraction(1, 8))


def test_replace_from_add_remove_takes_two_steps() -> None:
    assert charge_for(claim_of(epsilon=0.5), DatasetTerms.of(epsilon=2, relation=REPLACE)).epsilon == 1
    assert charge_for(claim_of(rho=0.5), DatasetTerms.of(rho=9, relation=REPLACE)).rho == 2
    terms = DatasetTerms.of(epsilon=2, delta=1e-3, relation=REPLACE)
    delta = charge_for(claim_of(epsilon=0.5, delta=1e-6), terms).delta
    assert delta >= Fraction(1, 10**6) * (1 + Fraction(math.exp(0.5)))
    assert math.isclose(delta, 1e-6 * (1 + math.exp(0.5)), rel_tol=1e-12)


def test_records_to_persons_takes_as_many_steps_as_records() -> None:
    person = DatasetTerms.of(epsilon=9, unit="person", max_per_unit=3)
    assert charge_for(claim_of(epsilon=0.5), person).epsilon == Fraction(3, 2)
    replaced = DatasetTerms.of(rho=99, unit="person", max_per_unit=3, relation=REPLACE)
    assert charge_for(claim_of(rho=0.5), replaced).rho == 18
    assert charge_for(claim_of(epsilon=0.5, unit="person", per_unit=7), person).epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    ("claim", "terms"),
    [
        (claim_of(epsilon=1, relation=REPLACE), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1, unit="person", per_unit=2), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1), DatasetTerms.of(epsilon=9, unit="person")),
        *(
            (claim_of(epsilon=1, unit=claimed), DatasetTerms.of(epsilon=9, unit=unit))
            for claimed, unit in permutations(UNITS, 2)
            if (claimed, unit) != ("record", "person")
        ),
        (
            claim_of(epsilon=1, relation=REPLACE),
            DatasetTerms.of(epsilon=9, unit="person", max_per_unit=2, relation=REPLACE),
        ),
        (claim_of(rho=1), DatasetTerms.of(epsilon=9)),
        (claim_of(rho=1), DatasetTerms.of(epsilon=9, delta=1e-6)),
        (claim_of(epsilon=1, delta=1e-9), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1, delta=1e-9), DatasetTerms.of(rho=9)),
        (claim_of(epsilon=1, mechanism="discrete gaussian"), DatasetTerms.of(epsilon=9)),
        (claim_of(rho=1, mechanism="discrete laplace"), DatasetTerms.of(rho=9)),
        (claim_of(epsilon=1, mechanism="magic"), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1, secure=False), DatasetTerms.of(epsilon=9)),
    ],
)
def test_what_is_not_proven_is_refused(claim: object, terms: DatasetTerms) -> None:
    with pytest.raises(ClaimError):
        charge_for(claim, terms)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["adjacency row", "edge", "directed edge"])
def test_units_of_graphs(unit: str) -> None:
    terms = DatasetTerms.of(epsilon=9, unit=unit)
    assert charge_for(claim_of(epsilon=0.5, unit=unit, per_unit=3), terms).epsilon == Fraction(1, 2)
    replaced = DatasetTerms.of(epsilon=9, unit=unit, relation=REPLACE)
    assert charge_for(claim_of(epsilon=0.5, unit=unit), replaced).epsilon == 1
    with pytest.raises(UsageError, match="max_per_unit"):
        DatasetTerms.of(epsilon=9, unit=unit, max_per_unit=3)
    with pytest.raises(ClaimError, match="not offered"):
        DatasetTerms.of(epsilon=9, unit="node")
    if unit != "adjacency row":
        with pytest.raises(UsageError, match="two parts"):
            DatasetTerms.of(epsilon=9, unit=unit, partition=PARTS)


def test_terms_choose_their_accounting_and_check_delta() -> None:
    assert DatasetTerms.of(epsilon=1).accounting == "pure"
    assert DatasetTerms.of(epsilon=1, delta=1e-6).accounting == "basic"
    assert DatasetTerms.of(rho=1).accounting == "zcdp"
    concentrated = DatasetTerms.of(epsilon=1, delta=1e-6, accounting="zcdp")
    assert concentrated.budget.rho == pytest.approx(0.02436, abs=1e-5)
    assert concentrated.report_delta == Fraction(1, 10**6)
    with pytest.raises(ClaimError, match="10 × units"):
        DatasetTerms.of(epsilon=1, delta=1e-3, population=1000)
    with pytest.raises(ClaimError, match="10 × units"):
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
