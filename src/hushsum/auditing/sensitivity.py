"""The sensitivity half of an audit: without noise, look for neighbours that move a table further than
declared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Basis
from hushsum.privacy.relation import Relation
from hushsum.privacy.sensitivity import Sensitivity


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


def audit_sensitivity(
    basis: Basis, pairs: Iterable[tuple[object, object]], relation: Relation, *, threads: int = 1
) -> SensitivityAudit:
    """Count both datasets of every pair exactly and compare the difference with what the basis declares.

    The datasets are counted as they are given, each in one batch, so a record whose contribution depends on
    its batch, its position or the other records shows up as a move that is too large. ``pairs`` must be
    neighbours in the given relation; an empty dataset is given as None.
    """
    found = Sensitivity(0, 0, 0)
    number = 0
    for left, right in pairs:
        move = np.abs(_counted(basis, left, threads) - _counted(basis, right, threads))
        found = Sensitivity(
            max(found.l1, int(move.sum())),
            max(found.l2_squared, int((move * move).sum())),
            max(found.largest, int(move.max())),
        )
        number += 1
    return SensitivityAudit(relation, basis.sensitivity(relation), found, number)


def _counted(basis: Basis, data: object, threads: int) -> NDArray[np.int64]:
    table = np.zeros(basis.shape, np.int64)
    if data is not None:
        basis.accumulate(table, basis.prepare(data), step=1, threads=threads)
    return table
