"""Audits of everything, or of one basis, kernel or released function.

*Sensitivity.* Without noise, neighbours are looked for that move a table further than declared. The loops
work in tiles, panels and blocks, with tails of their own, on several threads: so the record is added,
replaced and taken out at the front, in the middle and at the end of batches of every size from 1 to 70 (and
around larger blocks when thorough), and the two datasets are split and threaded differently. Of graphs, all
on three nodes are counted, with every edge and self-loop present or absent, some listed twice, and compared
with those that have one edge more, or another edge. The nodes are chosen so that rows leave and enter the
same cells, which random nodes hardly do. Each hash row is looked at alone, because the bounds are R times
those of one.

*Cases.* Adversarial records and examples of every kernel and basis, the worst pairs of every sampler of
noise, and neighbours for mechanisms that add noise to a function are registered here. A basis or kernel
without registered cases fails a contract test, and `hushsum.audit` refuses it.

*Released functions* are audited by the public contents of their files. Three questions: does the stated noise
suffice for the claim (calibration), does one record of such a basis change as little as declared
(sensitivity), does noise with these parameters hide it (noise)? The table itself is not looked at: whether
*this* noise was drawn as stated cannot be seen from one table. The calibration takes nothing over from the
code that calibrates: the spent budget is computed forwards, from noise to claim, where the release went
backwards.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, pairwise, product
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushsum import kernels, tables
from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, SecretRefused, UsageError
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.methods import (
    GAP_SHARE,
    TARGET_BITS,
    fit_machines,
    perturbed_machines,
    perturbed_posterior,
    smoother,
)
from hushsum.privacy import (
    BINOMIAL,
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    PERSON,
    SKELLAM,
    Calibration,
    Claim,
    IntegerNoise,
    Promise,
    Relation,
    ReleaseNoise,
    Sensitivity,
    UnitChange,
    accounting,
    exact,
    protecting_distance,
    protecting_noises,
    root_above,
    spent_delta,
    spent_epsilon,
    spent_rho,
    stated_mechanism,
)
from hushsum.privacy.noise import (
    NoiseSource,
    exponential_choice,
    exponential_distribution,
    gamma_radius,
    log_odds_coins,
    permute_and_flip,
    permute_and_flip_distribution,
)
from hushsum.records import (
    Bounds,
    CategoryColumn,
    DateColumn,
    DeclaredColumn,
    FlagColumn,
    Graph,
    NumberColumn,
    Sets,
    UnitBall,
)
from hushsum.releases import (
    CoefficientFunction,
    NoisyTable,
    ReleasedFunction,
    StreamStep,
    released_table,
    stream_unit,
)
from hushsum.tables import AdjacencyRows, Basis, HashRows
from hushsum.tally import Tally

from ._statistics import (
    CASES,
    RELEASES,
    THOROUGH_RELEASES,
    AuditReport,
    AuditRow,
    Chances,
    Draw,
    GaussianPair,
    Half,
    Separated,
    SmokeCase,
    allowed_distance,
    audit_choice,
    audit_gaussian,
    audit_laplace,
    audit_separation,
    audit_smoke,
    gaussian_draws,
    lattice_chances,
    normal_chances,
    report_of,
)

__all__ = [
    "MechanismCase", "NoiseCase", "SensitivityAudit", "Step", "audit", "audit_calibration", "audit_edges",
    "audit_persons", "audit_sensitivity", "audit_steps", "audited_bases", "audited_kernels", "basis_cases",
    "basis_in_words", "box_pool", "counted", "mechanism_cases", "neighbours", "noise_cases", "noise_steps",
    "pool_for", "register_basis", "register_mechanism", "rows_of", "run_steps", "smoke_steps",
]  # fmt: skip

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

    def compared() -> Iterator[tuple[Counted, Counted]]:
        for i in range(rounds):
            crowd = [
                (f"p{rng.integers(5)}", pool[j]) for j in rng.integers(0, len(pool), int(rng.integers(0, 30)))
            ]
            # First those who differ the most, by either norm: whom a random search may miss.
            ones = far[i] if i < len(far) else (None, None)
            left = _joined(crowd, _visits(pool, rng, cap, together=i % 2 == 0, which=ones[0]), rng)
            right = crowd
            if relation is Relation.REPLACE and i % 6 != 5:
                another = _visits(pool, rng, cap, together=i % 2 == 0, which=ones[1])
                right = _joined(crowd, another, rng)
            yield _counted_persons(basis, left, cap, rng), _counted_persons(basis, right, cap, rng)

    return SensitivityAudit.of(basis.unit_change(PERSON, cap, relation).table, compared())


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
_MOST_GRAPHS = 64
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

    def pairs(cells: NDArray[np.int32], empty: int) -> Iterator[GraphPair]:
        """Neighbouring graphs for one hash row, in which ``cells`` are those of single neighbours."""
        one, other = _two_cells(cells, rng)
        near, far = (ids[cells == each] for each in (one, other))
        # A node whose single neighbour falls where the empty set does.
        blank = ids[cells == empty] if np.any(cells == empty) else near

        def some(*pools: Integers) -> list[int]:
            return [int(rng.choice(pool)) for pool in pools]

        yield from _small_graphs(basis.graph, some(near, near, far), relation, rng)
        yield from _small_graphs(basis.graph, some(near, blank, far), relation, rng)
        yield from _small_graphs(
            basis.graph, rng.choice(ids, min(3, len(ids)), replace=False).tolist(), relation, rng
        )
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

    def compared() -> Iterator[tuple[Counted, Counted]]:
        for _ in range(rounds):
            row = int(rng.integers(rows))
            counted: dict[frozenset[Edge], Counted] = {}
            for pair in pairs(cells[:, row], int(empty[row])):
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
    for chosen in graphs if len(graphs) <= _MOST_GRAPHS else rng.choice(graphs, _MOST_GRAPHS, replace=False):
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


Attacked = TypeVar("Attacked")


@dataclass(frozen=True, slots=True)
class Cases(Generic[Attacked]):
    """How to attack a kernel or a basis: the records for it, and examples that between them run every loop.

    ``of_kernel`` makes a basis for a kernel, where it counts several; None for a kernel that it does not.
    """

    pool: Adversary
    examples: tuple[Attacked, ...]
    of_kernel: Callable[[Kernel], Basis | None] | None = None


@dataclass(frozen=True, slots=True)
class MechanismCase:
    """Two neighbours of a whole mechanism that adds Gaussian noise to a function.

    ``name`` is the name of the mechanism, ``make`` sets up the neighbours for any promise, and ``promise`` is
    the promise audited by default.
    """

    name: str
    pair: str
    make: Callable[[Promise], Separated]
    promise: Promise
    thorough: bool = False

    def set_up(self) -> Separated:
        """The neighbours, under the default promise."""
        return self.make(self.promise)


# Packages above this layer register their own cases; imported by name, when they are needed.
_HIGHER: Final = (
    "hushsum.baselines._audit_cases",
    "hushsum.models._audit_cases",
    "hushsum.secret_functions._audit_cases",
    "hushsum.streams._audit_cases",
)

_KERNELS: dict[str, Cases[Kernel]] = {}
_BASES: dict[str, Cases[Basis]] = {}
_MECHANISMS: list[MechanismCase] = []


def register_kernel(adversary: Adversary, *examples: Kernel) -> None:
    """Make known how a kernel is attacked: with which records, and examples of it."""
    _KERNELS[examples[0].name] = Cases(adversary, examples)


def register_basis(
    pool: Adversary, *examples: Basis, of_kernel: Callable[[Kernel], Basis | None] | None = None
) -> None:
    """Make known how a basis is attacked: with which records, and examples of it."""
    _BASES[examples[0].name] = Cases(pool, examples, of_kernel)


def register_mechanism(*cases: MechanismCase) -> None:
    """Make neighbours of whole mechanisms known."""
    _MECHANISMS.extend(cases)


def _load_higher() -> None:
    for name in _HIGHER:
        importlib.import_module(name)


def kernel_cases(name: str) -> Cases[Kernel]:
    """The cases of a kernel; refuses one that nothing is known about."""
    if name not in _KERNELS:
        raise UsageError(
            f"the kernel {name!r} has no audit: no table of counts releases it, or it was never registered",
            remedy=f"audit one of {', '.join(sorted(_KERNELS))}",
        )
    return _KERNELS[name]


def basis_cases(name: str) -> Cases[Basis]:
    """The cases of a basis; refuses one that nothing is known about."""
    if name not in _BASES:
        _load_higher()
    if name not in _BASES:
        remedy = "register its worst pairs in hushsum.auditing"
        raise UsageError(f"the basis {name!r} has no audit", remedy=remedy)
    return _BASES[name]


def audited_kernels() -> list[str]:
    """The registered kernels, sorted."""
    return sorted(_KERNELS)


def audited_bases() -> list[str]:
    """The registered bases, sorted."""
    _load_higher()
    return sorted(_BASES)


def mechanism_cases(*, thorough: bool = True) -> list[MechanismCase]:
    """The registered neighbours of whole mechanisms, without the long ones unless ``thorough``."""
    _load_higher()
    return [case for case in _MECHANISMS if thorough or not case.thorough]


def pool_for(basis: Basis, rng: np.random.Generator) -> Pool:
    """Adversarial records for a basis."""
    return basis_cases(basis.name).pool(basis, rng)


def _box(ends: list[tuple[float, float]]) -> Bounds:
    return Bounds.declared(ends, len(ends), "an audit")


register_kernel(
    dense_records,
    kernels.EuclideanKernel(dim=3, bandwidth=1.0),
    kernels.EuclideanKernel(dim=33, bandwidth=2.0, power=3),
    kernels.EuclideanKernel(dim=100, bandwidth=1.0, projection="structured"),
)
register_kernel(
    dense_records, kernels.ManhattanKernel(dim=3, bandwidth=2.0), kernels.ManhattanKernel(2, 4.0, power=2)
)
register_kernel(
    dense_records,
    kernels.AngularKernel(dim=4, bits=6),
    kernels.AngularKernel(dim=4, bits=4, power=10),
    kernels.AngularKernel(dim=100, bits=6, projection="structured"),
)
register_kernel(
    dense_records,
    kernels.AsymmetricAngularKernel(dim=4, bits=6),
    kernels.AsymmetricAngularKernel(dim=3, bits=4, power=10, radius=2.5),
    kernels.AsymmetricAngularKernel(dim=3, bits=4, radius=1.5, query_radius=2.0),
)
register_kernel(set_records, kernels.JaccardKernel(), kernels.JaccardKernel(power=2))
register_kernel(code_records, kernels.HammingKernel(dim=6), kernels.HammingKernel(dim=6, power=2))


def _product_records(kernel: kernels.ProductKernel, rng: np.random.Generator) -> Pool:
    """Records whose columns are chosen factor by factor, as an adversary of the factor's kernel would choose
    them. Pairs of records recur that differ in the columns of one factor alone, or in all columns.
    """
    pools = [kernel_cases(each.kernel.name).pool(each.kernel, rng) for each in kernel.factors]
    records: list[list[object]] = []
    for _ in range(100):
        record: list[object] = [0] * kernel.dim
        for each, pool in zip(kernel.factors, pools, strict=True):
            chosen = pool[int(rng.integers(len(pool)))]
            values = [list(chosen)] if each.kernel.dim is None else np.asarray(chosen).tolist()  # type: ignore[call-overload]
            for column, value in zip(each.columns, values, strict=True):
                record[column] = value
        records.append(record)
        if len(records) > 1:
            other = list(records[-2])
            for column in kernel.factors[0].columns:
                other[column] = record[column]
            records.append(other)
    return [*records, *records[:4]]


def _combination_records(kernel: kernels.CombinationKernel, rng: np.random.Generator) -> Pool:
    """The records that attack the first component; the others have the same columns."""
    first = kernel.components[0].kernel
    return kernel_cases(first.name).pool(first, rng)


def _scaled_records(kernel: kernels.ScaledKernel, rng: np.random.Generator) -> Pool:
    """The records that attack the kernel, in the units of the columns."""
    units, most = np.array(kernel.units), float(np.finfo(np.float32).max)
    inner = kernel_cases(kernel.kernel.name).pool(kernel.kernel, rng)
    scaled = (np.clip(np.asarray(each, np.float64) * units, -most, most) for each in inner)
    # As they come, and in the units of the kernel: some of these exceed float32 where they are divided.
    return [*(each.astype(np.float32) for each in scaled), *inner[:20]]


_MIXED = (
    kernels.on_columns(kernels.EuclideanKernel(dim=2, bandwidth=1.0), [0, 2], of=4)
    * kernels.on_columns(kernels.HammingKernel(dim=1), 1, of=4)
    * kernels.on_columns(kernels.JaccardKernel(), 3, of=4)
)
register_kernel(
    _product_records,
    _MIXED,
    kernels.EuclideanKernel(dim=3, bandwidth=1.0) * kernels.ManhattanKernel(dim=3, bandwidth=4.0),
    kernels.on_columns(kernels.AngularKernel(dim=3, bits=3), [0, 1, 2], of=4)
    * kernels.on_columns(kernels.EuclideanKernel(1, 1.0), 3, of=4),
)
register_kernel(
    _scaled_records,
    kernels.scaled_by(kernels.EuclideanKernel(dim=3, bandwidth=0.1), (120.0, 3e5, 0.01)),
    kernels.scaled_by(kernels.ManhattanKernel(dim=2, bandwidth=0.5, power=2), (7.0, 1e-3)),
)
register_kernel(
    _combination_records,
    1.5 * kernels.EuclideanKernel(dim=3, bandwidth=1.0)
    - 0.5 * kernels.EuclideanKernel(dim=3, bandwidth=4.0, power=2),
    0.25 * _MIXED + 0.75 * kernels.on_columns(kernels.HammingKernel(dim=1), 1, of=4),
    kernels.JaccardKernel() - 3.0 * kernels.JaccardKernel(power=2),
)


def _counted(rows: type[Basis], kernel: Kernel) -> Basis | None:
    """The table of a kernel; None for a kernel that tables of the other class count."""
    # 70 rows and 53 cells: full and partial panels of rows, and few enough cells that a stray count would
    # fall on a used one.
    kind = tables.DividedRows if isinstance(kernel, kernels.HashableCombination) else tables.HashRows
    return kind(kernel, rows=70, width=53, seed=11) if kind is rows else None


def _kernel_pool(basis: tables.HashRows | tables.DividedRows, rng: np.random.Generator) -> Pool:
    """The records that attack the kernel of a basis."""
    return kernel_cases(basis.kernel.name).pool(basis.kernel, rng)


def _increments_pool(basis: tables.IncrementRows, rng: np.random.Generator) -> Pool:
    """A record, its opposite and the zero vector, each repeated, and the records that attack any kernel.

    Where a record is replaced by its opposite, increments of opposite signs change places; the zero vector is
    its own opposite.
    """
    worst = rng.normal(size=basis.kernel.dim).astype(np.float32) * 100.0
    return [*[worst, -worst, np.zeros_like(worst)] * 40, *dense_records(basis.kernel, rng)]


_HASHED = [kernel for name in audited_kernels() for kernel in kernel_cases(name).examples]
for rows in (tables.HashRows, tables.DividedRows):
    made = (_counted(rows, kernel) for kernel in _HASHED)
    register_basis(
        _kernel_pool, *(each for each in made if each is not None), of_kernel=partial(_counted, rows)
    )
register_basis(
    _increments_pool,
    tables.IncrementRows(kernels.AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 11, (1, 1)),
    tables.IncrementRows(kernels.AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 12, (1, -1)),
    tables.IncrementRows(kernels.EuclideanKernel(dim=2, bandwidth=1.0), 40, 53, 13, (3, -1)),
)


_GRAPHS = [
    Graph(directed=directed, **kind)
    for directed in (False, True)
    for kind in ({}, {"nodes": 40}, {"rows_listed": True})
]
register_basis(
    # Any sets: the reader of edges makes rows of 64-bit ids.
    _kernel_pool,
    *(
        tables.AdjacencyRows(kernels.JaccardKernel(), 70, 7 if each.nodes else 53, 11, graph=each)
        for each in _GRAPHS
    ),
)


def _bins_pool(basis: tables.Bins, rng: np.random.Generator) -> Pool:
    """Records that attack any kernel, corners of the box, and edges of cells, where rounding decides."""
    low, high, width = np.array(basis.bounds.low), np.array(basis.bounds.high), basis.grid.width
    edges = low + rng.integers(0, np.array(basis.bins) + 1, (24, len(low))) * width
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *edges, *np.nextafter(edges, high)]


register_basis(
    _bins_pool,
    tables.Bins((40,), Bounds((-3.0,), (3.0,))),
    tables.Bins((7, 9), Bounds((-3.0, 0.0), (3.0, 0.3))),
    tables.Bins((3, 1, 5), Bounds((-3.0,) * 3, (3.0,) * 3)),
)


def _grid_pool(basis: tables.GridWeights, rng: np.random.Generator) -> Pool:
    """Records that attack any kernel, the corners of the box, and middles and ends of cells, where weights of
    even and of odd degree are most uneven.
    """
    low, high, spacing = (np.array(side) for side in (basis.bounds.low, basis.bounds.high, basis.spacing))
    middles = low + (rng.integers(0, np.array(basis.cells), (24, len(low))) + 0.5) * spacing
    edges = low + rng.integers(0, np.array(basis.cells) + 1, (24, len(low))) * spacing
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *middles, *edges]


# Cells, and the degrees to count them with.
_GRIDS: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = [
    ((40,), [(2,), (5,)]),
    ((12,), [(0,)]),
    ((8, 9), [(3, 3), (0, 4), (0, 0), (2, 5)]),
    ((6, 7, 8), [(4, 4, 4)]),
    ((3,) * 4, [(3,) * 4]),
]

register_basis(
    _grid_pool,
    *(
        tables.GridWeights(cells, Bounds((-3.0,) * len(cells), (3.0,) * len(cells)), degrees)
        for cells, listed in _GRIDS
        for degrees in listed
    ),
)


_ATTEMPTS = 1 << 8
_PAIRS = 1 << 13


def _features_pool(basis: tables.FourierFeatures, rng: np.random.Generator) -> Pool:
    """Two distant records, each repeated so that they meet often, and the records that attack any kernel.

    A phase of an odd eighth of a turn has the largest |cos| + |sin|, and half a turn more the opposite signs.
    With as many columns as features, or more, a record can have such phases on all of them. In a box, the two
    are the furthest of many random pairs.
    """
    solved = _opposite_records(basis, rng) if basis.bounds is None else _far_records(basis, basis.bounds, rng)
    return [*np.tile(solved, (20, 1)), *dense_records(basis.kernel, rng)]


def _opposite_records(basis: tables.FourierFeatures, rng: np.random.Generator) -> NDArray[np.float32]:
    """Two records of one group, half a turn apart on all features of it; shape (2, columns).

    Whole turns more change the hash that picks a record's group, and not its features.
    """
    rows = np.flatnonzero(np.arange(basis.features) // basis.block % basis.groups == 0)
    frequencies = basis.frequencies[rows].astype(np.float64)
    phases = rng.integers(0, 4, len(rows)) / 4 + 0.125
    found = []
    for wanted in (phases, phases + 0.5):
        for _ in range(_ATTEMPTS):
            turns = rng.integers(-1, 2, len(rows)) if basis.groups > 1 else 0
            record = np.linalg.lstsq(frequencies, wanted + turns, rcond=None)[0].astype(np.float32)
            if basis.groups == 1 or basis.group_of(record[np.newaxis])[0] == 0:
                break
        found.append(record)
    return np.array(found)


def _far_records(basis: tables.FourierFeatures, box: Bounds, rng: np.random.Generator) -> NDArray[np.float64]:
    """The two records of a box, shape (2, columns), whose integers differ most among random pairs."""
    inside = rng.uniform(-1.0, 1.0, (2 * _PAIRS, box.dim))
    inside[: _PAIRS // 4] = np.sign(inside[: _PAIRS // 4]) * np.sqrt(rng.random((_PAIRS // 4, 1)))
    # A quarter of the pairs are opposite: their difference is as long as the box allows.
    inside[_PAIRS : _PAIRS + _PAIRS // 4] = -inside[: _PAIRS // 4]
    records = box.centre + inside * box.half_width
    maps = (basis.map, basis.axis_map) if basis.axes else (basis.map,)
    integers = np.concatenate([each.integers(basis.prepare(records).arrays[0]) for each in maps], axis=1)
    moved = np.abs(integers[:_PAIRS].astype(np.int64) - integers[_PAIRS:]).sum(axis=(1, 2))
    furthest = int(moved.argmax())
    return records[[furthest, _PAIRS + furthest]]


_MATERN = kernels.MaternKernel(dim=20, bandwidth=3.0, smoothness=0.5)


def _features_example(
    dim: int, features: int, seed: int, half_width: float | None = None, axes: int = 0
) -> tables.FourierFeatures:
    box = None if half_width is None else Bounds((-half_width,) * dim, (half_width,) * dim)
    kernel = kernels.GaussianKernel(dim=dim, bandwidth=1.0)
    return tables.FourierFeatures(kernel, features, seed, bounds=box, axes=axes)


register_basis(
    _features_pool,
    _features_example(1, 1, 1),
    _features_example(40, 37, 2),
    tables.FourierFeatures(kernels.LaplacianKernel(dim=20, bandwidth=4.0), 17, 3),
    tables.FourierFeatures(kernels.MaternKernel(dim=20, bandwidth=4.0), 17, 8),
    tables.FourierFeatures(kernels.GaussianKernel(dim=20, bandwidth=4.0) * _MATERN, 17, 9),
    tables.FourierFeatures(0.5 * kernels.GaussianKernel(dim=20, bandwidth=4.0) + 0.5 * _MATERN, 17, 10),
    tables.FourierFeatures(kernels.scaled_by(_MATERN, [0.5 + column for column in range(20)]), 17, 11),
    tables.FourierFeatures(kernels.GaussianKernel(dim=20, bandwidth=4.0), 17, 12, sobol=True),
    _features_example(2, 2, 4, half_width=50.0),
    _features_example(1, 3, 1, half_width=2.0),
    _features_example(2, 6, 3, half_width=1.5),
    _features_example(1, 3, 1, half_width=2.0, axes=2),
    tables.FourierFeatures(kernels.GaussianKernel(dim=8, bandwidth=1.0), 24, 5, groups=3),
    tables.FourierFeatures(kernels.GaussianKernel(dim=64, bandwidth=1.0), 64, 6, structured=True),
    tables.FourierFeatures(kernels.GaussianKernel(dim=64, bandwidth=1.0), 128, 7, groups=2, structured=True),
)


_PLACES = 33


def box_pool(basis: tables.BoxBasis, rng: np.random.Generator) -> Pool:
    """Corners, the centre, a fine walk along the diagonal and the sides of the box, and records far outside
    of it.
    """
    low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
    walk = np.linspace(0.0, 1.0, _PLACES)[:, np.newaxis]
    diagonal = low + walk * (high - low)
    side = diagonal.copy()
    side[:, 1:] = low[1:]
    inside = rng.uniform(low, high, (24, basis.dim))
    return [*diagonal, *side, *inside, *dense_rows(basis.dim, 1.0, rng)]


register_basis(
    box_pool,
    tables.FourierSeries(
        kernel=kernels.GaussianKernel(1, 1.0), bounds=_box([(0, 8)]), frequencies=2, padding=1.0
    ),
    tables.FourierSeries(
        kernel=kernels.GaussianKernel(2, 3.0),
        bounds=_box([(-4, 4)] * 2),
        frequencies=1,
        padding=0.5,
        taper=2.0 / 3.0,
    ),
)


def _monomials_pool(basis: tables.Monomials, rng: np.random.Generator) -> Pool:
    """Axes, diagonals and their opposites, the pair whose products differ most, and records far outside of
    the ball, each several times so that they meet.
    """
    assert isinstance(basis.kernel, kernels.InnerProductKernel)
    dim, radius = basis.kernel.dim, basis.kernel.radius
    level = np.ones(dim)
    mixed = np.where(np.arange(dim) % 2, -1.0, 1.0)
    rows = [np.eye(dim)[0], np.eye(dim)[-1], level, -level, mixed, -mixed, *opposed_directions(dim)]
    rows = [radius * row / np.linalg.norm(row) for row in rows]
    rows += [1e6 * row for row in rows]
    return [*np.tile(np.array(rows, np.float32), (4, 1)), *dense_rows(dim, radius, rng)]


def opposed_directions(dim: int) -> list[Floats]:
    """Two orthogonal directions u, v for which Σ|u_i·u_j − v_i·v_j| is largest.

    They are the eigenvectors of the sign matrix [[1, 1], [1, −1]], each of its entries a block.
    """
    angle = np.pi / 8.0
    half = (np.arange(dim) >= dim // 2).astype(int)
    return [np.array([np.cos(angle), np.sin(angle)])[half], np.array([-np.sin(angle), np.cos(angle)])[half]]


register_basis(
    _monomials_pool,
    tables.Monomials(kernels.DotProductKernel(dim=1)),
    tables.Monomials(kernels.DotProductKernel(dim=16, radius=3.0)),
    tables.Monomials(kernels.DotProductKernel(dim=33), bits=16),
    tables.Monomials(kernels.PolynomialKernel(dim=2)),
    tables.Monomials(kernels.PolynomialKernel(dim=16, radius=0.1)),
    tables.Monomials(kernels.PolynomialKernel(dim=9), bits=10),
)


def _moments_pool(basis: tables.Moments, rng: np.random.Generator) -> Pool:
    box = basis.ball.bounds
    low, high = np.array(box.low), np.array(box.high)
    corners = np.where(rng.random((40, basis.ball.features)) < 0.5, low, high)
    mirrored = corners.copy()
    mirrored[:, -1] = low[-1] + high[-1] - corners[:, -1]
    inside = rng.uniform(low, high, (12, basis.ball.features))
    rows = [low, high, (low + high) / 2, *corners, *mirrored, *inside, *inside[:3]]
    return [*rows, *(scale * (high - low) * rng.normal(size=len(low)) for scale in (10.0, 1e6, 1e-6))]


_ENDS = [(-1.0 - i, 2.0 + i) for i in range(17)]
register_basis(
    _moments_pool,
    *(tables.Moments(UnitBall(_box(_ENDS[:columns]))) for columns in (1, 4, 17)),
    tables.Moments(UnitBall(_box(_ENDS[:4]), radius=1.9), bits=8),
)


def _class_moments_pool(basis: tables.ClassMoments, rng: np.random.Generator) -> Pool:
    """Axes, diagonals, their opposites and the pairs whose products differ most; records far outside of the
    ball and at its centre.
    """
    dim = basis.dim
    level = np.ones(dim)
    vectors = [np.eye(dim)[0], level, -level, _worst_partner(basis), *opposed_directions(dim)]
    vectors += [*rng.normal(size=(3, dim))]
    rows = [basis.radius * each / np.linalg.norm(each) for each in vectors]
    rows += [np.zeros(dim), 1e30 * level, 1e-30 * level]
    records = [np.concatenate(([code], each)) for code in range(basis.classes) for each in rows]
    return [*np.tile(np.array(records, np.float32), (3, 1))]


def _worst_partner(basis: tables.ClassMoments) -> Floats:
    """The direction that replaces the first axis, so that the sums and the moments of one class move the
    most.
    """
    own, shared = basis.mean_weight - basis.shared_weight, basis.shared_weight
    mean, second = own**2 + (basis.classes - 1) * shared**2, (tables.SQUARE_WEIGHT * basis.length) ** 2
    cosine = -min(1.0, mean / (2 * second)) if basis.moments else -1.0
    found = np.zeros(basis.dim)
    found[0], found[-1] = cosine, math.sqrt(1.0 - cosine**2)
    return found


def _class_moments(
    classes: int, dim: int, moments: Fraction, radius: float = 1.0, **options: Any
) -> tables.ClassMoments:
    return tables.ClassMoments.of_shares(
        classes, dim, radius, moment_share=moments, count_share=Fraction(1, 20), bits=10, **options
    )


register_basis(
    _class_moments_pool,
    _class_moments(2, 6, Fraction(0), radius=3.0),
    _class_moments(3, 8, Fraction(1, 5)),
    _class_moments(2, 4, Fraction(3, 5)),
    _class_moments(2, 5, Fraction(1, 2), by_class=True),
    _class_moments(3, 6, Fraction(0), total=0.5),
    _class_moments(2, 4, Fraction(3, 5), total=0.7),
)


def _values(column: DeclaredColumn, rng: np.random.Generator) -> list[object]:
    """Values of a column: ends, edges and their neighbours, far outside, missing and undeclared ones."""
    if isinstance(column, NumberColumn):
        edges = column.edges
        found = [*edges, *np.nextafter(edges, np.inf), *np.nextafter(edges, -np.inf)]
        found += [-0.0, 1e300, -1e300, 5e-324, *rng.uniform(column.low, column.high, 8).tolist()]
        return [float(each) for each in found] + ([None] if column.fill is not None else [])
    if isinstance(column, CategoryColumn):
        undeclared = ["undeclared"] if isinstance(column.values[0], str) else [-77.0]
        listed: list[object] = list(column.values)
        listed += undeclared if column.unknown == "other" else []
        return listed + ([None] if column.missing == "category" else [])
    if isinstance(column, DateColumn):
        days = np.datetime64(column.low) + rng.integers(-400, 4000, 12)
        listed = [column.low, column.high, "0001-01-01", "2262-01-01T23:59:59", *days.astype(str).tolist()]
        return listed + ([None] if column.missing == "category" else [])
    assert isinstance(column, FlagColumn)
    return [False, True, *([None] if column.missing == "category" else [])]


def _marginals_pool(basis: tables.Marginals, rng: np.random.Generator) -> Pool:
    """Opposite records, which share no label and so meet the bound under replace; then random ones."""
    values = [_values(each, rng) for each in basis.encodings]
    ends = [[each[0] for each in values], [each[1] for each in values], [each[-1] for each in values]]
    mixed = [[each[int(rng.integers(len(each)))] for each in values] for _ in range(40)]
    return [*ends, *ends, *mixed]


_AGE = NumberColumn(0, 120, fill=0, bins=6)
_MONEY = NumberColumn(0, 1e5, bins=[0, 1, 1000, 1e5])
_JOB = CategoryColumn(["care", "trade", "law"], unknown="other")
_CODE = CategoryColumn([1, 2.5, 7], unknown="other", missing="refuse")
_HIRED = DateColumn("2015-01-01", "2024-12-31", bins=5)

register_basis(
    _marginals_pool,
    tables.Marginals.of([_AGE], [(0,)]),
    tables.Marginals.of([_AGE, _JOB], [(0,), (1,), (0, 1)]),
    tables.Marginals.of([_JOB, FlagColumn(missing="refuse")], [(0,), (1,), (0, 1)]),
    tables.Marginals.of(
        [_AGE, _JOB, _MONEY, FlagColumn(), _CODE, _HIRED],
        [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 4), (2, 3), (0, 5), (0, 2, 4), (0, 1, 2, 3, 4, 5)],
        ["age", "job", "money", "smoker", "code", "hired"],
    ),
)


# Runs an audit with noise from the source, times the given factor: 1 for the audit, less for a mutant.
Run = Callable[[NoiseSource, float], AuditRow]


@dataclass(frozen=True, slots=True)
class NoiseCase:
    """One worst pair of a sampler. ``sampler`` is the name of the function in `hushsum.privacy.noise`."""

    sampler: str
    pair: str
    run: Run
    thorough: bool = False


def _added(
    mechanism: str,
    parameter: float | Fraction,
    shift: int = 1,
    *,
    cells: int = 1,
    count: float | None = None,
    sites: int = 1,
    thorough: bool = False,
) -> NoiseCase:
    """Noise on cells, and perhaps on the count, that move by ``shift``.

    For several sites it is the sum of the honest sites' shares in a secure aggregation, without the shares of
    colluding sites.

    All but Laplace's distribution are audited against one discrete Gaussian: the same; the sum of smaller
    ones; Skellam noise, which at the variance below is a Gaussian but for a few hundredths of a per cent; and
    many coins, whose sum is a Gaussian of a quarter of their number but for a thousandth.
    """
    sampler = "centred_binomial" if mechanism == BINOMIAL else mechanism.replace(" ", "_")
    name = mechanism
    pair = f"{cells} cells moved by {shift}" if cells > 1 else f"one cell moved by {shift}"
    pair += "" if count is None else " and the count"
    if sites > 1:
        sampler += "_share" if mechanism == LAPLACE else ""
        name, pair = f"{sites} shares of {mechanism}", f"{pair}, {sites} honest sites"
    what = f"{name}, {pair}"

    def run(source: NoiseSource, factor: float) -> AuditRow:
        def draw(whole: float | Fraction) -> Draw:
            # The scale of Laplace's distribution shrinks with the noise, a variance with its square.
            less = exact("parameter", whole) * exact("factor", factor) ** (1 if mechanism == LAPLACE else 2)
            if mechanism == LAPLACE:
                noise = IntegerNoise(LAPLACE, less, parts=sites)
            elif mechanism == BINOMIAL:
                noise = IntegerNoise(BINOMIAL, Fraction(2 * round(less / 2)))
            else:
                noise = IntegerNoise(mechanism, less / sites)
            return lambda size: np.asarray(noise.draw(size * sites, source).reshape(sites, size).sum(axis=0))

        if mechanism == LAPLACE:
            return audit_laplace(draw(parameter), shift / parameter, shift=shift, what=what)
        variance = parameter / 4 if mechanism == BINOMIAL else parameter
        also = None if count is None else (draw(count), count)
        return audit_gaussian(draw(parameter), variance, cells=cells, shift=shift, count=also, what=what)

    return NoiseCase(sampler, pair, run, thorough)


def _gamma(scale: int, name: str, draw_one: Callable[[Fraction, NoiseSource], float]) -> NoiseCase:
    """One cell, where the Gamma-radius distribution is Laplace's, rounded: its worst pair, since in more
    cells losses are smaller but for noise along the move. A thousandth of the scale is lost to rounding, far
    less than the test sees.
    """
    pair = f"one cell moved by {scale}"

    def run(source: NoiseSource, factor: float) -> AuditRow:
        smaller = scale * exact("factor", factor)

        def draw(size: int) -> Integers:
            return np.rint([draw_one(smaller, source) for _ in range(size)]).astype(np.int64)

        return audit_laplace(draw, 1, shift=scale, what=f"{GAMMA}, {pair}")

    return NoiseCase(name, pair, run)


def _choice(
    sampler: str,
    mechanism: str,
    words: str,
    inputs: tuple[Any, Any],
    draw: Callable[[Any, Fraction, int, NoiseSource], Sequence[int]],
    probabilities: Callable[[Any, float], list[float]],
) -> NoiseCase:
    """Two inputs of a mechanism that is run at ε = 1 and has a few outcomes.

    ``draw(input, epsilon, size, source)`` gives outcomes, ``probabilities(input, epsilon)`` their
    distribution.
    """
    pair = f"{words} {inputs[0]} and {inputs[1]}"

    def run(source: NoiseSource, factor: float) -> AuditRow:
        epsilon = 1 / exact("factor", factor)
        left, right = (
            lambda size, given=given: np.array(draw(given, epsilon, size, source), np.int64)
            for given in inputs
        )

        def distributions(at: float) -> tuple[list[float], list[float]]:
            return probabilities(inputs[0], at), probabilities(inputs[1], at)

        seed = source.stream().more_bits(0)(0)
        return audit_choice(left, right, 1.0, distributions, what=f"{mechanism}, {pair}", seed=seed)

    return NoiseCase(sampler, pair, run)


def _chosen(
    choose: Callable[[Sequence[int], Fraction, NoiseSource], int],
    probabilities: Callable[[Sequence[int], float], list[float]],
    *scores: list[int],
) -> NoiseCase:
    """A choice by scores of sensitivity 1, so that the rate is ε/2."""
    return _choice(
        choose.__name__,
        choose.__name__.replace("_", " "),
        "scores",
        (scores[0], scores[1]),
        lambda given, epsilon, size, source: [choose(given, epsilon / 2, source) for _ in range(size)],
        lambda given, epsilon: probabilities(given, epsilon / 2),
    )


def _coin(rank: int, epsilon: float) -> list[float]:
    """The probabilities of a coin whose log-odds fall by ε with each rank."""
    falls = 1.0 / (1.0 + math.exp(epsilon * rank))
    return [1.0 - falls, falls]


_CASES = (
    _added(LAPLACE, 1),
    _added(LAPLACE, 5, 5),
    _added(LAPLACE, 10),
    _added(LAPLACE, Fraction(1, 3)),
    _added(LAPLACE, 100, thorough=True),
    _added(LAPLACE, 1000, 1000, thorough=True),
    _added(LAPLACE, Fraction(1, 8), thorough=True),
    _gamma(1000, "gamma_radius", lambda scale, source: gamma_radius(1, scale, source)[0]),
    _gamma(1000, "gamma_vector", lambda scale, source: ReleaseNoise(source).gamma_vector(1, float(scale))[0]),
    _added(LAPLACE, 100, 100, sites=5),
    _added(LAPLACE, 10, 10, sites=2),
    _added(GAUSSIAN, 100.0, 10, sites=5),
    _added(BINOMIAL, 40_000, 100),
    _added(SKELLAM, 400.0, 20, sites=5),
    _added(GAUSSIAN, 1.0),
    _added(GAUSSIAN, 16.0, cells=16),
    _added(GAUSSIAN, 16.0, cells=16, count=4.0),
    _added(GAUSSIAN, 0.5, cells=4, thorough=True),
    _added(GAUSSIAN, 1e4, cells=100, count=500.0, thorough=True),
    _added(GAUSSIAN, 9.0, 3, cells=9, count=9.0, thorough=True),
    _chosen(permute_and_flip, permute_and_flip_distribution, [-2, 0], [-1, -1]),
    _chosen(exponential_choice, exponential_distribution, [1, 0, 0, 0], [0, 1, 1, 1]),
    _choice(
        "log_odds_coins",
        "log-odds coin",
        "ranks",
        (1, 2),
        lambda rank, epsilon, size, source: log_odds_coins([Fraction(epsilon * rank)] * size, source),
        _coin,
    ),
)


def noise_cases(*, thorough: bool = True) -> list[NoiseCase]:
    """The worst pairs of every sampler, without the long ones unless ``thorough``."""
    return [case for case in _CASES if thorough or not case.thorough]


PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
# For counts, whose lattice is as coarse as their sensitivity: at this claim two neighbours are up to 3 %
# further apart than two normal distributions, far within the slack of the bounds, and at a larger ε by more.
_SMALLER = Promise.of(epsilon=4.0, delta=1e-6)

_RECORDS = 24
# C for which no margin is reached, ‖w‖√κ ≤ Cκ < 1: every record pulls with all of C/n, and Δ is attained.
_ONE_CLASS_MARGIN = 0.3


def _histogram(relation: Relation, promise: Promise = _SMALLER) -> Separated:
    box = Bounds((0.0,), (1.0,))
    basis = tables.Bins((4,), box)
    crowd = [[0.1]] * _RECORDS
    more = [*crowd, [0.9]] if relation is Relation.ADD_REMOVE else [*crowd[1:], [0.9]]
    tallies = [
        Tally(basis, kernels.GaussianKernel(dim=1, bandwidth=0.25)).add(records) for records in (crowd, more)
    ]
    assert promise.epsilon is not None
    terms: dict[str, Any] = {
        "epsilon": float(promise.epsilon),
        "delta": float(promise.delta),
        "relation": relation,
        # As of the model, whose claim is stated before its table is known.
        "mechanism": stated_mechanism(promise),
    }

    def released(side: int, seed: int | None) -> CoefficientFunction:
        function = tallies[side].release(**terms, insecure_noise_seed=seed)
        assert isinstance(function, CoefficientFunction)
        return function

    exact = [tally._table[0].astype(np.float64) for tally in tallies]
    # A record that is replaced moves two cells, and the difference of both by two.
    moved = 1 if relation is Relation.ADD_REMOVE else 2
    chances = lattice_chances(float(released(0, None).noise.parameter), cells=moved, move=moved)
    return _along_difference(
        exact, lambda *of: np.asarray(released(*of).table[0], np.float64), promise, chances
    )


def _posterior(promise: Promise = PROMISE) -> Separated:
    """Neighbours that differ in one target: it is at one end of its range or at the other, at the input with
    the largest weight.
    """
    matrix = smoother(_directions(_RECORDS, 12), 0.5)
    largest = 1 << TARGET_BITS
    heaviest = int((matrix**2).sum(axis=0).argmax())
    targets = [np.zeros(_RECORDS, np.int64) for _ in range(2)]
    targets[0][heaviest], targets[1][heaviest] = -largest, largest

    def release(side: int, seed: int | None) -> Floats:
        noisy = perturbed_posterior(matrix, targets[side], promise, insecure_noise_seed=seed)
        return noisy.values.reshape(-1)

    exact = (matrix @ targets[0] / largest, matrix @ targets[1] / largest)
    return _along_difference(exact, release, promise, normal_chances(0.99 * allowed_distance(promise)))


def _machines(classes: int, promise: Promise = PROMISE) -> Separated:
    """One label goes over to another class; the last weight of each machine is its intercept."""
    rows = _directions(_RECORDS, 8)
    codes = [np.arange(_RECORDS) % classes for _ in range(2)]
    codes[1][0] = 1
    found = [fit_machines(rows, each, classes, _ONE_CLASS_MARGIN) for each in codes]

    def release(side: int, seed: int | None) -> Floats:
        return perturbed_machines(found[side], promise, insecure_noise_seed=seed).values.reshape(-1)

    exact = found[0].weights.reshape(-1), found[1].weights.reshape(-1)
    intercepts = np.zeros(found[0].weights.shape)
    intercepts[:, -1] = (found[1].weights - found[0].weights)[:, -1]
    # Of K machines a label moves two.
    reach = (1.0 if classes == 2 else (2.0 / classes) ** 0.5) / (1.0 + GAP_SHARE)
    chances = normal_chances(0.99 * reach * allowed_distance(promise))
    return _along_difference(exact, release, promise, chances, also=intercepts.reshape(1, -1))


def _directions(number: int, dim: int) -> Floats:
    """Rows of length 1."""
    rows = np.random.default_rng(5).normal(size=(number, dim))
    lengths: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths


def _along_difference(
    exact: Sequence[Floats],
    release: Callable[[int, int | None], Floats],
    promise: Promise,
    chances: Chances,
    *,
    also: Floats | None = None,
) -> Separated:
    """Noise is equal in all coordinates, so the difference itself is the best direction."""
    difference = (exact[1] - exact[0])[np.newaxis]
    directions = difference if also is None else np.concatenate((difference, also))
    return Separated((exact[0], exact[1]), release, directions, allowed_distance(promise), chances)


register_mechanism(
    MechanismCase("PrivateHistogram", "one record replaced", partial(_histogram, Relation.REPLACE), _SMALLER),
    MechanismCase(
        "PrivateHistogram", "one record", partial(_histogram, Relation.ADD_REMOVE), _SMALLER, thorough=True
    ),
    MechanismCase("PrivateGaussianProcessRegressor", "one target", _posterior, PROMISE),
    MechanismCase("PrivateKernelSVC", "one label of two classes", partial(_machines, 2), PROMISE),
    MechanismCase("PrivateKernelSVC", "one label of three classes", partial(_machines, 3), PROMISE),
)


CAP = 4
_MOST_CELLS = 1 << 17

_COMMON = ("bounds", "columns", "scale")
_DEFAULTS = (("power", 1), ("projection", "dense"))


@dataclass(frozen=True, slots=True)
class Randomness:
    """Fresh randomness for a step, or the same in every run for tests. None of it protects anybody: the noise
    hides made-up records.
    """

    seed: int | None
    step: int

    def numbers(self) -> np.random.Generator:
        """For choosing neighbours."""
        return np.random.default_rng(None if self.seed is None else [self.seed, self.step])

    def noise(self) -> NoiseSource:
        """For the samplers under test."""
        return (
            NoiseSource.fresh() if self.seed is None else NoiseSource.insecure((self.seed << 16) + self.step)
        )


Step = Callable[[Randomness], list[AuditRow]]
"""A test still to be run, with randomness of its own."""


def sensitivity_steps(
    basis: Basis, relation: Relation, *, thorough: bool, cap: int | None = CAP
) -> Iterator[Step]:
    """Neighbours that differ in a record, in an edge of a graph, and in a person under a cap if there is one.

    Of a large table the first rows are searched: each has its own hash function, and a record's cell in it
    does not depend on how many follow.
    """
    rows, width = basis.shape
    searched: Basis = basis
    if isinstance(basis, HashRows):
        searched = basis.prefix(min(rows, max(1, _MOST_CELLS // width)))
    first = "" if searched.shape == basis.shape else f", first {searched.shape[0]} rows"
    what = f"{basis_in_words(basis)}{first}, {relation}"

    def records(randomness: Randomness) -> list[AuditRow]:
        rng = randomness.numbers()
        pairs = neighbours(pool_for(searched, rng), relation, rng, thorough=thorough)
        return _sensitivity_rows(what, audit_sensitivity(searched, pairs, relation))

    yield records
    if isinstance(basis, AdjacencyRows):
        edges, rounds = f"{what}, {basis.units[1]}, {basis.graph}", 40 if thorough else 6
        allowed = basis.unit_change(basis.units[1], 1, relation).count
        yield lambda randomness: _sensitivity_rows(
            edges, audit_edges(basis, relation, randomness.numbers(), rounds=rounds), allowed
        )
    if cap is not None and PERSON in basis.units:

        def persons(randomness: Randomness) -> list[AuditRow]:
            rng = randomness.numbers()
            pool, rounds = pool_for(searched, rng), 200 if thorough else 24
            audit = audit_persons(searched, pool, relation, rng, cap=cap, rounds=rounds)
            return _sensitivity_rows(f"{what}, {cap} records a person", audit, cap)

        yield persons


def _sensitivity_rows(what: str, audit: SensitivityAudit, allowed: int = 0) -> list[AuditRow]:
    """Δ1, or whichever norm is too large; and the change of the count if that is too large."""
    declared, found = audit.declared, audit.found
    norms = {
        "Δ1": (float(declared.l1), float(found.l1)),
        "Δ2": (math.sqrt(declared.l2_squared), math.sqrt(found.l2_squared)),
        "Δ∞": (float(declared.largest), float(found.largest)),
    }
    quantity = next((name for name, (most, moved) in norms.items() if moved > most), "Δ1")
    rows = [
        AuditRow(what, Half.SENSITIVITY, quantity, *norms[quantity], float(audit.catches), audit.pairs),
        AuditRow(what, Half.SENSITIVITY, "count", allowed, audit.count, 1.0, audit.pairs),
    ]
    return rows if audit.count > allowed else rows[:1]


def noise_steps(*, thorough: bool) -> Iterator[Step]:
    """The worst pairs of every sampler."""

    def run(case: NoiseCase, randomness: Randomness) -> list[AuditRow]:
        with randomness.noise() as source:
            return [case.run(source, 1.0)]

    return (partial(run, case) for case in noise_cases(thorough=thorough))


def smoke_steps(*, thorough: bool) -> Iterator[Step]:
    """Whole releases of made-up neighbours."""

    def run(case: SmokeCase, randomness: Randomness) -> list[AuditRow]:
        return [audit_smoke(case, seed=randomness.seed, releases=3000 if thorough else RELEASES)]

    return (partial(run, case) for case in CASES)


def mechanism_steps(*, thorough: bool) -> Iterator[Step]:
    """Whole mechanisms with noise on functions, on made-up neighbours."""

    def run(case: MechanismCase, randomness: Randomness) -> list[AuditRow]:
        pair = case.set_up()
        releases = max(pair.releases(), THOROUGH_RELEASES if thorough else 0)
        what = f"{case.name}, {case.pair}"
        return [audit_separation(what, pair, releases=releases, seed=randomness.seed)]

    return (partial(run, case) for case in mechanism_cases(thorough=thorough))


def basis_in_words(basis: Basis) -> str:
    """Such as ``hash-rows euclidean(dim=3, bandwidth=1.0)``; defaults are left out."""
    kernel = basis.counted_kernel()
    if kernel is None:
        given = {name: value for name, value in basis.parameters().items() if name not in _COMMON}
    else:
        given = {name: value for name, value in kernel.parameters().items() if (name, value) not in _DEFAULTS}
    arguments = ", ".join(f"{name}={value}" for name, value in given.items())
    counted = "" if kernel is None else f" {kernel.name}"
    return f"{basis.name}{counted}" + (f"({arguments})" if arguments else "")


# The spent amount of a quantity: exact, or infinity where the noise does not bound it.
Amount = Fraction | float


def audit_calibration(function: NoisyTable) -> list[AuditRow]:
    """Compare what the stated noise spends with the claim, and check that nobody could know that noise."""
    claim = function.claim
    if function.stream_step is not None:
        spent = [_spent_by_stream(claim, function.stream_step, function)]
    else:
        change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
        noises = protecting_noises(claim, function.noise, function.count_noise)
        spent = [
            _spent(claim, change, function.cells.size, each, protecting_distance(claim, each))
            for each in noises
        ]
    # Of several noises, each of which protects the records of one site, the worst is reported.
    rows = [_calibration_row(claim.promise, *each) for each in spent or [("noise", math.inf)]]
    known = 0.0 if claim.secure else 1.0
    return [
        max(rows, key=lambda row: row.lower_bound),
        AuditRow("noise source", Half.CALIBRATION, "known seeds", 0.0, known, 1.0, 0),
    ]


def _calibration_row(promise: Promise, quantity: str, spent: Amount) -> AuditRow:
    """The comparison is of exact rationals; floats are for the eye, and must not turn it over."""
    claimed = getattr(promise, quantity, Fraction(0))
    shown = float(spent)
    if spent <= claimed:
        shown = min(shown, float(claimed))
    elif shown <= float(claimed):
        shown = math.nextafter(float(claimed), math.inf)
    return AuditRow("stated noise", Half.CALIBRATION, quantity, float(claimed), shown, 1.0, 0)


def _spent_by_stream(claim: Claim, step: StreamStep, function: NoisyTable) -> tuple[str, Amount]:
    """The quantity that all steps together spend, from the noise of every output, and how much of it."""
    unit = stream_unit(
        function.basis, claim.unit, claim.records_per_unit, claim.relation, removals=step.removals
    )
    promise, noise = claim.promise, step.noise
    if promise.pure:
        return "epsilon", spent_epsilon(noise, unit) if noise.intervals else math.inf
    rho = math.inf if noise.intervals else spent_rho(noise, unit)
    if promise.rho is not None:
        return "rho", rho
    assert promise.epsilon is not None
    if isinstance(rho, float):
        return "delta", math.inf
    return "delta", min(
        accounting.zcdp_delta(rho, promise.epsilon), spent_delta(noise, unit, promise.epsilon)
    )


def _spent(
    claim: Claim, change: UnitChange, cells: int, noises: Calibration, distance: float
) -> tuple[str, Amount]:
    """The quantity of the claim that the noise of table and count spends, and how much of it; ``distance`` is
    that of sums of shares (`hushsum.privacy.accounting`).
    """
    promise, moved, moves = claim.promise, change.table, change.count
    table, count = noises
    counted = count.parameter if moves else None
    one_each = moved.largest == 1 and moves <= 1
    proven = one_each and (not moves or count.mechanism == table.mechanism)
    if table.mechanism == BINOMIAL:
        if promise.epsilon is None or not proven:
            return "delta", math.inf
        trials, count_trials = int(table.parameter), None if counted is None else int(counted)
        return "delta", accounting.binomial_delta(
            promise.epsilon, cells=moved.l2_squared, trials=trials, count_trials=count_trials
        )
    if table.mechanism == SKELLAM:
        kind = "delta" if promise.rho is None else "rho"
        if promise.pure or not proven:
            return kind, math.inf
        cells, variance = moved.l2_squared, table.parameter
        try:
            if promise.epsilon is None:
                return kind, accounting.skellam_rho(cells=cells, variance=variance, count_variance=counted)
            epsilon = promise.epsilon
            return kind, accounting.skellam_delta(
                epsilon, cells=cells, variance=variance, count_variance=counted
            )
        except ClaimError:
            # A file may state any variance; nothing is proven for one that no release has.
            return kind, math.inf
    if promise.pure or (table.mechanism == LAPLACE and promise.epsilon is not None):
        return "epsilon", _sum(_table_epsilon(moved, cells, table), _epsilon(moves, count))
    if table.mechanism == GAMMA:
        separation, counted_epsilon = _table_epsilon(moved, cells, table), _epsilon(moves, count)
        if promise.epsilon is None or not counted_epsilon < promise.epsilon or math.isinf(separation):
            return "delta", math.inf
        left = promise.epsilon - Fraction(counted_epsilon)
        try:
            return "delta", accounting.gamma_radius_delta(left, cells=table.cells, separation=separation)
        except ClaimError:
            return "delta", math.inf
    spent = _sum(_rho(moved.l2_squared, table), _rho(moves**2, count))
    if promise.rho is not None:
        if isinstance(spent, Fraction) and distance:
            spent = accounting.rho_of_sum(spent, distance, cells + 1)
        return "rho", spent
    assert promise.epsilon is not None
    far = (cells + 1) * distance * (1 + 1e-9)
    epsilon = promise.epsilon - 2 * Fraction(far)
    if isinstance(spent, float) or epsilon <= 0:
        return "delta", math.inf
    if one_each:
        delta = accounting.discrete_gaussian_delta(
            epsilon, cells=moved.l2_squared, variance=table.parameter, count_variance=counted
        )
    else:
        delta = accounting.vector_delta(
            epsilon,
            l2_squared=moved.l2_squared,
            cells=cells,
            variance=table.parameter,
            count=moves,
            count_variance=counted,
        )
    return "delta", min(accounting.zcdp_delta(spent, epsilon), delta) * (math.exp(far) if far else 1)


def _table_epsilon(moved: Sensitivity, cells: int, noise: IntegerNoise) -> Amount:
    """Pure ε of the table: of Laplace noise by Δ1, of the Gamma-radius distribution by Δ2, where the table
    has all cells that share its length or some of them.
    """
    if noise.mechanism != GAMMA:
        return _epsilon(moved.l1, noise)
    return root_above(moved.l2_squared) / noise.parameter if noise.cells >= cells else math.inf


def _epsilon(l1: int, noise: IntegerNoise) -> Amount:
    """Pure ε of a change of ``l1``; infinite without noise or with another kind of it."""
    if l1 == 0:
        return Fraction(0)
    whole = noise.mechanism == LAPLACE and noise.parameter > 0 and noise.parts == 1
    return Fraction(l1) / noise.parameter if whole else math.inf


def _rho(l2_squared: int, noise: IntegerNoise) -> Amount:
    if l2_squared == 0:
        return Fraction(0)
    gaussian = noise.mechanism == GAUSSIAN and noise.parameter > 0
    return Fraction(l2_squared) / (2 * noise.parameter) if gaussian else math.inf


def _sum(table: Amount, count: Amount) -> Amount:
    # Not by adding infinity, for which a huge exact amount would have to be a float.
    return math.inf if math.inf in (table, count) else table + count


_MOST_SIMULATED = 1 << 25
_MOST_NOISY_CELLS = 16
_LARGEST_CAP = 16


def released_steps(function: NoisyTable, *, thorough: bool) -> Iterator[Step]:
    """The tests of one released function."""
    yield lambda randomness: audit_calibration(function)
    claim = function.claim
    cap = min(claim.records_per_unit, _LARGEST_CAP) if claim.unit == PERSON else None
    yield from sensitivity_steps(function.basis, claim.relation, thorough=thorough, cap=cap)
    if function.stream_step is not None:
        drawn = function.stream_step.noise.table
        if drawn.mechanism == LAPLACE:
            yield partial(_laplace, drawn, "an output's")
        else:
            # One cell, moved by its deviation: a record moves each output of a stream by less.
            shift = max(1, round(float(drawn.parameter) ** 0.5))
            yield partial(_gaussian, drawn, None, 1, shift)
        return
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    protecting = protecting_noises(claim, function.noise, function.count_noise)
    if not protecting:
        return
    # Sums of noises are tested by those that the claim rests on; shares have cases of their own.
    noise, count_noise = protecting[0]
    moved, count = change.table, count_noise if change.count else None
    if noise.mechanism in (LAPLACE, GAMMA):
        yield partial(_laplace, noise, "the table's")
        if count is not None and count.mechanism == LAPLACE:
            yield partial(_laplace, count, "the count's")
    elif noise.mechanism == GAUSSIAN:
        cells = moved.l2_squared // moved.largest**2
        paired = count if count is not None and count.mechanism == GAUSSIAN else None
        yield partial(_gaussian, noise, paired, cells, moved.largest)


def _laplace(noise: IntegerNoise, whose: str, randomness: Randomness) -> list[AuditRow]:
    """One cell moved by about the scale, so that its loss is near 1, where a test needs the fewest draws.

    A scale claims k/scale for a move of every k; over many rows the losses concentrate, and nothing is seen.
    The Gamma-radius distribution of one cell is Laplace's, rounded.
    """
    shift = max(1, round(noise.parameter))
    one = replace(noise, cells=1)

    def draw(size: int) -> Integers:
        if noise.mechanism == LAPLACE:
            return noise.draw(size, source)
        return np.concatenate([one.draw(1, source) for _ in range(size)])

    with randomness.noise() as source:
        try:
            what = f"{noise.mechanism}, {whose} noise, one cell moved by {shift}"
            return [audit_laplace(draw, shift / noise.parameter, shift=shift, what=what)]
        except UsageError:
            return [_untested(f"{noise.mechanism}, {whose} noise", "epsilon", float(shift / noise.parameter))]


def _gaussian(
    noise: IntegerNoise, count: IntegerNoise | None, cells: int, shift: int, randomness: Randomness
) -> list[AuditRow]:
    """The worst pair itself where it can be afforded; otherwise fewer cells, moved further."""
    pair = GaussianPair(
        float(noise.parameter), cells, shift, None if count is None else float(count.parameter)
    )
    try:
        affordable = cells * gaussian_draws(pair) <= _MOST_SIMULATED
    except UsageError:
        affordable = False
    if not affordable:
        cells = min(cells, _MOST_NOISY_CELLS)
        shift = max(1, round((float(noise.parameter) / cells) ** 0.5))
        count = None
    also = "" if count is None else " and the count"
    what = f"discrete gaussian, {cells} cells{also} moved by {shift}"
    with randomness.noise() as source:
        counted = None if count is None else (partial(count.draw, source=source), count.parameter)
        draw = partial(noise.draw, source=source)
        try:
            return [audit_gaussian(draw, noise.parameter, cells=cells, shift=shift, count=counted, what=what)]
        except UsageError:
            return [_untested(GAUSSIAN, "mu", GaussianPair(float(noise.parameter), cells, shift).mu)]


def _untested(what: str, quantity: str, claimed: float) -> AuditRow:
    return AuditRow(what, Half.NOISE, quantity, claimed, 0.0, 0.0, 0)


Target = Basis | Kernel | ReleasedFunction | None


def audit(target: Target = None, *, thorough: bool = False, seed: int | None = None) -> AuditReport:
    """Try to break what is claimed, on made-up data, and say how likely a fault would have been found.

    Private data are never touched. An audit finds faults; that it finds none is not a proof, which is why
    every row states its power: the probability that a copy with a fifth less noise, or a fifth less declared
    sensitivity, would have been caught. A sound claim is called broken with probability 1e-8 at most per row.

    Parameters
    ----------
    target : Basis, Kernel, ReleasedFunction or None
        A tally's ``basis``; a kernel, in the bases that count it; a released function, whose stated noise is
        also held against its claim. None: every registered basis, kernel and sampler, whole releases
        and models.
    thorough : bool, default False
        More neighbours, more noise levels, more releases; minutes instead of seconds.
    seed : int, optional
        Repeats an audit exactly, for tests. By default neighbours and noise are new in every run.

    Returns
    -------
    AuditReport
        Print it for a table; ``report.holds`` and ``report.as_dicts()`` are for programs.

    Raises
    ------
    UsageError
        if no audit is registered for the target.
    SecretRefused
        for a tally: audit its ``basis``, which is public.

    Examples
    --------
    >>> import hushsum as hs
    >>> report = hs.audit(hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=70, width=53).basis)
    >>> report.holds, report.weakest_power
    (True, 1.0)
    """
    return run_steps(audit_steps(target, thorough=thorough), seed=seed)


def audit_steps(target: Target = None, *, thorough: bool = False) -> list[Step]:
    """The tests that ``audit`` runs for a target, in order."""
    if isinstance(target, Tally):
        raise SecretRefused(
            "an audit takes nothing secret",
            got="a tally",
            remedy="audit tally.basis, or the function it released",
        )
    if target is None:
        bases = [basis for name in audited_bases() for basis in basis_cases(name).examples]
        steps = (noise_steps, smoke_steps, mechanism_steps)
        return [*_searches(bases, thorough), *(step for make in steps for step in make(thorough=thorough))]
    target = released_table(target)
    if isinstance(target, NoisyTable):
        return list(released_steps(target, thorough=thorough))
    if isinstance(target, Kernel):
        kernel_cases(target.name)
        makers = (basis_cases(name).of_kernel for name in audited_bases())
        bases = [basis for make in makers if make is not None and (basis := make(target)) is not None]
    elif isinstance(target, Basis):
        basis_cases(target.name)
        bases = [target]
    else:
        raise UsageError(
            "target",
            "must be a basis, a kernel or a released table",
            got=type(target).__name__,
            remedy="give one of them, or nothing to audit all that is registered",
        )
    return _searches(bases, thorough)


def _searches(bases: Iterable[Basis], thorough: bool) -> list[Step]:
    return [
        step
        for basis in bases
        for relation in Relation
        for step in sensitivity_steps(basis, relation, thorough=thorough)
    ]


def run_steps(
    steps: list[Step], *, seed: int | None = None, progress: Callable[[float], None] | None = None
) -> AuditReport:
    """Run tests one after the other; ``progress`` is called with the fraction done."""
    rows = []
    for number, step in enumerate(steps):
        rows += step(Randomness(seed, number))
        if progress is not None:
            progress((number + 1) / len(steps))
    return report_of(rows)
