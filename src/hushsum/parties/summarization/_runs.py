"""The two sides as processes, with files, keys, state folders and ledgers."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hushsum._types import Floats
from hushsum.declaration import Parameter, check_fields, request, required, setting
from hushsum.errors import (
    AlreadyPublished,
    Argument,
    BudgetExhausted,
    DataRefused,
    FileRefused,
    HushsumError,
    PeerLost,
    PeerRefused,
    UsageError,
)
from hushsum.errors import Parameter as NameOf
from hushsum.files import atomic_file, unpack
from hushsum.operations import LedgerOptions, check_output, release_key
from hushsum.parties._kept_state import StateFolder
from hushsum.parties._messages import MOST_CONTROL, control, control_in, own_affairs
from hushsum.parties._runtime import (
    NO_LEDGER,
    Address,
    Coordinator,
    Log,
    Participant,
    PartySpec,
    Patience,
    Result,
    RunSpending,
    listener,
)
from hushsum.parties._tls import Identity, fingerprint_of, short
from hushsum.privacy import Booking, Claim, Promise, StagedRelease, another_release, spend, stage
from hushsum.privacy.accounting import zcdp_delta, zcdp_epsilon
from hushsum.records import PLAIN, CellFormat, ColumnBlocks, pyarrow, read_columns

from ._features import HashSecret, SummaryFeatures
from ._messages import MOST_BROADCAST, MOST_OPENING, Answer, Broadcast, Opening, RunTerms
from ._states import CuratorState, HashedTarget, NoisyTarget, OwnerState, release_target
from ._summary import Comparison, RunSpec, Summary, owners_claim, summary_of, target_claim

HASHES = "hashes"
"""The column of a summary's file that holds hashes."""

COLUMNS = Parameter(help="Columns that are compared, separated by commas; default: all.", metavar="NAMES")
DEBIT_RHO = Parameter(help="Debit the validation set's release in ρ, not in ε and δ.", group="Ledger")


@request
class CuratorRequest:
    """What the owners are compared with, and what is collected.

    ``carry`` names columns that are collected with the points and not compared, such as a label. The release
    of the validation set is debited in ε and δ, or with ``debit_rho`` in ρ. The ``cells`` of its file are
    read as declared.
    """

    party: PartySpec
    validation: str = required("Records that the summary should resemble.", metavar="FILE")
    run: RunSpec
    columns: tuple[str, ...] | None = setting(None, COLUMNS)
    carry: tuple[str, ...] = setting(
        (), "Columns that are sent and not compared, such as a label.", metavar="NAMES"
    )
    pace: float = setting(1.0, "Time between the starts of rounds.", at_least=0, metavar="SECONDS")
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    debit_rho: bool = setting(False, DEBIT_RHO)


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary that was collected and written; for the consumer alone.

    ``together`` is what all messages cost at the requested δ.
    """

    output: str
    terms: RunTerms
    summary: Summary
    together: Claim
    by_owner: dict[str, int]
    idempotency_key: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "output": self.output,
            "run": self.terms.run,
            "rule": self.terms.rule,
            "rounds": self.terms.rounds,
            **self.summary.as_json(),
            "claim": self.together.in_numbers(),
            "by_owner": self.by_owner,
            "idempotency_key": self.idempotency_key,
        }


class CuratorMachine:
    """A run between its owners: first all of them accept the terms, then every round is held.

    An owner that refuses the terms before anything is drawn stops the run: that is for people to settle. One
    that refuses later, breaks the rule, or is away for too long is lost for good.
    """

    noun = "owner"
    resumable = True

    def __init__(self, opening: Opening, state: CuratorState) -> None:
        self.state = state
        self.run, self.parties = opening.terms.run, opening.terms.owners
        self.most_reply = opening.terms.most_answer
        self._opening = opening.to_bytes()
        self._gathering = not state.step
        self._ready: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._taken: dict[str, bytes] = {}

    @property
    def step(self) -> int:
        """The number of the broadcast that was drawn last; 0 before the first."""
        return self.state.step

    @property
    def done(self) -> bool:
        """Whether every round has been held and answered."""
        return self.state.done

    @property
    def members(self) -> tuple[str, ...]:
        """The owners that are not lost."""
        return tuple(name for name in self.parties if name not in self.state.lost)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Who has not accepted the terms, or not answered."""
        if self._gathering:
            return () if self._refusals else tuple(name for name in self.members if name not in self._ready)
        return tuple(self.state.awaited)

    def greeting(self, party: str) -> bytes:
        """The terms, also for an owner that has started again."""
        return self._opening

    def greeted(self, party: str, data: bytes) -> None:
        """Take note that an owner has accepted the terms."""
        if not control_in(data, "ready")[0]:
            raise PeerRefused("it sent something that is not a reply to the terms")
        self._ready.add(party)

    def request_for(self, party: str) -> bytes | None:
        """The broadcast of the open round; the same however often it is sent."""
        if self._gathering or party not in self.awaited:
            return None
        return self.state.outgoing()[party].to_bytes()

    def take(self, party: str, data: bytes) -> None:
        """Take an answer; the same bytes again change nothing."""
        digest = hashlib.sha256(data).digest()
        if self._taken.get(party) == digest:
            return
        answer = Answer.from_bytes(data, most=self.most_reply + MOST_CONTROL)
        if answer.owner != party:
            raise PeerRefused("it answered in the name of another owner")
        if party not in self.awaited:
            raise PeerRefused("it is not awaited, or answers again with other contents")
        self.state.take(answer)
        self._taken[party] = digest

    def refused(self, party: str, reason: HushsumError) -> None:
        """Lose the owner, or stop before the first draw."""
        if self._gathering:
            self._refusals.setdefault(party, str(reason))
        elif party in self.members and not self.done:
            self.state.lose(party)

    def open_step(self) -> None:
        """Draw the next broadcasts, unless answers are awaited."""
        if not self._gathering and not self.state.awaited:
            self.state.advance()

    def close_step(self) -> None:
        """Lose the owners that have not accepted the terms, or not answered."""
        for party, reason in self._refusals.items():
            raise PeerRefused(
                f"owner {short(party)}: {reason}",
                remedy="settle that and start again, nothing is spent twice",
            )
        for party in self.awaited:
            self.state.lose(party)
        self._gathering = False
        self._taken.clear()
        if not self.members:
            raise PeerLost("no owner is left", remedy="start the owners, and then this command again")


def collect_summary(
    request: CuratorRequest,
    owners: Sequence[str],
    output: str,
    listen: Address,
    *,
    patience: Patience,
    log: Log,
    progress: Callable[[float], None] = lambda _: None,
    listening: Callable[[int], None] = lambda _: None,
) -> Summarized:
    """Hold the run, write the summary, tell the owners that it is over; resumes with the same state.

    ``owners`` are the fingerprints of their keys.

    Raises
    ------
    UsageError
        if the state belongs to a run on other terms.
    PeerRefused
        if an owner refuses the terms; nothing was drawn for the owners then.
    PeerLost
        if no owner is left.
    """
    pinned = tuple(fingerprint_of(each) for each in owners)
    if len(set(pinned)) != len(pinned):
        raise UsageError("owner", "must name every owner once", got="one twice")
    identity = Identity.load(request.party.key)
    path = check_output(output, inputs=[request.validation, request.party.key])
    ledger = request.ledger.given()
    if request.run.hashes and ledger is not None:
        raise UsageError(
            "ledger",
            ("must not be given with ", NameOf("hashes"), ": the validation release is paid already"),
        )
    validation = _read_validation(request)
    with StateFolder(request.party.state or f"{output}.summarize") as folder:
        opening = _opening(request, folder, pinned, validation)
        key = None if ledger is None else ledger.idempotency_key or f"summarize-{opening.terms.run}"
        booking = None if ledger is None or key is None else Booking(ledger.budget(), key)
        target, staged = _target(request, folder, opening, validation, booking)
        state = CuratorState(opening.terms, target, store=lambda saved: folder.put("state", saved))
        kept = folder.get("state")
        if kept is not None:
            state.restore(kept)
            log(f"resuming round {state.round} of {opening.terms.rounds}")
        summaries: list[Summary] = []

        def finish() -> None:
            summaries.append(summary_of(state, validation.points))
            _write_columns(path, _columns(validation, request.carry, summaries[0]))
            if staged is not None:
                staged.publish()

        with listener(listen, backlog=len(pinned) + 4) as place:
            listening(place.getsockname()[1])
            machine = CuratorMachine(opening, state)
            Coordinator(identity, machine, patience=patience, pace=request.pace, log=log).serve(
                place, finish=finish, closed=lambda _: progress(state.round / opening.terms.rounds)
            )
    counts = np.bincount(summaries[0].owners, minlength=len(pinned))
    return Summarized(
        output=output,
        terms=opening.terms,
        summary=summaries[0],
        together=at_delta(summaries[0].claims.together, request.run.comparison.delta),
        by_owner={name: int(count) for name, count in zip(pinned, counts, strict=True)},
        idempotency_key=key,
    )


def _opening(
    request: CuratorRequest, folder: StateFolder, owners: tuple[str, ...], validation: _Validation
) -> Opening:
    """The terms of this run; of the one under way, if they are the same."""
    kept = folder.get("opening")
    run = None if kept is None else Opening.from_bytes(kept).terms.run
    terms = request.run.terms(run, owners, validation.dim, len(request.carry))
    opening = Opening(terms, validation.names, request.carry, validation.secret_check)
    if folder.keep("opening", opening.to_bytes()) != opening.to_bytes():
        raise UsageError(
            "state", "belongs to a run on other terms", remedy="repeat its options, or give another"
        )
    return opening


def _target(
    request: CuratorRequest,
    folder: StateFolder,
    opening: Opening,
    validation: _Validation,
    booking: Booking | None,
) -> tuple[NoisyTarget, StagedRelease | None]:
    """The validation set's release: debited, drawn once, and kept before anyone can see it."""
    kept = folder.get("target")
    if validation.released is not None:
        mine = validation.released.to_bytes()
        if folder.keep("target", mine) != mine:
            raise UsageError("state", "belongs to a run with another validation release")
        return validation.released, None
    comparison, points = request.run.comparison, validation.points
    rho = comparison.split()[1]

    def make() -> bytes:
        assert points is not None
        return folder.keep("target", kept or release_target(opening.terms.features, points, rho).to_bytes())

    claim = at_delta(target_claim(rho), None if request.debit_rho else comparison.delta)
    subject = {"kind": "validation set of a summarization", "run": opening.terms.run}
    try:
        staged = stage(booking, claim, subject, make)
    except AlreadyPublished:
        # The run ended, and is only written down once more.
        if kept is None:
            raise
        return NoisyTarget.from_bytes(kept), None
    if folder.keep("target", staged.payload) != staged.payload:
        raise another_release()
    return NoisyTarget.from_bytes(staged.payload), staged


@dataclass(frozen=True, slots=True, repr=False)
class _Validation:
    """The columns that are compared, and the validation set: exact ``points``, or a release of them.

    ``widths`` has the name and the width of each column that the summary's points have.
    """

    names: tuple[str, ...]
    dim: int
    widths: tuple[tuple[str, int], ...]
    points: Floats | None = None
    released: NoisyTarget | None = None
    secret_check: str = ""


def _read_validation(request: CuratorRequest) -> _Validation:
    """Read the validation set, or with hashes its release.

    Raises
    ------
    UsageError
        no column is left to compare, or the release was made for another run than the requested one.
    FileRefused
        the release is damaged.
    """
    if request.run.hashes:
        return _read_release(request)
    records = read_columns(request.validation, request.columns, request.cells)
    names = tuple(name for name in records.blocks if name not in request.carry)
    if not names:
        raise UsageError(
            "validation",
            "must be a file with a column to compare",
            remedy=("see ", NameOf("columns"), " and ", NameOf("carry")),
        )
    widths = tuple((name, records.blocks[name].shape[1]) for name in names)
    return _Validation(names, records.width(names), widths, points=records.choose(names))


def _read_release(request: CuratorRequest) -> _Validation:
    run, comparison = request.run, request.run.comparison
    made = HashedTarget.load(request.validation, maker="hushsum summarize validation")
    if made.features != run.compared(made.features.dim):
        names: tuple[Any, ...] = (NameOf("bandwidth"), " or ", NameOf("features"))
    elif made.target.rho != comparison.split()[1]:
        names = (NameOf("epsilon"), ", ", NameOf("delta"), " or ", NameOf("validation_share"))
    else:
        names = ()
    if names:
        raise UsageError(("the validation release was made for another ", *names))
    if request.columns not in (None, made.columns):
        raise UsageError("columns", "must be those of the validation release")
    if HASHES in request.carry:
        raise UsageError("carry", f"must not have {HASHES!r}, the summary's own column")
    widths = ((HASHES, made.features.width),)
    return _Validation(
        made.columns, made.features.dim, widths, released=made.target, secret_check=made.secret_check
    )


def _columns(validation: _Validation, carried: tuple[str, ...], summary: Summary) -> dict[str, Floats]:
    """The summary's points as named columns, in the shape that the validation file has."""
    ends = np.cumsum([width for _, width in validation.widths])
    parts = np.split(summary.points, ends[:-1], axis=1)
    compared = {name: part for (name, _), part in zip(validation.widths, parts, strict=True)}
    return {**compared, **{name: summary.extra[:, [i]] for i, name in enumerate(carried)}}


@request
class ValidationRequest:
    """The consumer's release of a validation set under the owners' secret, for one run."""

    hashes: str = required("The secret shared by owners and consumer.", metavar="FILE")
    comparison: Comparison
    columns: tuple[str, ...] | None = setting(None, COLUMNS)
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    debit_rho: bool = setting(False, DEBIT_RHO)


@dataclass(frozen=True, slots=True)
class ValidationReleased(Result):
    """A release that was written; ``check`` is that of the secret."""

    output: str
    columns: tuple[str, ...]
    check: str
    claim: Claim
    idempotency_key: str | None


def release_validation(request: ValidationRequest, file: str, output: str) -> ValidationReleased:
    """Write the noisy feature sums of a validation set under the owners' secret, once.

    With a ledger it is debited first, and the same command delivers the same bytes again after a crash.

    Raises
    ------
    UsageError
        if the output exists: noise drawn a second time would be averaged with the first.
    """
    secret, comparison = HashSecret.load(request.hashes), request.comparison
    path = check_output(output, inputs=[file, request.hashes])
    if path.exists():
        raise UsageError(f"{output!r} exists, and a validation set is released once for a run")
    records = read_columns(file, request.columns, request.cells)
    names = tuple(records.blocks)
    public = comparison.compared(records.width(names))
    rho = comparison.split()[1]

    def made() -> bytes:
        target = release_target(secret.features(public), records.choose(names), rho)
        return HashedTarget(public, names, secret.check, target).to_bytes()

    def deliver(payload: bytes) -> None:
        with atomic_file(path) as stream:
            stream.write(payload)

    claim = at_delta(target_claim(rho), None if request.debit_rho else comparison.delta)
    subject = {"kind": "validation set of a summarization", "check": secret.check}
    ledger, booking = request.ledger.given(), None
    if ledger is not None:
        sources, place = [file, request.hashes], str(path.absolute())
        key = ledger.idempotency_key or release_key(
            sources, ledger.dataset, claim.as_json(), subject, request.cells, place
        )
        booking = Booking(ledger.budget(), key)
    spend(booking, claim, subject, made, deliver=deliver)
    return ValidationReleased(
        output, names, secret.check, claim, None if booking is None else booking.idempotency_key
    )


def at_delta(claim: Claim, delta: float | None) -> Claim:
    """A claim in ρ as it is, or in ε at a δ."""
    rho = claim.promise.rho
    if rho is None or delta is None:
        return claim
    found = zcdp_epsilon(rho, delta)
    # The short number that ρ was made from, where it holds, instead of one a bit above it.
    short = round(found, 9)
    epsilon = short if zcdp_delta(rho, short) <= delta else found
    return replace(claim, promise=Promise.of(epsilon=epsilon, delta=delta))


def _write_columns(path: Path, columns: dict[str, Floats]) -> None:
    """Write a Parquet file of these columns, whole or not at all; those wider than 1 as lists.

    It holds records of the owners, so nobody but its owner may read it.
    """
    pa, parquet = pyarrow(), pyarrow("parquet")
    arrays = {}
    for name, values in columns.items():
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        width = values.shape[1]
        arrays[name] = flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
    buffer = io.BytesIO()
    parquet.write_table(pa.table(arrays), buffer, compression="zstd")
    with atomic_file(path, mode=0o600) as stream:
        stream.write(buffer.getvalue())


def owner_spending(
    terms: RunTerms, *, ledger: LedgerOptions | None, fingerprint: str, delta: float | None = None
) -> RunSpending:
    """What a run on these terms costs the owner with this fingerprint, in ρ or in ε at a δ."""
    subject = {"kind": "summarization", "run": terms.run, "rule": terms.rule, "rounds": terms.rounds}
    claim = at_delta(owners_claim(terms), delta)
    return RunSpending("summarize", ledger, fingerprint, terms.run, claim, subject)


class OwnerMachine:
    """The side of one owner in a run.

    What is answered is decided by `OwnerState`, which stores where it stands before an answer leaves. A
    cap of the owner's own must be in the terms, whose noise covers it, and holds whatever is requested. The
    terms are only looked at until the first broadcast comes. Then they are paid for and the state folder is
    bound to them, before anything is answered: from there on another run is refused, so a curator cannot
    start over to get round the cap. ``spending`` makes what debits the owner's ledger for some terms. With a
    ``secret`` hashes are sent instead of points, and terms that request points are refused.
    """

    noun = "curator"
    continued = (PeerRefused, FileRefused, UsageError, DataRefused, BudgetExhausted)
    most_request = max(MOST_OPENING, MOST_BROADCAST)

    def __init__(
        self,
        identity: Identity,
        offer: ColumnBlocks,
        folder: StateFolder,
        *,
        cap: int | None = None,
        secret: HashSecret | None = None,
        spending: Callable[[RunTerms], RunSpending] | None = None,
        log: Log = lambda _: None,
    ) -> None:
        if folder.get("ended") is not None:
            remedy = "give another, or remove it, for a new run"
            raise UsageError("state", "holds a run that has ended", remedy=remedy)
        self._me = identity.fingerprint
        self._offer, self._folder = offer, folder
        self._cap, self._secret = cap, secret
        self._spending_of = spending or partial(owner_spending, ledger=None, fingerprint=self._me)
        self.spending: RunSpending | None = None
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
            assert self.spending is not None
            with self._own_affairs():
                self.spending.staged_bytes(state.terms.to_bytes)
            self._folder.keep("opening", self._opening)
            self._bound = True
            self._log("resumed the run" if state.step else "joined the run")
        return state.answer(Broadcast.from_bytes(request)).to_bytes()

    def end(self, run: str) -> bytes:
        """Close the run in the ledger, and never answer in it again."""
        if self.state.terms.run != run:
            raise PeerRefused("the message ends another run")
        assert self.spending is not None
        with self._own_affairs():
            self.spending.settle()
        self._folder.put("ended", run.encode())
        return control("ready", run=run)

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
        return control("ready", run=opening.terms.run)

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
            self.spending = self._spending_of(terms)
            self.spending.afford()
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


@request
class OwnerRequest:
    """What an owner offers, and its own limits, which hold for every request of a curator."""

    party: PartySpec
    columns: tuple[str, ...] | None = setting(
        None, "Columns that may be sent, separated by commas; default: all.", metavar="NAMES"
    )
    cap: int | None = setting(None, "Maximum number of points that are sent in total.", at_least=1)
    hashes: str | None = setting(
        None, "Send hashes under this secret instead of points, or nothing.", metavar="FILE"
    )
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    delta: float | None = setting(
        None, "Debit ε at this δ from the ledger; default: debit ρ.", group="Ledger", above=0, below=1
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class TookPart(Result):
    """How a run ended for an owner; ``points_sent`` is for its own eyes."""

    run: str
    rule: str
    points_sent: int
    claim: Claim
    idempotency_key: str | None


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
    ledger = request.ledger.given()
    records = read_columns(file, request.columns, request.cells)
    with StateFolder(request.party.state or f"{file}.summarize") as folder:
        machine = OwnerMachine(
            identity,
            records,
            folder,
            cap=request.cap,
            secret=secret,
            spending=partial(
                owner_spending, ledger=ledger, fingerprint=identity.fingerprint, delta=request.delta
            ),
            log=log,
        )
        Participant(identity, curator, machine, patience=patience, log=log).take_part()
    state, spending = machine.state, machine.spending
    assert spending is not None
    return TookPart(state.terms.run, state.terms.rule, state.sent, spending.claim, spending.key)
