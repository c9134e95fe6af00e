"""``.stream`` files: the secret state of a stream, marked CONFIDENTIAL, optionally encrypted."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from hushsum.bases.registry import basis_from_json
from hushsum.errors import StreamInUse, UsageError
from hushsum.files.container import Buffer, FileKind, Header, Section, read_container
from hushsum.files.encoding import REAL, decode_array, encode_array, encoded_size, stored_rational
from hushsum.files.encryption import read_confidential, stored_size, write_confidential
from hushsum.privacy.claim import PERSON, Claim
from hushsum.privacy.over_time.stream_noise import StreamNoise
from hushsum.releases.stream_step import StreamStep
from hushsum.streams.rollback_guard import StepGuard
from hushsum.streams.state import StreamState
from hushsum.streams.stream import Stream, StreamTerms
from hushsum.tally.file import build, described, payload_size

WARNING = "CONFIDENTIAL: exact sums of private records. Not for release; continue it with hushsum watch."
_LEAST_JOURNAL = 4096
_LARGEST_JOURNAL = 1 << 28
_LARGEST_NUMBER = 2.0**100


class StreamFile:
    """The file of one stream, locked by the process that has it open, as are its copies by `guard`."""

    def __init__(self, path: str | os.PathLike[str], encryption_key: bytes | None) -> None:
        self._guard: StepGuard | None = None
        self.path = Path(path)
        self._key = encryption_key
        if not self.path.parent.is_dir():
            raise UsageError(rule="no folder to write the state of the stream into", remedy="make it first")
        # A file of its own: the state is replaced as a whole at every step.
        self._lock: int | None = os.open(
            self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise StreamInUse(
                rule="another process has this stream open", remedy="wait until it has ended"
            ) from None

    def write(self, terms: StreamTerms, state: StreamState) -> None:
        """Replace the file by this state, atomically and durably."""
        if self._lock is None:
            raise UsageError(rule="the file of this stream was closed", remedy="open it again")
        notes = json.dumps({"removed": state.removed, "notes": state.notes}).encode()
        size = max(_LEAST_JOURNAL, 1 << (len(notes) - 1).bit_length())
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
                "journal": size,
            }
            parts: list[Buffer | Section] = [
                notes.ljust(size),
                encode_array(state.secret, "int64"),
                *(encode_array(each, REAL) for each in (state.public, state.shown, state.kept)),
                *sections,
            ]
            write_confidential(self.path, FileKind.STREAM, header, parts, encryption_key=self._key)

    def read(self) -> tuple[StreamTerms, StreamState]:
        """The state that was written last."""
        return read_confidential(
            self.path,
            FileKind.STREAM,
            _payload_size,
            _build,
            what="this state of a stream",
            encryption_key=self._key,
        )

    def guard(self, stream: str, step: int) -> StepGuard:
        """The note of the stream's steps; until the file is closed, no copy of the state can be opened.

        Raises
        ------
        UsageError, FileRefused
            if a copy is open, or this state is an older one.
        """
        guard = StepGuard(stream)
        guard.hold(step)
        self._guard = guard
        return guard

    def close(self) -> None:
        """Let others open it."""
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
        raise UsageError(
            parameter="path", rule="must be the file of a stream", remedy="start one with hs.stream"
        )
    file = StreamFile(path, encryption_key)
    try:
        return Stream(*file.read(), file=file)
    except BaseException:
        file.close()
        raise


def public_header(path: str | os.PathLike[str]) -> Header:
    """What a ``.stream`` file says to anybody, encrypted or not: its claim, strategy and number of steps.

    Raises
    ------
    FileRefused
        if the file is damaged or of another kind.
    """
    return read_container(path, FileKind.STREAM, stored_size(_payload_size))[0]


def _step(header: Header) -> StreamStep:
    return StreamStep.from_json(header["step"])


def _shapes(header: Header) -> tuple[tuple[int, ...], ...]:
    """Of the secret, public, shown and kept tables."""
    noise = _step(header).noise
    rows, width = basis_from_json(header["tally"]["basis"]).shape
    size = rows * width + 1
    strategy = noise.strategy
    return (
        (strategy.secret_tables, size),
        (strategy.public_tables, size),
        (size,),
        (noise.view.kept(noise.steps), size),
    )


def _sizes(header: Header) -> tuple[int, ...]:
    journal = header["journal"]
    if type(journal) is not int or not _LEAST_JOURNAL <= journal <= _LARGEST_JOURNAL:
        raise ValueError("journal")
    secret, *real = _shapes(header)
    return (
        journal,
        encoded_size(secret, "int64"),
        *(encoded_size(shape, REAL, reals=True) for shape in real),
        payload_size(header["tally"]),
    )


def _payload_size(header: Header) -> int:
    return sum(_sizes(header))


def _build(header: Header, payload: memoryview) -> tuple[StreamTerms, StreamState]:
    names = {
        "warning",
        "tally",
        "claim",
        "step",
        "released",
        "rounded",
        "count_share",
        "journal",
        "encryption",
    }
    if set(header) != names | {"insecure_noise_seed"}:
        raise ValueError("names")
    parts, start = [], 0
    for size in _sizes(header):
        parts.append(payload[start : start + size])
        start += size
    journal = json.loads(bytes(parts[0]))
    if not isinstance(journal, dict) or set(journal) != {"removed", "notes"}:
        raise ValueError("journal")
    if (
        type(journal["removed"]) is not int
        or journal["removed"] < 0
        or not isinstance(journal["notes"], dict)
    ):
        raise ValueError("journal")
    tally = build(header["tally"], parts[5])
    found, released = _step(header), header["released"]
    if type(released) is not int or not 0 <= released <= found.steps or max(released, 1) != found.step:
        raise ValueError("released")
    terms = _terms(header, found.noise)
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
        removed=journal["removed"],
        secret=np.array(decode_array(parts[1], shapes[0], "int64")),
        public=public,
        shown=shown,
        kept=kept,
        step=released,
        notes=journal["notes"],
    )
    return terms, state


def _terms(header: Header, noise: StreamNoise) -> StreamTerms:
    seed: Any = header["insecure_noise_seed"]
    claim = Claim.from_json(header["claim"])
    if type(header["rounded"]) is not bool or (seed is not None and (type(seed) is not int or seed < 0)):
        raise ValueError("options")
    if claim.secure != (seed is None):
        raise ValueError("seed")
    step = _step(header)
    return StreamTerms(
        stream=step.stream,
        claim=claim,
        noise=noise,
        removals=step.removals,
        rounded=header["rounded"],
        count_share=stored_rational(header["count_share"]),
        insecure_noise_seed=seed,
    )
