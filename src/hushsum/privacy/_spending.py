"""Spend a budget: debit, draw, stage, publish. Everything that releases goes through here.

A release passes four durable steps: *debited* (the claim is recorded), *drawn* (noise may exist), *staged*
(the bytes are stored by the ledger) and *published* (the bytes have reached their reader). The ledger
survives a crash between any two of them: a retry with the same idempotency key publishes the staged bytes,
and never draws new noise once a byte may have been seen. Nothing is refunded after *drawn*.
``hushsum.ledger`` implements the budget.

No other module calls a budget's ``debit``; a test searches the source for it. The order of the steps is what
makes a release safe to repeat: the claim is durable before noise exists, the bytes are durable before anyone
sees one of them, and a retry with the same idempotency key is given the bytes of the first attempt.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from hushsum.errors import HushsumError, PerSurface, UsageError
from hushsum.files import canonical_json

from ._claim import Claim
from .noise import noise_was_drawn

__all__ = [
    "Booking", "Budget", "StagedRelease", "another_release", "debit_stands", "spend", "spend_json", "stage",
    "what_was_spent",
]  # fmt: skip


class Debit(Protocol):
    """One debited release on its way through the four steps."""

    @property
    def staged(self) -> bytes | None:
        """The bytes of an earlier attempt with the same key, if it came that far."""

    def draw(self) -> None:
        """Record that noise is about to be drawn; from here on nothing is refunded."""

    def stage(self, payload: bytes) -> bytes:
        """Store the bytes durably, before anyone may see one of them.

        Returns the bytes that count: those of the first to stage, if another process with the same key was
        faster. What the slower one drew must not leave it.
        """

    def publish(self) -> None:
        """Record that the staged bytes have reached their reader."""


@runtime_checkable
class Budget(Protocol):
    """The budget of one dataset, or of one of its parts: ``hs.Ledger("ledger.db").dataset("town")``.

    Each part of it is granted once, however many processes request it at the same time. Only
    `hushsum.privacy` calls ``debit``.
    """

    def cost(self, claim: Claim) -> object:
        """What a claim costs, whether or not as much is left; a model calls this before it counts a record.

        Raises
        ------
        ClaimError
            as ``debit`` would.
        """

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> Debit:
        """Debit a claim, or find the debit of this key.

        ``subject`` describes publicly what is released (basis fingerprint, rows, …). ``idempotency_key``
        names the attempt: the same key never spends twice.

        Raises
        ------
        BudgetExhausted
            if less is left than the claim spends; nothing is debited.
        ClaimError
            if the claim cannot be debited: insecure noise, another unit or relation that does not convert.
        """


Make = Callable[[], bytes]


_GIVE_BUDGET: Final = PerSurface(
    "give budget=hs.Ledger(...).dataset(...)", "give --ledger and --dataset", "release from a dataset"
)


@dataclass(frozen=True, slots=True)
class Booking:
    """Where a release is recorded: the budget of a dataset, and the key that names this attempt."""

    budget: Budget
    idempotency_key: str

    @classmethod
    def of(cls, budget: Budget | None, idempotency_key: str | None) -> Booking | None:
        """Read the two arguments of a releasing call; None where nothing is recorded.

        Without an ``idempotency_key`` the attempt gets a random one, and every call spends.

        Raises
        ------
        UsageError
            an idempotency key without a budget, or a budget that is not that of a dataset.
        """
        if budget is None:
            if idempotency_key is not None:
                rule = "names a release in a ledger"
                raise UsageError("idempotency_key", rule, got="no budget", remedy=_GIVE_BUDGET)
            return None
        if not isinstance(budget, Budget):
            raise UsageError(
                "budget", "must be the budget of a dataset", got=type(budget).__name__, remedy=_GIVE_BUDGET
            )
        return cls(budget, secrets.token_hex(16) if idempotency_key is None else idempotency_key)


@dataclass(frozen=True, slots=True)
class StagedRelease:
    """Bytes that the ledger stores. Deliver ``payload``, then call :meth:`publish`.

    Without a booking there is no ledger, and ``publish`` does nothing.
    """

    payload: bytes
    debit: Debit | None

    def publish(self) -> None:
        """Record that the bytes have reached their reader."""
        if self.debit is not None:
            self.debit.publish()
            _steps[:] = [_PUBLISHED]


_DEBITING, _DEBITED, _PUBLISHED = "debiting", "debited", "published"
# How far the last release of this process has come that a ledger records; empty before the first.
_steps: Final[list[str]] = []


def debit_stands() -> bool:
    """Whether the last release of this process was debited and has not reached its reader."""
    return _steps[-1:] == [_DEBITED]


def what_was_spent() -> str:
    """What this process has spent, for whoever interrupts it; a part of a sentence."""
    last = _steps[-1] if _steps else None
    if last == _PUBLISHED:
        return "the release was made, and its budget is spent"
    if last is not None:
        may = "is" if last == _DEBITED else "may be"
        return f"the budget {may} debited; repeat the same command for the release, which costs nothing more"
    if noise_was_drawn():
        return "noise was drawn: if any of the output was written, it is spent"
    return "nothing was spent"


def stage(booking: Booking | None, claim: Claim, subject: Mapping[str, object], make: Make) -> StagedRelease:
    """Debit the claim, make the bytes unless an earlier attempt with this key staged some, and stage them.

    A crash before *staged* leaves no byte outside this process, so a retry may draw again under the same
    debit. After it, the retry gets the staged bytes back. For a delivery that takes long or may fail; others
    call `spend`.

    Raises
    ------
    BudgetExhausted
        if the budget has too little left; ``make`` is not called then.
    ClaimError
        if the claim cannot be debited.
    AlreadyPublished
        if a release with this key has reached its reader.
    """
    if booking is None:
        return StagedRelease(make(), None)
    _steps.append(_DEBITING)
    try:
        debit = booking.budget.debit(claim, subject=subject, idempotency_key=booking.idempotency_key)
    except HushsumError:
        _steps.pop()
        raise
    _steps[:] = [_DEBITED]
    payload = debit.staged
    if payload is None:
        debit.draw()
        # Another process with this key may have staged first: only what the ledger stored may be published.
        payload = debit.stage(make())
    return StagedRelease(payload, debit)


def spend(
    booking: Booking | None,
    claim: Claim,
    subject: Mapping[str, object],
    make: Make,
    *,
    deliver: Callable[[bytes], object] | None = None,
) -> bytes:
    """Debit, draw, stage, deliver, publish: the bytes of the release. Raises as `stage` does.

    Parameters
    ----------
    booking : Booking, optional
        Where the claim is debited; without one the bytes are only made and delivered.
    claim : Claim
        What the release promises, known before anything is drawn.
    subject : mapping
        What is released, publicly: nothing that depends on the records.
    make : callable
        Draws the noise and returns the bytes. Not called if an earlier attempt has staged some.
    deliver : callable, optional
        Brings the bytes to their reader, between *staged* and *published*. By default they count as
        delivered when this call returns.
    """
    staged = stage(booking, claim, subject, make)
    if deliver is not None:
        deliver(staged.payload)
    staged.publish()
    return staged.payload


def spend_json(
    booking: Booking | None, claim: Claim, subject: Mapping[str, object], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """`spend` for a small result: a dictionary, staged as canonical JSON together with claim and subject.

    The result always passes through JSON, so that a retry returns exactly what the first call would have.

    Raises
    ------
    UsageError
        if the staged bytes are those of another release.
    """
    about: dict[str, Any] = json.loads(canonical_json({"claim": claim.as_json(), "subject": dict(subject)}))

    def check(payload: bytes) -> None:
        stored = json.loads(payload)
        if {name: stored.get(name) for name in about} != about or "result" not in stored:
            raise another_release()

    payload = spend(
        booking, claim, subject, lambda: canonical_json({**about, "result": make()}), deliver=check
    )
    result: dict[str, Any] = json.loads(payload)["result"]
    return result


def another_release() -> UsageError:
    """The refusal of staged bytes that were made for something else."""
    remedy = "leave it out, or give a new one"
    return UsageError("idempotency_key", "belongs to another release", remedy=remedy)
