"""The sensitivity half of an audit: without noise, look for neighbours that move a table further than
declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Basis
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation

LESS_SENSITIVITY = 0.8


@dataclass(frozen=True, slots=True)
class SensitivityAudit:
    """What was declared, and the furthest move that was found among ``pairs`` neighbouring pairs."""

    relation: Relation
    declared: Sensitivity
    found: Sensitivity
    pairs: int

    @property
    def holds(self) -> bool:
        """Whether no pair moved further than declared, in any of the three norms."""
        return (
            self.found.l1 <= self.declared.l1
            and self.found.l2_squared <= self.declared.l2_squared
            and self.found.largest <= self.declared.largest
        )

    @property
    def catches(self) -> bool:
        """Whether the same pairs break a declaration of a fifth less, in either norm."""
        return (
            self.found.l1 > LESS_SENSITIVITY * self.declared.l1
            and self.found.l2_squared > LESS_SENSITIVITY**2 * self.declared.l2_squared
        )


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Batches in the order in which they are counted, records that are then taken out again, and threads.

    ``repeated`` if it occurs in several pairs: it is counted once for all of them.
    """

    batches: Sequence[object]
    removed: object = None
    threads: int = 1
    repeated: bool = False


Pair = tuple[Dataset, Dataset]


def audit_sensitivity(
    basis: Basis, pairs: Iterable[tuple[object, object]], relation: Relation, *, threads: int = 1
) -> SensitivityAudit:
    """Count both datasets of every pair exactly and compare the difference with what the basis declares.

    A record whose contribution depends on its batch, its position, the threads or the other records shows up
    as a move that is too large.

    Parameters
    ----------
    pairs : iterable of pairs
        Neighbours in the given relation. A dataset is a `Dataset`, or whatever ``basis.prepare`` takes, which
        is counted in one batch; None is the empty one.
    threads : int
        For datasets that do not state it.
    """
    found = Sensitivity(0, 0, 0)
    number = 0
    tables: dict[int, tuple[object, NDArray[np.int64]]] = {}

    def table_of(data: object) -> NDArray[np.int64]:
        if not (isinstance(data, Dataset) and data.repeated):
            return counted(basis, data, threads)
        if id(data) not in tables:
            # The dataset is kept with its table, so that no other one gets its id.
            tables[id(data)] = data, counted(basis, data, threads)
        return tables[id(data)][1]

    for left, right in pairs:
        found = furthest(found, table_of(left) - table_of(right))
        number += 1
    return SensitivityAudit(relation, basis.sensitivity(relation), found, number)


def furthest(found: Sensitivity, move: NDArray[np.int64]) -> Sensitivity:
    """The norms of a move, where they exceed what was found before."""
    size = np.abs(move)
    return Sensitivity(
        max(found.l1, int(size.sum())),
        max(found.l2_squared, int((size * size).sum())),
        max(found.largest, int(size.max())),
    )


def counted(basis: Basis, data: object, threads: int = 1) -> NDArray[np.int64]:
    """The exact table of a dataset."""
    table = np.zeros(basis.shape, np.int64)
    if data is None:
        return table
    dataset = data if isinstance(data, Dataset) else Dataset([data], threads=threads)
    for batch in dataset.batches:
        basis.accumulate(table, basis.prepare(batch), step=1, threads=dataset.threads)
    if dataset.removed is not None:
        basis.accumulate(table, basis.prepare(dataset.removed), step=-1, threads=dataset.threads)
    return table
