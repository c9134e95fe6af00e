"""Collect a summary of several owners' records as the curator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushsum._types import Floats
from hushsum.errors import AlreadyPublished, Parameter, UsageError
from hushsum.jobs.deliver_release import LedgerOptions
from hushsum.jobs.output_files import check_output
from hushsum.jobs.summarize_records import write_columns
from hushsum.jobs.summarize_terms import RunChoice, at_delta
from hushsum.jobs.summarize_validation import Validation, read_validation
from hushsum.privacy.claim import Claim
from hushsum.privacy.spending import Booking, StagedRelease, another_release, stage
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.summarize.curator import CuratorState
from hushsum.summarize.curator_process import CuratorProcess
from hushsum.summarize.result import Summary, summary_of, target_claim
from hushsum.summarize.target import NoisyTarget, release_target
from hushsum.summarize.transport_messages import Opening
from hushsum.transport.addresses import Address, Patience, parse_address
from hushsum.transport.peer_identity import Identity, fingerprint_of
from hushsum.transport.state_folder import StateFolder


@dataclass(frozen=True, slots=True)
class CuratorChoice:
    """Who takes part, what they are compared with, and where the summary goes.

    ``carried`` columns are collected with the points and not compared, such as a label. The validation set's
    release is debited in ε and δ, or with ``debit_rho`` in ρ. The ``cells`` of its file are read as declared.
    """

    key: str
    owners: str
    validation: str
    output: str
    state: str
    run: RunChoice
    columns: tuple[str, ...] | None = None
    carried: tuple[str, ...] = ()
    ledger: LedgerOptions | None = None
    debit_rho: bool = False
    cells: CellFormat = PLAIN


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary that was collected and written; for the consumer alone.

    ``together`` is what all messages cost at the requested δ.
    """

    output: str
    run: str
    rule: str
    rounds: int
    summary: Summary
    together: Claim
    by_owner: dict[str, int]
    idempotency_key: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "output": self.output,
            "run": self.run,
            "rule": self.rule,
            "rounds": self.rounds,
            **self.summary.as_json(),
            "claim": self.together.in_numbers(),
            "by_owner": self.by_owner,
            "idempotency_key": self.idempotency_key,
        }


def parse_owners(text: str) -> dict[str, Address]:
    """``HOST:PORT@FINGERPRINT``, separated by commas, by fingerprint.

    >>> parse_owners("a.example:7000@" + "0f" * 32)["0f" * 32]
    Address(host='a.example', port=7000)
    """
    found: dict[str, Address] = {}
    for each in text.split(","):
        place, at, fingerprint = each.strip().rpartition("@")
        if not at:
            raise UsageError(
                parameter="owners",
                rule="must be HOST:PORT@FINGERPRINT,...",
                got=f"{each!r:.60} among them",
            )
        name = fingerprint_of(fingerprint)
        if name in found:
            raise UsageError(
                parameter="owners",
                rule="must name every owner once",
                got="one twice",
                remedy="give each its own key",
            )
        found[name] = Address(*parse_address(place, "owners"))
    return found


def collect_summary(
    choice: CuratorChoice,
    *,
    pace: float,
    patience: Patience,
    log: Callable[[str], None],
    progress: Callable[[float], None],
) -> Summarized:
    """Hold the run, write the summary, tell the owners that it is over; resumes with the same ``state``.

    Raises
    ------
    UsageError
        if the state belongs to a run on other terms.
    PeerRefused
        if an owner refuses the terms; nothing was drawn for the owners then.
    PeerLost
        if no owner is left.
    """
    addresses = parse_owners(choice.owners)
    identity = Identity.load(choice.key)
    output = check_output(choice.output, inputs=[choice.validation, choice.key])
    if choice.run.hashed and choice.ledger is not None:
        raise UsageError(
            parameter="ledger",
            rule=(
                "must be left out with ",
                Parameter("hashes"),
                ": the validation release was paid where it was made",
            ),
        )
    validation = read_validation(choice.validation, choice.columns, choice.carried, choice.run, choice.cells)
    with StateFolder(choice.state) as state_folder:
        opening = _opening(choice, state_folder, tuple(addresses), validation)
        target, staged = _target(choice, state_folder, opening, validation)
        state = CuratorState(opening.terms, target, store=lambda saved: state_folder.put("state", saved))
        kept = state_folder.get("state")
        if kept is not None:
            state.restore(kept)
            log(f"resuming round {state.round} of {opening.terms.rounds}")
        with CuratorProcess(
            identity, addresses, opening, state, pace=pace, patience=patience, log=log, progress=progress
        ) as process:
            if not state.step:
                places = ", ".join(f"{each.host}:{each.port}" for each in addresses.values())
                log(f"waiting up to {patience.lost:g} seconds for the owners at {places}")
                process.gather()
                log("all owners that answer have accepted the terms")
            process.run()
            summary = summary_of(state, validation.points)
            write_columns(output, _columns(validation, opening.carried, summary))
            if staged is not None:
                staged.publish()
            process.end()
    key = None if choice.ledger is None else _idempotency_key(choice.ledger, opening)
    return _result(choice, state, summary, key)


def _opening(
    choice: CuratorChoice,
    state_folder: StateFolder,
    owners: tuple[str, ...],
    validation: Validation,
) -> Opening:
    """The terms of this run; of the one under way, if they are the same."""
    kept = state_folder.get("opening")
    run = None if kept is None else Opening.from_bytes(kept).terms.run
    terms = choice.run.terms(run, owners, validation.dim, len(choice.carried))
    opening = Opening(terms, validation.names, choice.carried, validation.check)
    if state_folder.keep("opening", opening.to_bytes()) != opening.to_bytes():
        raise UsageError(
            parameter="state",
            rule="belongs to a run on other terms",
            remedy="repeat its options, or give another",
        )
    return opening


def _target(
    choice: CuratorChoice, state_folder: StateFolder, opening: Opening, validation: Validation
) -> tuple[NoisyTarget, StagedRelease | None]:
    """The validation set's release: debited, drawn once, and kept before anyone can see it."""
    kept = state_folder.get("target")
    if validation.points is None:
        assert validation.released is not None
        mine = validation.released.to_bytes()
        if state_folder.keep("target", mine) != mine:
            raise UsageError(
                parameter="state",
                rule="belongs to a run with another validation release",
                remedy="give that, or another",
            )
        return validation.released, None
    rho = choice.run.validation_rho
    points = validation.points

    def make() -> bytes:
        drawn = kept or release_target(opening.terms.features, points, rho).to_bytes()
        return state_folder.keep("target", drawn)

    booking = None
    if choice.ledger is not None:
        booking = Booking(choice.ledger.budget(), _idempotency_key(choice.ledger, opening))
    claim = at_delta(target_claim(rho), None if choice.debit_rho else choice.run.delta)
    subject = {"kind": "validation set of a summarization", "run": opening.terms.run}
    try:
        staged = stage(booking, claim, subject, make)
    except AlreadyPublished:
        # The run ended, and is only written down once more.
        if kept is None:
            raise
        return NoisyTarget.from_bytes(kept), None
    if state_folder.keep("target", staged.payload) != staged.payload:
        raise another_release()
    return NoisyTarget.from_bytes(staged.payload), staged


def _idempotency_key(ledger: LedgerOptions, opening: Opening) -> str:
    return ledger.idempotency_key or f"summarize-{opening.terms.run}"


def _columns(validation: Validation, carried: tuple[str, ...], summary: Summary) -> dict[str, Floats]:
    """The summary's points as named columns, in the shape that the validation file has."""
    ends = np.cumsum([width for _, width in validation.widths])
    parts = np.split(summary.points, ends[:-1], axis=1)
    compared = {name: part for (name, _), part in zip(validation.widths, parts, strict=True)}
    return {**compared, **{name: summary.extra[:, [i]] for i, name in enumerate(carried)}}


def _result(choice: CuratorChoice, state: CuratorState, summary: Summary, key: str | None) -> Summarized:
    terms = state.terms
    counts = np.bincount(summary.owners, minlength=len(terms.owners))
    return Summarized(
        output=choice.output,
        run=terms.run,
        rule=terms.rule,
        rounds=terms.rounds,
        summary=summary,
        together=at_delta(summary.claims.together, choice.run.delta),
        by_owner={name: int(count) for name, count in zip(terms.owners, counts, strict=True)},
        idempotency_key=key,
    )
