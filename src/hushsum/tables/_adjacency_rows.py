"""The hash rows of a graph, whose records are adjacency rows: the sets of neighbours of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

from hushsum.errors import ClaimError, UsageError
from hushsum.privacy import ADJACENCY_ROW, DIRECTED_EDGE, EDGE, Relation, Sensitivity, UnitChange
from hushsum.records import Graph
from hushsum.tables._hash_rows import HashRows
from hushsum.tables._registry import register


@register
@dataclass(frozen=True)
class AdjacencyRows(HashRows):
    r"""`HashRows` of the nodes of a graph, each the set of its neighbours; made by
    ``hs.methods.count_graph``.

    Parameters
    ----------
    graph : Graph
        Directed or not, and which nodes are records. The other parameters are those of `HashRows`.

    Privacy
    -------
    *One adjacency row* is one record: Δ1 = R, Δ2² = R, and the count moves by 1 (add/remove); Δ1 = 2R,
    Δ2² = 2R, and the count is public (replace).

    *One edge.* Neighbouring graphs differ in one edge, with all lines that list it. A row that changes leaves
    one cell of a hash row and enters another; a node that becomes a record enters one. So in each of the R
    hash rows, for an edge from u to v that appears (and, with opposite signs, disappears):

    ============================================  ===========================  =======  =======  ======
    what the edge does                            cells                        L1       L2²      count
    ============================================  ===========================  =======  =======  ======
    undirected, u and v are records               u: −a +a′, v: −b +b′         ≤ 4      ≤ 8      0
    undirected, v becomes one                     u: −a +a′, v: +b′            ≤ 3      ≤ 5      1
    undirected, u and v become records            +a′ +b′                      ≤ 2      ≤ 4      2
    directed, u and v are records                 u: −a +a′                    ≤ 2      ≤ 2      0
    directed, v becomes one (the empty set)       u: −a +a′, v: +e             ≤ 3      ≤ 5      1
    directed, u becomes one                       +a′                          ≤ 1      ≤ 1      1
    directed, u and v become records              +a′ +e                       ≤ 2      ≤ 4      2
    a self-loop, its node becomes a record        +e                           ≤ 1      ≤ 1      1
    a self-loop at a record, an edge listed twice  none                        0        0        0
    ============================================  ===========================  =======  =======  ======

    8 is attained by (−2, +2): a = b if u and v have the same neighbours, and a′ = b′ by folding; 5 is (−1,
    +2). With declared nodes only the cases happen in which both ends are records, and the number of records
    is public. Where the files list rows, v never becomes a record by a directed edge. The maxima over the
    cases that are possible:

    ======================  ==========  ====  ====  ===============  =====
    graph                   nodes       Δ1    Δ2²   largest change   count
    ======================  ==========  ====  ====  ===============  =====
    undirected              declared    4R    8R    2                0
    undirected              otherwise   4R    8R    2                2
    directed                declared    2R    2R    1                0
    directed                of edges    3R    5R    2                2
    directed, rows listed   as listed   2R    2R    1                1
    ======================  ==========  ====  ====  ===============  =====

    *Replace*: one edge disappears and another appears, so Δ1, Δ2 and the largest change double at most. They
    double but where both ends of directed edges become records: there the two empty sets cancel, if both
    exist, and what is left is +a −a′ −e of the edge that goes with −b +b′ of the one that comes, (−3, +2):
    Δ1 = 5R, Δ2² = 13R, largest 3. The count falls by at most its bound and then rises by at most its bound,
    so its bound stays.

    *Edges in up to k merged lists* change each of them: all bounds times k (Δ2² times k²).

    *One node* is not offered. Removing a node changes the rows of all its neighbours, and a projection to
    bounded degree does not help: see ``docs/how-to/count-a-graph.md``.
    """

    name: ClassVar[str] = "adjacency-rows"
    in_pages: ClassVar[bool] = True

    graph: Graph = field(default_factory=Graph)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel.dim is not None:
            raise UsageError(
                "kernel",
                "must compare sets, because a node is the set of its neighbours",
                got=self.kernel.name,
                remedy="use jaccard",
            )

    @classmethod
    def of(cls, rows: HashRows, graph: Graph) -> AdjacencyRows:
        """The same hash functions, for the rows of a graph."""
        return cls(**{each.name: getattr(rows, each.name) for each in fields(HashRows)}, graph=graph)

    @property
    def units(self) -> tuple[str, ...]:
        """One adjacency row, or one edge."""
        return ADJACENCY_ROW, DIRECTED_EDGE if self.graph.directed else EDGE

    @property
    def assumptions(self) -> dict[str, str]:
        """With declared nodes the claim about edges publishes how many there are."""
        if self.graph.nodes is None:
            return {}
        return dict.fromkeys((EDGE, DIRECTED_EDGE), "the list of nodes is public")

    def graph_in_words(self, edge_lists: int) -> str:
        """What kind of graph is counted, and how many merged lists of edges."""
        return str(self.graph) + (f", an edge in up to {edge_lists} lists" if edge_lists > 1 else "")

    def unit_change(self, unit: str, per_unit: int, relation: Relation) -> UnitChange:
        """How far one row, or one edge in up to ``per_unit`` lists, moves the sum; the proof is above."""
        if unit not in self.units:
            raise ClaimError(
                "unit", f"must be {self.units[0]!r} or {self.units[1]!r} for this graph", got=repr(unit)
            )
        if unit == ADJACENCY_ROW:
            return UnitChange.of_records(self.sensitivity(relation), None, relation)
        return self._edge(relation is Relation.REPLACE).times(per_unit)

    def _edge(self, replaced: bool) -> UnitChange:
        """One edge present or absent, or another one in its place, as proven above."""
        graph, rows = self.graph, self.rows
        if graph.directed and graph.nodes is None and not graph.rows_listed:
            l1, l2_squared, largest = (5, 13, 3) if replaced else (3, 5, 2)
            return UnitChange(Sensitivity(l1 * rows, l2_squared * rows, largest), 2, l1)
        steps = 2 if replaced else 1
        if graph.directed:
            edge = Sensitivity(2 * rows, 2 * rows, 1)
            return UnitChange(edge.times(steps), 1 if graph.rows_listed else 0, 2 * steps)
        edge = Sensitivity(4 * rows, 8 * rows, 2)
        return UnitChange(edge.times(steps), 2 if graph.nodes is None else 0, 4 * steps)
