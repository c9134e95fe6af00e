"""One self-checking layout for everything that leaves or is kept: JSON, arrays, SHA-256.

``magic (8) | header length (u32) | canonical JSON | arrays | SHA-256``, little-endian. No code in it, lengths
checked before anything is read, and any changed byte refused.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from hushsum.errors import FileRefused
from hushsum.files.container import canonical_json
from hushsum.files.encoding import decode_array, encode_array, encoded_size

MAGIC = b"\x89HSUM1\r\n"
_HEAD = struct.Struct("<8sI")
_DIGEST = 32
_MAX_HEADER = 1 << 22
_TYPES = {"int8", "int16", "int32", "int64", "float64"}

Arrays = Mapping[str, NDArray[Any]]


class Spelled(Protocol):
    """Something with one spelling in bytes."""

    def to_bytes(self) -> bytes:
        """The one spelling."""


def pack(kind: str, values: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The bytes of a thing: equal things have equal bytes.

    >>> import numpy as np
    >>> kind, values, arrays = unpack(pack("x", {"a": 1}, {"v": np.arange(3)}), "x")
    >>> values, arrays["v"].tolist()
    ({'a': 1}, [0, 1, 2])
    """
    layout = [[name, array.dtype.name, list(array.shape)] for name, array in sorted(arrays.items())]
    header = canonical_json({"kind": kind, "values": dict(values), "arrays": layout})
    body = b"".join(encode_array(array, array.dtype.name) for _, array in sorted(arrays.items()))
    whole = _HEAD.pack(MAGIC, len(header)) + header + body
    return whole + hashlib.sha256(whole).digest()


def unpack(
    data: bytes, *kinds: str, most: int | None = None
) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """The thing back, if it is one of ``kinds``, at most ``most`` bytes long, and no byte was changed.

    Raises
    ------
    FileRefused
        otherwise.
    """
    try:
        if most is not None and len(data) > most:
            raise FileRefused(
                rule=f"a message must be at most {most} bytes", got=len(data), remedy="check the peer"
            )
        magic, length = _HEAD.unpack_from(data)
        start, end = _HEAD.size + length, len(data) - _DIGEST
        if magic != MAGIC or length > _MAX_HEADER or start > end:
            raise ValueError("layout")
        if hashlib.sha256(memoryview(data)[:end]).digest() != data[end:]:
            raise ValueError("checksum")
        header = json.loads(data[_HEAD.size : start])
        if canonical_json(header) != data[_HEAD.size : start] or header["kind"] not in kinds:
            raise ValueError("header")
        return header["kind"], header["values"], _arrays(header["arrays"], memoryview(data)[start:end])
    except FileRefused:
        raise
    except (struct.error, KeyError, TypeError, ValueError, RecursionError, OverflowError):
        raise FileRefused(
            rule=f"these bytes hold no {' or '.join(kinds)}: damaged, or of another kind",
            remedy="get a fresh copy",
        ) from None


def check_spelling(message: Spelled, data: bytes) -> None:
    """ValueError unless a message, written again, has the bytes that it was read from.

    What a reader ignores or converts, such as a further value or a truth value for a number, would otherwise
    give two spellings, and two digests, to one message.
    """
    if message.to_bytes() != data:
        raise ValueError("another spelling")


def _arrays(layout: list[Any], body: memoryview) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    place = 0
    for name, type_name, shape in layout:
        if type_name not in _TYPES or type(name) is not str or name in arrays:
            raise ValueError("array")
        size = encoded_size(tuple(shape), type_name, reals=True)
        if place + size > len(body):
            raise ValueError("array")
        # A copy: what is kept must not hang on a network buffer.
        arrays[name] = decode_array(body[place : place + size], tuple(shape), type_name).copy()
        place += size
    if place != len(body):
        raise ValueError("array")
    return arrays
