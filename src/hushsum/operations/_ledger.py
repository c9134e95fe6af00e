"""Open, inspect and look after a ledger: what the commands under ``hushsum ledger`` do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushsum.errors import FilePath, Parameter, UsageError
from hushsum.files import atomic_file
from hushsum.privacy import exact

if TYPE_CHECKING:
    from hushsum.ledger import Account, Charge, DatasetTerms, DisclosureReport, Ledger, Verification


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


def init_ledger(place: str, dataset: str, terms: DatasetTerms) -> DatasetStatus:
    """Make a ledger, unless it is there, and add a dataset to it."""
    from hushsum.ledger import Ledger

    ledger = Ledger.create(place)
    return DatasetStatus(ledger.id, dataset, ledger.create_dataset(dataset, terms), 0, 0, None)


def open_ledger(place: str) -> Ledger:
    """The ledger at a path or URL."""
    from hushsum.ledger import Ledger

    return Ledger(place)


def ledger_status(place: str, dataset: str | None) -> list[DatasetStatus]:
    """How one dataset stands, or all."""
    return status_of(open_ledger(place), dataset)


def status_of(ledger: Ledger, dataset: str | Sequence[str] | None) -> list[DatasetStatus]:
    """The same of a ledger that is open; of one dataset, of several, or of all."""
    from hushsum.ledger import Kind

    warning = ledger.rollback_problem()
    names = ledger.datasets() if dataset is None else [dataset] if isinstance(dataset, str) else dataset
    found = []
    for name, (account, history) in zip(names, ledger.standing(names), strict=True):
        entries = [each for each in history if each.step is not Kind.VOIDED]
        unfinished = sum(each.step is not Kind.PUBLISHED for each in entries)
        found.append(DatasetStatus(ledger.id, name, account, len(entries), unfinished, warning))
    return found


def verify_ledger(place: str, receipts: Sequence[str]) -> Verification:
    """Check the whole ledger, and each receipt file against it; the first problem is the result."""
    from hushsum.ledger import Ledger, Receipt

    # Also a ledger whose head is damaged is looked at.
    ledger = Ledger(place, damaged=True)
    result = ledger.verify()
    for path in receipts:
        if not result.holds:
            break
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UsageError(("no receipt ", FilePath(path, quoted=True))) from None
        except UnicodeDecodeError:
            text = ""
        result = ledger.verify(Receipt.from_text(text))
    return result


def disclosure(place: str, dataset: str) -> DisclosureReport:
    """The report of one dataset."""
    from hushsum.ledger import DisclosureReport

    ledger = open_ledger(place)
    account = ledger.account(dataset)
    return DisclosureReport.of(dataset, account, ledger.events(), ledger.receipt())


def write_text(path: str, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(Path(path)) as stream:
        stream.write(text.encode())


def as_text(value: object) -> str:
    """JSON as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def amount(*, epsilon: float | None, delta: float | None, rho: float | None) -> Charge:
    """A charge from a command's options; at least one must be given, and zero is a statement too."""
    from fractions import Fraction

    from hushsum.ledger import Charge

    if epsilon is None and delta is None and rho is None:
        raise UsageError(
            (Parameter("epsilon"), ", ", Parameter("delta"), " or ", Parameter("rho"), " must be given"),
            got="none",
            remedy="0 is allowed",
        )
    named = (("epsilon", epsilon), ("delta", delta), ("rho", rho))
    return Charge(*(Fraction(0) if value is None else exact(name, value) for name, value in named))


def upgrade_ledger(place: str) -> str:
    """Bring a ledger to this version's schema; its id."""
    from hushsum.ledger import Ledger

    return Ledger.upgrade(place).id
