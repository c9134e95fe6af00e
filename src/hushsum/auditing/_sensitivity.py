"""The sensitivity half of an audit: without noise, look for neighbours that move a table further than
declared.

*Records.* The loops work in tiles, panels and blocks, with tails of their own, on several threads: so the
record is added, replaced and taken out at the front, in the middle and at the end of batches of every size
from 1 to 70 (and around larger blocks when thorough), and the two datasets are split and threaded
differently.

*Edges.* All graphs on three nodes are counted, with every edge and self-loop present or absent, some listed
twice, and compared with those that have one edge more, or another edge. The nodes are chosen so that rows
leave and enter the same cells, which random nodes hardly do. Each hash row is looked at alone, because the
bounds are R times those of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Integers
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.privacy import PERSON, Relation, Sensitivity
from hushsum.records import Graph, Sets
from hushsum.tables import AdjacencyRows, Basis
from hushsum.tally import Tally

LESS_SENSITIVITY = 0.8

# The exact table of a dataset, and the number of its records where that is compared.
Counted = tuple[Integers, int]


@dataclass(frozen=True, slots=True)
class SensitivityAudit:
    """The declared bounds, and the furthest move that was found among ``pairs`` neighbouring pairs; how far
    the number of records moved.
    """

    declared: Sensitivity
    found: Sensitivity
    pairs: int
    count: int = 0

    @classmethod
    def of(
        cls, declared: Sensitivity, pairs: Iterable[tuple[Counted, Counted]], *, axis: int | None = None
    ) -> SensitivityAudit:
        """Compare neighbours; with ``axis=1`` the row of the table that moved most."""
        found, number, count = Sensitivity(0, 0, 0), 0, 0
        for (table, records), (other, others) in pairs:
            size = np.abs(table - other)
            l1, l2_squared = (int(np.max(each.sum(axis=axis))) for each in (size, size * size))
            found = found.at_least(Sensitivity(l1, l2_squared, int(size.max())))
            count, number = max(count, abs(records - others)), number + 1
        return cls(declared, found, number, count)

    @property
    def holds(self) -> bool:
        """Whether no pair moved further than declared, in any of the three norms."""
        return self.declared.at_least(self.found) == self.declared

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
    tables: dict[int, tuple[object, Integers]] = {}

    def table_of(data: object) -> Counted:
        if not (isinstance(data, Dataset) and data.repeated):
            return counted(basis, data, threads), 0
        if id(data) not in tables:
            # The dataset is kept with its table, so that no other one gets its id.
            tables[id(data)] = data, counted(basis, data, threads)
        return tables[id(data)][1], 0

    compared = ((table_of(left), table_of(right)) for left, right in pairs)
    return SensitivityAudit.of(basis.sensitivity(relation), compared)


def counted(basis: Basis, data: object, threads: int = 1) -> Integers:
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


# Records, one by one; any number of them in a list form a batch.
Pool = Sequence[object]

# Makes adversarial records for a kernel, or for a basis, of the class that it is registered for.
Adversary = Callable[[Any, np.random.Generator], Pool]

HUGE = (3.4e38, 1e30, 1e20, 16_777_217.0)
TINY = (1e-45, 1.2e-38, 1e-20)


def dense_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """Rows of float32: huge, tiny, zero of both signs, at hash boundaries, opposite pairs, duplicates."""
    return dense_rows(kernel.dim or 1, kernel.bandwidth if isinstance(kernel, ColumnKernel) else 1.0, rng)


def dense_rows(dim: int, scale: float, rng: np.random.Generator) -> Pool:
    """The same for a basis that counts ``dim`` columns without a kernel; boundaries are multiples of
    ``scale``.
    """
    rows = [np.zeros(dim), np.full(dim, -0.0)]
    for size in (*HUGE, *TINY):
        rows += [np.full(dim, size), np.full(dim, -size), np.eye(dim)[0] * size]
    mixed = np.ones(dim)
    mixed[::2] = -1.0
    rows += [mixed * 3e38, mixed * scale, np.eye(dim)[-1] * scale, -np.eye(dim)[-1] * scale]
    ordinary = rng.normal(size=(40, dim)) * scale * rng.choice([0.1, 1.0, 100.0], (40, 1))
    far = rng.normal(size=(8, dim)) * scale * 1e6
    lattice = rng.integers(-3, 4, (8, dim)) * scale
    rows += [*ordinary, *ordinary[:4], *far, *-far, *lattice]
    with np.errstate(under="ignore"):
        return [row.astype(np.float32) for row in rows]


def code_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """Rows of codes: the extremes of int32, constant rows, rows that differ in one place, duplicates."""
    dim = kernel.dim or 1
    ends = np.iinfo(np.int32)
    rows = [np.full(dim, code) for code in (0, 1, -1, 2, ends.min, ends.max)]
    ordinary = rng.integers(0, 3, (40, dim))
    once = ordinary[:8].copy()
    once[:, 0] += 7
    return [row.astype(np.int64) for row in (*rows, *ordinary, *ordinary[:4], *once)]


def set_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """Sets: empty, single, repeated members, long ones across every tile, disjoint ones, extreme members."""
    ends = np.iinfo(np.int64)
    sets: list[list[int]] = [[], [], [0], [-1], [ends.min], [ends.max], [5] * 9, [5], [0, ends.max]]
    sets += [
        list(range(start, start + size)) for start, size in ((0, 7), (0, 8), (0, 9), (100, 33), (1000, 300))
    ]
    sets += [rng.integers(0, 30, rng.integers(1, 12)).tolist() for _ in range(30)]
    sets += [(rng.integers(0, 1 << 40, 5) + (1 << 50)).tolist() for _ in range(8)]
    return [*sets, *sets[-4:]]


LARGEST_BATCH = 70
_BLOCKS = (127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025)


def neighbours(
    pool: Pool, relation: Relation, rng: np.random.Generator, *, thorough: bool = False
) -> Iterator[Pair]:
    """Pairs for `audit_sensitivity`."""
    yield from _bare(pool, relation, rng, everything=thorough)
    sizes = [*range(1, LARGEST_BATCH + 1), *(_BLOCKS if thorough else _BLOCKS[1:3])]
    for size in sizes:
        places = {0, size // 2, size} if thorough else {int(rng.choice([0, size // 2, size]))}
        for place in places:
            yield _pair(pool, relation, rng, size, place)


def _bare(pool: Pool, relation: Relation, rng: np.random.Generator, *, everything: bool) -> Iterator[Pair]:
    """One record and nothing else: every record of the pool against none, or against another one."""
    alone = [Dataset([[record]], repeated=True) for record in pool]
    if relation is Relation.ADD_REMOVE:
        nothing = Dataset([], repeated=True)
        for each in alone:
            yield nothing, each
        return
    number = len(pool)
    partners = range(1, number) if everything and number <= 128 else rng.integers(1, number, 4).tolist()
    yield from ((each, alone[(i + step) % number]) for i, each in enumerate(alone) for step in partners)


def _pair(pool: Pool, relation: Relation, rng: np.random.Generator, size: int, place: int) -> Pair:
    """Neighbours: ``size`` records with and without one more record at ``place``, or with two different
    records there.
    """
    others = [pool[i] for i in rng.integers(0, len(pool), size)]
    one, another = (pool[i] for i in rng.integers(0, len(pool), 2))
    left = [*others[:place], one, *others[place:]]
    if relation is Relation.REPLACE:
        return _laid_out(left, rng), _laid_out([*others[:place], another, *others[place:]], rng)
    if rng.random() < 0.25:
        return _laid_out(left, rng), replace(_laid_out(left, rng), removed=[one])
    return _laid_out(left, rng), _laid_out(others, rng)


def _laid_out(records: list[object], rng: np.random.Generator) -> Dataset:
    """Records in one batch, or two, or several, for one to three threads."""
    number = len(records)
    cuts = np.sort(rng.integers(1, number, rng.integers(0, 4))).tolist() if number > 1 else []
    batches = [records[a:b] for a, b in pairwise([0, *cuts, number]) if a < b]
    return Dataset(batches, threads=int(rng.choice([1, 2, 3])))


_COMPARED = 64

# Who, and the record.
Visit = tuple[str, object]


def audit_persons(
    basis: Basis, pool: Pool, relation: Relation, rng: np.random.Generator, *, cap: int, rounds: int = 24
) -> SensitivityAudit:
    """Compare capped tallies of people with and without one person, or with another in their place.

    The person brings more records than the cap allows: all equal, so that they meet in one cell of every row,
    or all different; at once, or spread over batches among others.
    """
    far = _furthest_apart(basis, pool)
    pairs = _person_pairs(pool, relation, rng, far, cap=cap, rounds=rounds)
    compared = (
        (_counted_persons(basis, left, cap, rng), _counted_persons(basis, right, cap, rng))
        for left, right in pairs
    )
    return SensitivityAudit.of(basis.unit_change(PERSON, cap, relation).table, compared)


def _person_pairs(
    pool: Pool,
    relation: Relation,
    rng: np.random.Generator,
    far: Sequence[tuple[int, int]],
    *,
    cap: int,
    rounds: int,
) -> Iterator[tuple[list[Visit], list[Visit]]]:
    for i in range(rounds):
        crowd = [
            (f"p{rng.integers(5)}", pool[j]) for j in rng.integers(0, len(pool), int(rng.integers(0, 30)))
        ]
        # First those who differ the most, by either norm: whom a random search may miss.
        ones = far[i] if i < len(far) else (None, None)
        left = _joined(crowd, _visits(pool, rng, cap, together=i % 2 == 0, which=ones[0]), rng)
        if relation is Relation.ADD_REMOVE:
            yield left, crowd
        else:
            absent = i % 6 == 5
            another = [] if absent else _visits(pool, rng, cap, together=i % 2 == 0, which=ones[1])
            yield left, _joined(crowd, another, rng)


def _furthest_apart(basis: Basis, pool: Pool) -> list[tuple[int, int]]:
    """Two records of the pool whose vectors differ as much as any two, by the sum of differences and by that
    of their squares.
    """
    vectors = np.array([counted(basis, [pool[i]]).ravel() for i in range(min(len(pool), _COMPARED))])
    sums, squares = np.zeros((2, len(vectors), len(vectors)))
    for i, one in enumerate(vectors):
        apart = np.abs(vectors - one).astype(np.float64)
        sums[i], squares[i] = apart.sum(axis=1), np.square(apart).sum(axis=1)
    places = (np.unravel_index(int(each.argmax()), each.shape) for each in (sums, squares))
    return [(int(first), int(second)) for first, second in places]


def _visits(
    pool: Pool, rng: np.random.Generator, cap: int, *, together: bool, which: int | None = None
) -> list[Visit]:
    number = cap + 3
    if which is None and not together:
        chosen = rng.integers(0, len(pool), number)
    else:
        chosen = np.full(number, rng.integers(len(pool)) if which is None else which)
    return [("adversary", pool[i]) for i in chosen]


def _joined(crowd: list[Visit], visits: list[Visit], rng: np.random.Generator) -> list[Visit]:
    """The crowd in its order, the person's visits in theirs, shuffled into each other."""
    merged = [*crowd]
    places = np.sort(rng.integers(0, len(crowd) + 1, len(visits)))
    for place, visit in zip(places[::-1].tolist(), visits[::-1], strict=True):
        merged.insert(place, visit)
    return merged


def _counted_persons(basis: Basis, visits: list[Visit], cap: int, rng: np.random.Generator) -> Counted:
    """Through a real tally, in batches. These visits are made up, so the secret state may be looked at."""
    tally = Tally(basis, max_per_unit=cap)
    step = int(rng.integers(1, 12))
    for start in range(0, len(visits), step):
        part = visits[start : start + step]
        tally.add([record for _, record in part], units=[who for who, _ in part], threads=1)
    return tally._table, tally._count


Edge = tuple[int, int]
GraphPair = tuple[frozenset[Edge], frozenset[Edge]]
_ROWS = 8
_IDS = 2048
_GRAPHS = 64
_MEMORY = 1 << 20
_MOST_EDGE_CELLS = 1 << 20


def audit_edges(
    basis: AdjacencyRows, relation: Relation, rng: np.random.Generator, *, rounds: int = 6
) -> SensitivityAudit:
    """The largest change of one hash row that a search found, compared with the declared sensitivity."""
    rows = min(basis.rows, _ROWS, max(1, _MOST_EDGE_CELLS // basis.width))
    searched, declared = basis.prefix(rows), basis.prefix(1).unit_change(basis.units[1], 1, relation)
    ids = _chosen_ids(searched, rng)
    cells = searched.cells(searched.prepare(Sets(ids, np.arange(len(ids) + 1, dtype=np.int64))))
    empty = searched.cells(searched.prepare([[]]))[0]

    def compared() -> Iterator[tuple[Counted, Counted]]:
        for _ in range(rounds):
            row = int(rng.integers(rows))
            counted: dict[frozenset[Edge], Counted] = {}
            for pair in _edge_pairs(basis.graph, ids, cells[:, row], int(empty[row]), relation, rng):
                for edges in pair:
                    if edges not in counted:
                        counted[edges] = _counted_edges(searched, sorted(edges), rng)
                yield counted[pair[0]], counted[pair[1]]

    return SensitivityAudit.of(declared.table, compared(), axis=1)


def rows_of(graph: Graph, edges: list[Edge]) -> Sets | None:
    """The adjacency rows of a graph, by the code that reads files; None without any."""
    ends = np.array(edges, np.int64).reshape(-1, 2)
    if graph.rows_listed:
        ends = ends[np.argsort(ends[:, 0], kind="stable")]
    arcs = graph.arcs([(ends[:, 0], ends[:, 1])])
    found = [sets for _, sets in graph.rows(arcs, _MEMORY)]
    assert len(found) <= 1, "small graphs are one batch"
    return found[0] if found else None


def _counted_edges(basis: AdjacencyRows, edges: list[Edge], rng: np.random.Generator) -> Counted:
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


def _edge_pairs(
    graph: Graph,
    ids: Integers,
    cells: NDArray[np.int32],
    empty: int,
    relation: Relation,
    rng: np.random.Generator,
) -> Iterator[GraphPair]:
    """Neighbouring graphs for one hash row, in which ``cells`` are those of single neighbours."""
    one, other = _two_cells(cells, rng)
    near, far = (ids[cells == each] for each in (one, other))
    # A node whose single neighbour falls where the empty set does.
    blank = ids[cells == empty] if np.any(cells == empty) else near

    def some(*pools: Integers) -> list[int]:
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


def _exchanged(shared: list[Edge], gone: Edge, come: Edge) -> GraphPair:
    return frozenset([*shared, gone]), frozenset([*shared, come])


def _small_graphs(
    graph: Graph, nodes: list[int], relation: Relation, rng: np.random.Generator
) -> Iterator[GraphPair]:
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


def _chosen_ids(basis: AdjacencyRows, rng: np.random.Generator) -> Integers:
    """Ids of nodes to choose from; those that are declared, or any."""
    nodes = basis.graph.nodes
    if nodes is not None and nodes <= _IDS:
        return np.arange(nodes, dtype=np.int64)
    low, high = (-(2**63), 2**63) if nodes is None else (0, nodes)
    return np.unique(rng.integers(low, high, _IDS, np.int64))


def _two_cells(cells: NDArray[np.int32], rng: np.random.Generator) -> tuple[int, int]:
    """Two cells with several nodes each, or any two."""
    names, sizes = np.unique(cells, return_counts=True)
    crowded = names[sizes >= min(4, int(np.sort(sizes)[-2:].min()))]
    one, other = rng.choice(crowded, 2, replace=False) if len(crowded) > 1 else (names[0], names[-1])
    return int(one), int(other)
