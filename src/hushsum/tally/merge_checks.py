"""Whether two tallies may be merged, and what one edge of a graph may change in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hushsum.bases.base import Basis
from hushsum.errors import IncompatibleTallies, Parameter, UsageError
from hushsum.tally.units import is_graph

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
