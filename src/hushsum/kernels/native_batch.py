"""Checked records in native form, and the native side of hash functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.records.bounds import Bounds
from hushsum.records.dense import as_dense

Metric = Literal["euclidean", "sqeuclidean", "cityblock"]


# Not frozen: one is made for every query, and a frozen one takes three times as long.
@dataclass(slots=True, eq=False)
class Batch:
    """Checked records in the form the native loops take: one array of rows, or the two arrays of a list of
    sets.

    Records whose columns are of several kinds have the arrays of each kind one after the other; ``layout``
    is how many arrays each has.
    """

    arrays: tuple[NDArray[Any], ...]
    length: int
    layout: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return self.length

    def parts(self) -> list[Batch]:
        """The records by kind of columns: of one kind, unless there is a layout."""
        if self.layout is None:
            return [self]
        found, start = [], 0
        for number in self.layout:
            found.append(Batch(self.arrays[start : start + number], self.length))
            start += number
        return found

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """Records whose columns are these parts, of one length."""
        arrays = tuple(array for part in parts for array in part.arrays)
        return cls(arrays, len(parts[0]), tuple(len(part.arrays) for part in parts))

    def select(self, keep: NDArray[np.bool_]) -> Batch:
        """Only the records where ``keep`` is true."""
        if self.layout is not None:
            return Batch.joined([part.select(keep) for part in self.parts()])
        kept = int(np.count_nonzero(keep))
        if len(self.arrays) == 1:
            return Batch((np.ascontiguousarray(self.arrays[0][keep]),), kept)
        values, starts = self.arrays
        sizes = np.diff(starts)
        ends = np.concatenate(([0], np.cumsum(sizes[keep], dtype=np.int64)))
        return Batch((values[np.repeat(keep, sizes)], ends), kept)


class Hasher(Protocol):
    """The native side of a hash family: R hash functions of a record into W cells."""

    def count(self, *arguments: Any) -> None:
        """``(*arrays, table, step, threads)``: add ``step`` to each record's cell in every row."""

    def cells(self, *arguments: Any) -> NDArray[np.int32]:
        """``(*arrays, rows)``: the cell of each record in each of the first rows."""

    def read(self, *arguments: Any) -> tuple[Floats, Floats]:
        """``(*arrays, table, block, threads)``: mean over rows of each query's cell, and its variance."""

    def means(self, *arguments: Any) -> Floats:
        """``(*arrays, table, scale, shift, threads)``: ``scale`` times that mean plus ``shift``."""


def dense_batch(
    data: object, dim: int, bounds: Bounds | None, *, clip: bool, columns: Sequence[str] | None
) -> Batch:
    """Checked single-precision rows; with bounds centred on their box, and clipped to it unless they are
    queries.
    """
    rows = as_dense(data, dim=dim, bounds=bounds, clip=clip, columns=columns)
    return Batch((rows,), len(rows))


def distances(records: Batch, queries: Batch, metric: Metric = "euclidean") -> Floats:
    """Distances between rows in double precision, shape (records, queries); ``metric`` is SciPy's name."""
    from scipy.spatial.distance import cdist

    return cdist(records.arrays[0].astype(np.float64), queries.arrays[0].astype(np.float64), metric)


def part_of(batch: Batch, start: int, stop: int) -> Batch:
    """The records from ``start`` to before ``stop``."""
    stop = min(stop, len(batch))
    if batch.layout is not None:
        return Batch.joined([part_of(part, start, stop) for part in batch.parts()])
    if len(batch.arrays) == 1:
        return Batch((batch.arrays[0][start:stop],), stop - start)
    values, starts = batch.arrays
    first, last = int(starts[start]), int(starts[stop])
    return Batch((values[first:last], starts[start : stop + 1] - first), stop - start)
