"""A stream: records come in, and every step releases the function of what has come so far."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from hushsum.bases.base import Table
from hushsum.errors import Argument, SecretRefused, UsageError
from hushsum.kernels.parameters import thread_count
from hushsum.privacy.claim import Claim
from hushsum.privacy.over_time.stream_noise import StreamNoise
from hushsum.releases.noisy_table import NoisyTable, function_of
from hushsum.releases.stream_step import StreamStep
from hushsum.streams.plan import StreamPlan, plan_of
from hushsum.streams.state import StreamState
from hushsum.tally.increments import add_removals, has_removals, leave_room
from hushsum.tally.release import claimed_unit, rounding_step
from hushsum.tally.tally import Tally
from hushsum.version import PRODUCER

if TYPE_CHECKING:
    from hushsum.streams.state_file import StreamFile


_LARGEST_SHOWN = 2.0**62


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


class Stream:
    """A function that is kept up to date: ``add`` records, then ``step`` releases it. Secret inside.

    Made by :func:`hushsum.stream` and :func:`hushsum.open_stream`; not by hand. Every step must be taken on a
    clock that does not depend on the records, also when none have come. The number of steps is fixed at the
    start.

    Privacy
    -------
    All steps together keep the one claim that was paid at the start, also where later records depend on what
    earlier steps have shown. The unit is a record or, with ``max_per_unit``, a person with all records over
    the whole horizon. The proof is in `hushsum.privacy.over_time`. The answers of different steps are
    correlated: they share draws (:func:`hushsum.streams.step_covariance`).

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
        leave_room(state.tally, terms.noise.strategy.gain)

    @property
    def claim(self) -> Claim:
        """What all steps together promise."""
        return self._terms.claim

    @property
    def steps(self) -> int:
        """How many steps the claim covers."""
        return self._terms.noise.steps

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
        """The file that its state is in; None for one that lives in memory only."""
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
        return f"<Stream CONFIDENTIAL step {self.released} of {self.steps}, {self._state.tally.kernel!r}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            rule="a stream must not be pickled or copied: two copies would spend more than was paid",
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
                    parameter="removals",
                    rule="must be declared when a stream starts: a removal shows a record once more",
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
            self._check_mergeable(tally)
            self._state.tally.merge(tally)
        return self

    def _check_mergeable(self, tally: Tally) -> None:
        if self._state.tally.max_per_unit is not None:
            raise UsageError(
                rule="a stream of persons counts all of their records itself, over all steps",
                remedy="give the records to add",
            )
        claimed_unit(tally, self.claim.unit, self.claim.relation)
        if not self._terms.removals and has_removals(tally):
            raise UsageError(
                parameter="tally",
                rule="must be one from which no record was removed: a removal shows a record once more",
                remedy=("start the stream with ", Argument("removals", True)),
            )

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
            self._take_step(thread_count(threads))
            function = self.latest
        assert function is not None
        return function

    def _take_step(self, threads: int) -> None:
        if self.released >= self.steps:
            raise UsageError(
                rule=f"this stream has released all of its {self.steps} steps",
                remedy="start another one, which is paid for anew",
            )
        if self._guard is not None:
            self._guard.check(self.released)
        with self._changing():
            self._state.advance(
                self._terms.noise,
                insecure_noise_seed=self._terms.insecure_noise_seed,
                threads=threads,
            )
            if self._file is not None:
                self._file.write(self._terms, self._state)
            if self._guard is not None:
                self._guard.advance(self.released)

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
        function = function_of(
            reading=state.tally.reading,
            cells=cells,
            claim=terms.claim,
            noise=noise,
            noisy_count=int(numbers[-1]),
            count_noise=count_noise,
            producer=PRODUCER,
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
                    rule="this stream lives in memory only",
                    remedy=("start it with ", Argument("path"), ""),
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
        self._check_process()
        with self._lock:
            self._check_usable()
            yield

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise SecretRefused(
                rule="a stream belongs to one process: two copies would spend more than was paid",
                remedy="open it in one process only",
            )

    def _check_usable(self) -> None:
        if self._broken:
            raise UsageError(
                rule="this stream was closed, or interrupted within a step", remedy="open its file again"
            )

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A step that is interrupted leaves a stream that refuses to continue; its file is as before."""
        self._broken = self._interrupted = True
        yield
        self._broken = self._interrupted = False
