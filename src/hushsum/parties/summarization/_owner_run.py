"""An owner in a run: it connects to the curator whose key it has pinned, and answers what the rule allows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from hushsum._types import Floats
from hushsum.declaration import Parameter, check_fields
from hushsum.errors import (
    AlreadyPublished,
    Argument,
    BudgetExhausted,
    DataRefused,
    FileRefused,
    HushsumError,
    PeerRefused,
    UsageError,
)
from hushsum.errors import Parameter as NameOf
from hushsum.files import unpack
from hushsum.operations import LedgerOptions
from hushsum.parties._kept_state import StateFolder
from hushsum.parties._messages import own_affairs, ready
from hushsum.parties._runtime import NO_LEDGER, Address, Log, Participant, PartySpec, Patience
from hushsum.parties._tls import Identity
from hushsum.parties.summarization._curator_run import at_delta
from hushsum.parties.summarization._features import HashSecret, SummaryFeatures
from hushsum.parties.summarization._messages import MOST_BROADCAST, MOST_OPENING, Broadcast, Opening, RunTerms
from hushsum.parties.summarization._owner import OwnerState
from hushsum.parties.summarization._summary import owners_claim
from hushsum.privacy import Booking, Claim, StagedRelease, stage
from hushsum.records import PLAIN, CellFormat, read_columns


class Offer(Protocol):
    """The records of an owner, of which columns are requested by name."""

    def choose(self, names: Sequence[str]) -> Floats:
        """These columns side by side, shape (records, width); UsageError for one that is not offered."""


class OwnerMachine:
    """One owner in one run.

    What is answered is decided by `OwnerState`, which stores where it stands before an answer leaves. A
    cap of the owner's own must be in the terms, whose noise covers it, and holds whatever is requested. The
    terms are only looked at until the first broadcast comes. Then they are paid for and the state folder is
    bound to them, before anything is answered: from there on another run is refused, so a curator cannot
    start over to get round the cap. ``pay`` is called again after a crash; it must not spend twice for one
    run. ``afford`` raises if it would refuse. ``settle`` is called when the run has ended. With a ``secret``
    hashes are sent instead of points, and terms that request points are refused.
    """

    noun = "curator"
    continued = (PeerRefused, FileRefused, UsageError, DataRefused, BudgetExhausted)
    most_request = max(MOST_OPENING, MOST_BROADCAST)

    def __init__(
        self,
        identity: Identity,
        offer: Offer,
        folder: StateFolder,
        *,
        cap: int | None = None,
        secret: HashSecret | None = None,
        afford: Callable[[RunTerms], None] = lambda _: None,
        pay: Callable[[RunTerms], None] = lambda _: None,
        settle: Callable[[], None] = lambda: None,
        log: Log = lambda _: None,
    ) -> None:
        if folder.get("ended") is not None:
            remedy = "give another, or remove it, for a new run"
            raise UsageError("state", "holds a run that has ended", remedy=remedy)
        self._me = identity.fingerprint
        self._offer, self._folder = offer, folder
        self._cap, self._secret = cap, secret
        self._afford, self._pay, self._settle = afford, pay, settle
        self._log = log
        self._state: OwnerState | None = None
        self._opening = b""
        self._bound = False

    @property
    def state(self) -> OwnerState:
        """How far the run has come."""
        if self._state is None:
            raise PeerRefused("no terms have been proposed")
        return self._state

    def answer(self, request: bytes) -> bytes:
        """Look at the terms, or answer a broadcast."""
        kind, _, _ = unpack(request, "opening", "broadcast")
        if kind == "opening":
            return self._open(request)
        state = self.state
        if not self._bound:
            # A run that cannot be paid binds nothing.
            with self._own_affairs():
                self._pay(state.terms)
            self._folder.keep("opening", self._opening)
            self._bound = True
            self._log("resumed the run" if state.step else "joined the run")
        return state.answer(Broadcast.from_bytes(request)).to_bytes()

    def end(self, run: str) -> bytes:
        """Close the run in the ledger, and never answer in it again."""
        if self.state.terms.run != run:
            raise PeerRefused("the message ends another run")
        with self._own_affairs():
            self._settle()
        self._folder.put("ended", run.encode())
        return ready(run)

    def reason(self, error: HushsumError) -> str:
        """Broken rules in words, other failures without detail."""
        if isinstance(error, PeerRefused | FileRefused):
            return str(error)
        return "this owner does not offer what the terms request"

    def _own_affairs(self) -> Any:
        reason = "this owner's budget does not suffice for the terms"
        return own_affairs("this owner's ledger or state does not allow this run", BudgetExhausted=reason)

    def _open(self, data: bytes) -> bytes:
        opening = Opening.from_bytes(data)
        bound = self._folder.get("opening")
        if bound is not None and bound != data:
            raise PeerRefused("this owner takes part in another run, or in this one on other terms")
        if self._state is None or self._opening != data:
            self._state, self._opening = self._begin(opening), data
        return ready(opening.terms.run)

    def _begin(self, opening: Opening) -> OwnerState:
        """The state for terms that are acceptable; nothing is bound or paid yet."""
        terms = opening.terms
        if self._me not in terms.owners:
            raise PeerRefused("the terms do not name this owner's fingerprint")
        if terms.rho is None:
            raise PeerRefused(f"the rule {terms.rule} keeps no promise to this owner's records")
        if self._cap is not None and (terms.cap is None or terms.cap > self._cap):
            # A cap lets one record displace another, so the noise must have been made for it.
            limit = "this owner limits the points that it sends, and the terms must contain the limit: "
            raise PeerRefused((limit, Argument("cap", self._cap)))
        features = self._features(opening)
        points = self._offer.choose(opening.compared)
        extra = self._offer.choose(opening.carried) if opening.carried else None
        if points.shape[1] != terms.features.dim:
            raise PeerRefused("the columns of the terms have another width here")
        state = OwnerState(
            self._me,
            points,
            terms,
            extra=extra,
            cap=self._cap,
            features=features,
            store=lambda saved: self._folder.put("state", saved),
        )
        with self._own_affairs():
            kept = self._folder.get("state")
            if kept is not None:
                state.restore(kept)
            self._afford(terms)
        return state

    def _features(self, opening: Opening) -> SummaryFeatures | None:
        """The features under the owners' secret; an owner that has one sends hashes or nothing."""
        if not opening.terms.hashed:
            if self._secret is not None:
                rule = "this owner sends hashes only, and the terms request points: "
                raise PeerRefused((rule, NameOf("hashes")))
            return None
        if self._secret is None:
            raise PeerRefused("the terms request hashes, and this owner was given no secret to make them")
        if opening.secret_check != self._secret.check:
            raise PeerRefused("the validation set was hashed under another secret than this owner's")
        return self._secret.features(opening.terms.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRequest:
    """What an owner offers, and its own limits, which hold for every request of a curator."""

    party: PartySpec
    columns: Annotated[
        tuple[str, ...] | None,
        Parameter(
            help="Columns that may be sent, separated by commas; default: all.", group="", metavar="NAMES"
        ),
    ] = None
    cap: Annotated[
        int | None, Parameter(help="Maximum number of points that are sent in total.", group="", at_least=1)
    ] = None
    hashes: Annotated[
        str | None,
        Parameter(
            help="Send hashes under this secret instead of points, or nothing.", group="", metavar="FILE"
        ),
    ] = None
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    delta: Annotated[
        float | None,
        Parameter(
            help="Debit ε at this δ from the ledger; default: debit ρ.", group="Ledger", above=0, below=1
        ),
    ] = None

    def __post_init__(self) -> None:
        check_fields(self)


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


def offer_records(
    request: OwnerRequest, file: str, curator: Address, *, patience: Patience, log: Log
) -> TookPart:
    """Take part in a curator's run until it ends; resumes after a crash with the same state.

    Raises
    ------
    PeerLost
        if no curator came in time.
    """
    identity = Identity.load(request.party.key)
    secret = None if request.hashes is None else HashSecret.load(request.hashes)
    spending = _RunSpending(request.ledger.given(), request.delta, identity.fingerprint)
    records = read_columns(file, request.columns, request.cells)
    with StateFolder(request.party.state or f"{file}.summarize") as folder:
        machine = OwnerMachine(
            identity,
            records,
            folder,
            cap=request.cap,
            secret=secret,
            afford=spending.afford,
            pay=spending.pay,
            settle=spending.settle,
            log=log,
        )
        Participant(identity, curator, machine, patience=patience, log=log).take_part()
    state = machine.state
    return TookPart(state.terms.run, state.terms.rule, state.sent, spending.claim, spending.key)


class _RunSpending:
    """Debits the owner's ledger once a run, under a key that a retry repeats."""

    def __init__(self, ledger: LedgerOptions | None, delta: float | None, fingerprint: str) -> None:
        self.claim: Claim | None = None
        self.key: str | None = None
        self._ledger, self._delta, self._fingerprint = ledger, delta, fingerprint
        self._staged: StagedRelease | None = None

    def afford(self, terms: RunTerms) -> None:
        """Raise BudgetExhausted if less is left than the claim of these terms costs; debits nothing."""
        self.claim = at_delta(owners_claim(terms), self._delta)
        if self._ledger is None:
            return
        named = f"{terms.run} {self._fingerprint}".encode()
        self.key = f"summarize-{hashlib.sha256(named).hexdigest()[:40]}"
        budget = self._ledger.budget()
        if budget.find(self.key) is None:
            budget.price(self.claim)

    def pay(self, terms: RunTerms) -> None:
        """Debit the claim of the terms that were looked at; nothing is refunded from here on."""
        if self._ledger is None or self.claim is None or self.key is None:
            return
        subject = {"kind": "summarization", "run": terms.run, "rule": terms.rule, "rounds": terms.rounds}
        booking = Booking(self._ledger.budget(), self.key)
        try:
            self._staged = stage(booking, self.claim, subject, terms.to_bytes)
        except AlreadyPublished:
            raise UsageError("this run is closed in the ledger") from None

    def settle(self) -> None:
        """Record that the run has ended."""
        if self._staged is not None:
            self._staged.publish()
