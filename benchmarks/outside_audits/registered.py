"""Worlds made from the library's registries: what is registered there is audited without an edit here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from benchmarks.outside_audits.worlds import MANY, TABLES, Budget, Sampler, World, from_tables, one_by_one
from hushsum.auditing import (
    MechanismCase,
    audit,  # noqa: F401  (registers the cases)
    audited_bases,
    basis_cases,
    counted,
    mechanism_cases,
    pool_for,
    rows_of,
)
from hushsum.kernels import GaussianKernel, HammingKernel, JaccardKernel
from hushsum.privacy import FACTORISED, GAMMA, GAUSSIAN, LAPLACE, LATTICE_GAUSSIAN, Relation
from hushsum.records import Graph
from hushsum.releases import NoisyTable
from hushsum.tables import AdjacencyRows, Basis, DividedRows, HashRows, Marginals
from hushsum.tally import Tally

_PATH = "gaussian process path"


def basis_worlds() -> Iterator[World]:
    """Every basis with Laplace and Gaussian noise: nothing against the one record that shows most; of graphs
    with one edge more.
    """
    for name in audited_bases():
        if name == AdjacencyRows.name:
            yield from _graph_worlds()
            continue
        for pure in (True, False):
            basis, record = _sharpest(name, pure=pure)
            mechanism = LAPLACE if pure else GAUSSIAN
            yield World(
                f"basis {name}",
                "one record",
                pure,
                frozenset({name, mechanism}),
                from_tables(_releases(basis, record, mechanism=LAPLACE if pure else None)),
                MANY if pure and np.count_nonzero(counted(basis, [record])) > 4 else TABLES,
            )
    basis, record = _sharpest("fourier-features", pure=False)
    yield World(
        "basis fourier-features, gamma radius",
        "one record",
        True,
        frozenset({GAMMA}),
        from_tables(_releases(basis, record, mechanism=GAMMA)),
    )


def _graph_worlds() -> Iterator[World]:
    """An edge between two nodes with one common neighbour moves both rows from one cell to another; of a
    directed edge it moves one.
    """
    directed = Graph(directed=True, nodes=40)
    for pure, graph, edge in ((True, Graph(nodes=40), "edge"), (False, directed, "directed edge")):
        basis = AdjacencyRows(JaccardKernel(), 1, 7, 11, graph=graph)
        tallies = _neighbouring_graphs(basis)
        yield World(
            f"basis {basis.name}",
            f"one {edge}",
            pure,
            frozenset({basis.name, LAPLACE if pure else GAUSSIAN}),
            from_tables(_released(tallies, rows=1, unit=edge)),
            TABLES,
        )


def _neighbouring_graphs(basis: AdjacencyRows) -> list[Tally]:
    """The first graph with the declared distance between it and the same with one edge less."""
    declared = basis.unit_change(basis.units[1], 1, Relation.ADD_REMOVE).table
    for u, v, hub in permutations(range(basis.graph.nodes or 0), 3):
        tallies = [
            _graph_tally(basis, edges) for edges in ([(u, hub), (v, hub)], [(u, hub), (v, hub), (u, v)])
        ]
        first, second = (tally._table for tally in tallies)
        if ((second - first) ** 2).sum() == declared.l2_squared:
            return tallies
    raise AssertionError("the bound is attained")


def _graph_tally(basis: AdjacencyRows, edges: list[tuple[int, int]]) -> Tally:
    sets = rows_of(basis.graph, edges)
    assert sets is not None
    tally = Tally(basis)
    tally._accumulate(basis.prepare(sets), 1, 1)
    return tally


def mechanism_worlds() -> Iterator[World]:
    """Every mechanism with noise on a function, at the pairs that ``hs.audit`` uses."""
    for case in mechanism_cases(thorough=False):
        mechanism = {"ServedFunction": _PATH, "Stream": FACTORISED}.get(case.name, LATTICE_GAUSSIAN)
        covers = {case.name.split(",")[0], case.name, mechanism}
        yield World(case.name, case.pair, False, frozenset(covers), _separated(case))


def _separated(case: MechanismCase) -> Any:
    def open_world(budget: Budget) -> Sampler:
        pair = case.make(budget.promise)
        direction = pair.directions[0]
        middle = direction @ (pair.exact[0] + pair.exact[1]) / 2.0
        towards = np.sign(direction @ (pair.exact[1] - pair.exact[0]))
        return one_by_one(lambda side: float(towards * (direction @ pair.release(side, None) - middle)))

    return open_world


def _sharpest(name: str, *, pure: bool) -> tuple[Basis, object]:
    """The example and the record of the basis that are most telling.

    Laplace noise tells of a move what it has of Δ1, and tells it best if few cells share it; for Gaussian
    noise only the length counts.
    """
    best, chosen = -np.inf, None
    for example in basis_cases(name).examples:
        basis = _with_fewest_rows(example)
        declared = basis.sensitivity(Relation.ADD_REMOVE)
        for record in pool_for(basis, np.random.default_rng(1)):
            move = counted(basis, [record])
            if pure:
                telling = np.abs(move).sum() / declared.l1 - 0.03 * np.count_nonzero(move)
            else:
                telling = np.sqrt(float((move.astype(np.float64) ** 2).sum()) / declared.l2_squared)
            if telling > best:
                best, chosen = float(telling), (basis, record)
    assert chosen is not None
    return chosen


def _with_fewest_rows(basis: Basis) -> Basis:
    if isinstance(basis, DividedRows):
        return basis.prefix(basis.fewest_rows)
    return basis.prefix(1) if isinstance(basis, HashRows) else basis


def _releases(basis: Basis, record: object, mechanism: str | None = None) -> Any:
    tallies = [Tally(basis, _kernel(basis)), Tally(basis, _kernel(basis)).add([record])]
    # All of them, whatever the budget: tables of one world are compared with those of another.
    rows: dict[str, Any] = {"rows": basis.rows} if isinstance(basis, HashRows | DividedRows) else {}
    return _released(tallies, mechanism=mechanism, **rows)


def _released(tallies: list[Tally], **options: Any) -> Any:
    def release(side: int, budget: Budget) -> Iterable[NoisyTable]:
        function = tallies[side].release(**budget.arguments, **options, threads=1)
        assert isinstance(function, NoisyTable)
        return (function,)

    return release


def _kernel(basis: Basis) -> GaussianKernel | HammingKernel | None:
    """What a table that serves several kernels is read with; wide, since only its cells are looked at."""
    if isinstance(basis, Marginals):
        return HammingKernel(dim=len(basis.encodings))
    if basis.counted_kernel() is not None or basis.bounds is None:
        return None
    return GaussianKernel(dim=basis.bounds.dim, bandwidth=10.0)
