"""The protocol of all engines: a job is cut into parts, and the driver merges each part exactly once.

A job consists of public facts: the pattern of the tally, the job's public key, and parts with ids that do not
change when a part is tried again. A worker counts a part from the first record to the last into an empty
tally and returns it sealed, or returns why it is refused. The driver opens the first result of each part and
drops every later one, so a task that an engine repeats or duplicates counts once. If one part is refused, the
whole job is, and there is no tally of the rest.

Sums of integers do not depend on their order, so the counts are those of one process bit for bit, however the
records are cut into parts. Noise is not drawn here: the driver's tally is released as any other.
"""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from hushsum.engines.partial_tally_encryption import JobKey, seal
from hushsum.engines.worker_errors import naming, refusal_as_json, refusal_from_json
from hushsum.errors import DataRefused, FilePath, HushsumError, SuspiciousParameter, UsageError
from hushsum.files.container import Buffer, Section
from hushsum.kernels.parameters import thread_count
from hushsum.tally.checkpoint import Checkpoint
from hushsum.tally.tally import Tally
from hushsum.tally.tally_messages import TallyPattern, is_empty, tally_as_pieces, tally_from_bytes

MOST_ATTEMPTS: Final = 3
"""How often a part is given to a worker before the job is refused because workers die of it."""

Progress = Callable[[float | None], None]
"""Called with the fraction of the work that is done. What it raises cancels the job."""

_LENGTH: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class NamedBatch:
    """Records of one file or partition, which ``name`` names in messages."""

    name: str
    records: Any = field(repr=False)
    units: Any = field(default=None, repr=False)


class Part(Protocol):
    """A part of the records of a job, the same ones whenever and wherever it is read."""

    @property
    def id(self) -> str:
        """Unlike that of any other part of the job."""

    @property
    def name(self) -> str:
        """The file or partition that is read first, for messages."""

    @property
    def size(self) -> int:
        """About how much work it is, compared with the other parts."""


class ReadablePart(Part, Protocol):
    """A part that a worker reads itself."""

    def batches(self) -> Iterable[NamedBatch]:
        """The records in batches; errors name the file that they occurred in."""


@dataclass(frozen=True, slots=True)
class CountingTask:
    """What every worker of a job gets: public facts alone."""

    pattern: TallyPattern
    public_key: bytes
    threads: int = 1

    def count(self, part: ReadablePart) -> bytes:
        """The sealed result of a part: its tally, or why it is refused.

        Errors are returned, not raised, because engines log what a task raises, with its arguments.
        """
        return self.count_batches(part.id, part.name, part.batches())

    def count_batches(self, id: str, name: str, batches: Iterable[NamedBatch]) -> bytes:
        """The sealed result of the records of a part, as `count` returns it."""
        head: dict[str, Any] = {"refusal": None, "warnings": []}
        body: list[Buffer | Section] = []
        tally = self.pattern.empty()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", SuspiciousParameter)
                for batch in batches:
                    name = batch.name
                    tally.add(batch.records, units=batch.units, threads=self.threads, allow_clipping=True)
            found = {str(each.message) for each in caught if issubclass(each.category, SuspiciousParameter)}
            head["warnings"] = sorted(found)
            body = tally_as_pieces(tally)
        except HushsumError as error:
            head["refusal"] = refusal_as_json(naming(error, name))
        except Exception as error:
            # The message of an error that nobody expected may quote records.
            refused = DataRefused(
                rule=(FilePath(name), f" could not be counted: {type(error).__name__}"),
                remedy="check the data, and the memory of the workers",
            )
            head["refusal"] = refusal_as_json(refused)
        encoded = json.dumps(head).encode()
        return seal(self.public_key, id, [_LENGTH.pack(len(encoded)), encoded, *body])


class Driver:
    """The side of a job that has the key: it merges each part once, or refuses the job.

    Parameters
    ----------
    tally : Tally
        Empty; the pattern of the result. It stays empty.
    parts : sequence of Part, optional
        All parts of the job, in a fixed order; None if an engine finds them while it runs.
    threads : int
        Of each worker.
    checkpoint : Checkpoint, optional
        Where to continue from, and where to keep what has been merged.
    progress : callable, optional
        Called with the fraction of the work that is done; what it raises cancels the job.
    """

    def __init__(
        self,
        tally: Tally,
        parts: Sequence[Part] | None = None,
        *,
        threads: int = 1,
        checkpoint: Checkpoint | None = None,
        progress: Progress | None = None,
    ) -> None:
        pattern = TallyPattern.of(tally)
        self._key = JobKey()
        self.task = CountingTask(pattern, self._key.public, thread_count(threads))
        self._parts: Mapping[str, Part] | None = None if parts is None else {each.id: each for each in parts}
        if parts is not None and len(self._parts or ()) != len(parts):
            raise UsageError(rule="the parts of a job must have different ids", remedy="name each part once")
        self._sizes = {id: each.size for id, each in (self._parts or {}).items()}
        self._merged: set[str] = set()
        self._total = pattern.empty()
        self._warned: set[str] = set()
        self._checkpoint = checkpoint
        self._progress = progress
        if checkpoint is not None and (found := checkpoint.load(parts=list)) is not None:
            self._total, done = found
            self._merged = set(done["parts"])

    @property
    def waiting(self) -> list[Part]:
        """The parts that are not merged yet, in their order."""
        return [each for id, each in (self._parts or {}).items() if id not in self._merged]

    def receive(self, id: str, sealed: bytes) -> bool:
        """Merge the result of a part; False if it was merged before, and this one is dropped.

        Raises
        ------
        HushsumError
            the error of the worker, which names the file; the job is refused.
        """
        if self._parts is not None and id not in self._parts:
            raise UsageError(
                rule="a worker returned a part that this job does not have", remedy="run it again"
            )
        if id in self._merged:
            return False
        plain = self._key.open(id, sealed)
        start = _LENGTH.size + _LENGTH.unpack(plain[: _LENGTH.size])[0]
        head = json.loads(bytes(plain[_LENGTH.size : start]))
        if head["refusal"] is not None:
            raise refusal_from_json(head["refusal"])
        self._total.merge(
            tally_from_bytes(plain[start:]), disjoint_units=self._total.max_per_unit is not None
        )
        self._merged.add(id)
        for sentence in head["warnings"]:
            if sentence not in self._warned:
                self._warned.add(sentence)
                warnings.warn(SuspiciousParameter(sentence), stacklevel=4)
        if self._checkpoint is not None:
            self._checkpoint.save_if_due(self._total, self._done())
        return True

    def report(self) -> None:
        """Say how far the job is; if that cancels it, keep what has been merged."""
        if self._progress is None:
            return
        fraction = None
        if self._parts is not None:
            fraction = sum(self._sizes[id] for id in self._merged) / max(1, sum(self._sizes.values()))
        try:
            self._progress(fraction)
        except BaseException:
            if self._checkpoint is not None:
                self._checkpoint.save(self._total, self._done())
            raise

    def finish(self) -> Tally:
        """The tally of all parts.

        Raises
        ------
        DataRefused
            if a part is missing; there is no tally of the others.
        """
        if missing := self.waiting:
            raise lost(missing[0].name)
        if is_empty(self._total):
            raise DataRefused(rule="the source must have at least one record", got="none")
        return self._total

    def _done(self) -> dict[str, Any]:
        return {"parts": sorted(self._merged)}


def uncapped(tally: Tally, source: str) -> None:
    """Refuse a cap on the records of a person for a source whose records come in no fixed order.

    Which records of a person are kept must depend on that person's records alone; the order of a query's rows
    may depend on all of them.
    """
    if tally.max_per_unit is not None:
        raise UsageError(
            parameter="max_per_unit",
            rule=f"needs files: the records of {source} have no fixed order",
            remedy="write them to Parquet files, and count those",
        )


def lost(name: str) -> DataRefused:
    """The refusal of a job because the workers that counted a part died."""
    return DataRefused(
        rule=(FilePath(name), " was not counted: the workers that read it died"),
        remedy="give them more memory, or check the file",
    )
