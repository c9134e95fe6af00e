"""The curator of a run: from a validation set and the keys of owners to a file with the summary.

What is drawn and what is taken is decided by `CuratorState`, which stores every draw before it can be read.
So a process that starts again with the stored state sends what was drawn, never something new.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hushsum._types import Floats
from hushsum.declaration import Parameter
from hushsum.errors import AlreadyPublished, FileRefused, HushsumError, PeerLost, PeerRefused, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.files import atomic_file
from hushsum.operations import LedgerOptions, check_output, release_key
from hushsum.parties._kept_state import StateFolder
from hushsum.parties._messages import MOST_CONTROL, control_in
from hushsum.parties._runtime import NO_LEDGER, Address, Coordinator, Log, PartySpec, Patience, listener
from hushsum.parties._tls import Identity, fingerprint_of, short
from hushsum.parties.summarization._curator import CuratorState
from hushsum.parties.summarization._features import HashSecret
from hushsum.parties.summarization._messages import Answer, Opening, RunTerms
from hushsum.parties.summarization._noisy_sums import HashedTarget, NoisyTarget, release_target
from hushsum.parties.summarization._summary import (
    Comparison,
    RunSpec,
    Summary,
    summary_of,
    target_claim,
)
from hushsum.privacy import Booking, Claim, Promise, StagedRelease, another_release, spend, stage
from hushsum.privacy.accounting import zcdp_delta, zcdp_epsilon
from hushsum.records import PLAIN, CellFormat, pyarrow, read_columns

HASHES = "hashes"
"""The column of a summary's file that holds hashes."""

_MOST_OF_A_TARGET = 1 << 24


COLUMNS = Parameter(
    help="Columns that are compared, separated by commas; default: all.", group="", metavar="NAMES"
)
DEBIT_RHO = Parameter(help="Debit the validation set's release in ρ, not in ε and δ.", group="Ledger")


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorRequest:
    """What the owners are compared with, and what is collected.

    ``carry`` names columns that are collected with the points and not compared, such as a label. The release
    of the validation set is debited in ε and δ, or with ``debit_rho`` in ρ. The ``cells`` of its file are
    read as declared.
    """

    party: PartySpec
    validation: Annotated[
        str, Parameter(help="Records that the summary should resemble.", group="", metavar="FILE")
    ]
    run: RunSpec
    columns: Annotated[tuple[str, ...] | None, COLUMNS] = None
    carry: Annotated[
        tuple[str, ...],
        Parameter(help="Columns that are sent and not compared, such as a label.", group="", metavar="NAMES"),
    ] = ()
    pace: Annotated[
        float, Parameter(help="Time between the starts of rounds.", group="", at_least=0, metavar="SECONDS")
    ] = 1.0
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    debit_rho: Annotated[bool, DEBIT_RHO] = False


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
    that refuses later, breaks the rule, or is away for too long is lost for good. Answers are taken in the
    order of the terms, whichever comes first.
    """

    noun = "owner"
    resumable = True

    def __init__(self, opening: Opening, state: CuratorState, *, log: Log = lambda _: None) -> None:
        self.state = state
        self._log = log
        self.run, self.parties = opening.terms.run, opening.terms.owners
        self.most_reply = opening.terms.most_answer
        self._opening = opening.to_bytes()
        self._gathering = not state.step
        self._ready: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._replies: dict[str, tuple[bytes, Answer]] = {}

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

    audience = members

    @property
    def awaited(self) -> tuple[str, ...]:
        """Who has not accepted the terms, or not answered."""
        if self._gathering:
            return () if self._refusals else tuple(name for name in self.members if name not in self._ready)
        return tuple(name for name in self.state.awaited if name not in self._replies)

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
        """Keep an answer until the round is closed."""
        if party in self._replies and self._replies[party][0] == hashlib.sha256(data).digest():
            return
        answer = Answer.from_bytes(data, most=self.most_reply + MOST_CONTROL)
        if answer.owner != party:
            raise PeerRefused("it answered in the name of another owner")
        if party not in self.awaited:
            raise PeerRefused("it is not awaited, or answers again with other contents")
        self._replies[party] = hashlib.sha256(data).digest(), answer

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
        """Take the answers in the order of the terms; lose the owners that have not answered."""
        for party, reason in self._refusals.items():
            raise PeerRefused(
                f"owner {short(party)}: {reason}",
                remedy="settle that and start again, nothing is spent twice",
            )
        for party in self.members:
            if party not in (self._ready if self._gathering else self._replies):
                self.state.lose(party)
            elif not self._gathering:
                try:
                    self.state.take(self._replies[party][1])
                except FileRefused as refused:
                    self._log(f"refused owner {short(party)}: {refused}")
                    self.state.lose(party)
        self._gathering = False
        self._replies.clear()
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
            machine = CuratorMachine(opening, state, log=log)
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
    path, run, comparison = Path(request.validation), request.run, request.run.comparison
    remedy = "make one with: hushsum summarize validation"
    if not path.is_file():
        raise UsageError("validation", "must be an existing file", got=f"{str(path)!r}", remedy=remedy)
    try:
        with path.open("rb") as stream:
            made = HashedTarget.from_bytes(stream.read(_MOST_OF_A_TARGET))
    except FileRefused:
        raise FileRefused(
            "validation",
            ("must be an undamaged validation release, which ", NameOf("hashes"), " needs"),
            got=f"{str(path)!r}",
            remedy=remedy,
        ) from None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRequest:
    """The consumer's release of a validation set under the owners' secret, for one run."""

    hashes: Annotated[
        str, Parameter(help="The secret shared by owners and consumer.", group="", metavar="FILE")
    ]
    comparison: Comparison
    columns: Annotated[tuple[str, ...] | None, COLUMNS] = None
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    debit_rho: Annotated[bool, DEBIT_RHO] = False


@dataclass(frozen=True, slots=True)
class ValidationReleased:
    """A release that was written; ``check`` is that of the secret."""

    output: str
    columns: tuple[str, ...]
    check: str
    claim: Claim
    idempotency_key: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "output": self.output,
            "columns": list(self.columns),
            "check": self.check,
            "claim": self.claim.in_numbers(),
            "idempotency_key": self.idempotency_key,
        }


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
