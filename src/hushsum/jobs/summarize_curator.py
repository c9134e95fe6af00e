"""Collect a summary of several owners' records as the curator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushsum.errors import AlreadyPublished, UsageError
from hushsum.jobs.file_places import check_output
from hushsum.jobs.ledger_release import Booking, open_budget
from hushsum.jobs.summarize_owner import parse_address
from hushsum.jobs.summarize_records import ColumnBlocks, Floats, read_columns, write_columns
from hushsum.jobs.summarize_terms import RunChoice, at_delta
from hushsum.privacy.budget import Debit
from hushsum.privacy.claim import Claim
from hushsum.summarize.curator import CuratorState
from hushsum.summarize.curator_process import Address, CuratorProcess
from hushsum.summarize.identity import Identity, fingerprint_of
from hushsum.summarize.owner_process import Patience
from hushsum.summarize.result import Summary, summary_of, validation_claim
from hushsum.summarize.target import NoisyTarget, release_target
from hushsum.summarize.vault import Vault
from hushsum.summarize.wire import Opening


@dataclass(frozen=True, slots=True)
class CuratorChoice:
    """Who takes part, what they are compared with, and where the summary goes.

    ``carried`` columns are collected with the points and not compared, such as a label. The validation set's
    release is booked in ε and δ, or with ``book_rho`` in ρ.
    """

    key: str
    owners: str
    validation: str
    output: str
    state: str
    run: RunChoice
    columns: tuple[str, ...] | None = None
    carried: tuple[str, ...] = ()
    booking: Booking | None = None
    book_rho: bool = False


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary that was collected and written; for the consumer alone.

    ``together`` is what all messages cost at the δ that was asked for.
    """

    output: str
    run: str
    rule: str
    rounds: int
    summary: Summary
    together: Claim
    by_owner: dict[str, int]
    ledger_key: str | None

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
            "ledger_key": self.ledger_key,
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
            raise UsageError(f"--owners must be HOST:PORT@FINGERPRINT,..., got {each!r:.60} among them")
        name = fingerprint_of(fingerprint)
        if name in found:
            raise UsageError("--owners must name every owner once, got one twice; give each its own key")
        found[name] = Address(*parse_address(place, "--owners"))
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
    validation = read_columns(choice.validation, choice.columns)
    compared = tuple(name for name in validation.blocks if name not in choice.carried)
    if not compared:
        raise UsageError("the validation file must have a column to compare; see --columns and --carry")
    with Vault(choice.state) as vault:
        opening = _opening(choice, vault, tuple(addresses), compared, validation)
        target, debit, key = _target(choice, vault, opening, validation.choose(compared))
        state = CuratorState(opening.terms, target, store=lambda saved: vault.put("state", saved))
        kept = vault.get("state")
        if kept is not None:
            state.restore(kept)
            log(f"resuming round {state.round} of {opening.terms.rounds}")
        with CuratorProcess(
            identity, addresses, opening, state, pace=pace, patience=patience, log=log, progress=progress
        ) as process:
            if not state.step:
                process.gather()
                log("all owners that answer have accepted the terms")
            process.run()
            summary = summary_of(state, validation.choose(compared))
            write_columns(output, _columns(opening, validation, summary))
            if debit is not None:
                debit.publish()
            process.end()
    return _told(choice, state, summary, key)


def _opening(
    choice: CuratorChoice,
    vault: Vault,
    owners: tuple[str, ...],
    compared: tuple[str, ...],
    validation: ColumnBlocks,
) -> Opening:
    """The terms of this run; of the one under way, if they are the same."""
    kept = vault.get("opening")
    run = None if kept is None else Opening.from_bytes(kept).terms.run
    terms = choice.run.terms(run, owners, validation.width(compared), len(choice.carried))
    opening = Opening(terms, compared, choice.carried)
    if vault.keep("opening", opening.to_bytes()) != opening.to_bytes():
        raise UsageError("--state belongs to a run on other terms; repeat its options, or give another")
    return opening


def _target(
    choice: CuratorChoice, vault: Vault, opening: Opening, validation: Floats
) -> tuple[NoisyTarget, Debit | None, str | None]:
    """The validation set's release: booked, drawn once, and kept before anyone can see it."""
    kept = vault.get("target")
    rho = choice.run.validation_rho
    debit, key = None, None
    if choice.booking is not None:
        key = choice.booking.key or f"summarize-{opening.terms.run}"
        subject = {"kind": "validation set of a summarization", "run": opening.terms.run}
        claim = at_delta(validation_claim(opening.terms, rho), None if choice.book_rho else choice.run.delta)
        debit = open_budget(choice.booking).debit(choice.booking.dataset, claim, subject=subject, key=key)
        try:
            debit.draw()
        except AlreadyPublished:
            # The run ended, and is only written down once more.
            if kept is None:
                raise
            return NoisyTarget.from_bytes(kept), None, key
    if kept is None:
        kept = vault.keep("target", release_target(opening.terms.features, validation, rho).to_bytes())
    if debit is not None:
        debit.stage(kept)
    return NoisyTarget.from_bytes(kept), debit, key


def _columns(opening: Opening, validation: ColumnBlocks, summary: Summary) -> dict[str, Floats]:
    """The summary's points as named columns, in the shape that the validation file has."""
    ends = np.cumsum([validation.blocks[name].shape[1] for name in opening.compared])
    compared = zip(opening.compared, np.split(summary.points, ends[:-1], axis=1), strict=True)
    carried = ((name, summary.extra[:, [i]]) for i, name in enumerate(opening.carried))
    return {**dict(compared), **dict(carried)}


def _told(choice: CuratorChoice, state: CuratorState, summary: Summary, key: str | None) -> Summarized:
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
        ledger_key=key,
    )
