"""Paying for a small result: order of the steps, retries, races, refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.memory_budget import MemoryBudget, MemoryDebit

from hushsum.errors import BudgetExhausted, ClaimError, UsageError
from hushsum.files.container import canonical_json
from hushsum.privacy.claim import Claim
from hushsum.privacy.paid import Payment, pay_for
from hushsum.privacy.selection import PERMUTE_AND_FLIP, choice_claim, choice_promise

SUBJECT = {"choice": "test"}


def claim(epsilon: float = 1.0, seed: int | None = None) -> Claim:
    promise = choice_promise(epsilon)
    return choice_claim(
        promise, PERMUTE_AND_FLIP, relation="add/remove", max_per_unit=None, insecure_noise_seed=seed
    )


def never() -> dict[str, Any]:
    raise AssertionError


def test_without_a_book_the_result_is_only_made() -> None:
    assert pay_for(None, claim(), subject=SUBJECT, make=lambda: {"x": (1, 2)}) == {"x": [1, 2]}


def test_nothing_is_made_before_the_debit() -> None:
    book = MemoryBudget(Fraction(1, 2))
    with pytest.raises(BudgetExhausted):
        pay_for(Payment(book, "d", "k"), claim(), subject=SUBJECT, make=never)
    assert book.entries == {}


def test_insecure_choices_are_not_booked() -> None:
    with pytest.raises(ClaimError):
        pay_for(Payment(MemoryBudget(Fraction(9)), "d", "k"), claim(seed=1), subject=SUBJECT, make=never)


def test_a_crash_before_staging_may_draw_again_under_the_same_debit() -> None:
    book = MemoryBudget(Fraction(1))

    def crash() -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pay_for(Payment(book, "d", "k"), claim(), subject=SUBJECT, make=crash)
    assert pay_for(Payment(book, "d", "k"), claim(), subject=SUBJECT, make=lambda: {"x": 1}) == {"x": 1}
    assert book.spent == 1


class Race(MemoryDebit):
    """Another process stages first."""

    def stage(self, payload: bytes) -> bytes:
        theirs = {"claim": self.claim.as_json(), "subject": SUBJECT, "result": {"x": "theirs"}}
        return super().stage(canonical_json(theirs))


def test_only_the_first_to_stage_is_heard() -> None:
    book = MemoryBudget(Fraction(1))
    book.entries["k"] = Race(claim(), SUBJECT)
    payment = Payment(book, "d", "k")
    assert pay_for(payment, claim(), subject=SUBJECT, make=lambda: {"x": "ours"}) == {"x": "theirs"}


@pytest.mark.parametrize("payload", [b"{}", b'{"claim":1,"subject":2,"result":3}'])
def test_a_key_of_something_else_is_refused_and_not_published(payload: bytes) -> None:
    book = MemoryBudget(Fraction(1))
    book.entries["k"] = MemoryDebit(claim(), SUBJECT, staged=payload)
    with pytest.raises(UsageError, match="another choice"):
        pay_for(Payment(book, "d", "k"), claim(), subject=SUBJECT, make=never)
    assert book.entries["k"].steps == ["debited"]


def test_a_payment_names_a_dataset_and_an_attempt() -> None:
    book = MemoryBudget(Fraction(1))
    assert Payment.of(None, None, None) is None
    first, second = (Payment.of(book, "d", None) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.key != second.key
    for wrong in ((None, "d", None), (None, None, "k"), (book, None, None)):
        with pytest.raises(UsageError):
            Payment.of(*wrong)
