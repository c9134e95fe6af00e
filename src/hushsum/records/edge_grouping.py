"""Arcs grouped by their first node, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused
from hushsum.records.sets import Sets

Ids = NDArray[np.int64]
Arcs = NDArray[np.int64]
"""Shape (n, 2): a node and one of its neighbours. A node with itself states that the node exists."""

_ARC_BYTES: Final = 16
_SORTING: Final = 5
"""Copies of the arcs that are in memory while they are sorted."""

_BITS: Final = 6
_PARTS: Final = 1 << _BITS
_LEVELS: Final = 10
_HALF_BITS: Final = np.uint64(32)
_HALF: Final = 1 << 32
_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)


def grouped(
    chunks: Iterable[Arcs], memory: int, report: Callable[[int], None] | None = None
) -> Iterator[tuple[Ids, Sets]]:
    """The nodes and their sets of neighbours, all nodes once, using about ``memory`` bytes. ``report`` is
    called with the number of arcs that every batch is made of, before it is returned.

    Arcs that do not fit are divided by their first node among files without names, which the operating system
    removes with the process, and the parts are sorted one after another.
    """
    most = max(1, memory // (_SORTING * _ARC_BYTES))
    yield from _grouped(iter(chunks), most, 0, report or _ignored)


def _ignored(arcs: int) -> None:
    """Where nobody follows the progress."""


def _grouped(
    chunks: Iterator[Arcs], most: int, level: int, report: Callable[[int], None] = _ignored
) -> Iterator[tuple[Ids, Sets]]:
    held: list[Arcs] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        # A node with more neighbours than fit cannot be divided, and is then sorted all the same.
        if size > most and level < _LEVELS:
            break
    else:
        if size:
            report(size)
            yield neighbour_sets(np.concatenate(held))
        return
    with ExitStack() as opened:
        parts: dict[int, _Part] = {}

        def divide(chunk: Arcs) -> None:
            for number, arcs in _divided(chunk, level):
                if number not in parts:
                    file = opened.enter_context(tempfile.TemporaryFile(buffering=0))
                    parts[number] = _Part(file, int(arcs[0, 0]))
                parts[number].write(arcs)

        while held:
            divide(held.pop())
        for chunk in chunks:
            divide(chunk)
        for _, part in sorted(parts.items()):
            yield from _grouped(part.read(most), most, level + 1 if part.divisible else _LEVELS, report)
            part.file.close()


@dataclass(slots=True)
class _Part:
    """A file with the arcs of some nodes; ``divisible`` once there are two of them."""

    file: IO[bytes]
    node: int
    divisible: bool = False

    def write(self, arcs: Arcs) -> None:
        self.divisible = self.divisible or bool(np.any(arcs[:, 0] != self.node))
        data = memoryview(arcs.tobytes())
        # On a disk that is nearly full a write may take a part of it, without an error.
        while data:
            data = data[self.file.write(data) :]

    def read(self, most: int) -> Iterator[Arcs]:
        self.file.seek(0)
        while data := self.file.read(_ARC_BYTES * min(most, 1 << 20)):
            while len(data) % _ARC_BYTES:
                data += self.file.read(_ARC_BYTES - len(data) % _ARC_BYTES)
            yield np.frombuffer(data, np.int64).reshape(-1, 2)


def _divided(chunk: Arcs, level: int) -> Iterator[tuple[int, Arcs]]:
    """The arcs of each part, where the first node of an arc decides its part."""
    mixed = chunk[:, 0].view(np.uint64) * _MIXER
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIXER
    place = (mixed >> np.uint64(64 - _BITS * (level + 1))).astype(np.uint8) % np.uint8(_PARTS)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(_PARTS + 1))
    ordered = chunk[order]
    for number in np.flatnonzero(np.diff(ends)).tolist():
        yield number, ordered[ends[number] : ends[number + 1]]


def neighbour_sets(arcs: Arcs) -> tuple[Ids, Sets]:
    """The nodes in rising order, and the set of each node's neighbours."""
    node, other = _distinct(arcs)
    first = np.ones(len(node), np.bool_)
    first[1:] = node[1:] != node[:-1]
    starts = np.flatnonzero(first)
    members = other != node
    before = np.concatenate(([0], np.cumsum(members, dtype=np.int64)))
    indptr = np.concatenate((before[starts], before[-1:]))
    return node[starts], Sets(other[members], indptr)


def _distinct(arcs: Arcs) -> tuple[Ids, Ids]:
    """The arcs in rising order, each once: their first nodes and their second ones."""
    lows = [int(column.min()) for column in arcs.T]
    if all(int(column.max()) - low < _HALF for column, low in zip(arcs.T, lows, strict=True)):
        # Both ends in one number, which sorts several times faster than two.
        packed = (arcs[:, 0] - lows[0]).view(np.uint64) << _HALF_BITS
        packed |= (arcs[:, 1] - lows[1]).view(np.uint64)
        packed.sort()
        new = np.ones(len(packed), np.bool_)
        np.not_equal(packed[1:], packed[:-1], out=new[1:])
        packed = packed[new]
        node = (packed >> _HALF_BITS).view(np.int64) + lows[0]
        return node, (packed & np.uint64(_HALF - 1)).view(np.int64) + lows[1]
    order = np.lexsort((arcs[:, 1], arcs[:, 0]))
    node, other = arcs[order, 0], arcs[order, 1]
    new = np.ones(len(node), np.bool_)
    new[1:] = (node[1:] != node[:-1]) | (other[1:] != other[:-1])
    return node[new], other[new]


def grouped_in_order(
    chunks: Iterable[Arcs], memory: int, report: Callable[[int], None] | None = None
) -> Iterator[tuple[Ids, Sets]]:
    """The same for arcs that are in rising order of their first node, without dividing them.

    Raises
    ------
    DataRefused
        if the order falls.
    """
    most = memory // (_SORTING * _ARC_BYTES)
    held: list[Arcs] = []
    size, last = 0, np.iinfo(np.int64).min
    for chunk in chunks:
        nodes = chunk[:, 0]
        if np.any(nodes[1:] < nodes[:-1]) or (len(nodes) and nodes[0] < last):
            raise DataRefused(
                rule="edges must be in rising order of their first node to be read as sorted",
                got="another order",
                remedy="leave sorted out",
            )
        held.append(chunk)
        size += len(chunk)
        last = int(nodes[-1]) if len(nodes) else last
        if size < most:
            continue
        arcs = np.concatenate(held)
        # The last node may go on in the next chunk.
        end = int(np.searchsorted(arcs[:, 0], last))
        if end:
            (report or _ignored)(end)
            yield neighbour_sets(arcs[:end])
            held, size = [arcs[end:]], len(arcs) - end
    if size:
        (report or _ignored)(size)
        yield neighbour_sets(np.concatenate(held))
