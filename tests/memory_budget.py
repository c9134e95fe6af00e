"""A budget in memory that enforces its total, its keys and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from hushsum.errors import BudgetExhausted, ClaimError
from hushsum.privacy import Claim


@dataclass
class MemoryDebit:
    """An entry, with the steps it has passed in order."""

    claim: Claim
    subject: Mapping[str, object]
    staged: bytes | None = None
    steps: list[str] = field(default_factory=lambda: ["debited"])

    def draw(self) -> None:
        assert self.staged is None
        self.steps.append("drawn")

    def stage(self, payload: bytes) -> bytes:
        assert self.steps[-1] == "drawn"
        self.staged = payload
        self.steps.append("staged")
        return payload

    def publish(self) -> None:
        assert self.staged is not None
        self.steps.append("published")


@dataclass
class MemoryBudget:
    """A pure-ε budget for one dataset."""

    total: Fraction
    entries: dict[str, MemoryDebit] = field(default_factory=dict)

    @property
    def spent(self) -> Fraction:
        return sum(
            (entry.claim.promise.epsilon or Fraction(0) for entry in self.entries.values()), Fraction(0)
        )

    def cost(self, claim: Claim) -> Fraction | None:
        return claim.promise.epsilon

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> MemoryDebit:
        if idempotency_key in self.entries:
            return self.entries[idempotency_key]
        if not claim.secure:
            raise ClaimError("insecure noise cannot be booked")
        assert claim.promise.pure
        assert claim.promise.epsilon is not None
        if self.spent + claim.promise.epsilon > self.total:
            raise BudgetExhausted("the budget is exhausted")
        self.entries[idempotency_key] = MemoryDebit(claim, subject)
        return self.entries[idempotency_key]
