"""Section 6: Jaccard sums over social networks, released at many ε and compared with exact ones (figure 6).

A node is the set of its neighbours, and the sum at a node says how many others share how many of them. The
graphs are public; queries are nodes of the graph itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray
from papers.data import dataset_file
from papers.private_race.curves import Curves, Settings
from papers.private_race.data import PUBLIC_SHARE, Floats

import hushsum as hs
from hushsum import _native
from hushsum.kernels import Hasher, multiply_shift, row_words
from hushsum.records import EdgeList, Sets
from hushsum.releases import TableFunction

ROWS: Final = 2000
WIDTH: Final = 100_000
QUERIES: Final = 2000
FEWER_ROWS: Final = (1, 3, 10, 30, 100, 300, 1000)
DELTA: Final = 1e-6
COUNT_SHARE: Final = Fraction(1, 50)
"""The library's default: what a release spends on the noisy count."""

NO_NOISE: Final = 1e9
"""At this ε every cell of 2,000 rows has noise 0, but with a probability of exp(−490,000)."""

PAPER: Final = "paper's form"
CHOSEN: Final = "rows by default"
PLANNED: Final = "rows planned"
PLANNED_POSITIVE: Final = "rows planned, answers ≥ 0"
GAUSSIAN: Final = "all rows, δ"
HASHING: Final = "hashing alone"
HASHING_LINEAR: Final = "hashing alone, linear fold"
ZERO: Final = "answering 0"
TABLE_COUNT: Final = "N from the table"
PAID_COUNT: Final = "N, paid and combined"

_PRODUCTS_AT_A_TIME: Final = 1 << 22
"""Similarities of a block of nodes with all queries, at most 16 bytes each."""

Ids = NDArray[np.int64]


def with_rows(rows: int) -> str:
    """The method that releases this many rows of the tally."""
    return f"{rows:,} rows"


@dataclass(frozen=True, slots=True)
class Graph:
    """A file of edges, and whether they have a direction."""

    name: str
    title: str
    directed: bool

    def edges(self) -> EdgeList:
        """The sets of neighbours, as the library reads them."""
        return hs.records.read_edges(dataset_file(self.name), columns=["src", "dst"], directed=self.directed)


GRAPHS: Final = {
    each.name: each
    for each in (
        Graph("soc_slashdot0902", "Slashdot", directed=True),
        Graph("soc_brightkite", "Brightkite", directed=False),
        Graph("ca_hepph", "ca-HepPh", directed=False),
        Graph("wiki_vote", "wiki-Vote", directed=True),
        Graph("ego_facebook", "ego-Facebook", directed=False),
    )
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a graph is: its records, the entries of all its sets, and the exact sums at the queries."""

    nodes: int
    entries: int
    queries: list[Ids]
    truth: Floats


def facts_of(graph: Graph, number: int = QUERIES) -> Facts:
    """Read a graph twice: to draw queries among the nodes that have neighbours, and to sum exactly."""
    edges = graph.edges()
    nodes, entries, eligible = 0, 0, []
    for ids, sets in edges.with_ids():
        nodes += len(sets)
        entries += len(sets.values)
        eligible.append(ids[np.diff(sets.indptr) > 0])
    candidates = np.concatenate(eligible)
    chosen = np.random.default_rng(6).choice(candidates, min(number, len(candidates)), replace=False)
    queries = neighbours_of(edges, chosen)
    return Facts(nodes, entries, queries, exact_sums(edges, queries))


def neighbours_of(edges: EdgeList, nodes: Ids) -> list[Ids]:
    """The sets of some nodes, in their order."""
    found: dict[int, Ids] = {}
    for ids, sets in edges.with_ids():
        for place in np.flatnonzero(np.isin(ids, nodes)):
            found[int(ids[place])] = sets.values[sets.indptr[place] : sets.indptr[place + 1]]
    return [found[int(node)] for node in nodes]


def exact_sums(batches: Iterable[Sets], queries: Sequence[Ids]) -> Floats:
    """Sums of Jaccard similarities over all sets of the batches, at each query, by sparse products.

    Sets must not repeat elements. Memory beyond a batch and the queries is bounded: elements that no query
    has count for the size of a set alone, and products are made for some sets at a time. The empty set is
    similar to itself only.
    """
    from scipy.sparse import csr_array

    elements = np.unique(np.concatenate([np.empty(0, np.int64), *queries]))
    sizes = np.array([len(query) for query in queries], np.int64)
    flat = np.searchsorted(elements, np.concatenate([np.empty(0, np.int64), *queries]))
    shape = (len(queries), max(1, len(elements)))
    asked = csr_array((np.ones(len(flat)), flat, np.concatenate([[0], np.cumsum(sizes)])), shape=shape).T
    sums = np.zeros(len(queries))
    step = max(1, _PRODUCTS_AT_A_TIME // max(1, len(queries)))
    for sets in batches:
        for start in range(0, len(sets), step):
            starts = sets.indptr[start : start + step + 1]
            values = sets.values[starts[0] : starts[-1]]
            places = np.minimum(np.searchsorted(elements, values), max(0, len(elements) - 1))
            known = elements[places] == values if len(elements) else np.zeros(len(values), np.bool_)
            before = np.concatenate([[0], np.cumsum(known)])[starts - starts[0]]
            members = csr_array(
                (np.ones(int(before[-1])), places[known], before), shape=(len(starts) - 1, shape[1])
            )
            shared = (members @ asked).tocoo()
            of_sets = np.diff(starts)
            union = of_sets[shared.row] + sizes[shared.col] - shared.data
            sums += np.bincount(shared.col, shared.data / union, len(queries))
            sums[sizes == 0] += np.count_nonzero(of_sets == 0)
    return sums


@dataclass(frozen=True, slots=True)
class LinearFold(hs.JaccardKernel):
    """The Jaccard kernel whose hash values are folded as they are, without being scattered first."""

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The same functions, folded by multiply-shift hashing alone."""
        words = row_words("jaccard/mixers", seed, rows, self.power)
        mixers = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        shifts = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        salt = int(row_words("jaccard/salt", seed, 1, 1)[0, 0])
        multipliers, addends = multiply_shift(self.name, seed, rows, self.power + 1)
        return _native.MinHasher(mixers, shifts, salt, multipliers, addends, width, False)


def counted(edges: EdgeList, kernel: hs.JaccardKernel, *, rows: int, width: int, seed: int) -> hs.Tally:
    """A tally of all nodes."""
    tally = hs.race(kernel, rows=rows, width=width, seed=seed)
    for batch in edges:
        tally.add(batch)
    return tally


def as_published(f: TableFunction, queries: Sequence[Ids], without_noise: Floats) -> Floats:
    """Algorithms 1 and 2 as they stand: Laplace noise of scale R/ε in every cell, rounded down, and the mean
    over rows, with what the fold adds left in.

    ``f`` is a release of all rows, whose count takes a share of ε; what noise adds to ``without_noise`` is
    made smaller by that share. Rounding down moves the mean by −1/2.
    """
    answers = without_noise + (f.sum(queries) - without_noise) * float(1 - COUNT_SHARE)
    fold = 1.0 / f.basis.shape[1]
    published: Floats = answers * (1.0 - fold) + f.count * fold - 0.5
    return published


def released(tally: hs.Tally, **request: object) -> TableFunction:
    """A release of a tally of hash rows."""
    f = tally.release(count_share=COUNT_SHARE, **request)  # type: ignore[arg-type]
    assert isinstance(f, TableFunction)
    return f


def repetition(
    graph: Graph,
    facts: Facts,
    curves: Curves,
    number: int,
    settings: Settings,
    *,
    rows: int = ROWS,
    width: int = WIDTH,
) -> None:
    """Add one repetition to the curves: public hash functions and noise are its own."""
    edges, queries, truth = graph.edges(), facts.queries, facts.truth

    def add(method: str, answers: Floats) -> None:
        curves.add(method, number, float(np.abs(answers - truth).mean()))

    planned = planned_rows(edges, facts.nodes, settings.epsilons, rows=rows, width=width, seed=number)
    linear = counted(edges, LinearFold(), rows=rows, width=width, seed=number)
    without_scatter = released(linear, epsilon=NO_NOISE, rows=rows).sum(queries)
    del linear
    tally = counted(edges, hs.JaccardKernel(), rows=rows, width=width, seed=number)
    without_noise = released(tally, epsilon=NO_NOISE, rows=rows).sum(queries)
    for epsilon, suited in zip(settings.epsilons, planned, strict=True):
        add(ZERO, np.zeros_like(truth))
        add(HASHING, without_noise)
        add(HASHING_LINEAR, without_scatter)
        chosen = released(tally, epsilon=epsilon)
        add(CHOSEN, chosen.sum(queries))
        curves.choose(number, f"{chosen.rows}, {suited}")
        add(GAUSSIAN, released(tally, epsilon=epsilon, delta=DELTA, rows=rows).sum(queries))
        for each in row_choices(rows):
            f = released(tally, epsilon=epsilon, rows=each)
            add(with_rows(each), f.sum(queries))
            if each == suited:
                add(PLANNED, f.sum(queries))
                add(PLANNED_POSITIVE, f.sum(queries, nonnegative=True))
        # The last one has all rows.
        add(PAPER, as_published(f, queries, without_noise))
        curves.add(TABLE_COUNT, number, abs(f.table_count / facts.nodes - 1.0))
        curves.add(PAID_COUNT, number, abs(f.count / facts.nodes - 1.0))
        settings.say(f"{graph.name}, repetition {number}, ε = {epsilon:g}")


def planned_rows(
    edges: EdgeList, nodes: int, epsilons: Sequence[float], *, rows: int, width: int, seed: int
) -> list[int]:
    """The number of rows that ``hs.plan`` expects to err least, for each ε, with a share of the nodes public
    and their number declared.
    """
    rng = np.random.default_rng((2021, seed))
    sample = [
        sets.values[sets.indptr[place] : sets.indptr[place + 1]]
        for sets in edges
        for place in np.flatnonzero(rng.random(len(sets)) < PUBLIC_SHARE)
    ]
    plan = hs.plan(
        records=nodes, kernel=hs.JaccardKernel(), method="race", epsilon=list(epsilons), public=sample,
        queries=[each for each in sample if len(each)], rows=row_choices(rows), width=width, seed=seed,
    )  # fmt: skip
    return [
        min((o for o in plan.options if o.epsilon == epsilon and o.delta == 0.0), key=lambda o: o.error).rows
        for epsilon in epsilons
    ]


def row_choices(rows: int) -> list[int]:
    """Numbers of rows to compare, up to all of them."""
    return [*(each for each in FEWER_ROWS if each < rows), rows]
