"""A stream: records come in, and every step releases the function of what has come so far.

Its plan and its state, the file of the state, the guard against older copies of it, and its start, where
everything is checked, the claim is paid once, and the state is made.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import secrets
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, NoReturn, Self, Unpack, cast

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.declaration import picked, request, setting, shows_keywords
from hushsum.errors import Argument, FileRefused, RepeatedSpending, SecretRefused, StreamInUse, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.files import (
    REAL,
    Buffer,
    FileKind,
    Header,
    NumberGuard,
    SecretFile,
    Section,
    SharedText,
    canonical_json,
    decode_array,
    encode_array,
    encoded_size,
    padded_json,
    padded_size,
    stored_rational,
)
from hushsum.kernels import positive_integer, thread_count
from hushsum.privacy import (
    AUTO,
    LAST_STEP,
    MOST_STEPS,
    PERSON,
    Claim,
    Mechanism,
    Relation,
    ReleaseKeywords,
    ReleaseRequest,
    Statement,
    StreamNoise,
    View,
    another_release,
    calibrate,
    spend,
    stated_json,
    stated_mechanism,
    stream_noise,
)
from hushsum.releases import NoisyTable, PublicFacts, StreamStep, function_type, stream_unit
from hushsum.tables import Basis, Table, basis_from_json
from hushsum.tally import (
    Tally,
    TallyPattern,
    add_removals,
    build,
    claimed_unit,
    described,
    has_removals,
    is_graph,
    leave_room,
    payload_size,
    rounding_step,
    take_increment,
)

WARNING = "CONFIDENTIAL: exact sums of private records. Not for release; continue it with hushsum watch."
_LARGEST_SHOWN = 2.0**62
_LARGEST_NUMBER = 2.0**100
# The last step of the plan of a stream without a horizon is 2²⁴.
_FAR_BITS = 24


@dataclass(frozen=True, slots=True, eq=False)
class StreamPlan:
    """The noise of every step of a stream; public, and known before the claim is paid.

    Attributes
    ----------
    claim : Claim
        What all steps together will promise.
    horizon : int or None
        How many steps there can be; None without a horizon.
    steps : array of int
        The steps that the deviations are of: all, or 1, 2, 4, …, 2²⁴ without a horizon.
    deviations : array
        The standard deviation of the noise of a cell in what each of them shows.
    count_deviations : array
        The same of the number of records.
    one_release : float
        The standard deviation of a cell in one release of everything, under the same claim; with δ, of one
        with Gaussian noise, as steps have.
    state_bytes : int
        The size of the secret state, without counters of persons; it does not grow with the steps.
    """

    claim: Claim
    horizon: int | None
    steps: Integers
    deviations: Floats
    count_deviations: Floats
    one_release: float
    state_bytes: int

    @property
    def predicted_error(self) -> float:
        """The largest standard deviation of a cell over all steps, or up to step 2²⁴."""
        return float(self.deviations.max())

    @property
    def ratio(self) -> float:
        """The predicted error in units of the error of one release of everything.

        Fresh releases at all steps would have √``horizon``.
        """
        return self.predicted_error / self.one_release

    def __repr__(self) -> str:
        return (
            f"StreamPlan(horizon={self.horizon}, predicted_error={self.predicted_error:.4g}, "
            f"ratio={self.ratio:.3g}, state_bytes={self.state_bytes})"
        )


def plan_of(claim: Claim, basis: Basis, noise: StreamNoise, count_share: Fraction) -> StreamPlan:
    """The plan of a stream whose noise is known."""
    far = _FAR_BITS + 1 if noise.horizon is None else noise.horizon
    steps = np.arange(far) + 1 if noise.horizon is not None else 1 << np.arange(far)
    gains = np.sqrt(noise.strategy.gains(noise.view, steps))
    rows, width = basis.shape
    tables = 2 + 2 * noise.strategy.tables + noise.view.kept(noise.horizon)
    change = basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    mechanism = stated_mechanism(claim.promise)
    once = calibrate(
        claim.promise, change, cells=rows * width, count_share=count_share, mechanism=mechanism
    ).table
    return StreamPlan(
        claim=claim,
        horizon=noise.horizon,
        steps=steps,
        deviations=math.sqrt(noise.table.variance) * gains,
        count_deviations=math.sqrt(noise.count_variance) * gains,
        one_release=math.sqrt(once.variance),
        state_bytes=8 * tables * (rows * width + 1),
    )


def shapes_of(basis: Basis, noise: StreamNoise) -> tuple[tuple[int, ...], ...]:
    """The shapes of the secret, public, shown and kept tables of a stream."""
    rows, width = basis.shape
    size, tables = rows * width + 1, noise.strategy.tables
    return ((tables, size), (tables, size), (size,), (noise.view.kept(noise.horizon), size))


@dataclass(slots=True, eq=False, repr=False)
class StreamState:
    """The tables of a stream. All have one number per cell and, at the end, one for the number of records.

    Attributes
    ----------
    tally : Tally
        What was counted since the last step, and the caps on persons over all steps.
    removed : int
        How many of the records since the last step were removals.
    secret : array of shape (secret tables, cells + 1)
        Exact sums of earlier steps.
    public : array of shape (public tables, cells + 1)
        What reading the outputs keeps. It is a function of the outputs alone.
    shown : array of shape (cells + 1,)
        What the last step shows.
    kept : array of shape (window, cells + 1)
        The increments of the last steps, for windows; a ring.
    step : int
        How many steps there were.
    notes : dict
        What those who run the stream remember with it, as JSON; secret.
    """

    tally: Tally
    removed: int
    secret: Integers
    public: Floats
    shown: Floats
    kept: Floats
    step: int = 0
    notes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def empty(cls, tally: Tally, noise: StreamNoise) -> StreamState:
        """The state before the first step."""
        secret, *real = shapes_of(tally.basis, noise)
        public, shown, kept = map(np.zeros, real)
        return cls(tally, 0, np.zeros(secret, np.int64), public, shown, kept)

    def advance(self, noise: StreamNoise, *, insecure_noise_seed: int | None, threads: int) -> None:
        """One step: new noise, and what it shows. Nothing has left this process before `step` has grown."""
        table, count = take_increment(self.tally)
        increment = np.append(table, np.int64(count - self.removed) << noise.count_bits)
        self.removed = 0
        step = self.step + 1
        output = noise.strategy.advance(self.secret, increment, step)
        noise.add_to(output, step, insecure_noise_seed=insecure_noise_seed, threads=threads)
        growth = noise.strategy.read(self.public, output, step)
        growth[-1] /= 1 << noise.count_bits
        self._show(growth, noise)
        self.step = step
        self.leave_room(noise)

    def leave_room(self, noise: StreamNoise) -> None:
        """Let the tally refuse records with which a number of the state could leave 64 bits."""
        largest = self.tally.basis.sensitivity(Relation.ADD_REMOVE).largest
        # How much more a record moves the count than it may move a cell.
        finer = max(-(-(1 << noise.count_bits) // largest), 1)
        leave_room(self.tally, noise.strategy.room(self.secret) // finer)

    def _show(self, growth: Floats, noise: StreamNoise) -> None:
        if noise.view.decay is not None:
            self.shown *= float(noise.view.decay)
        self.shown += growth
        if len(self.kept):
            place = self.step % len(self.kept)
            self.shown -= self.kept[place]
            self.kept[place] = growth


def step_guard(stream: str) -> NumberGuard:
    """The note of one stream: the number of its last step, and a lock on the stream."""
    return NumberGuard("streams", stream, "steps that a stream has released")


def _check_newest(guard: NumberGuard, step: int) -> None:
    if (guard.known() or 0) > step:
        raise FileRefused(
            "this state of the stream is an older copy: later steps have been released",
            remedy="put the newest copy back; drawing a step twice would spend more than was paid",
        )


@dataclass(frozen=True, slots=True)
class StreamTerms:
    """Everything public that is fixed when a stream starts.

    ``stream`` names it. ``rounded`` and ``count_share`` are as in a release; ``insecure_noise_seed`` makes it
    repeatable, for tests.
    """

    stream: str
    claim: Claim
    noise: StreamNoise
    removals: bool
    rounded: bool
    count_share: Fraction
    insecure_noise_seed: int | None = None
    statement: Statement = field(default_factory=Statement)


class Stream:
    """A function that is kept up to date: ``add`` records, then ``step`` releases it. Secret inside.

    Made by :func:`hushsum.stream` and :func:`hushsum.open_stream`; not by hand. Every step must be taken on a
    clock that does not depend on the records, also when none have come. The number of steps is fixed at the
    start, or has no end.

    Privacy
    -------
    All steps together keep the one claim that was paid at the start, also where later records depend on
    what earlier steps have shown, and however many steps there will be without a horizon. The unit is a
    record or, with ``max_per_unit``, a person with all records over all steps. The proof is in
    `hushsum.privacy._over_time`. The answers of different steps are correlated: they share draws
    (:func:`hushsum.streams.step_covariance`).

    Notes
    -----
    The state is one draw of noise further after every step. Two copies of it that both continue would publish
    two draws for one step, and spend more than was paid: a stream that was opened from a file holds a lock on
    it and on all of its copies, notes its steps outside of it, and refuses an older copy. Threads of one
    process may share a stream: their calls are made one after the other.
    """

    __slots__ = ("_broken", "_file", "_guard", "_interrupted", "_lock", "_process", "_state", "_terms")

    def __init__(self, terms: StreamTerms, state: StreamState, *, file: StreamFile | None = None) -> None:
        self._terms = terms
        self._state = state
        self._file = file
        self._guard = None if file is None else file.guard(terms.stream, state.step)
        self._process = os.getpid()
        self._broken, self._interrupted = False, False
        self._lock = threading.RLock()
        state.leave_room(terms.noise)

    @property
    def claim(self) -> Claim:
        """What all steps together promise."""
        return self._terms.claim

    @property
    def horizon(self) -> int | None:
        """How many steps the claim covers; None for all that there will ever be."""
        return self._terms.noise.horizon

    @property
    def released(self) -> int:
        """How many steps have been released; public."""
        return self._state.step

    @property
    def id(self) -> str:
        """The public name of the stream, which its functions carry."""
        return self._terms.stream

    @property
    def path(self) -> Path | None:
        """The file that holds the stream's state; None for a stream in memory only."""
        return None if self._file is None else self._file.path

    @property
    def plan(self) -> StreamPlan:
        """The noise of every step, public."""
        return plan_of(self._terms.claim, self._state.tally.basis, self._terms.noise, self._terms.count_share)

    @property
    def notes(self) -> dict[str, Any]:
        """What whoever runs the stream remembers with its state, as JSON values; secret."""
        return self._state.notes

    def __repr__(self) -> str:
        of = "" if self.horizon is None else f" of {self.horizon}"
        return f"<Stream CONFIDENTIAL step {self.released}{of}, {self._state.tally.kernel!r}>"

    @property
    def finished(self) -> bool:
        """Whether all steps have been released."""
        return self.released >= (self.horizon or LAST_STEP)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            "a stream must not be pickled or copied: two copies would spend more than was paid",
            remedy=("give ", Argument("path"), " when it starts, and open it with hs.open_stream(path)"),
        )

    def __getstate__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, X: object, *, units: object = None, threads: int | None = None) -> Self:
        """Count records for the next step; any number of times. Parameters as of :meth:`hushsum.Tally.add`.

        They are in memory until the next :meth:`step` or :meth:`save`.
        """
        with self._held():
            # The stream is paid: which steps are released must not depend on the records.
            self._state.tally.add(X, units=units, threads=threads, allow_clipping=True)
        return self

    def remove(self, X: object, *, units: object = None, threads: int | None = None) -> Self:
        """Count records that were added before with the opposite sign, for the next step.

        A stream of records must have been started with ``removals=True``, which declares that every record is
        added once and removed once at most. In a stream of persons a removal takes one of the person's
        ``max_per_unit`` places, and is left out where none is left.

        Raises
        ------
        UsageError
            if the stream was not started with ``removals=True``.
        """
        with self._held():
            if not self._terms.removals:
                raise UsageError(
                    "removals",
                    "must be declared when a stream starts: a removal shows a record once more",
                    remedy=("start it with ", Argument("removals", True)),
                )
            state = self._state
            state.removed += add_removals(state.tally, X, units=units, threads=threads)
        return self

    def merge(self, tally: Tally) -> Self:
        """Add a tally that was counted elsewhere, for the next step; refused under a cap on persons.

        A person's records would have to be capped over all steps, which a tally of some of them cannot do. A
        tally from which records were removed needs ``removals=True``: they may be records of an earlier step.

        Raises
        ------
        UsageError
            if the stream counts persons, or records were removed from the tally and this was not declared.
        ClaimError
            if records with missing values were left out of the tally, and the stream claims replace.
        """
        with self._held():
            if self._state.tally.max_per_unit is not None:
                raise UsageError(
                    "a stream of persons counts all of their records itself, over all steps",
                    remedy="give the records to add",
                )
            claimed_unit(tally, self.claim.unit, self.claim.relation)
            if not self._terms.removals and has_removals(tally):
                raise UsageError(
                    "tally",
                    "must be one from which no record was removed: a removal shows a record once more",
                    remedy=("start the stream with ", Argument("removals", True)),
                )
            self._state.tally.merge(tally)
        return self

    def step(self, *, threads: int | None = None) -> NoisyTable:
        """Release the function of what has come so far, and begin the next step.

        The new state is on disk before the function is returned, so a step that was killed before that is
        drawn anew without a byte having been seen, and one that was killed later is :attr:`latest` when the
        stream is opened again.

        Raises
        ------
        UsageError
            if all steps have been released.
        FileRefused
            if a later step has been released from a copy of the state.
        """
        with self._held():
            cores = thread_count(threads)
            if self.finished:
                raise UsageError(
                    f"this stream has released all of its {self.released} steps",
                    remedy="start another one, which is paid for anew",
                )
            if self._guard is not None:
                _check_newest(self._guard, self.released)
            # A step that is interrupted leaves a stream that refuses to continue; its file is as before.
            self._broken = self._interrupted = True
            self._state.advance(
                self._terms.noise, insecure_noise_seed=self._terms.insecure_noise_seed, threads=cores
            )
            if self._file is not None:
                self._file.write(self._terms, self._state)
            if self._guard is not None:
                self._guard.note(self.released)
            self._broken = self._interrupted = False
            function = self.latest
        assert function is not None
        return function

    @property
    def latest(self) -> NoisyTable | None:
        """The function of the last step, the same bytes every time; None before the first one."""
        with self._kept_out():
            return self._shown()

    def _shown(self) -> NoisyTable | None:
        state, terms = self._state, self._terms
        if self._interrupted:
            # What is in memory may not be on disk, where the step would be drawn anew.
            self._check_usable()
        if state.step == 0:
            return None
        basis = state.tally.basis
        noise, count_noise = terms.noise.at(state.step)
        # Far beyond any true sum; what wrapped in 64 bits stays a number that a file can hold.
        numbers = np.clip(np.rint(state.shown), -_LARGEST_SHOWN, _LARGEST_SHOWN)
        largest = float(np.abs(numbers[:-1]).max(initial=0.0))
        whole = numbers[:-1].reshape(basis.shape)
        cells: Table = whole.astype(np.int32) if largest < 2**31 - 1 else whole.astype(np.int64)
        function = function_type(state.tally.reading)(
            reading=state.tally.reading,
            cells=cells,
            facts=PublicFacts(terms.claim, statement=terms.statement),
            noise=noise,
            noisy_count=int(numbers[-1]),
            count_noise=count_noise,
            stream_step=StreamStep(terms.stream, state.step, terms.removals, terms.noise),
        )
        return function.rounded_at_release(rounding_step(basis, noise, rounded=terms.rounded))

    def save(self) -> None:
        """Write the state, with what was counted since the last step, to its file, atomically.

        Raises
        ------
        UsageError
            for a stream that lives in memory only.
        """
        with self._held():
            if self._file is None:
                raise UsageError(
                    "this stream lives in memory only", remedy=("start it with ", Argument("path"), "")
                )
            self._file.write(self._terms, self._state)

    def close(self) -> None:
        """Let others open the file. What was counted since the last step or save is lost."""
        if self._file is not None:
            with self._kept_out():
                self._file.close()
                self._broken = True

    def _kept_out(self) -> AbstractContextManager[object]:
        """Other threads; in a forked process there are none, and the lock may have been held at the fork."""
        return self._lock if self._process == os.getpid() else nullcontext()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep other threads out; refuse a stream of another process, before its lock, or a closed one."""
        if self._process != os.getpid():
            raise SecretRefused(
                "a stream belongs to one process: two copies would spend more than was paid",
                remedy="open it in one process only",
            )
        with self._lock:
            self._check_usable()
            yield

    def _check_usable(self) -> None:
        if self._broken:
            raise UsageError(
                "this stream was closed, or interrupted within a step", remedy="open its file again"
            )


def _no_folder() -> UsageError:
    return UsageError("no folder to write the state of the stream into", remedy="make it first")


class StreamFile:
    """The file of one stream, locked by the process that has it open, as are its copies by `guard`."""

    def __init__(self, path: str | os.PathLike[str], encryption_key: bytes | None) -> None:
        self._guard: NumberGuard | None = None
        self.path = Path(path)
        self._key = encryption_key
        # A lock of its own: the state is replaced as a whole at every step.
        self._lock = SharedText(self.path, _no_folder).lock(wait=False)
        if self._lock is None:
            raise StreamInUse("another process has this stream open", remedy="wait until it has ended")

    def write(self, terms: StreamTerms, state: StreamState) -> None:
        """Replace the file by this state, atomically and durably."""
        if self._lock is None:
            raise UsageError("the file of this stream was closed", remedy="open it again")
        notes = padded_json({"removed": state.removed, "notes": state.notes})
        with state.tally._held():
            tally, sections = described(state.tally, encrypted=self._key is not None)
            header: Header = {
                "warning": WARNING,
                "tally": tally,
                "claim": terms.claim.as_json(),
                "step": StreamStep(terms.stream, max(state.step, 1), terms.removals, terms.noise).as_json(),
                "released": state.step,
                "rounded": terms.rounded,
                "count_share": str(terms.count_share),
                "insecure_noise_seed": terms.insecure_noise_seed,
                **stated_json(terms.statement),
                "journal": len(notes),
            }
            parts: list[Buffer | Section] = [
                notes,
                encode_array(state.secret, "int64"),
                *(encode_array(each, REAL) for each in (state.public, state.shown, state.kept)),
                *sections,
            ]
            _FILE.write(self.path, header, parts, encryption_key=self._key)

    def read(self) -> tuple[StreamTerms, StreamState]:
        """The state that was written last."""
        return _FILE.read(self.path, encryption_key=self._key)

    def guard(self, stream: str, step: int) -> NumberGuard:
        """The note of the stream's steps; until the file is closed, no copy of the state can be opened.

        A process that died between writing a step and noting it leaves a state whose last step can be seen:
        it is noted before that, so that an older copy is refused from then on.

        Raises
        ------
        StreamInUse
            if a copy is open.
        FileRefused
            if this state is an older one.
        """
        guard = step_guard(stream)
        if not guard.hold():
            raise StreamInUse(
                "another process has this stream open, from another copy of its state",
                remedy="continue that one, and delete the other copies",
            )
        self._guard = guard
        if step and guard.known() is None:
            said = (
                "no step of this stream was noted on this machine, where an older copy of its state cannot "
                "be told from the newest one: make sure that it is the newest, and delete the others"
            )
            warnings.warn(said, RepeatedSpending, stacklevel=4)
        _check_newest(guard, step)
        guard.note(step)
        return guard

    def close(self) -> None:
        """Release the lock, so that another process can open the stream."""
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            self.close()


def open_stream(path: str | os.PathLike[str], *, encryption_key: bytes | None = None) -> Stream:
    """Continue a stream from its file, after a restart or a crash.

    Its :attr:`~Stream.latest` is the function of the last step that was released, with the same bytes as
    :meth:`~Stream.step` returned, or would have returned had it not been killed.

    Raises
    ------
    FileRefused
        if the file is damaged, the key does not open it, or it is an older copy: later steps were released on
        this machine.
    UsageError
        if another process has the stream open, also from a copy of the file, or it is encrypted
        and no key was given.
    """
    if not Path(path).exists():
        raise UsageError("path", "must be the file of a stream", remedy="start one with hs.stream")
    file = StreamFile(path, encryption_key)
    try:
        return Stream(*file.read(), file=file)
    except BaseException:
        file.close()
        raise


def _step(header: Header) -> StreamStep:
    return StreamStep.from_json(header["step"])


def _shapes(header: Header) -> tuple[tuple[int, ...], ...]:
    return shapes_of(basis_from_json(header["tally"]["basis"]), _step(header).noise)


def _sizes(header: Header) -> tuple[int, ...]:
    secret, *real = _shapes(header)
    return (
        padded_size(header["journal"]),
        encoded_size(secret, "int64"),
        *(encoded_size(shape, REAL, reals=True) for shape in real),
        payload_size(header["tally"]),
    )


def _build(header: Header, payload: memoryview) -> tuple[StreamTerms, StreamState]:
    of_terms = {"claim", "step", "rounded", "count_share", "insecure_noise_seed"}
    if set(header) - {"statement"} != {"warning", "tally", "released", "journal", "encryption"} | of_terms:
        raise ValueError("names")
    ends = list(accumulate(_sizes(header), initial=0))
    parts = [payload[start:end] for start, end in pairwise(ends)]
    journal = json.loads(bytes(parts[0]))
    if not isinstance(journal, dict) or set(journal) != {"removed", "notes"}:
        raise ValueError("journal")
    removed, notes = journal["removed"], journal["notes"]
    if type(removed) is not int or removed < 0 or not isinstance(notes, dict):
        raise ValueError("journal")
    tally = build(header["tally"], parts[5])
    found, released = _step(header), header["released"]
    if (
        type(released) is not int
        or not 0 <= released <= (found.horizon or LAST_STEP)
        or max(released, 1) != found.step
    ):
        raise ValueError("released")
    terms = _terms(header, found)
    if not found.keeps(terms.claim, tally.basis, *found.noise.at(found.step)):
        raise ValueError("the noise does not keep the claim")
    if tally.kernel is None:
        raise ValueError("kernel")
    if (terms.claim.unit == PERSON) != (tally.max_per_unit is not None):
        raise ValueError("unit")
    if tally.max_per_unit is not None and tally.max_per_unit != terms.claim.records_per_unit:
        raise ValueError("cap")
    shapes = _shapes(header)
    public, shown, kept = (
        np.array(decode_array(part, shape, REAL)) for part, shape in zip(parts[2:5], shapes[1:], strict=True)
    )
    if not all((np.abs(each) <= _LARGEST_NUMBER).all() for each in (public, shown, kept)):
        raise ValueError("numbers")
    state = StreamState(
        tally=tally,
        removed=removed,
        secret=np.array(decode_array(parts[1], shapes[0], "int64")),
        public=public,
        shown=shown,
        kept=kept,
        step=released,
        notes=notes,
    )
    return terms, state


def _terms(header: Header, step: StreamStep) -> StreamTerms:
    seed: Any = header["insecure_noise_seed"]
    claim = Claim.from_json(header["claim"])
    if type(header["rounded"]) is not bool or (seed is not None and (type(seed) is not int or seed < 0)):
        raise ValueError("options")
    if claim.secure != (seed is None):
        raise ValueError("seed")
    return StreamTerms(
        stream=step.stream,
        claim=claim,
        noise=step.noise,
        removals=step.removals,
        rounded=header["rounded"],
        count_share=stored_rational(header["count_share"]),
        insecure_noise_seed=seed,
        statement=Statement.from_json(header.get("statement", {})),
    )


_FILE = SecretFile(FileKind.STREAM, "this state of a stream", lambda header: sum(_sizes(header)), _build)


CLOCK = "the steps are taken at times that do not depend on the records"
FILES_IN_TIME = "no file is refused or comes late, so that no record decides about the step of others"
STEPS: Final = "Steps"
REMOVED_ONCE = "every record is added once and removed at most once"


@request
class StreamRequest:
    """What may be requested of a stream: a release request, the horizon, and what the steps show.

    Parameters
    ----------
    release : ReleaseRequest
        Promise, relation, unit and where it is booked. A stream has no ``mechanism`` to choose.
    horizon : int, optional
        How many steps there will be, at most. Default: no end.
    window, decay : int, float
        What a step shows: the last steps alone, or all with decaying weights. Default: all steps so far.
    removals : bool
        Whether records may be removed again.
    assumptions : tuple of str
        What else the claim assumes of whoever gives the records.
    """

    release: ReleaseRequest
    horizon: int | None = setting(
        None,
        "How many steps the claim covers. Default: all that there will ever be, with more noise in each.",
        group=STEPS,
        at_least=1,
        at_most=MOST_STEPS,
    )
    window: int | None = setting(
        None, "Show the last WINDOW steps instead of all.", group=STEPS, at_least=1, at_most=MOST_STEPS
    )
    decay: float | Fraction | None = setting(
        None,
        "Show all steps, each with DECAY times the weight of the next one.",
        group=STEPS,
        above=0,
        below=1,
    )
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
            **self.terms.statement.as_json(),
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
        request, started = self.request.release, list[Stream]()
        subject = self.subject
        about = json.loads(canonical_json({"claim": self.claim.as_json(), "subject": subject}))
        file = self._file(path, encryption_key)

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
                state.notes = dict(notes or {})
            made = Stream(terms, state, file=file)
            if file is not None:
                made.save()
            started.append(made)

        def make() -> bytes:
            return canonical_json({**about, "stream": secrets.token_hex(16)})

        try:
            if file is not None:
                step_guard(self.terms.stream).prepare()
            spend(request.booking, self.claim, subject, make, deliver=deliver)
        except BaseException:
            if file is not None:
                file.close()
            raise
        return started[0]

    def _file(self, path: str | os.PathLike[str] | None, encryption_key: bytes | None) -> StreamFile | None:
        release = self.request.release
        if path is None:
            if release.idempotency_key is not None:
                raise UsageError(
                    "idempotency_key",
                    ("needs ", NameOf("path"), ": a retry continues the stream in that file"),
                    remedy=("give ", NameOf("path"), ", or leave the key out"),
                )
            return None
        if Path(path).exists() and (release.booking is None or release.idempotency_key is None):
            remedy = "continue that one with hs.open_stream(path)"
            raise UsageError("path", "must not exist: a stream starts there", remedy=remedy)
        return StreamFile(path, encryption_key)


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
    horizon = request.horizon
    if horizon is not None:
        horizon = positive_integer("horizon", horizon, at_most=MOST_STEPS)
    view = View.of(request.window, request.decay)
    if release.mechanism is not None:
        raise UsageError("mechanism", "must be left out: the promise decides it for a stream")
    most, given = tally.basis.shape[0], cast(Any, release.rows)
    rows = None if given == AUTO else positive_integer("rows", given, at_most=most)
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
        statement=release.statement,
    )
    plan = plan_of(claim, empty.basis, noise, share)
    return PreparedStream(pattern, rows, empty.fingerprint, request, terms, plan)


def _empty(pattern: TallyPattern, rows: int | None) -> Tally:
    tally = pattern.empty()
    if rows is None or rows == tally.basis.shape[0]:
        return tally
    return Tally(tally.basis.prefix(rows), tally.kernel, max_per_unit=tally.max_per_unit)


@shows_keywords(ReleaseKeywords, ReleaseRequest)
def stream(
    tally: Tally,
    *,
    horizon: int | None = None,
    window: int | None = None,
    decay: float | Fraction | None = None,
    removals: bool = False,
    path: str | os.PathLike[str] | None = None,
    encryption_key: bytes | None = None,
    **keywords: Unpack[ReleaseKeywords],
) -> Stream:
    """Start a stream: a function that is released anew at every step, under one claim paid now.

    Parameters
    ----------
    tally : Tally
        An empty one, as the pattern: ``hs.grid(...)``, ``hs.race(...)``. With ``max_per_unit`` the unit is a
        person, whose records are capped over the whole horizon.
    horizon : int, optional
        How many steps there will be, at most 16,384. The claim covers all of them, whether they are taken or
        not. Default: there is no last step, and each has more noise (at 365 steps 1.4 times as much).
    window : int, optional
        Show this many of the last steps instead of all.
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
    proof is in `hushsum.privacy._over_time`.
    """
    request = StreamRequest(
        release=ReleaseRequest.of(**keywords), horizon=horizon, window=window, decay=decay, removals=removals
    )
    return prepare_stream(tally, request).start(path, encryption_key=encryption_key)


def plan_stream(tally: Tally, **keywords: Any) -> StreamPlan:
    """The noise of every step of a stream with these parameters, before it is paid. Spends nothing.

    Parameters as of :func:`stream`.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=100)
    >>> round(hs.streams.plan_stream(tally, horizon=365, epsilon=1.0, delta=1e-6).ratio, 2)
    2.95
    """
    given = inspect.signature(stream).bind(tally, **keywords).arguments
    return prepare_stream(tally, picked(StreamRequest, given)).plan
