"""Take part in a summarization as an owner of records."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hushsum.errors import AlreadyPublished, UsageError
from hushsum.jobs.ledger_book import open_ledger
from hushsum.jobs.ledger_release import Booking, open_budget
from hushsum.jobs.summarize_records import read_columns
from hushsum.jobs.summarize_terms import at_delta
from hushsum.privacy.budget import Debit
from hushsum.privacy.claim import Claim
from hushsum.summarize.hash_secret import HashSecret
from hushsum.summarize.identity import Identity, fingerprint_of
from hushsum.summarize.messages import Terms
from hushsum.summarize.owner_process import OwnerProcess, Patience
from hushsum.summarize.result import owners_claim
from hushsum.summarize.vault import Vault


@dataclass(frozen=True, slots=True)
class OwnerChoice:
    """What an owner offers, to whom, and its own limits, which hold whatever a curator asks.

    ``columns`` are all that may leave, None for every column of the file; ``cap`` is the most points that
    leave in all; ``delta`` turns the claim that is booked from ρ into ε and δ. ``secret`` is the file under
    which hashes leave instead of points.
    """

    file: str
    key: str
    peers: tuple[str, ...]
    state: str
    columns: tuple[str, ...] | None = None
    cap: int | None = None
    delta: float | None = None
    secret: str | None = None
    booking: Booking | None = None


@dataclass(frozen=True, slots=True)
class TookPart:
    """How a run ended for an owner; ``points`` is for its own eyes."""

    run: str
    rule: str
    points: int
    claim: Claim | None
    booked: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "run": self.run,
            "rule": self.rule,
            "points_sent": self.points,
            "claim": None if self.claim is None else self.claim.in_numbers(),
            "ledger_key": self.booked,
        }


def parse_address(text: str, option: str) -> tuple[str, int]:
    """``HOST:PORT``; an IPv6 address stands in brackets.

    >>> parse_address("[::1]:7000", "--listen")
    ('::1', 7000)
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{option} must be HOST:PORT, got {text!r:.60}; such as 127.0.0.1:7000")
    return host, int(port)


def take_part(
    choice: OwnerChoice,
    listen: tuple[str, int],
    *,
    patience: Patience,
    log: Callable[[str], None],
    listening: Callable[[int], None] = lambda _: None,
) -> TookPart:
    """Listen for a curator and take part in its run until it ends; resumes after a crash with one ``state``.

    ``listening`` is told the port, once connections are taken.

    Raises
    ------
    PeerLost
        if no curator came in time.
    """
    if choice.cap is not None and choice.cap < 1:
        raise UsageError(f"cap must be at least 1, got {choice.cap}; leave it out to send what the rule asks")
    identity = Identity.load(choice.key)
    secret = None if choice.secret is None else HashSecret.load(choice.secret)
    peers = [fingerprint_of(each) for each in choice.peers]
    cashier = _Cashier(choice.booking, choice.delta, identity.fingerprint)
    records = read_columns(choice.file, choice.columns)
    with Vault(choice.state) as vault, _listener(*listen) as listener:
        process = OwnerProcess(
            identity,
            peers,
            records,
            vault,
            cap=choice.cap,
            secret=secret,
            afford=cashier.afford,
            pay=cashier.pay,
            settle=cashier.settle,
            patience=patience,
            log=log,
        )
        listening(listener.getsockname()[1])
        state = process.serve(listener)
    return TookPart(state.terms.run, state.terms.rule, state.sent, cashier.claim, cashier.key)


class _Cashier:
    """Debits the owner's ledger once a run, under a key that a retry repeats."""

    def __init__(self, booking: Booking | None, delta: float | None, fingerprint: str) -> None:
        self.booking = booking
        self.claim: Claim | None = None
        self.key: str | None = None
        self._delta = delta
        self._fingerprint = fingerprint
        self._debit: Debit | None = None

    def afford(self, terms: Terms) -> None:
        """Raise BudgetExhausted if less is left than the claim of these terms costs; books nothing."""
        self.claim = at_delta(owners_claim(terms), self._delta)
        if self.booking is None:
            return
        named = f"{terms.run} {self._fingerprint}".encode()
        self.key = f"summarize-{hashlib.sha256(named).hexdigest()[:40]}"
        ledger = open_ledger(self.booking.ledger)
        if ledger.find(self.key) is None:
            ledger.price(self.booking.dataset, self.claim, part=self.booking.part)

    def pay(self, terms: Terms) -> None:
        """Book the claim of the terms that were looked at; nothing is refunded from here on."""
        if self.booking is None or self.claim is None or self.key is None:
            return
        subject = {"kind": "summarization", "run": terms.run, "rule": terms.rule, "rounds": terms.rounds}
        budget = open_budget(self.booking)
        debit = budget.debit(self.booking.dataset, self.claim, subject=subject, key=self.key)
        try:
            debit.draw()
        except AlreadyPublished:
            raise UsageError("this run is closed in the ledger; its owner does not take part again") from None
        debit.stage(terms.to_bytes())
        self._debit = debit

    def settle(self) -> None:
        """Book that the run has ended."""
        if self._debit is not None:
            self._debit.publish()


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=4)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port} ({(error.strerror or 'refused').lower()}); choose another"
        ) from None


def read_peers(peers: Sequence[str] | None) -> tuple[str, ...]:
    """The fingerprints of --peer, at least one."""
    if not peers:
        raise UsageError("a curator's fingerprint must be given, got none; give --peer FINGERPRINT")
    return tuple(fingerprint_of(each) for each in peers)
