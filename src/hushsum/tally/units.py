"""The units that a tally can protect, and what it takes for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushsum.bases.base import Basis
from hushsum.errors import Parameter, UsageError
from hushsum.privacy.claim import ADJACENCY_ROW, PERSON, checked_unit

if TYPE_CHECKING:
    from hushsum.tally.tally import Tally


def is_graph(basis: Basis) -> bool:
    """Whether records are the rows of a graph."""
    return ADJACENCY_ROW in basis.units


def claimed_unit(tally: Tally, requested: str | None) -> tuple[str, int]:
    """The unit of a claim, and how many records, or lists of edges, it may be in.

    Raises
    ------
    ClaimError
        for a unit that the tally does not have.
    """
    cap = tally.max_per_unit
    offered = tuple(each for each in tally.basis.units if (each == PERSON) is (cap is not None))
    unit = checked_unit(tally.unit if requested is None else requested, offered)
    if cap is not None:
        return unit, cap
    return unit, 1 if unit == tally.basis.units[0] else tally.edge_lists


def refuse_single_rows(basis: Basis) -> None:
    """Refuse records for a graph: which rows an edge changes is known for a whole list of edges alone."""
    if is_graph(basis):
        raise UsageError(
            rule="the tally of a graph holds one list of edges, and takes no further records",
            remedy="read all files by one hs.read_edges, and count it with hs.count_graph",
        )


def refuse_removal(tally: Tally) -> None:
    """Refuse to take records out of a tally that does not know which ones it counted."""
    if tally.max_per_unit is not None:
        raise UsageError(
            rule=("remove needs a tally without ", Parameter("max_per_unit")),
            remedy="count anew: the cap may have left the record out",
        )
    refuse_single_rows(tally.basis)


def refuse_persons_in_graphs(basis: Basis) -> None:
    """Refuse a cap on the records of a person where records are nodes."""
    if PERSON not in basis.units:
        raise UsageError(
            parameter="max_per_unit",
            rule="must be left out: the records are nodes of a graph, one row for each",
        )
