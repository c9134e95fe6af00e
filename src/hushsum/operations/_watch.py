"""Follow a growing folder of files: every period releases one step of a stream, on a clock of its own."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hushsum.errors import (
    AlreadyPublished,
    DataRefused,
    FilePath,
    FileRefused,
    RepeatedRecords,
    UsageError,
    shown,
)
from hushsum.files import FileKind, atomic_file, canonical_json, declared_fields
from hushsum.planning import KernelSpec, TableSpec, empty_tally
from hushsum.privacy import LAST_STEP, Claim
from hushsum.records import is_url
from hushsum.releases import NoisyTable, load_function
from hushsum.streams import (
    FILES_IN_TIME,
    PreparedStream,
    Stream,
    StreamPlan,
    StreamRequest,
    open_stream,
    prepare_stream,
)
from hushsum.tally import Tally, TallyPattern

from ._deliver import LedgerOptions
from ._files import Progress, RecordFiles, check_columns, check_output, kind_of, open_file

__all__ = ["StepClock", "StepWritten", "Watch", "Watcher", "count_whole_file", "start_or_continue"]

_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_MOST_MONTHS: Final = 1200
_SHORT: Final = {name[0]: name for name in _UNITS}
_PERIOD: Final = re.compile(r"(?:([1-9][0-9]{0,5})\s*)?([a-z]+?)s?", re.ASCII)
# The first Monday of the epoch, which began on a Thursday.
_MONDAY: Final = 4 * 86400


@dataclass(frozen=True, slots=True)
class StepClock:
    """Periods of equal length, or of whole calendar months; step k is due when period k has ended.

    ``start`` is when the first period began, in seconds since 1970 (UTC). Days end at midnight UTC, weeks on
    Monday, hours on the hour, months at midnight UTC before the first day of the next one. ``length`` counts
    seconds, or months if ``calendar`` is true.

    Examples
    --------
    >>> clock = StepClock.starting("day", 1.7e9)
    >>> clock.due(1.7e9), clock.due(1.7e9 + 3 * 86400)
    (0, 3)
    >>> StepClock.starting("month", 1.7e9).in_words(1)  # it is the middle of November 2023
    '2023-12-01 00:00:00 UTC'
    """

    length: int
    start: int
    calendar: bool = False

    @classmethod
    def starting(cls, period: str, now: float) -> StepClock:
        """A clock whose first period is the one that contains ``now``: ``day``, ``6h``, ``15 minutes``.

        Raises
        ------
        UsageError
            The period is not a length of time.
        """
        length, calendar = _length_of(period)
        if calendar:
            # Several months are counted from January of year 0, so that quarters and years begin as usual.
            return cls(length, _first_second(_month_of(now) // length * length), calendar=True)
        offset = _MONDAY if length % _UNITS["week"] == 0 else 0
        return cls(length, int(now - offset) // length * length + offset)

    def due(self, now: float) -> int:
        """How many periods have ended."""
        if self.calendar:
            return max(0, (_month_of(now) - _month_of(self.start)) // self.length)
        return max(0, int(now - self.start) // self.length)

    def ends(self, step: int) -> int:
        """When the period of a step ends."""
        if self.calendar:
            return _first_second(_month_of(self.start) + step * self.length)
        return self.start + step * self.length

    def in_words(self, step: int) -> str:
        """The end of a step's period, for people."""
        return datetime.fromtimestamp(self.ends(step), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _length_of(period: str) -> tuple[int, bool]:
    """The length of a period, and whether it is in calendar months instead of seconds."""
    found = _PERIOD.fullmatch(period.strip().lower())
    unit = "" if found is None else _SHORT.get(found[2], found[2])
    calendar = unit in _MONTHS
    number = int(found[1] or 1) if found is not None else 0
    length = number * {**_UNITS, **_MONTHS}.get(unit, 0)
    if not length or (calendar and length > _MOST_MONTHS):
        remedy = "give for example day, week, month, quarter, 6h or 15 minutes"
        raise UsageError("every", "must be a length of time", got=shown(period), remedy=remedy)
    return length, calendar


def _month_of(moment: float) -> int:
    """The months since January of year 0 until the one that contains a moment."""
    date = datetime.fromtimestamp(moment, UTC)
    return 12 * date.year + date.month - 1


def _first_second(month: int) -> int:
    """When a month begins, in seconds since 1970."""
    return int(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp())


LATEST: Final = "latest.hush"


@dataclass(frozen=True, slots=True)
class Watch:
    """The files to follow, and how their records are counted and released; all of it is public.

    ``source`` is a folder, or a pattern such as ``incoming/*.csv``. ``records`` names columns and how cells
    are read; its paths are not used. ``stream`` is the request, with the horizon and what the steps show.
    """

    source: str
    state: Path
    output: Path
    every: str
    records: RecordFiles
    kernel: KernelSpec
    size: TableSpec
    stream: StreamRequest
    ledger: LedgerOptions | None = None

    def settings(self) -> dict[str, Any]:
        """Everything that must be the same in every run, as JSON."""
        # Where it is booked is not part of what is watched.
        release = replace(self.stream.release, budget=None, idempotency_key=None)
        return {
            "source": os.path.abspath(self.source),
            "every": self.every,
            "records": declared_fields(replace(self.records, paths=())),
            "kernel": declared_fields(self.kernel),
            "size": declared_fields(self.size),
            "bounds": declared_fields(self.records.bounds),
            "max_per_unit": self.records.max_per_unit,
            "stream": declared_fields(replace(self.stream, release=release)),
        }

    def pattern(self) -> Tally:
        """An empty tally; columns are named, because nothing of a file may decide what is counted."""
        columns = self.records.columns
        if not self.kernel.takes_sets and columns is None:
            rule = "must be named: a stream starts before there is a file"
            raise UsageError("columns", rule, got="none", remedy="give the columns of a record")
        built = self.kernel.build(None if columns is None else len(columns), columns, self.records.bounds)
        named = None if self.kernel.takes_sets else columns
        cap = self.records.max_per_unit
        return empty_tally(built, self.size, bounds=self.records.bounds, columns=named, max_per_unit=cap)


@dataclass(frozen=True, slots=True)
class StepWritten:
    """A released step; public."""

    step: int
    horizon: int | None
    output: str
    claim: Claim
    period_end: str

    def as_json(self) -> dict[str, Any]:
        """The step for a machine."""
        shown = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**shown, "claim": self.claim.in_numbers()}


class Watcher:
    """A stream whose steps are due on a clock, with the files that it has counted.

    Privacy
    -------
    A step is taken at the end of every period, whether files have come or not. If the machine was off, the
    steps that were missed are taken one after the other at the next run: the first of them counts the files
    that have come meanwhile, the others have no new records. A file that breaks a rule, or was changed after
    it was counted, stops the run before anything is released: leaving a file out because of one record
    would let that record move all others. Stopping moves the files that come meanwhile to a later step; the
    claim states the assumption that this does not happen. Nothing else of a file's contents decides what is
    counted: one without records, or with those of another file, counts like any other.
    """

    def __init__(self, watch: Watch, stream: Stream, clock: StepClock) -> None:
        self._watch = watch
        self.stream = stream
        self.clock = clock

    @property
    def next_due(self) -> float:
        """When the next step is due."""
        return self.clock.ends(self.stream.released + 1)

    def run(self, now: float, *, threads: int | None = None) -> list[StepWritten]:
        """Take all steps that are due, and write their files.

        Raises
        ------
        DataRefused
            for a file that breaks a rule or was changed; nothing is counted, and no step is taken.
        FileRefused
            if the folder has later steps than the state: it is an older copy.

        Whatever is raised, the stream is closed: files may have been counted in memory, and would be again.
        """
        try:
            return self._run(now, threads)
        except BaseException:
            self.close()
            raise

    def _run(self, now: float, threads: int | None) -> list[StepWritten]:
        self._check_output()
        written = []
        latest = self.stream.latest
        if latest is not None:
            # A run that was killed after its state was written left this undone; the bytes are the same.
            self._write(latest)
        due = min(self.clock.due(now), self.stream.horizon or LAST_STEP)
        if self.stream.released < due:
            self._count_new(threads)
        while self.stream.released < due:
            function = self.stream.step(threads=threads)
            path, step = self._write(function), self.stream.released
            ended, horizon = self.clock.in_words(step), self.stream.horizon
            written.append(StepWritten(step, horizon, str(path), function.claim, ended))
        return written

    def close(self) -> None:
        """Let others open the stream."""
        self.stream.close()

    def _name(self, step: int) -> Path:
        digits = len(str(self.stream.horizon or 10**8 - 1))
        return self._watch.output / f"step-{step:0{digits}}.hush"

    def _write(self, function: NoisyTable) -> Path:
        buffer = io.BytesIO()
        function.save(buffer)
        assert function.stream_step is not None
        path = self._name(function.stream_step.step)
        for each in (path, self._watch.output / LATEST):
            if each.exists() and each.read_bytes() == buffer.getvalue():
                continue
            with atomic_file(each) as stream:
                stream.write(buffer.getbuffer())
        return path

    def _check_output(self) -> None:
        """Refuse to replace what is not of this stream, and a state that is older than its outputs."""
        later = self._name(self.stream.released + 1)
        for path in (self._name(max(self.stream.released, 1)), later, self._watch.output / LATEST):
            if not path.exists():
                continue
            found = load_function(path) if kind_of(path) is FileKind.RELEASED else None
            step = found.stream_step if isinstance(found, NoisyTable) else None
            if step is None or step.stream != self.stream.id:
                rule = (FilePath(path, quoted=True), " is not of this stream, so it is not replaced")
                raise UsageError(rule, remedy="give another folder for the output")
            if step.step > self.stream.released:
                raise FileRefused(
                    "the state of the stream is older than the steps in the folder of the output",
                    remedy="put the newest copy of the state back",
                )

    def _count_new(self, threads: int | None) -> None:
        """Count every file that has not been counted; noted in the state that the next step writes."""
        counted: dict[str, Any] = self.stream.notes["files"]
        fresh: dict[str, Any] = {}
        for path in files_of(self._watch.source):
            # One name for a file, from whichever folder and however the pattern was written.
            name = path.name if Path(self._watch.source).is_dir() else os.path.abspath(path)
            known = counted.get(name)
            if known is not None and known["state"] == _state(path):
                continue
            digest = _digest(path)
            if known is None:
                self._check_new(path, digest, [*counted.values(), *fresh.values()])
                records = replace(self._watch.records, paths=(str(path),))
                count_whole_file(self.stream, self._watch.pattern(), records, threads=threads)
            if (known is not None and known["sha256"] != digest) or _digest(path) != digest:
                rule = (FilePath(path, quoted=True), " was changed after it was counted")
                remedy = "put it back as it was, and add further records in another file"
                raise DataRefused(rule, remedy=remedy)
            fresh[name] = {"sha256": digest, "state": _state(path)}
        counted.update(fresh)

    def _check_new(self, path: Path, digest: str, counted: list[dict[str, Any]]) -> None:
        """Refuse a counted file under another name. Equal contents are no reason: others may have them."""
        if _state(path)[1:] in [each["state"][1:] for each in counted]:
            rule = (FilePath(path, quoted=True), " is a file that was counted under another name")
            raise DataRefused(rule, remedy="remove it: its records would count twice")
        if digest in {each["sha256"] for each in counted}:
            said = "has the contents of another file, and both count; remove it if it is a copy"
            warnings.warn(f"{str(path)!r} {said}", RepeatedRecords, stacklevel=2)


def count_whole_file(
    stream: Stream,
    pattern: Tally,
    records: RecordFiles,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Add a whole file to a stream, or nothing of it: it is counted apart first, which checks every record.

    One without records is counted like any other: its only record must not decide whether a step is taken.
    """
    apart = TallyPattern.of(pattern).empty()
    capped = apart.max_per_unit is not None
    for counting in (False, True) if capped else (False,):
        with open_file(records, records.paths[0], records.columns, may_be_empty=True) as opened:
            for batch, units in opened:
                if progress is not None:
                    progress(opened.progress)
                (stream if counting else apart).add(batch, units=units, threads=threads)
    if not capped:
        stream.merge(apart)


def files_of(source: str) -> list[Path]:
    """The files of a folder or a pattern, sorted by name; hidden ones are left out."""
    if is_url(source):
        raise UsageError("source", "must be a folder or a pattern of local files")
    folder = Path(source)
    found = folder.iterdir() if folder.is_dir() else map(Path, glob.glob(source, recursive=True))
    return sorted(each for each in found if each.is_file() and not each.name.startswith("."))


def start_or_continue(
    watch: Watch,
    now: float,
    *,
    encryption_key: bytes | None = None,
    approve: Callable[[StreamPlan], None] = lambda plan: None,
) -> Watcher:
    """The watcher of a state file; if there is none, a new stream, which is paid for once ``approve`` has not
    raised.

    Raises
    ------
    UsageError
        if the state belongs to a watch with other settings, or the output is not a folder.
    ClaimError, BudgetExhausted
        if the claim cannot be made or paid; nothing is started.
    """
    if not watch.output.is_dir():
        raise UsageError("output", "must be a folder", got=f"{str(watch.output)!r}", remedy="make it first")
    check_columns(replace(watch.records, paths=("-",)), watch.kernel)
    watch.records.cells.check_relation(str(watch.stream.release.relation))
    settings = watch.settings()
    if watch.state.exists():
        stream = open_stream(watch.state, encryption_key=encryption_key)
    else:
        stream = _start(watch, settings, now, encryption_key, approve)
    try:
        if stream.notes.get("settings") != settings:
            rule = "must belong to a watch with the same settings"
            remedy = "repeat the command that started it, or give another state"
            raise UsageError("state", rule, got="another", remedy=remedy)
        return Watcher(watch, stream, StepClock(**stream.notes["clock"]))
    except BaseException:
        stream.close()
        raise


def _start(
    watch: Watch,
    settings: dict[str, Any],
    now: float,
    encryption_key: bytes | None,
    approve: Callable[[StreamPlan], None],
) -> Stream:
    check_output(str(watch.state))
    clock = StepClock.starting(watch.every, now)
    notes = {"settings": settings, "clock": asdict(clock), "files": {}}
    prepared = prepare_stream(watch.pattern(), replace(watch.stream, assumptions=(FILES_IN_TIME,)))
    if watch.ledger is not None:
        prepared = _booked(prepared, watch, settings)
    approve(prepared.plan)
    try:
        return prepared.start(watch.state, encryption_key=encryption_key, notes=notes)
    except AlreadyPublished:
        rule = "must be the file of the stream that was started by this command, which is gone"
        remedy = "put it back; a new stream needs another idempotency key, and is paid for again"
        raise UsageError("state", rule, remedy=remedy) from None


def _booked(prepared: PreparedStream, watch: Watch, settings: dict[str, Any]) -> PreparedStream:
    ledger = watch.ledger
    assert ledger is not None
    budget = ledger.budget()
    place = str(watch.state.absolute())
    key = ledger.key([], budget, prepared.claim, canonical_json(settings).decode(), place)
    release = replace(prepared.request.release, budget=budget, idempotency_key=key)
    return replace(prepared, request=replace(prepared.request, release=release))


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]
