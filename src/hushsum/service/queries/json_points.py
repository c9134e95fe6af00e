"""Parses query points from JSON in small pieces, so that a hostile body costs little memory and time.

``json.loads`` on a whole body builds an object for every number and every empty list, and holds the
interpreter lock while it does. Here each piece of the array is parsed by itself, turned into numbers, and
dropped; between two pieces other threads run. Parsing stops at the first piece that breaks a rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused
from hushsum.records.arrow import pyarrow

BYTES_PER_NUMBER: Final = 32
"""The longest number that Python writes has 24 characters; the rest is for separators and spaces."""

BYTES_PER_POINT: Final = 16
BYTES_AROUND: Final = 1024
"""For what stands around the points, and the longest run of spaces between two of them."""

MOST_MEMBERS: Final = 1 << 22
"""Of all sets of one query together."""

_PIECE: Final = 1 << 14
"""Parsed in a millisecond, for which the interpreter lock is held."""
_SPACE: Final = rb"[ \t\r\n]*+"
_START: Final = re.compile(_SPACE + rb"\{" + _SPACE + rb'"points"' + _SPACE + rb":" + _SPACE + rb"\[")
_END: Final = re.compile(rb"\]" + _SPACE + rb"\}" + _SPACE + rb"\Z")
_NEXT: Final = re.compile(_SPACE + rb"," + _SPACE)
_SPACES: Final = re.compile(_SPACE)
_OF_FLOATS: Final = b"0123456789+-.eE,[] \t\r\n"
_OF_INTEGERS: Final = b"0123456789-,[] \t\r\n"


def largest_json(dim: int, points: int) -> int:
    """The longest body that so many points of ``dim`` numbers can need."""
    return BYTES_AROUND + points * (BYTES_PER_POINT + BYTES_PER_NUMBER * dim)


def dense_points(body: bytes | bytearray, *, dim: int, most: int) -> NDArray[np.float64]:
    """The points of ``{"points": [[1.0, 2.0], …]}``.

    Parameters
    ----------
    body : bytes
        The whole body.
    dim : int
        Numbers per point.
    most : int
        Points that are accepted.

    Returns
    -------
    array of shape (n_points, dim)

    Raises
    ------
    DataRefused
        if the body is not that, or has too many points.

    Examples
    --------
    >>> dense_points(b'{"points": [[1, 2.5], [-3e1, 0]]}', dim=2, most=10)
    array([[  1. ,   2.5],
           [-30. ,   0. ]])
    """
    found = _scan(body, _Rows(np.dtype(np.float64), _OF_FLOATS, most, dim))
    return found.numbers().reshape(-1, dim)


def set_points(body: bytes | bytearray, *, most: int) -> Any:
    """The points of ``{"points": [[3, 5], [], …]}``, which are sets of integers, as an Arrow table.

    Raises
    ------
    DataRefused
        if the body is not that, or has too many points.

    Examples
    --------
    >>> set_points(b'{"points": [[3, 5], []]}', most=10).column("set").to_pylist()
    [[3, 5], []]
    """
    pa = pyarrow()
    found = _scan(body, _Rows(np.dtype(np.int64), _OF_INTEGERS, most, None))
    ends = np.cumsum([0, *found.lengths], dtype=np.int32)
    return pa.table({"set": pa.ListArray.from_arrays(pa.array(ends), pa.array(found.numbers()))})


@dataclass(slots=True)
class _Rows:
    """The numbers that were read, and how many each complete row has."""

    kind: np.dtype[Any]
    allowed: bytes
    most: int
    dim: int | None
    pieces: list[NDArray[Any]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    count: int = 0
    open: int = 0
    """Numbers of a row that is longer than a piece, so far."""

    def rows(self, text: bytes) -> None:
        """Read complete rows, with commas between them."""
        rows = self._parsed(text)
        if not all(type(row) is list for row in rows):
            raise self.refusal()
        lengths = list(map(len, rows))
        self._keep(chain.from_iterable(rows), sum(lengths))
        self._complete(lengths)

    def part(self, text: bytes, *, last: bool) -> None:
        """Read some numbers of a row that is longer than a piece."""
        numbers = self._parsed(text)
        self._keep(numbers, len(numbers))
        self.open += len(numbers)
        if self.dim is not None and self.open > self.dim:
            raise self.refusal()
        if last:
            self._complete([self.open])
            self.open = 0

    def numbers(self) -> NDArray[Any]:
        """All of them, in order."""
        return np.concatenate(self.pieces) if self.pieces else np.empty(0, self.kind)

    def refusal(self) -> DataRefused:
        """The error for rows that break the rule."""
        if self.dim is None:
            return DataRefused(
                rule="points must be lists of integers for this function", remedy="correct them"
            )
        return DataRefused(
            rule=f"points must be rows of {self.dim} numbers for this function", remedy="correct them"
        )

    def _parsed(self, text: bytes) -> list[Any]:
        # Nothing but numbers can be written in these characters: no text, no true, no null, no NaN.
        if text.translate(None, self.allowed):
            raise self.refusal()
        try:
            parsed: list[Any] = json.loads(b"[" + text + b"]")
        except (ValueError, RecursionError):
            raise _not_json() from None
        return parsed

    def _keep(self, numbers: Iterable[Any], count: int) -> None:
        try:
            self.pieces.append(np.fromiter(numbers, self.kind, count))
        except (TypeError, ValueError, OverflowError):
            raise self.refusal() from None
        self.count += count
        if self.dim is None and self.count > MOST_MEMBERS:
            raise DataRefused(
                rule=f"the sets of a query must have at most {MOST_MEMBERS} members",
                remedy="send several queries",
            )

    def _complete(self, lengths: list[int]) -> None:
        if self.dim is not None and any(length != self.dim for length in lengths):
            raise self.refusal()
        self.lengths += lengths
        if len(self.lengths) > self.most:
            raise DataRefused(
                rule=f"a query must have 1 to {self.most} points", got="more", remedy="send several queries"
            )


def _scan(body: bytes | bytearray, into: _Rows) -> _Rows:
    """Walk through the array in pieces that end where a row ends, or in a long row between two numbers."""
    start = _START.match(body, 0, BYTES_AROUND)
    tail = max(len(body) - BYTES_AROUND, start.end() if start else 0)
    end = _END.search(body, tail)
    if start is None or end is None:
        raise DataRefused(
            rule="the body must be a JSON object with points alone", remedy='send {"points": [[...], ...]}'
        )
    at, stop = start.end(), end.start()
    if _only_space(body, at, stop):
        return into
    inside = False
    while True:
        limit = min(at + _PIECE, stop)
        if inside:
            close = body.find(b"]", at, limit)
            cut = close if close >= 0 else body.rfind(b",", at, limit)
            if cut < 0:
                raise _not_json()
            into.part(bytes(body[at:cut]), last=close >= 0)
            at, inside = cut + 1, close < 0
            if inside:
                continue
        else:
            close = body.rfind(b"]", at, limit)
            if close < 0:
                opening = body.find(b"[", at, limit)
                cut = body.rfind(b",", at, limit)
                if opening < 0 or cut < opening or body[at:opening].strip():
                    raise _not_json()
                into.part(bytes(body[opening + 1 : cut]), last=False)
                at, inside = cut + 1, True
                continue
            into.rows(bytes(body[at : close + 1]))
            at = close + 1
        if _only_space(body, at, stop):
            return into
        comma = _NEXT.match(body, at, min(at + BYTES_AROUND, stop))
        if comma is None:
            raise _not_json()
        at = comma.end()


def _only_space(body: bytes | bytearray, at: int, stop: int) -> bool:
    found = _SPACES.match(body, at, min(at + BYTES_AROUND, stop))
    return found is not None and found.end() == stop


def _not_json() -> DataRefused:
    return DataRefused(rule="the body cannot be read as JSON", remedy='send {"points": [[...], ...]}')
