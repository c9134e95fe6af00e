"""Accounts: exact sums, parallel composition against a brute-force bound, and what may come next."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsum.errors import BudgetExhausted, ClaimError, UsageError
from hushsum.ledger import Account, Charge, DatasetTerms, charge_for
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


def test_rho_is_told_once_at_the_datasets_delta() -> None:
    account = Account.opened(DatasetTerms.of(rho=1, delta=1e-6)).charged(Charge(rho=Fraction(1, 50)))
    assert account.epsilon_at(account.spent) == pytest.approx(0.8999, abs=1e-4)
    assert account.epsilon_at(Charge()) == 0
    assert Account.opened(DatasetTerms.of(rho=1)).epsilon_at(Charge(rho=Fraction(1))) is None
