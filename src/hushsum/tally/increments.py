"""What a stream takes out of a tally: the sums since the last step. The caps on persons stay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, Parameter, UsageError
from hushsum.privacy.claim import Relation
from hushsum.tally.counters import row_blocks
from hushsum.tally.refused_changes import is_graph, refuse_single_rows
from hushsum.tally.tally import Tally


def take_increment(tally: Tally) -> tuple[NDArray[np.int64], int]:
    """The exact table, flat, and the number of records since the last call; both are 0 afterwards.

    The cap on the records of a person and the bound on counters go on over all calls.
    """
    rows, width = tally.basis.shape
    table = np.empty((rows, width), np.int64)
    with tally._held():
        for start, values in row_blocks(tally._table, rows):
            table[start : start + len(values)] = values
        count = tally._count
        tally._table, tally._count = tally.basis.new_table(), 0
    return table.reshape(-1), count


def has_removals(tally: Tally) -> bool:
    """Whether records were removed: the bound on its counters grows then, and its number of records falls."""
    with tally._held():
        return tally._moves > tally._count * tally.basis.sensitivity(Relation.ADD_REMOVE).largest


def add_removals(tally: Tally, X: object, *, units: object = None, threads: int | None = None) -> int:
    """Count records with the opposite sign, and return how many; each takes a place under a person's cap.

    The number of records of the tally itself stays as it is, since it may not fall below 0.

    Privacy
    -------
    A removal is a record of the same person: which are counted depends on that person's records alone.
    """
    if is_graph(tally.basis):
        refuse_single_rows()
    batch = tally.basis.prepare(X)
    if tally._cap is None:
        if units is not None:
            rule = "must be left out, or the tally made with "
            raise UsageError(parameter="units", rule=(rule, Parameter("max_per_unit")))
        before = tally._count
        tally._accumulate(batch, -1, threads)
        tally._count = before
        return len(batch)
    cap = tally._cap
    if units is None:
        raise UsageError(parameter="units", rule="must be given, one id per record: it counts persons")
    keep, pending = cap.plan(units)
    if len(keep) != len(batch):
        rule = "must have one id for each record"
        raise DataRefused(parameter="units", rule=rule, got="another number", remedy="align them")
    before = tally._count
    tally._accumulate(batch.select(keep), -1, threads, first=lambda: cap.commit(pending))
    tally._count = before
    return int(np.count_nonzero(keep))


def leave_room(tally: Tally, gain: int) -> None:
    """Refuse records from now on with which ``gain`` times the sum of all counters could leave 63 bits."""
    tally._room = (1 << 62) // gain
