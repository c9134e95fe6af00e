"""A budget in memory that records the steps of its debits, for tests of what spends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hushsum.errors import BudgetExhausted
from hushsum.privacy import Claim


@dataclass
class Entry:
    """A debit that fails where it is set to."""

    steps: list[str]
    staged: bytes | None = None
    fail_at: str = ""

    def _step(self, name: str) -> None:
        if self.fail_at == name:
            raise OSError(f"crash at {name}")
        self.steps.append(name)

    def draw(self) -> None:
        self._step("drawn")

    def stage(self, payload: bytes) -> bytes:
        self._step("staged")
        self.staged = payload
        return payload

    def publish(self) -> None:
        self._step("published")


@dataclass
class RecordingBudget:
    """A :class:`hushsum.privacy.Budget` that knows ε only."""

    left: float = 10.0
    steps: list[str] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    requested: list[tuple[Claim, dict[str, object]]] = field(default_factory=list)
    fail_at: str = ""

    def cost(self, claim: Claim) -> float | None:
        return claim.epsilon

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> Entry:
        key = idempotency_key
        self.requested.append((claim, dict(subject)))
        if key not in self.entries:
            cost = claim.epsilon or 0.0
            if cost > self.left:
                raise BudgetExhausted("not enough left")
            self.left -= cost
            self.steps.append("debited")
            self.entries[key] = Entry(self.steps)
        self.entries[key].fail_at = self.fail_at
        return self.entries[key]
