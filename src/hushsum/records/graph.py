"""What the records of a graph are: which nodes, and which of their neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hushsum.errors import DataRefused, UsageError
from hushsum.records.edge_grouping import Arcs, Ids

MOST_NODES: Final = 1 << 40
_NODES_AT_A_TIME: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Graph:
    """How edges become adjacency rows. A claim about edges depends on all three fields.

    Parameters
    ----------
    directed : bool
        The neighbours of a node are those that its edges lead to; else each end of an edge is a neighbour of
        the other.
    nodes : int, optional
        The declared number of nodes, which are numbered from 0. Each is a record, also without edges. Without
        it the records are the nodes that edges name.
    rows_listed : bool
        The files list the rows: an edge makes only its first end a record, and an undirected edge is listed
        in both directions.
    """

    directed: bool = False
    nodes: int | None = None
    rows_listed: bool = False

    def __post_init__(self) -> None:
        if self.nodes is not None and not 1 <= self.nodes <= MOST_NODES:
            raise UsageError(parameter="nodes", rule=f"must be from 1 to {MOST_NODES}", got=self.nodes)
        if self.rows_listed and self.nodes is not None:
            raise UsageError(
                parameter="nodes",
                rule="must be left out for sorted edges: their first ends are the records",
                got="both",
            )

    def __str__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        if self.nodes is not None:
            return f"{kind}, {self.nodes} declared nodes"
        return f"{kind}, nodes as listed" if self.rows_listed else f"{kind}, nodes of its edges"

    def as_json(self) -> dict[str, Any]:
        """The fields, for a file's header."""
        return {"directed": self.directed, "nodes": self.nodes, "rows_listed": self.rows_listed}

    @classmethod
    def from_json(cls, data: Any) -> Graph:
        """The graph of a file's header; ValueError if it is none that could have been written."""
        if not isinstance(data, dict) or set(data) != {"directed", "nodes", "rows_listed"}:
            raise ValueError("graph")
        directed, nodes, rows_listed = data["directed"], data["nodes"], data["rows_listed"]
        if type(directed) is not bool or type(rows_listed) is not bool:
            raise ValueError("graph")
        if nodes is not None and type(nodes) is not int:
            raise ValueError("nodes")
        return cls(directed, nodes, rows_listed)

    def arcs(self, pairs: Iterable[tuple[Ids, Ids]]) -> Iterator[Arcs]:
        """Arcs from a node to its neighbour, and from each record to itself where it might have none."""
        for first, second in pairs:
            self._check_declared(first, second)
            yield np.stack((first, second), axis=1)
            if not self.rows_listed:
                yield np.stack((second, second if self.directed else first), axis=1)
        for start in range(0, self.nodes or 0, _NODES_AT_A_TIME):
            ids = np.arange(start, min(start + _NODES_AT_A_TIME, self.nodes or 0), dtype=np.int64)
            yield np.stack((ids, ids), axis=1)

    def _check_declared(self, *ends: Ids) -> None:
        if self.nodes is None:
            return
        for each in ends:
            if len(each) and (int(each.min()) < 0 or int(each.max()) >= self.nodes):
                raise DataRefused(
                    parameter="nodes",
                    rule="must count all nodes, which are numbered from 0",
                    got="an edge with another node",
                    remedy="declare more nodes, or leave it out",
                )
