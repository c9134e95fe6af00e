"""Spending a budget: order of the steps, retries, races, refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.memory_budget import MemoryBudget, MemoryDebit

from hushsum.errors import BudgetExhausted, ClaimError, UsageError
from hushsum.files import canonical_json
from hushsum.privacy import PERMUTE_AND_FLIP, Booking, Claim, Promise, choice_claim, spend, spend_json, stage

SUBJECT = {"choice": "test"}


def claim(epsilon: float = 1.0, seed: int | None = None) -> Claim:
    promise = Promise.of(epsilon=epsilon)
    return choice_claim(
        promise, PERMUTE_AND_FLIP, relation="add/remove", max_per_unit=None, insecure_noise_seed=seed
    )


def never() -> Any:
    raise AssertionError


def test_without_a_budget_the_result_is_only_made() -> None:
    assert spend_json(None, claim(), SUBJECT, lambda: {"x": (1, 2)}) == {"x": [1, 2]}
    assert spend(None, claim(), SUBJECT, lambda: b"bytes") == b"bytes"


def test_nothing_is_made_before_the_debit() -> None:
    budget = MemoryBudget(Fraction(1, 2))
    with pytest.raises(BudgetExhausted):
        spend(Booking(budget, "k"), claim(), SUBJECT, never)
    assert budget.entries == {}


def test_bytes_are_delivered_after_they_are_staged_and_before_they_are_published() -> None:
    budget = MemoryBudget(Fraction(1))
    steps: list[list[str]] = []

    def deliver(payload: bytes) -> None:
        assert payload == b"bytes"
        steps.append(list(budget.entries["k"].steps))

    assert spend(Booking(budget, "k"), claim(), SUBJECT, lambda: b"bytes", deliver=deliver) == b"bytes"
    assert steps == [["debited", "drawn", "staged"]]
    assert budget.entries["k"].steps == ["debited", "drawn", "staged", "published"]


def test_a_delivery_that_fails_is_repeated_with_the_same_bytes() -> None:
    budget = MemoryBudget(Fraction(1))

    def broken(payload: bytes) -> None:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        spend(Booking(budget, "k"), claim(), SUBJECT, lambda: b"first", deliver=broken)
    assert budget.entries["k"].steps == ["debited", "drawn", "staged"]
    assert spend(Booking(budget, "k"), claim(), SUBJECT, never) == b"first"
    assert budget.spent == 1


def test_what_is_staged_can_be_published_later() -> None:
    budget = MemoryBudget(Fraction(1))
    staged = stage(Booking(budget, "k"), claim(), SUBJECT, lambda: b"bytes")
    assert budget.entries["k"].steps[-1] == "staged"
    staged.publish()
    assert budget.entries["k"].steps[-1] == "published"


def test_insecure_choices_are_not_debited() -> None:
    with pytest.raises(ClaimError):
        spend_json(Booking(MemoryBudget(Fraction(9)), "k"), claim(seed=1), SUBJECT, never)


def test_a_crash_before_staging_may_draw_again_under_the_same_debit() -> None:
    budget = MemoryBudget(Fraction(1))

    def crash() -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spend_json(Booking(budget, "k"), claim(), SUBJECT, crash)
    assert spend_json(Booking(budget, "k"), claim(), SUBJECT, lambda: {"x": 1}) == {"x": 1}
    assert budget.spent == 1


class Race(MemoryDebit):
    """Another process stages first."""

    def stage(self, payload: bytes) -> bytes:
        theirs = {"claim": self.claim.as_json(), "subject": SUBJECT, "result": {"x": "theirs"}}
        return super().stage(canonical_json(theirs))


def test_only_the_first_to_stage_counts() -> None:
    budget = MemoryBudget(Fraction(1))
    budget.entries["k"] = Race(claim(), SUBJECT)
    assert spend_json(Booking(budget, "k"), claim(), SUBJECT, lambda: {"x": "ours"}) == {"x": "theirs"}


@pytest.mark.parametrize("payload", [b"{}", b'{"claim":1,"subject":2,"result":3}'])
def test_a_key_of_something_else_is_refused_and_not_published(payload: bytes) -> None:
    budget = MemoryBudget(Fraction(1))
    budget.entries["k"] = MemoryDebit(claim(), SUBJECT, staged=payload)
    with pytest.raises(UsageError, match="idempotency_key belongs to another release"):
        spend_json(Booking(budget, "k"), claim(), SUBJECT, never)
    assert budget.entries["k"].steps == ["debited"]


def test_a_booking_is_a_dataset_and_an_attempt() -> None:
    budget = MemoryBudget(Fraction(1))
    assert Booking.of(None, None) is None
    first, second = (Booking.of(budget, None) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.idempotency_key != second.idempotency_key
    with pytest.raises(UsageError, match="got no budget"):
        Booking.of(None, "k")
    with pytest.raises(UsageError, match=r"must be the budget of a dataset, got str.*\.dataset\("):
        Booking.of("ledger.db", None)  # type: ignore[arg-type]
