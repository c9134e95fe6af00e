"""The sensitivity half of an audit for edges: neighbouring graphs whose rows move the table furthest.

All graphs on three nodes are counted, with every edge and self-loop present or absent, some listed twice, and
compared with those that have one edge more, or another edge. The nodes are chosen so that rows leave and
enter the same cells, which random nodes hardly do. Each hash row is looked at alone, because the bounds are
R times those of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.sensitivity import SensitivityAudit
from hushsum.bases.adjacency_rows import AdjacencyRows
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.edge_grouping import grouped, grouped_in_order
from hushsum.records.graph import Graph
from hushsum.records.sets import Sets

Edge = tuple[int, int]
Pair = tuple[frozenset[Edge], frozenset[Edge]]
_ROWS = 8
_IDS = 2048
_GRAPHS = 64
_MEMORY = 1 << 20
_MOST_CELLS = 1 << 20


def audit_edges(
    basis: AdjacencyRows, relation: Relation, rng: np.random.Generator, *, rounds: int = 6
) -> tuple[SensitivityAudit, int]:
    """The furthest move of one hash row that was found, against the declared one; and that of the count."""
    rows = min(basis.rows, _ROWS, max(1, _MOST_CELLS // basis.width))
    searched, declared = basis.prefix(rows), basis.prefix(1).unit_change(basis.units[1], 1, relation)
    found, count, number = Sensitivity(0, 0, 0), 0, 0
    ids = _chosen_ids(searched, rng)
    cells = searched.cells(searched.prepare(_singletons(ids)))
    empty = searched.cells(searched.prepare([[]]))[0]
    for _ in range(rounds):
        row = int(rng.integers(rows))
        counted: dict[frozenset[Edge], tuple[NDArray[np.int64], int]] = {}
        for pair in _pairs(basis.graph, ids, cells[:, row], int(empty[row]), relation, rng):
            for edges in pair:
                if edges not in counted:
                    counted[edges] = _counted(searched, sorted(edges), rng)
            (table, records), (other, others) = (counted[edges] for edges in pair)
            found = _furthest(found, table - other)
            count, number = max(count, abs(records - others)), number + 1
    return SensitivityAudit(relation, declared.table, found, number), count


def rows_of(graph: Graph, edges: list[Edge]) -> Sets | None:
    """The adjacency rows of a graph, by the code that reads files; None without any."""
    ends = np.array(edges, np.int64).reshape(-1, 2)
    if graph.rows_listed:
        ends = ends[np.argsort(ends[:, 0], kind="stable")]
    arcs = graph.arcs([(ends[:, 0], ends[:, 1])])
    groups = grouped_in_order if graph.rows_listed else grouped
    found = [sets for _, sets in groups(arcs, _MEMORY)]
    assert len(found) <= 1, "small graphs are one batch"
    return found[0] if found else None


def _counted(
    basis: AdjacencyRows, edges: list[Edge], rng: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    table = np.zeros(basis.shape, np.int64)
    sets = rows_of(basis.graph, _listed(basis.graph, edges, rng))
    if sets is None:
        return table, 0
    basis.accumulate(table, basis.prepare(sets), step=1, threads=1)
    return table, len(sets)


def _listed(graph: Graph, edges: list[Edge], rng: np.random.Generator) -> list[Edge]:
    """Lines of a file: in any order, some twice, and an undirected edge in either direction, or in both."""
    lines = [edge for edge in edges for _ in range(int(rng.integers(1, 3)))]
    if not graph.directed:
        turned = [(v, u) for u, v in lines]
        if graph.rows_listed:
            lines += turned
        else:
            lines = [each[int(rng.integers(2))] for each in zip(lines, turned, strict=True)]
    return [lines[i] for i in rng.permutation(len(lines))]


def _pairs(
    graph: Graph,
    ids: NDArray[np.int64],
    cells: NDArray[np.int32],
    empty: int,
    relation: Relation,
    rng: np.random.Generator,
) -> Iterator[Pair]:
    """Neighbouring graphs for one hash row, in which ``cells`` are those of single neighbours."""
    one, other = _two_cells(cells, rng)
    near, far = (ids[cells == each] for each in (one, other))
    # A node whose single neighbour falls where the empty set does.
    blank = ids[cells == empty] if np.any(cells == empty) else near

    def some(*pools: NDArray[np.int64]) -> list[int]:
        return [int(rng.choice(pool)) for pool in pools]

    yield from _small_graphs(graph, some(near, near, far), relation, rng)
    yield from _small_graphs(graph, some(near, blank, far), relation, rng)
    yield from _small_graphs(graph, rng.choice(ids, min(3, len(ids)), replace=False).tolist(), relation, rng)
    if relation is Relation.ADD_REMOVE:
        return
    for _ in range(40):
        # Two rows leave one cell for another with the edge that goes, and two with the edge that comes.
        (u, v, hub), (x, y, centre) = some(near, near, far), some(far, far, near)
        yield _exchanged([(u, hub), (v, hub), (x, centre), (y, centre)], (u, v), (x, y))
        # The end of a directed edge was a record through it alone.
        (u, v, hub), (x, y, centre) = some(near, blank, far), some(near, far, blank)
        yield _exchanged([(u, hub), (x, centre), (y, centre)], (u, v), (x, y))
        # Both ends were.
        (u, v), (x, y, hub) = some(ids, ids), some(ids, ids, ids)
        yield _exchanged([(x, hub), (y, hub)], (u, v), (x, y))


def _exchanged(shared: list[Edge], gone: Edge, come: Edge) -> Pair:
    return frozenset([*shared, gone]), frozenset([*shared, come])


def _small_graphs(
    graph: Graph, nodes: list[int], relation: Relation, rng: np.random.Generator
) -> Iterator[Pair]:
    """Every graph on these nodes, or some of many, with one edge more, or with another edge instead."""
    if len(set(nodes)) < len(nodes):
        return
    pairs = product(nodes, repeat=2) if graph.directed else combinations_with_replacement(nodes, 2)
    every: list[Edge] = [(u, v) for u, v in pairs]
    graphs = np.arange(1 << len(every))
    for chosen in graphs if len(graphs) <= _GRAPHS else rng.choice(graphs, _GRAPHS, replace=False):
        present = [edge for place, edge in enumerate(every) if chosen >> place & 1]
        absent = [edge for place, edge in enumerate(every) if not chosen >> place & 1]
        if relation is Relation.ADD_REMOVE:
            for edge in absent:
                yield frozenset([*present, edge]), frozenset(present)
        else:
            for gone, come in combinations(absent, 2):
                yield _exchanged(present, gone, come)


def _chosen_ids(basis: AdjacencyRows, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ids of nodes to choose from; those that are declared, or any."""
    nodes = basis.graph.nodes
    if nodes is not None and nodes <= _IDS:
        return np.arange(nodes, dtype=np.int64)
    low, high = (-(2**63), 2**63) if nodes is None else (0, nodes)
    return np.unique(rng.integers(low, high, _IDS, np.int64))


def _singletons(ids: NDArray[np.int64]) -> Sets:
    return Sets(ids, np.arange(len(ids) + 1, dtype=np.int64))


def _two_cells(cells: NDArray[np.int32], rng: np.random.Generator) -> tuple[int, int]:
    """Two cells with several nodes each, or any two."""
    names, sizes = np.unique(cells, return_counts=True)
    crowded = names[sizes >= min(4, int(np.sort(sizes)[-2:].min()))]
    one, other = rng.choice(crowded, 2, replace=False) if len(crowded) > 1 else (names[0], names[-1])
    return int(one), int(other)


def _furthest(found: Sensitivity, move: NDArray[np.int64]) -> Sensitivity:
    """The norms of the row that moved most, where they exceed what was found before."""
    size = np.abs(move)
    return Sensitivity(
        max(found.l1, int(size.sum(axis=1).max())),
        max(found.l2_squared, int((size * size).sum(axis=1).max())),
        max(found.largest, int(size.max())),
    )
