"""Changes that a tally refuses: single records of a graph, removal under a cap, and tallies that do not
merge; and what one edge of a graph may change in two merged tallies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from hushsum.bases.base import Basis
from hushsum.errors import IncompatibleTallies, Parameter, UsageError
from hushsum.privacy.claim import ADJACENCY_ROW, PERSON

if TYPE_CHECKING:
    from hushsum.tally.tally import Tally


def check_mergeable(one: Tally, other: Tally) -> None:
    """Refuse two tallies whose sum is not the tally of all their records."""
    from hushsum.tally.tally import Tally

    if not isinstance(other, Tally):
        raise UsageError(parameter="other", rule="must be a tally", got=type(other).__name__)
    if other is one:
        raise UsageError(
            parameter="other",
            rule="must be another tally: merging a tally with itself counts its records twice",
        )
    if other.fingerprint != one.fingerprint:
        raise IncompatibleTallies(
            rule="tallies must have one fingerprint to merge",
            got=f"some that differ in {differing_parameters(one.basis, other.basis)}",
            remedy="make both with the same",
        )
    if (one._cap is None) != (other._cap is None):
        raise IncompatibleTallies(
            rule="one tally counts persons, the other records",
            remedy=("make both with ", Parameter("max_per_unit"), ", or neither"),
        )
    if one._origins & other._origins:
        raise IncompatibleTallies(
            rule="the two tallies hold the same records, one being a copy or a continuation of the other",
            remedy="merge each tally once, or they count twice",
        )


def differing_parameters(one: Basis, other: Basis) -> str:
    """The names of the parameters in which two bases differ, for a refusal to merge their tallies; public.

    >>> from hushsum.methods import race
    >>> from hushsum.kernels import EuclideanKernel
    >>> bases = [race(EuclideanKernel(1, bandwidth=h), rows=9, seed=int(h)).basis for h in (1.0, 2.0)]
    >>> differing_parameters(*bases)
    'kernel bandwidth, seed'
    """
    return ", ".join(_differences(one.description(), other.description(), "method"))


def _differences(one: Mapping[str, Any], other: Mapping[str, Any], label: str) -> list[str]:
    if one["name"] != other["name"]:
        return [label]
    found: list[str] = []
    for key, value in one["parameters"].items():
        another = other["parameters"].get(key)
        if value == another:
            continue
        kernels = [each for each in (value, another) if isinstance(each, dict) and "parameters" in each]
        if len(kernels) == 2 and value["name"] == another["name"]:
            found += [f"{key} {each}" for each in _differences(value, another, key)]
        else:
            found.append(key)
    return found


def merged_lists(one: Tally, other: Tally, *, disjoint: bool) -> int:
    """In how many of the merged lists of edges one edge may be: in all, unless lists, or nodes, are declared
    disjoint.

    If no node is a record of both, the rows are those of one graph, and an edge changes as many as in one. If
    no edge is in both lists, it changes the rows of one of them.
    """
    lists = one.edge_lists, other.edge_lists
    return max(lists) if disjoint or not is_graph(one.basis) else sum(lists)


def is_graph(basis: Basis) -> bool:
    """Whether records are the rows of a graph."""
    return ADJACENCY_ROW in basis.units


def refuse_single_rows() -> NoReturn:
    """Refuse records for a graph: which rows an edge changes is known for a whole list of edges alone."""
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
    if is_graph(tally.basis):
        refuse_single_rows()


def refuse_persons_in_graphs(basis: Basis) -> None:
    """Refuse a cap on the records of a person where records are nodes."""
    if PERSON not in basis.units:
        raise UsageError(
            parameter="max_per_unit",
            rule="must be left out: the records are nodes of a graph, one row for each",
        )
