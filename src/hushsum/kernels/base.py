"""What a kernel is: a public similarity, and for most of them the hash functions that collide as often."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused, UsageError
from hushsum.files.container import canonical_json
from hushsum.records.bounds import Bounds

_BLOCK_CELLS = 1 << 22

Floats = NDArray[np.float64]


# Not frozen: one is made for every query, and a frozen one takes three times as long.
@dataclass(slots=True, eq=False)
class Batch:
    """Checked records in the form the native loops take: one array of rows, or the two arrays of a list of
    sets.
    """

    arrays: tuple[NDArray[Any], ...]
    length: int

    def __len__(self) -> int:
        return self.length

    def select(self, keep: NDArray[np.bool_]) -> Batch:
        """Only the records where ``keep`` is true."""
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


class Kernel(ABC):
    """A similarity between a record and a query, at most 1, equal to 1 where they coincide.

    A *hashable* kernel is the collision probability of a family of hash functions, so that counting hash
    values estimates sums of it. Kernels are public values: compare, hash, print and store them freely.
    """

    __slots__ = ()

    name: ClassVar[str]
    hashable: ClassVar[bool] = True
    bounded_columns: ClassVar[bool] = True
    """Whether records are columns of numbers that declared bounds can clip."""
    rotation_invariant: ClassVar[bool] = False
    """Whether only the Euclidean distance counts, so that random frequencies may be made orthogonal."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON values."""

    @abstractmethod
    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Check records, or queries (``clip=False``), and bring them into the native form.

        ``columns`` names those of a frame or table that are meant, in order; data without names are taken by
        position. Raises ``DataRefused``.
        """

    @abstractmethod
    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        """Similarities, shape (records, queries)."""

    def similarity(self, X: object, Q: object) -> Floats:
        """The matrix k(x, q), shape (n_records, n_queries), in double precision. For data one may look at."""
        return self._pairwise(self.prepare(X), self.prepare(Q))

    def prepared_similarity(self, records: Batch, queries: Batch) -> Floats:
        """The same matrix for records and queries that are prepared already."""
        return self._pairwise(records, queries)

    def exact_sum(self, X: object, Q: object) -> Floats:
        """The exact kernel sums Σₓ k(x, q), shape (n_queries,). For data one may look at; costs n_records ×
        n_queries.
        """
        records, queries = self.prepare(X), self.prepare(Q)
        total = np.zeros(len(queries))
        columns = max(1, min(len(queries), 1024))
        rows = max(1, _BLOCK_CELLS // columns)
        for j in range(0, len(queries), columns):
            part = _slice(queries, j, j + columns)
            for i in range(0, len(records), rows):
                total[j : j + columns] += self._pairwise(_slice(records, i, i + rows), part).sum(axis=0)
        return total

    def distinct_hashes(self) -> int | None:
        """How many values one hash function takes, if that is a small number known in advance."""
        return None

    def independent_rows(self) -> int:
        """How many consecutive rows share random numbers; blocks of that many are independent."""
        return 1

    def hasher(self, *, rows: int, width: int, seed: int, scattered: bool = True) -> Hasher:
        """The first ``rows`` hash functions of the seed, into ``width`` cells; ``scattered`` as in
        :mod:`hushsum.kernels.rehash`.
        """
        raise UsageError(
            f"the {self.name} kernel is not a collision probability, so hash rows cannot release it; "
            "use another method, or the euclidean kernel"
        )

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Draws from the spectral measure in turns, shape (rows, dim): k(x, q) = E cos(2π·frequency·(x − q)).

        Row r is the same whatever the number of rows. ``orthogonal`` rows, within blocks of ``dim``, have the
        same law each, for a kernel that is rotation invariant.
        """
        raise UsageError(
            f"the {self.name} kernel has no known spectral measure, so Fourier features cannot release it; "
            "use another method, or the gaussian kernel"
        )


_KERNELS: dict[str, type[Kernel]] = {}


def register(kernel: type[Kernel]) -> type[Kernel]:
    """Make a kernel known by its name, for files and the command line."""
    _KERNELS[kernel.name] = kernel
    return kernel


def kernel_names() -> list[str]:
    """The registered names, sorted."""
    return sorted(_KERNELS)


def kernel_class(name: str) -> type[Kernel]:
    """The kernel of that name.

    >>> kernel_class("euclidean").__name__
    'EuclideanKernel'
    """
    if name not in _KERNELS:
        raise UsageError(f"kernel must be one of {', '.join(kernel_names())}, got {name!r}; choose one")
    return _KERNELS[name]


def kernel_from_json(data: dict[str, Any]) -> Kernel:
    """The kernel that a file's header describes."""
    name = data.get("name")
    if name not in _KERNELS:
        raise FileRefused(
            f"the file uses the kernel {name!r}, which this Hushsum does not know; install a later one"
        )
    kernel = _KERNELS[name](**data["parameters"])
    if canonical_json(kernel.parameters()) != canonical_json(data["parameters"]):
        raise ValueError("a kernel has one description")
    return kernel


def kernel_as_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel for a file's header."""
    return {"name": kernel.name, "parameters": kernel.parameters()}


def _slice(batch: Batch, start: int, stop: int) -> Batch:
    stop = min(stop, len(batch))
    if len(batch.arrays) == 1:
        return Batch((batch.arrays[0][start:stop],), stop - start)
    values, starts = batch.arrays
    first, last = int(starts[start]), int(starts[stop])
    return Batch((values[first:last], starts[start : stop + 1] - first), stop - start)
