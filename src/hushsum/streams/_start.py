"""Start a stream: everything is checked, the claim is paid once, and the state is made."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

from hushsum.declaration import Parameter
from hushsum.errors import Parameter as NameOf
from hushsum.errors import UsageError, shown
from hushsum.files import canonical_json
from hushsum.kernels import positive_integer
from hushsum.privacy import (
    AUTO,
    MOST_ROWS,
    MOST_STEPS,
    Budget,
    Claim,
    Mechanism,
    Relation,
    ReleaseRequest,
    View,
    another_release,
    spend,
    stream_noise,
)
from hushsum.releases import stream_unit
from hushsum.streams._stream import (
    Stream,
    StreamFile,
    StreamPlan,
    StreamState,
    StreamTerms,
    plan_of,
    step_guard,
)
from hushsum.tally import Tally, TallyPattern, claimed_unit, is_graph

CLOCK = "the steps are taken at times that do not depend on the records"
FILES_IN_TIME = "no file is refused or comes late, so that no record decides about the step of others"
STEPS: Final = "Steps"
REMOVED_ONCE = "every record is added once and removed at most once"


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """What may be requested of a stream: a release request, the horizon, and what the steps show.

    Parameters
    ----------
    release : ReleaseRequest
        Promise, relation, unit and where it is booked. A stream has no ``mechanism`` to choose.
    horizon : int
        How many steps there will be, at most.
    window, decay : int, float
        What a step shows: the last steps alone, or all with decaying weights. Default: all steps so far.
    removals : bool
        Whether records may be removed again.
    assumptions : tuple of str
        What else the claim assumes of whoever gives the records.
    """

    release: ReleaseRequest
    horizon: Annotated[
        int, Parameter(help="How many steps the claim covers.", group="", at_least=1, at_most=MOST_STEPS)
    ]
    window: Annotated[
        int | None,
        Parameter(
            help="Show the last WINDOW steps instead of all.", group=STEPS, at_least=1, at_most=MOST_STEPS
        ),
    ] = None
    decay: Annotated[
        float | Fraction | None,
        Parameter(
            help="Show all steps, each with DECAY times the weight of the next one.",
            group=STEPS,
            above=0,
            below=1,
        ),
    ] = None
    removals: bool = False
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedStream:
    """A stream that has been checked and not been paid. Nothing in it is secret."""

    pattern: TallyPattern
    rows: int | None
    fingerprint: str
    request: StreamRequest
    terms: StreamTerms
    plan: StreamPlan

    @property
    def claim(self) -> Claim:
        """What all steps together will promise."""
        return self.terms.claim

    @property
    def cells(self) -> int:
        """How many numbers the table has."""
        rows, width = _empty(self.pattern, self.rows).basis.shape
        return rows * width

    @property
    def subject(self) -> dict[str, object]:
        """The description in the ledger: public, and the same for a retry."""
        return {
            "fingerprint": self.fingerprint,
            **self.request.release.public_options,
            "stream": {
                "horizon": self.terms.noise.horizon,
                "view": self.terms.noise.view.as_json(),
                "removals": self.terms.removals,
            },
        }

    def start(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        encryption_key: bytes | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> Stream:
        """Pay the claim and make the stream, with its file where a path is given.

        The claim is durable in the ledger before the file exists, and the file before the payment counts as
        delivered: a retry with the same idempotency key, after a crash between the two, finds or makes the
        file, and does not pay again.

        Raises
        ------
        UsageError
            for an idempotency key without a path: a retry would start a second stream for one payment.
        """
        file = None
        if path is None and self.request.release.idempotency_key is not None:
            raise UsageError(
                "idempotency_key",
                (
                    "needs ",
                    NameOf("path"),
                    ": a retry continues the stream in that file",
                ),
                remedy=("give ", NameOf("path"), ", or leave the key out"),
            )
        if path is not None:
            booking = self.request.release.booking
            if Path(path).exists() and (booking is None or self.request.release.idempotency_key is None):
                raise UsageError(
                    "path",
                    "must not exist: a stream starts there",
                    remedy="continue that one with hs.open_stream(path)",
                )
            file = StreamFile(path, encryption_key)
        try:
            return self._start(file, dict(notes or {}))
        except BaseException:
            if file is not None:
                file.close()
            raise

    def _start(self, file: StreamFile | None, notes: dict[str, Any]) -> Stream:
        request, started = self.request.release, []
        if file is not None:
            step_guard(self.terms.stream).prepare()
        subject = self.subject
        about = json.loads(canonical_json({"claim": self.claim.as_json(), "subject": subject}))

        def deliver(payload: bytes) -> None:
            found = json.loads(payload)
            if {name: found.get(name) for name in about} != about or not isinstance(found.get("stream"), str):
                raise another_release()
            terms = replace(self.terms, stream=found["stream"])
            if file is not None and file.path.exists():
                stored, state = file.read()
                if stored.stream != terms.stream:
                    raise another_release()
            else:
                state = StreamState.empty(_empty(self.pattern, self.rows), terms.noise)
                state.notes = notes
            made = Stream(terms, state, file=file)
            if file is not None:
                made.save()
            started.append(made)

        spend(
            request.booking,
            self.claim,
            subject,
            lambda: canonical_json({**about, "stream": secrets.token_hex(16)}),
            deliver=deliver,
        )
        return started[0]


def prepare_stream(tally: Tally, request: StreamRequest) -> PreparedStream:
    """Check all that can be refused; then the claim and the noise of every step are known.

    Raises
    ------
    ClaimError, UsageError
        if the numbers cannot be claimed, or the tally is not empty, or is one of a graph.
    """
    pattern = TallyPattern.of(tally)
    if is_graph(tally.basis):
        raise UsageError(
            "tally",
            "must count records: a list of edges is counted as a whole",
            remedy="release each graph by itself",
        )
    release, promise = request.release, request.release.promise
    horizon = positive_integer("horizon", request.horizon, at_most=MOST_STEPS)
    view = View.of(request.window, request.decay)
    if release.mechanism is not None:
        raise UsageError("mechanism", "must be left out: the promise decides it for a stream")
    rows = None
    if isinstance(release.rows, str) and release.rows != AUTO:
        raise UsageError("rows", f"must be a number or {AUTO!r}", got=shown(release.rows))
    if not isinstance(release.rows, str):
        rows = positive_integer("rows", release.rows, at_most=MOST_ROWS)
        if rows > tally.basis.shape[0]:
            raise UsageError("rows", f"must be at most the tally's {tally.basis.shape[0]}", got=f"{rows}")
    empty = _empty(pattern, rows)
    _ = empty.reading  # which refuses a tally without the kernel that its steps are read with
    relation, share = Relation.of(release.relation), release.share_of_count
    unit, per_unit = claimed_unit(empty, release.unit, relation)
    release.check_delta()
    changes = stream_unit(empty.basis, unit, per_unit, relation, removals=request.removals)
    noise = stream_noise(promise, changes, horizon=horizon, view=view, count_share=share)
    once = (REMOVED_ONCE,) if request.removals and empty.max_per_unit is None else ()
    claim = Claim(
        promise=promise,
        unit=unit,
        records_per_unit=per_unit,
        relation=relation,
        mechanism=Mechanism.of(noise.mechanism),
        arithmetic="exact integers",
        secure=release.insecure_noise_seed is None,
        assumptions=(
            *(text for name, text in empty.basis.assumptions.items() if name == unit),
            CLOCK,
            *request.assumptions,
            *once,
        ),
    )
    terms = StreamTerms(
        stream=secrets.token_hex(16),
        claim=claim,
        noise=noise,
        removals=request.removals,
        rounded=bool(release.rounded),
        count_share=share,
        insecure_noise_seed=release.insecure_noise_seed,
    )
    plan = plan_of(claim, empty.basis, noise, share)
    return PreparedStream(pattern, rows, empty.fingerprint, request, terms, plan)


def _empty(pattern: TallyPattern, rows: int | None) -> Tally:
    tally = pattern.empty()
    if rows is None or rows == tally.basis.shape[0]:
        return tally
    return Tally(tally.basis.prefix(rows), tally.kernel, max_per_unit=tally.max_per_unit)


def stream(
    tally: Tally,
    *,
    horizon: int,
    window: int | None = None,
    decay: float | Fraction | None = None,
    removals: bool = False,
    epsilon: float | Fraction | None = None,
    delta: float | Fraction | None = None,
    rho: float | Fraction | None = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    unit: str | None = None,
    rows: int | str = AUTO,
    count_share: float | Fraction | None = None,
    rounded: bool | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
    path: str | os.PathLike[str] | None = None,
    encryption_key: bytes | None = None,
) -> Stream:
    """Start a stream: a function that is released anew at every step, under one claim paid now.

    Parameters
    ----------
    tally : Tally
        An empty one, as the pattern: ``hs.grid(...)``, ``hs.race(...)``. With ``max_per_unit`` the unit is a
        person, whose records are capped over the whole horizon.
    horizon : int
        How many steps there will be, at most 16,384. The claim covers all of them, whether they are taken or
        not.
    window : int, optional
        Show the last so many steps instead of all.
    decay : float, optional
        Show all steps, each with this part of the weight of the next one.
    removals : bool
        Let records be removed again; this costs √2 times the noise (twice as much under replace).
    path : path-like, optional
        Where the secret state is kept, so that the stream outlives this process; see :func:`open_stream`.
    encryption_key : bytes, optional
        32 bytes that encrypt it.
    epsilon, delta, rho, relation, unit, rows, count_share, rounded, population, allow_large_delta, budget, \
idempotency_key, insecure_noise_seed
        As in :meth:`hushsum.Tally.release`; the budget is debited once, here. An idempotency key needs a
        ``path``: a retry continues the stream in that file. Under replace the number of records is private
        too, because a record may be replaced by one of another step.

    Raises
    ------
    ClaimError, BudgetExhausted
        if the numbers cannot be claimed, or the budget has too little left; no stream is started.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1))
    >>> stream = hs.stream(tally, horizon=365, epsilon=1.0, delta=1e-6)
    >>> monday = stream.add([[0.2], [0.7]]).step()
    >>> tuesday = stream.step()
    >>> tuesday.stream_step.step, stream.released
    (2, 2)

    Privacy
    -------
    Exactly the requested claim for all steps together, by integer noise from a fresh key at every step; the
    proof is in `hushsum.privacy.over_time`.
    """
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        unit=unit,
        rows=rows,
        count_share=count_share,
        rounded=rounded,
        population=population,
        allow_large_delta=allow_large_delta,
        budget=budget,
        idempotency_key=idempotency_key,
        insecure_noise_seed=insecure_noise_seed,
    )
    prepared = prepare_stream(tally, StreamRequest(request, horizon, window, decay, removals))
    return prepared.start(path, encryption_key=encryption_key)


def plan_stream(
    tally: Tally,
    *,
    horizon: int,
    window: int | None = None,
    decay: float | Fraction | None = None,
    removals: bool = False,
    epsilon: float | Fraction | None = None,
    delta: float | Fraction | None = None,
    rho: float | Fraction | None = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    unit: str | None = None,
    rows: int | str = AUTO,
    count_share: float | Fraction | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
) -> StreamPlan:
    """The noise of every step of a stream with these parameters, before it is paid. Spends nothing.

    Parameters as of :func:`stream`.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=100)
    >>> round(hs.streams.plan_stream(tally, horizon=365, epsilon=1.0, delta=1e-6).ratio, 2)
    2.95
    """
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        unit=unit,
        rows=rows,
        count_share=count_share,
        population=population,
        allow_large_delta=allow_large_delta,
    )
    return prepare_stream(tally, StreamRequest(request, horizon, window, decay, removals)).plan
