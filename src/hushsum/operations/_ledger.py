"""How the datasets of a ledger stand, and charges as commands and requests state them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hushsum.errors import Parameter, UsageError
from hushsum.privacy import exact

if TYPE_CHECKING:
    from hushsum.ledger import Account, Charge, Ledger


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """One dataset's account, how many releases stopped on their way, and what the next one may spend."""

    ledger: str
    dataset: str
    account: Account
    releases: int
    unfinished: int
    warning: str | None

    @property
    def share(self) -> float:
        """The part of the budget that is spent, of the scarcest of its numbers."""
        spent, budget = self.account.spent, self.account.terms.budget
        pairs = zip(
            (spent.epsilon, spent.delta, spent.rho), (budget.epsilon, budget.delta, budget.rho), strict=True
        )
        return float(max((one / total for one, total in pairs if total), default=0))

    def as_json(self) -> dict[str, Any]:
        """The status for a machine."""
        account = self.account
        return {
            "ledger": self.ledger,
            "dataset": self.dataset,
            "state": account.state,
            "terms": account.terms.as_json(),
            "spent": account.spent.as_json(),
            "spent_epsilon": account.epsilon_at(account.spent),
            "remaining": account.remaining.as_json(),
            "parts": {
                name: {"spent": spent.as_json(), "remaining": account.remaining_in(name).as_json()}
                for name, spent in zip(account.terms.partition, account.parts, strict=True)
            },
            "largest_pure_epsilon": account.largest_pure_epsilon,
            "releases": self.releases,
            "unfinished": self.unfinished,
            "warning": self.warning,
        }


def status_of(ledger: Ledger, dataset: str | Sequence[str] | None) -> list[DatasetStatus]:
    """How one dataset stands, or several, or all."""
    from hushsum.ledger import Kind

    warning = ledger.rollback_problem()
    names = ledger.datasets() if dataset is None else [dataset] if isinstance(dataset, str) else dataset
    found = []
    for name, (account, history) in zip(names, ledger.standing(names), strict=True):
        entries = [each for each in history if each.step is not Kind.VOIDED]
        unfinished = sum(each.step is not Kind.PUBLISHED for each in entries)
        found.append(DatasetStatus(ledger.id, name, account, len(entries), unfinished, warning))
    return found


def amount(*, epsilon: float | None, delta: float | None, rho: float | None) -> Charge:
    """A charge from a command's options; at least one must be given, and zero is a statement too."""
    from fractions import Fraction

    from hushsum.ledger import Charge

    if epsilon is None and delta is None and rho is None:
        rule = (Parameter("epsilon"), ", ", Parameter("delta"), " or ", Parameter("rho"), " must be given")
        raise UsageError(rule, got="none", remedy="0 is allowed")
    named = (("epsilon", epsilon), ("delta", delta), ("rho", rho))
    return Charge(*(Fraction(0) if value is None else exact(name, value) for name, value in named))
