"""Checkpoints: a count that is not finished, with what has been counted so far."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hushsum.errors import FilePath, FileRefused, Parameter, UsageError
from hushsum.files.container import FileKind, Header
from hushsum.files.encryption import read_confidential, write_confidential
from hushsum.tally.file import build, described, payload_size
from hushsum.tally.tally import Tally

WARNING: Final = "CONFIDENTIAL: a count that is not finished. Not for release; run the same count again."
DEFAULT_SECONDS: Final = 60.0
_LEAST_JOURNAL: Final = 4096


class Checkpoint:
    """A file that a long count continues from after it was interrupted or killed.

    It holds the tally of what has been counted and a journal of what that was, written together and
    atomically. So a count that continues from it counts no record twice and leaves none out. It is as
    secret as the tally, encrypted with the same key, and cannot be released or merged.

    Parameters
    ----------
    path : path-like
        Where it is; it need not exist yet.
    job : mapping
        Everything that must agree for the count to continue: files, columns, kernel, order of the work.
    seconds : float
        How long to count before it is written again; 0 writes it at every opportunity.
    encryption_key : bytes, optional
        Encrypts it.
    """

    __slots__ = ("_job", "_key", "_seconds", "_written", "path")

    def __init__(
        self,
        path: str | os.PathLike[str],
        job: Mapping[str, Any],
        *,
        seconds: float = DEFAULT_SECONDS,
        encryption_key: bytes | None = None,
    ) -> None:
        if not seconds >= 0:
            raise UsageError(parameter="checkpoint_every", rule="must be at least 0 seconds", got=seconds)
        self.path = Path(path)
        self._job = json.loads(json.dumps(job))
        self._seconds = seconds
        self._key = encryption_key
        self._written = time.monotonic()

    def load(self, **fields: type) -> tuple[Tally, dict[str, Any]] | None:
        """The tally and what is counted in it, with fields of these types; None if there is no such file.

        Raises
        ------
        FileRefused
            if it is damaged, of another kind, or the key does not open it.
        UsageError
            if it belongs to another job, or is encrypted and no key was given.
        """
        found = _read(self.path, self._key)
        if found is None:
            return None
        tally, journal = found
        if journal["job"] != self._job:
            raise UsageError(
                parameter="checkpoint",
                rule="must belong to this count: the same parameters, and the same files, unchanged",
                got="the checkpoint of another count",
                remedy=("repeat the command that wrote it, or give another ", Parameter("checkpoint")),
            )
        done = journal["done"]
        if {name: type(value) for name, value in done.items()} != fields:
            raise FileRefused(rule=(FilePath(self.path), " does not say what is counted in it"))
        return tally, done

    def save(self, tally: Tally, done: Mapping[str, Any]) -> None:
        """Replace the file by this state."""
        journal = json.dumps({"job": self._job, "done": done}).encode()
        # Padded: the header is not encrypted, and digits of a number of records must not show in it.
        size = max(_LEAST_JOURNAL, 1 << (len(journal) - 1).bit_length())
        with tally._held():
            header, sections = described(tally, encrypted=self._key is not None)
            write_confidential(
                self.path,
                FileKind.CHECKPOINT,
                {**header, "warning": WARNING, "journal": size},
                [journal.ljust(size), *sections],
                encryption_key=self._key,
            )
        self._written = time.monotonic()

    def save_if_due(self, tally: Tally, done: Mapping[str, Any]) -> None:
        """Replace the file if it is older than it should be."""
        if time.monotonic() - self._written >= self._seconds:
            self.save(tally, done)

    def remove(self) -> None:
        """Delete the file: the count is finished and its tally saved."""
        self.path.unlink(missing_ok=True)


def stored_job(path: str | os.PathLike[str], encryption_key: bytes | None) -> dict[str, Any] | None:
    """What must agree for a count to continue from a file, as it was when the file was written; None if there
    is no such file.

    Raises
    ------
    FileRefused, UsageError
        as `Checkpoint.load`.
    """
    found = _read(Path(path), encryption_key)
    return None if found is None else dict(found[1]["job"])


def _read(path: Path, encryption_key: bytes | None) -> tuple[Tally, dict[str, Any]] | None:
    if not path.exists():
        return None
    return read_confidential(
        path,
        FileKind.CHECKPOINT,
        _payload_size,
        _build,
        what="this checkpoint",
        encryption_key=encryption_key,
    )


def _payload_size(header: Header) -> int:
    size = header["journal"]
    if not isinstance(size, int) or size < _LEAST_JOURNAL:
        raise ValueError("journal")
    return size + payload_size(header)


def _build(header: Header, payload: memoryview) -> tuple[Tally, dict[str, Any]]:
    size = header["journal"]
    journal = json.loads(bytes(payload[:size]))
    if (
        not isinstance(journal, dict)
        or set(journal) != {"job", "done"}
        or not all(isinstance(each, dict) for each in journal.values())
    ):
        raise ValueError("journal")
    return build(header, payload[size:]), journal
