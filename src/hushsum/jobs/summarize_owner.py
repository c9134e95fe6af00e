"""Take part in a summarization as an owner of records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hushsum.errors import AlreadyPublished, UsageError
from hushsum.jobs.deliver_release import LedgerOptions
from hushsum.jobs.summarize_records import read_columns
from hushsum.jobs.summarize_terms import at_delta
from hushsum.privacy.claim import Claim
from hushsum.privacy.spending import Booking, StagedRelease, stage
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.summarize.hash_secret import HashSecret
from hushsum.summarize.messages import RunTerms
from hushsum.summarize.owner_process import OwnerProcess
from hushsum.summarize.result import owners_claim
from hushsum.transport.addresses import Patience, listener
from hushsum.transport.peer_identity import Identity, fingerprint_of
from hushsum.transport.state_folder import StateFolder


@dataclass(frozen=True, slots=True)
class OwnerChoice:
    """What an owner offers, to whom, and its own limits, which hold for every request of a curator.

    ``columns`` are all that may leave, None for every column of the file; ``cap`` is the most points that
    leave in all; ``delta`` turns the claim that is debited from ρ into ε and δ. ``secret`` is the file under
    which hashes leave instead of points. The ``cells`` of the file are read as declared.
    """

    file: str
    key: str
    peers: tuple[str, ...]
    state: str
    columns: tuple[str, ...] | None = None
    cap: int | None = None
    delta: float | None = None
    secret: str | None = None
    ledger: LedgerOptions | None = None
    cells: CellFormat = PLAIN


@dataclass(frozen=True, slots=True)
class TookPart:
    """How a run ended for an owner; ``points`` is for its own eyes."""

    run: str
    rule: str
    points: int
    claim: Claim | None
    idempotency_key: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "run": self.run,
            "rule": self.rule,
            "points_sent": self.points,
            "claim": None if self.claim is None else self.claim.in_numbers(),
            "idempotency_key": self.idempotency_key,
        }


def take_part(
    choice: OwnerChoice,
    listen: tuple[str, int],
    *,
    patience: Patience,
    log: Callable[[str], None],
    listening: Callable[[int], None] = lambda _: None,
) -> TookPart:
    """Listen for a curator and take part in its run until it ends; resumes after a crash with one ``state``.

    ``listening`` is called with the port, once connections are accepted.

    Raises
    ------
    PeerLost
        if no curator came in time.
    """
    if choice.cap is not None and choice.cap < 1:
        raise UsageError(
            parameter="cap",
            rule="must be at least 1",
            got=f"{choice.cap}",
            remedy="leave it out for no limit",
        )
    identity = Identity.load(choice.key)
    secret = None if choice.secret is None else HashSecret.load(choice.secret)
    peers = [fingerprint_of(each) for each in choice.peers]
    spending = _RunSpending(choice.ledger, choice.delta, identity.fingerprint)
    records = read_columns(choice.file, choice.columns, choice.cells)
    with StateFolder(choice.state) as state_folder, listener(*listen) as listening_socket:
        process = OwnerProcess(
            identity,
            peers,
            records,
            state_folder,
            cap=choice.cap,
            secret=secret,
            afford=spending.afford,
            pay=spending.pay,
            settle=spending.settle,
            patience=patience,
            log=log,
        )
        listening(listening_socket.getsockname()[1])
        state = process.serve(listening_socket)
    return TookPart(state.terms.run, state.terms.rule, state.sent, spending.claim, spending.key)


class _RunSpending:
    """Debits the owner's ledger once a run, under a key that a retry repeats."""

    def __init__(self, ledger: LedgerOptions | None, delta: float | None, fingerprint: str) -> None:
        self.ledger = ledger
        self.claim: Claim | None = None
        self.key: str | None = None
        self._delta = delta
        self._fingerprint = fingerprint
        self._staged: StagedRelease | None = None

    def afford(self, terms: RunTerms) -> None:
        """Raise BudgetExhausted if less is left than the claim of these terms costs; debits nothing."""
        self.claim = at_delta(owners_claim(terms), self._delta)
        if self.ledger is None:
            return
        named = f"{terms.run} {self._fingerprint}".encode()
        self.key = f"summarize-{hashlib.sha256(named).hexdigest()[:40]}"
        budget = self.ledger.budget()
        if budget.find(self.key) is None:
            budget.price(self.claim)

    def pay(self, terms: RunTerms) -> None:
        """Debit the claim of the terms that were looked at; nothing is refunded from here on."""
        if self.ledger is None or self.claim is None or self.key is None:
            return
        subject = {"kind": "summarization", "run": terms.run, "rule": terms.rule, "rounds": terms.rounds}
        booking = Booking(self.ledger.budget(), self.key)
        try:
            self._staged = stage(booking, self.claim, subject, terms.to_bytes)
        except AlreadyPublished:
            raise UsageError(
                rule="this run is closed in the ledger", remedy="its owner does not take part again"
            ) from None

    def settle(self) -> None:
        """Record that the run has ended."""
        if self._staged is not None:
            self._staged.publish()


def read_peers(peers: Sequence[str] | None) -> tuple[str, ...]:
    """The fingerprints of --peer, at least one."""
    if not peers:
        raise UsageError(
            parameter="peer",
            rule="must be a curator's fingerprint",
            got="none",
            remedy="give at least one",
        )
    return tuple(fingerprint_of(each) for each in peers)
