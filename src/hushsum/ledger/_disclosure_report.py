"""A report of what was released from a dataset, for readers outside."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushsum.privacy import PERSON, Promise, Relation, in_plain_words, unit_in_words

from ._account import Account, Accounting
from ._events import Entry, Event, Kind, Receipt, entries_of

_SHOWN = (Kind.BUDGET_CHANGED, Kind.RETIRED, Kind.RESTORE_ACCEPTED, Kind.FROZEN, Kind.WRITTEN_OFF)


@dataclass(frozen=True, slots=True)
class DisclosureReport:
    """Everything a reader outside may know about one dataset's releases; nothing in it depends on records."""

    dataset: str
    account: Account
    entries: tuple[Entry, ...]
    incidents: tuple[Event, ...]
    receipt: Receipt

    @classmethod
    def of(cls, dataset: str, account: Account, events: list[Event], receipt: Receipt) -> DisclosureReport:
        """The report that the events make; those of other datasets are left out."""
        own = [each for each in events if each.dataset in ("", dataset)]
        shown = tuple(each for each in own if each.kind in _SHOWN)
        return cls(dataset, account, tuple(entries_of(own)), shown, receipt)

    def as_json(self) -> dict[str, Any]:
        """The report for a machine."""
        return {
            "dataset": self.dataset,
            "promise": self.promise(),
            "terms": self.account.terms.as_json(),
            "state": self.account.state,
            "spent": self.account.spent.as_json(),
            "remaining": self.account.remaining.as_json(),
            "releases": [each.as_json() for each in self.entries],
            "incidents": [
                {"at": each.at, "kind": str(each.kind), "reason": each.body.get("reason")}
                for each in self.incidents
            ],
            "receipt": self.receipt.as_json(),
        }

    def promise(self) -> str:
        """The promise of all releases together, in one sentence."""
        account, terms = self.account, self.account.terms
        who = f"one {unit_in_words(terms.unit, 1)}"
        if terms.unit == PERSON:
            who = "one person, with all records of theirs,"
        what = (
            "is in the data or is not" if terms.relation is Relation.ADD_REMOVE else "is this one or another"
        )
        spent = account.spent
        epsilon = account.epsilon_at(spent)
        if epsilon is None:
            return (
                f"All releases together are {float(spent.rho):g}-zero-concentrated differentially private: "
                f"they hide whether {who} {what}{_plainly(rho=spent.rho)}"
            )
        delta = terms.report_delta if terms.accounting is Accounting.ZCDP else spent.delta
        slack = f", except with probability {float(delta):g}" if delta else ""
        return (
            f"Whatever anyone knows or computes, no outcome of all releases together is more than "
            f"e^{epsilon:g} times as likely or unlikely because {who} {what}{slack}"
            f"{_plainly(epsilon=epsilon, delta=delta)}"
        )

    def as_markdown(self) -> str:
        """The report for people."""
        account, terms = self.account, self.account.terms
        lines = [
            f"# What was released from {_plain(self.dataset)}",
            "",
            self.promise(),
            "",
            "| | |",
            "|---|---|",
            f"| total budget | {terms.budget.in_words()} |",
            f"| spent | {account.spent.in_words()} |",
            f"| left | {account.remaining.in_words()} |",
            f"| accounting | {terms.accounting} |",
            f"| unit | {terms.unit} |",
            f"| relation | {terms.relation} |",
            f"| state | {account.state} |",
            "",
            "## Releases",
            "",
        ]
        lines += [line for each in self.entries for line in _release(each)] or ["None.", ""]
        if self.incidents:
            lines += ["## Changes of the ledger", ""]
            for each in self.incidents:
                reason = each.body.get("reason")
                lines.append(f"- {each.at}: {each.kind}" + (f" ({_plain(reason)})" if reason else ""))
            lines.append("")
        receipt = self.receipt
        lines += [
            "## Proof",
            "",
            f"Ledger {receipt.ledger}, event {receipt.sequence}, SHA-256 {receipt.hash}. With this line "
            "`hushsum ledger verify` shows whether the ledger was changed later.",
            "",
        ]
        return "\n".join(lines)


# The facts of a release that a report contains, where the ledger knows them.
_DESCRIBED = ("model", "method", "kernel", "columns", "bounds")


_UNKNOWN_ERROR = "not recorded; `hushsum show` of the file states what is known of it"


def _plainly(
    *, epsilon: float | None = None, delta: Fraction | None = None, rho: Fraction | None = None
) -> str:
    """The end of the sentence; nothing is spent before the first release."""
    if not epsilon and not rho:
        return "."
    return in_plain_words(Promise.of(epsilon=epsilon, delta=delta or None, rho=rho))


def _release(entry: Entry) -> list[str]:
    name = entry.subject.get("output", entry.key)
    facts = [f"- when: {entry.at}", f"- by: {_plain(entry.who)}", f"- to: {_plain(entry.to or 'not stated')}"]
    if entry.part is not None:
        facts.append(f"- part of the data: {_plain(entry.part)}")
    state = {
        Kind.PUBLISHED: "published",
        Kind.VOIDED: "voided before anything was drawn; its budget was given back",
    }.get(entry.step, f"not published; it stopped at the step {str(entry.step)!r} and stays spent")
    facts += [
        f"- {fact}: {_plain(str(entry.subject[fact]))}" for fact in _DESCRIBED if entry.subject.get(fact)
    ]
    facts.append(f"- error: {_plain(str(entry.subject.get('error') or _UNKNOWN_ERROR))}")
    facts.append(f"- mechanism: {entry.claim.mechanism}, {entry.claim.arithmetic}")
    facts += [f"- state: {state}", f"- charged: {entry.charge.in_words()}"]
    if entry.sha256 is not None:
        facts.append(f"- SHA-256 of the file: `{entry.sha256}`")
    return [f"### {_plain(str(name))}", "", entry.claim.sentence(), "", *facts, ""]


def _plain(text: str) -> str:
    """Escape a text that a person typed, so that the text cannot become markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in text).replace("\n", " ")
