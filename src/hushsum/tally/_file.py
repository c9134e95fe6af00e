"""Tallies outside of memory, marked CONFIDENTIAL, optionally encrypted: ``.tally`` files, checkpoints of
counts that are not finished, and messages of workers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushsum._types import PathOrFile
from hushsum.errors import FilePath, FileRefused, Parameter, UsageError
from hushsum.files import (
    Buffer,
    FileKind,
    Header,
    SecretFile,
    Section,
    canonical_json,
    decode_array,
    encode_array,
    encoded_size,
    narrowest_type,
    padded_json,
    padded_size,
)
from hushsum.kernels import kernel_as_json, kernel_from_json
from hushsum.privacy import ADJACENCY_ROW, PERSON
from hushsum.records import UnitCap
from hushsum.tables import Basis, basis_as_json, basis_from_json
from hushsum.version import PRODUCER

from ._release import CELLS_AT_A_TIME, Counters, row_blocks, value_range
from ._tally import ORIGIN_BYTES, Tally

WARNING = "CONFIDENTIAL: exact sums of private records. Not for release; see hushsum release."
_DIGEST_BYTES = 16
_LARGEST_CAP = 2**53
_MOST_LISTS = 2**20


def save_tally(tally: Tally, path: PathOrFile, *, encryption_key: bytes | None = None) -> None:
    """Write a tally, readable by its owner only. Counts stand in the payload, so encryption hides them all.

    The header is public even then: kernel, rows, width, seed, bounds, and how many persons' counters the
    file holds are not encrypted. (That number is padded to a power of two.)
    """
    header, sections = described(tally, encrypted=encryption_key is not None)
    TALLY_FILE.write(path, header, sections, encryption_key=encryption_key)


def described(tally: Tally, *, encrypted: bool) -> tuple[Header, list[Buffer | Section]]:
    """The public header and the secret sections of a tally, for this file and for checkpoints."""
    cap, table = tally._cap, tally._table
    numbers = np.array([tally._count, tally._moves], np.int64)
    type_name = "int64" if encrypted else _narrowest(table)
    sections: list[Buffer | Section] = [encode_array(numbers, "int64"), _table_section(table, type_name)]
    persons = 0
    if cap is not None:
        digests, counts = cap.state()
        persons = len(counts)
        capacity = _padded(persons)
        padded_digests = np.zeros((capacity, _DIGEST_BYTES), np.uint8)
        padded_digests[:persons] = digests
        padded_counts = np.zeros(capacity, np.int64)
        padded_counts[:persons] = counts
        sections += [padded_digests.tobytes(), encode_array(padded_counts, "int64")]
    sections.append(b"".join(sorted(tally._origins)))
    counted = tally.basis.counted_kernel() is not None
    header: Header = {
        "warning": WARNING,
        "basis": basis_as_json(tally.basis),
        # The kernel to read with; none where the basis is counted for one, or none was chosen.
        "kernel": None if counted or tally.kernel is None else kernel_as_json(tally.kernel),
        "producer": PRODUCER,
        "table": {"type": type_name},
        "origins": len(tally._origins),
        "units": None if cap is None else {"limit": cap.limit, "slots": _padded(persons)},
    }
    if tally.edge_lists > 1:
        header["edge_lists"] = tally.edge_lists
    if tally.add_remove_only:
        header["add_remove_only"] = True
    return header, sections


def load_tally(path: PathOrFile, *, encryption_key: bytes | None = None) -> Tally:
    """Read a ``.tally`` file.

    Raises
    ------
    FileRefused
        if the file is damaged, of another kind, or the key does not open it.
    UsageError
        if it is encrypted and no key was given.
    """
    return TALLY_FILE.read(path, encryption_key=encryption_key)


def public_header(path: str | os.PathLike[str]) -> Header:
    """What a ``.tally`` file says to anybody, encrypted or not: its warning, basis and cap; no counts.

    Raises
    ------
    FileRefused
        if the file is damaged or of another kind.
    """
    return TALLY_FILE.public_header(path)


def build(header: Header, payload: memoryview) -> Tally:
    """The tally that `described` described."""
    basis = basis_from_json(header["basis"])
    kernel = None if header["kernel"] is None else kernel_from_json(header["kernel"])
    type_name = header["table"]["type"]
    numbers = decode_array(payload[:16], (2,), "int64")
    end = 16 + encoded_size(basis.shape, type_name)
    table = _table(basis, payload[16:end], type_name)
    cap = None
    if header["units"] is not None:
        slots = header["units"]["slots"]
        if not 1 <= header["units"]["limit"] <= _LARGEST_CAP:
            raise ValueError("limit")
        middle = end + _DIGEST_BYTES * slots
        digests = np.frombuffer(payload[end:middle], np.uint8).reshape(slots, _DIGEST_BYTES)
        end = middle + encoded_size((slots,), "int64")
        counts = decode_array(payload[middle:end], (slots,), "int64")
        used = counts > 0
        cap = UnitCap.from_state(header["units"]["limit"], digests[used], counts[used])
    if numbers.min() < 0:
        raise ValueError("counts")
    tail = bytes(payload[end:])
    origins = frozenset(tail[i : i + ORIGIN_BYTES] for i in range(0, len(tail), ORIGIN_BYTES))
    edge_lists, restricted = header.get("edge_lists", 1), header.get("add_remove_only", False)
    if cap is not None and PERSON not in basis.units:
        raise ValueError("persons")
    if type(edge_lists) is not int or not 1 <= edge_lists <= _MOST_LISTS:
        raise ValueError("edge lists")
    if edge_lists > 1 and ADJACENCY_ROW not in basis.units:
        raise ValueError("edge lists")
    if type(restricted) is not bool:
        raise ValueError("add_remove_only")
    return Tally._restore(
        basis,
        kernel,
        table=table,
        count=int(numbers[0]),
        moves=int(numbers[1]),
        cap=cap,
        origins=origins,
        lists=edge_lists,
        restricted=restricted,
    )


def _narrowest(table: Counters) -> str:
    if isinstance(table, np.ndarray):
        return narrowest_type(table)
    return narrowest_type(np.array(value_range(table)))


def _table_section(table: Counters, type_name: str) -> Buffer | Section:
    """The table's bytes; of a large one a few rows at a time."""
    if isinstance(table, np.ndarray):
        return encode_array(table, type_name)
    rows = table.shape[0]
    return Section(
        encoded_size(table.shape, type_name),
        lambda: (encode_array(values, type_name) for _, values in row_blocks(table, rows)),
    )


def _table(basis: Basis, payload: memoryview, type_name: str) -> Counters:
    table: Counters = basis.new_table()
    values = decode_array(payload, basis.shape, type_name)
    if isinstance(table, np.ndarray):
        return values.astype(np.int64)
    step = max(1, CELLS_AT_A_TIME // basis.shape[1])
    for start in range(0, basis.shape[0], step):
        table.add_rows(start, values[start : start + step].astype(np.int64), 1)
    return table


def payload_size(header: Header) -> int:
    """The bytes of the sections that `described` returns with a header."""
    size = 16 + encoded_size(basis_from_json(header["basis"]).shape, header["table"]["type"])
    if header["units"] is not None:
        size += encoded_size((header["units"]["slots"], 3), "int64")
    return size + ORIGIN_BYTES * encoded_size((header["origins"],), "int8")


def _padded(persons: int) -> int:
    return 0 if persons == 0 else 1 << (persons - 1).bit_length()


TALLY_FILE = SecretFile(FileKind.TALLY, "this tally", payload_size, build)


_CHECKPOINT_WARNING: Final = (
    "CONFIDENTIAL: a count that is not finished. Not for release; run the same count again."
)
DEFAULT_SECONDS: Final = 60.0


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
            raise UsageError("checkpoint_every", "must be at least 0 seconds", got=seconds)
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
                "checkpoint",
                "must belong to this count: the same parameters, and the same files, unchanged",
                got="the checkpoint of another count",
                remedy=("repeat the command that wrote it, or give another ", Parameter("checkpoint")),
            )
        done = journal["done"]
        if {name: type(value) for name, value in done.items()} != fields:
            raise FileRefused((FilePath(self.path), " does not state what is counted in it"))
        return tally, done

    def save(self, tally: Tally, done: Mapping[str, Any]) -> None:
        """Replace the file by this state."""
        journal = padded_json({"job": self._job, "done": done})
        with tally._held():
            header, sections = described(tally, encrypted=self._key is not None)
            _CHECKPOINT_FILE.write(
                self.path,
                {**header, "warning": _CHECKPOINT_WARNING, "journal": len(journal)},
                [journal, *sections],
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
    return _CHECKPOINT_FILE.read(path, encryption_key=encryption_key)


def _checkpoint_size(header: Header) -> int:
    return padded_size(header["journal"]) + payload_size(header)


def _checkpoint(header: Header, payload: memoryview) -> tuple[Tally, dict[str, Any]]:
    size = header["journal"]
    journal = json.loads(bytes(payload[:size]))
    parts = journal.values() if isinstance(journal, dict) and set(journal) == {"job", "done"} else [None]
    if not all(isinstance(each, dict) for each in parts):
        raise ValueError("journal")
    return build(header, payload[size:]), journal


_CHECKPOINT_FILE = SecretFile(FileKind.CHECKPOINT, "this checkpoint", _checkpoint_size, _checkpoint)


@dataclass(frozen=True, slots=True)
class TallyPattern:
    """Everything public of a tally, as JSON: what a worker needs to fill one like it.

    A basis or a kernel of one's own must be registered, that is imported, in the worker too.

    >>> import hushsum as hs
    >>> pattern = TallyPattern.of(hs.race(hs.EuclideanKernel(2, 1.0), rows=4, width=10))
    >>> pattern.empty().basis.shape
    (4, 10)
    """

    public: str

    @classmethod
    def of(cls, tally: object) -> TallyPattern:
        """The pattern of an empty tally.

        Raises
        ------
        UsageError
            if it is not a tally, or something was counted in it.
        """
        if not isinstance(tally, Tally):
            raise UsageError("tally", "must be an empty tally", got=type(tally).__name__)
        if not is_empty(tally):
            remedy = "count into an empty one, and merge them"
            raise UsageError("tally", "must be empty", got="one with records", remedy=remedy)
        public = {
            "basis": basis_as_json(tally.basis),
            "kernel": None if tally.kernel is None else kernel_as_json(tally.kernel),
            "max_per_unit": tally.max_per_unit,
            "add_remove_only": tally.add_remove_only,
        }
        return cls(canonical_json(public).decode())

    def empty(self) -> Tally:
        """An empty tally of this pattern."""
        found = json.loads(self.public)
        kernel = None if found["kernel"] is None else kernel_from_json(found["kernel"])
        tally = Tally(basis_from_json(found["basis"]), kernel, max_per_unit=found["max_per_unit"])
        return tally.restrict_to_add_remove() if found["add_remove_only"] else tally


def is_empty(tally: Tally) -> bool:
    """Whether nothing was ever counted in a tally."""
    return not tally._moves


def tally_as_message(tally: Tally) -> Section:
    """A tally as the bytes of a plain ``.tally`` file, for encryption by the caller: their number does not
    depend on its counts.

    They refer to the tally, which must not change until they have been encrypted.
    """
    with tally._held():
        header, sections = described(tally, encrypted=True)
    return TALLY_FILE.plain(header, sections)


def tally_from_bytes(data: memoryview) -> Tally:
    """The tally of a message that has been decrypted.

    Raises
    ------
    FileRefused
        if nothing that `tally_as_message` returns has these bytes.
    """
    return TALLY_FILE.read(data, encryption_key=None)
