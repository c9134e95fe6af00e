"""What may be requested of a release: one definition for Python, command line, service and client.

A new parameter is a field here, from which the options of commands, the bodies of the service and the calls
of its client are made, and a key of `ReleaseKeywords`, which Python calls take.

Spending
========
Everything that releases goes through `spend`: debit, draw, stage, publish. A release passes four durable
steps: *debited* (the claim is recorded), *drawn* (noise may exist), *staged* (the bytes are stored by the
ledger) and *published* (the bytes have reached their reader). The ledger survives a crash between any two of
them: a retry with the same idempotency key publishes the staged bytes, and never draws new noise once a byte
may have been seen. Nothing is refunded after *drawn*. ``hushsum.ledger`` implements the budget.

No other module calls a budget's ``debit``. The order of the steps is what
makes a release safe to repeat: the claim is durable before noise exists, the bytes are durable before anyone
sees one of them, and a retry with the same idempotency key is given the bytes of the first attempt.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol, Self, TypedDict, Unpack, runtime_checkable

from hushsum.declaration import Parameter, check_fields, parameters_of, picked, request, setting
from hushsum.errors import Argument, ClaimError, HushsumError, PerSurface, UsageError
from hushsum.files import canonical_json, declared_fields

from ._calibration import BINOMIAL, GAMMA, GAUSSIAN, LAPLACE, PURE_MECHANISMS
from ._claim import Claim, Mechanism, Promise, Relation, exact
from .accounting import check_delta, declared_population
from .noise import noise_was_drawn

__all__ = [
    "AUTO", "DELTA", "MOST_ROWS", "PRIVACY", "PROMISE", "PURE_NOISE", "RELATION", "RHO", "RULE_ON_DELTA",
    "STATED", "Booking", "BookingKeywords", "Budget", "ReleaseKeywords", "ReleaseRequest", "StagedRelease",
    "Statement", "StatementKeywords", "another_release", "check_declared_delta", "debit_stands", "spend",
    "spend_json", "stage", "stated_json", "stated_mechanism", "table_noise", "what_was_spent",
]  # fmt: skip

LARGEST_UNDECLARED_DELTA = Fraction(1, 100_000)
MOST_ROWS = 1 << 24
DEFAULT_COUNT_SHARE = 0.02
AUTO = "auto"
PURE_NOISE = Mechanism.of(LAPLACE) | Mechanism.of(GAMMA)
"""The noise of a table under pure ε, of which the one with less variance is drawn."""
MECHANISMS = (*PURE_MECHANISMS, GAUSSIAN, BINOMIAL)
"""What ``mechanism`` may be; left out, it is the noise of least variance that keeps the promise."""


def table_noise(promise: Promise) -> Mechanism:
    """What is drawn for a table with the `stated_mechanism`, before the table is known."""
    return PURE_NOISE if promise.pure else Mechanism.of(GAUSSIAN)


def stated_mechanism(promise: Promise) -> str | None:
    """The ``mechanism`` of releases whose claim is stated before their table is known: what keeps the promise
    as it is, and is not replaced by noise of pure ε.
    """
    return None if promise.pure else GAUSSIAN


PRIVACY: Final = "Privacy"
"""The heading of help."""
# The groups of parameters that a command or a body takes.
PROMISE: Final = ("epsilon", "delta", "rho", "relation")
RULE_ON_DELTA: Final = ("population", "allow_large_delta")
DELTA: Final = Parameter(help="δ, below 1/(10 × number of units).", group="", at_least=0, below=1)
RHO: Final = Parameter(
    help="ρ of zero-concentrated differential privacy, instead of ε and δ.", group=PRIVACY, above=0, below=1e9
)
RELATION: Final = Parameter(
    help="add/remove: the number of records is private; replace: it is public.",
    group=PRIVACY,
    choices=("add/remove", "replace"),
)


@request
class Statement:
    """What an owner states with a release beside its claim: public, and part of it. The release of every kind
    holds it, its file and the ledger's entry have it, and descriptions show it; it bears on no answer.

    A further statement is a field here, declared by `setting` with None as its default, and a key of
    `StatementKeywords`.
    """

    def __post_init__(self) -> None:
        check_fields(self)

    def as_json(self) -> dict[str, Any]:
        """What is stated, by name."""
        stated: dict[str, Any] = declared_fields(self)
        return stated

    @classmethod
    def from_json(cls, stored: object) -> Self:
        """What ``as_json`` wrote; ValueError for anything else."""
        if not isinstance(stored, dict):
            raise ValueError("statement")
        found = picked(cls, stored)
        if found.as_json() != stored:
            raise ValueError("statement")
        return found


def stated_json(statement: Statement) -> dict[str, Any]:
    """A statement as an entry of a larger object; nothing where nothing is stated."""
    return {"statement": stated} if (stated := statement.as_json()) else {}


STATED: Final = tuple(each.name for each in parameters_of(Statement))


class StatementKeywords(TypedDict, total=False):
    """The fields of a `Statement`, for calls."""


class BookingKeywords(TypedDict, total=False):
    """Where a release is recorded, and how its noise is drawn, as for ``Tally.release``;
    ``allow_large_delta`` claims a delta above 1e-5 all the same.
    """

    budget: Budget | None
    idempotency_key: str | None
    insecure_noise_seed: int | None
    allow_large_delta: bool


class ReleaseKeywords(BookingKeywords, StatementKeywords, total=False):
    """Everything that may be requested of the release of a tally, for calls; see `ReleaseRequest`."""

    epsilon: float | Fraction | None
    delta: float | Fraction | None
    rho: float | Fraction | None
    relation: str | Relation
    unit: str | None
    mechanism: str | None
    rows: int | str
    count_share: float | Fraction | None
    rounded: bool | None
    population: int | None


@request
class ReleaseRequest:
    """Everything that may be requested of the release of a tally. Nothing is checked before it is prepared.

    Parameters
    ----------
    epsilon, delta, rho : float, optional
        Pure ``epsilon``; ``epsilon`` and ``delta``; or ``rho``.
    relation : {"add/remove", "replace"}
        Which datasets are neighbours. Under replace the number of records is public.
    unit : str, optional
        Whom the claim protects. A tally made with ``max_per_unit`` counts persons; the tally of a graph
        offers ``"adjacency row"``, its default, and ``"edge"`` or, of a directed graph, ``"directed edge"``;
        another one counts records. A unit that the tally does not have is refused.
    mechanism : {"discrete laplace", "gamma radius", "discrete gaussian", "binomial"}, optional
        Under pure ε ``"discrete laplace"``, independent in every cell, or ``"gamma radius"``, one vector
        for the whole table, with half the variance for Fourier features; also under ε and δ, for 2 to 1024
        cells. ``"discrete gaussian"``: under ρ, or ε and δ. ``"binomial"``: under ε and δ, sums of fair
        coins, where one unit moves each cell by at most 1; about 7 % more noise than the Gaussian. Default:
        that of least variance. Under ε and δ that may be one of pure ε, as for grids in one and two columns;
        the release then claims ε alone, which is stronger.
    rows : int or "auto"
        How many of the tally's rows to publish. ``"auto"``: under pure ε, where rows share the budget, as
        many as suit ε and the noisy count; with δ or ρ all of them.
    count_share : float, optional
        The fraction of the budget that pays for the noisy count, by default 0.02; with δ or ρ, k/(1 + k) is
        best at density k.
    rounded : bool, optional
        Publish ``f.rounded()``: a smaller file, 2 % more variance of the noise. Default: no; ``hs.release``
        takes what it predicts to err least.
    population : int, optional
        The declared number of units: ``delta`` must lie below a tenth of one over it; else at 1e-5.
    allow_large_delta : bool
        Claim a larger one all the same.
    budget : Budget, optional
        The dataset's budget, which is debited before any noise is drawn.
    idempotency_key : str, optional
        The name of this attempt in the ledger, so that a retry after a crash does not spend again; by default
        a new one.
    insecure_noise_seed : int, optional
        Deterministic noise for tests. The release is marked and gives no protection.
    statement : Statement
        What else is stated with the release; `of` takes its fields by name.

    Examples
    --------
    >>> ReleaseRequest(epsilon=0.5).promise
    Promise(epsilon=Fraction(1, 2), delta=Fraction(0, 1), rho=None)
    """

    epsilon: float | Fraction | None = setting(None, "ε; pure unless δ is given.", above=0, below=1e9)
    delta: float | Fraction | None = setting(None, DELTA)
    rho: float | Fraction | None = setting(None, RHO)
    relation: str | Relation = setting(Relation.ADD_REMOVE, RELATION)
    unit: str | None = setting(
        None,
        "Unit of the claim for a graph: 'adjacency row', 'edge' or 'directed edge', as counted.",
        group=PRIVACY,
        metavar="NAME",
    )
    mechanism: str | None = setting(
        None,
        "'discrete laplace' or 'gamma radius', under pure ε; 'discrete gaussian', under δ or ρ; "
        "'binomial': fair coins, under ε and δ, where one unit changes each cell by at most 1. "
        "[default: the one with the least noise]",
        group=PRIVACY,
        choices=MECHANISMS,
        metavar="NAME",
    )
    rows: int | str = setting(
        AUTO,
        "Rows to publish; auto chooses the best number for the budget.",
        group=PRIVACY,
        choices=(AUTO,),
        at_least=1,
        at_most=10**8,
        metavar="auto|N",
    )
    count_share: float | Fraction | None = setting(
        None,
        "Fraction of the budget for the noisy count. [default: as planned; 0.02 for a tally]",
        group=PRIVACY,
        above=0,
        below=1,
    )
    rounded: bool | None = setting(
        None, "Round cells: a smaller file, and 2 % more variance of the noise.", group=PRIVACY
    )
    population: int | None = setting(
        None,
        "Declared number of records or persons, for the rule on δ.",
        group=PRIVACY,
        at_least=1,
        at_most=10**12,
    )
    allow_large_delta: bool = setting(False, "Accept a δ of 1/(10 × population) or more.", group=PRIVACY)
    budget: Budget | None = None
    idempotency_key: str | None = None
    insecure_noise_seed: int | None = setting(None, "", group=None)
    statement: Statement = Statement()

    @classmethod
    def of(cls, **keywords: Unpack[ReleaseKeywords]) -> ReleaseRequest:
        """The request of a call with these keywords; TypeError for another name."""
        if unknown := keywords.keys() - ReleaseKeywords.__annotations__.keys():
            raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
        return picked(cls, keywords)

    @property
    def promise(self) -> Promise:
        """ε, δ and ρ, checked together; ClaimError for what cannot be promised."""
        return Promise.of(epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    @property
    def share_of_count(self) -> Fraction:
        """The fraction of the budget for the noisy count, where no plan has decided it."""
        return exact("count_share", DEFAULT_COUNT_SHARE if self.count_share is None else self.count_share)

    @property
    def booking(self) -> Booking | None:
        """Where the release is debited; UsageError for a key without a budget."""
        return Booking.of(self.budget, self.idempotency_key)

    @property
    def checked_mechanism(self) -> str | None:
        """The requested mechanism; UsageError for an unknown one, ClaimError for another kind of claim."""
        if self.mechanism not in (None, *MECHANISMS):
            rule = f"must be {', '.join(map(repr, MECHANISMS))} or left out"
            raise UsageError("mechanism", rule, got=f"{self.mechanism!r}")
        rho = self.promise.rho is not None
        if (self.mechanism == LAPLACE and not self.promise.pure) or (self.mechanism == GAMMA and rho):
            kept = "pure epsilon" if self.mechanism == LAPLACE else "epsilon, with or without delta"
            raise ClaimError("mechanism", f"{self.mechanism} keeps {kept}", got="delta or rho")
        if self.mechanism == GAUSSIAN and self.promise.pure:
            raise ClaimError("mechanism", f"{GAUSSIAN} keeps epsilon and delta, or rho", got="pure epsilon")
        if self.mechanism == BINOMIAL and (self.promise.pure or rho):
            got = "rho" if rho else "pure epsilon"
            raise ClaimError("mechanism", f"{BINOMIAL} keeps epsilon and delta", got=got)
        return self.mechanism

    @property
    def public_options(self) -> dict[str, object]:
        """What a ledger says of the release beside its claim: public, and the same for a retry."""
        share = str(self.share_of_count)
        return {"rows": self.rows, "count_share": share, "rounded": bool(self.rounded)}

    def check_delta(self) -> None:
        """Refuse a δ that is too large for the declared population; see `check_declared_delta`."""
        check_declared_delta(self.promise, self.population, allow_large_delta=self.allow_large_delta)


def check_declared_delta(
    promise: Promise, population: int | None, *, allow_large_delta: bool = False
) -> None:
    """Refuse a δ that would allow to publish somebody: below a tenth of one over the units, or below 1e-5.

    A mechanism that publishes one random record has δ = 1/units. The true number is private, so the rule
    takes the declared one, and a ceiling where none is declared.

    Raises
    ------
    ClaimError
        for a larger δ without ``allow_large_delta``.
    """
    if population is not None:
        declared_population(population)
    if promise.delta == 0:
        return
    if population is not None:
        check_delta(promise.delta, population, allow_large_delta=allow_large_delta)
    elif promise.delta > LARGEST_UNDECLARED_DELTA and not allow_large_delta:
        rule = f"must be at most {float(LARGEST_UNDECLARED_DELTA):g} where no population is declared"
        remedy = ("declare ", Argument("population"), ", or give ", Argument("allow_large_delta", True))
        raise ClaimError("delta", rule, got=f"{float(promise.delta):g}", remedy=remedy)


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
