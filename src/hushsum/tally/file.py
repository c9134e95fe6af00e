"""``.tally`` files: exact counts, marked CONFIDENTIAL, optionally encrypted."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hushsum.bases.base import basis_as_json, basis_from_json
from hushsum.files.arrays import decode_array, encode_array, encoded_size, narrowest_type
from hushsum.files.container import Buffer, FileKind, Header, read_container
from hushsum.files.encryption import read_confidential, stored_size, write_confidential
from hushsum.kernels.base import kernel_as_json, kernel_from_json
from hushsum.records.units import UnitCap
from hushsum.tally.tally import ORIGIN_BYTES, Tally
from hushsum.version import PRODUCER

WARNING = "CONFIDENTIAL: exact sums of private records. Not for release; see hushsum release."
_DIGEST_BYTES = 16
_LARGEST_CAP = 2**53


def save_tally(tally: Tally, path: str | os.PathLike[str], *, encryption_key: bytes | None = None) -> None:
    """Write a tally, readable by its owner only. Counts stand in the payload, so encryption hides them all.

    The header is public even then: kernel, rows, width, seed, bounds, and how many persons' counters the
    file holds are not encrypted. (That number is padded to a power of two.)
    """
    state = tally._state()
    cap: UnitCap | None = state["cap"]
    numbers = np.array([state["count"], state["moves"]], np.int64)
    type_name = "int64" if encryption_key is not None else narrowest_type(state["table"])
    sections: list[Buffer] = [encode_array(numbers, "int64"), encode_array(state["table"], type_name)]
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
    header: dict[str, Any] = {
        "warning": WARNING,
        "basis": basis_as_json(tally.basis),
        "kernel": _kernel_as_json(tally),
        "producer": PRODUCER,
        "table": {"type": type_name},
        "origins": len(origins),
        "units": None if cap is None else {"limit": cap.limit, "slots": _padded(persons)},
    }
    write_confidential(path, FileKind.TALLY, header, sections, encryption_key=encryption_key)


def load_tally(path: str | os.PathLike[str], *, encryption_key: bytes | None = None) -> Tally:
    """Read a ``.tally`` file.

    Raises
    ------
    FileRefused
        if the file is damaged, of another kind, or the key does not open it.
    UsageError
        if it is encrypted and no key was given.
    """
    return read_confidential(
        path, FileKind.TALLY, _payload_size, _build, what="this tally", encryption_key=encryption_key
    )


def public_header(path: str | os.PathLike[str]) -> Header:
    """What a ``.tally`` file says to anybody, encrypted or not: its warning, basis and cap; no counts.

    Raises
    ------
    FileRefused
        if the file is damaged or of another kind.
    """
    return read_container(path, FileKind.TALLY, stored_size(_payload_size))[0]


def _build(header: Header, payload: memoryview) -> Tally:
    basis = basis_from_json(header["basis"])
    kernel = None if header["kernel"] is None else kernel_from_json(header["kernel"])
    type_name = header["table"]["type"]
    numbers = decode_array(payload[:16], (2,), "int64")
    end = 16 + encoded_size(basis.shape, type_name)
    table = decode_array(payload[16:end], basis.shape, type_name).astype(np.int64)
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
    return Tally._restore(basis, kernel, table, int(numbers[0]), int(numbers[1]), cap, origins)


def _payload_size(header: Header) -> int:
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
