"""``.tally`` files: exact counts, marked CONFIDENTIAL, optionally encrypted."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hushsum._types import PathOrFile
from hushsum.bases.base import Basis
from hushsum.bases.registry import basis_as_json, basis_from_json
from hushsum.files.container import Buffer, FileKind, Header, Section, read_container
from hushsum.files.encoding import decode_array, encode_array, encoded_size, narrowest_type
from hushsum.files.encryption import read_confidential, stored_size, write_confidential
from hushsum.kernels.registry import kernel_as_json, kernel_from_json
from hushsum.privacy.claim import ADJACENCY_ROW, PERSON
from hushsum.records.person_caps import UnitCap
from hushsum.tally.counters import CELLS_AT_A_TIME, Counters, row_blocks, value_range
from hushsum.tally.tally import ORIGIN_BYTES, Tally
from hushsum.version import PRODUCER

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
    write_confidential(path, FileKind.TALLY, header, sections, encryption_key=encryption_key)


def described(tally: Tally, *, encrypted: bool) -> tuple[Header, list[Buffer | Section]]:
    """The public header and the secret sections of a tally, for this file and for checkpoints."""
    state = tally._state()
    cap: UnitCap | None = state["cap"]
    numbers = np.array([state["count"], state["moves"]], np.int64)
    table: Counters = state["table"]
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
    origins: frozenset[bytes] = state["origins"]
    sections.append(b"".join(sorted(origins)))
    header: Header = {
        "warning": WARNING,
        "basis": basis_as_json(tally.basis),
        "kernel": _kernel_as_json(tally),
        "producer": PRODUCER,
        "table": {"type": type_name},
        "origins": len(origins),
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
    return read_confidential(
        path, FileKind.TALLY, payload_size, build, what="this tally", encryption_key=encryption_key
    )


def public_header(path: str | os.PathLike[str]) -> Header:
    """What a ``.tally`` file says to anybody, encrypted or not: its warning, basis and cap; no counts.

    Raises
    ------
    FileRefused
        if the file is damaged or of another kind.
    """
    return read_container(path, FileKind.TALLY, stored_size(payload_size))[0]


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
    if cap is not None and PERSON not in basis.units:
        raise ValueError("persons")
    edge_lists = header.get("edge_lists", 1)
    if type(edge_lists) is not int or not 1 <= edge_lists <= _MOST_LISTS:
        raise ValueError("edge lists")
    if edge_lists > 1 and ADJACENCY_ROW not in basis.units:
        raise ValueError("edge lists")
    restricted = header.get("add_remove_only", False)
    if type(restricted) is not bool:
        raise ValueError("add_remove_only")
    counted = int(numbers[0]), int(numbers[1])
    return Tally._restore(basis, kernel, table, *counted, cap, origins, edge_lists, restricted)


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


def _kernel_as_json(tally: Tally) -> dict[str, Any] | None:
    """The kernel to read with; None where the basis is counted for one, or none was chosen."""
    counted = tally.basis.counted_kernel() is not None
    return None if counted or tally.kernel is None else kernel_as_json(tally.kernel)


def _padded(persons: int) -> int:
    return 0 if persons == 0 else 1 << (persons - 1).bit_length()
