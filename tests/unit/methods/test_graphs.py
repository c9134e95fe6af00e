"""Claims about graphs: the unit is named, has its own sensitivity, and cannot be claimed by mistake."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hushsum as hs
from hushsum.auditing import audit_steps, rows_of, run_steps
from hushsum.errors import ClaimError, IncompatibleTallies, UsageError
from hushsum.privacy import Claim, Relation
from hushsum.records import Graph
from hushsum.records import _graph as edge_files
from hushsum.releases import NoisyTable, PublicFacts
from hushsum.tables import AdjacencyRows, basis_as_json, basis_from_json
from hushsum.tally import Tally
from tests.exact_tallies import exact_table

EDGES = [(0, 1), (1, 2), (2, 2), (2, 1), (3, 0)]
KINDS: list[dict[str, Any]] = [
    {},
    {"nodes": 6},
    {"directed": True},
    {"directed": True, "nodes": 6},
    {"sorted": True},
    {"directed": True, "sorted": True},
]


def listed(folder: Path, edges: list[tuple[int, int]] = EDGES, name: str = "graph.txt", **kind: Any) -> Any:
    lines = [*edges, *((v, u) for u, v in edges)] if kind.get("sorted") else edges
    path = folder / name
    path.write_text("".join(f"{u} {v}\n" for u, v in sorted(lines)))
    return hs.records.read_edges(path, **kind)


def counted(folder: Path, edges: list[tuple[int, int]] = EDGES, rows: int = 5, **kind: Any) -> Tally:
    return hs.methods.count_graph(listed(folder, edges, **kind), rows=rows, width=11)


def edge_of(kind: dict[str, Any]) -> str:
    return "directed edge" if kind.get("directed") else "edge"


@pytest.mark.parametrize("kind", KINDS, ids=str)
class TestReleases:
    def test_the_table_is_that_of_the_sets(self, tmp_path: Path, kind: dict[str, Any]) -> None:
        plain = hs.race(hs.JaccardKernel(), rows=5, width=11)
        for sets in listed(tmp_path, **kind):
            plain.add(sets)
        tally = counted(tmp_path, **kind)
        assert np.array_equal(exact_table(tally), exact_table(plain))
        assert tally._count == plain._count
        assert tally.fingerprint != plain.fingerprint

    @pytest.mark.parametrize("relation", list(Relation), ids=str)
    def test_noise_has_the_scale_of_the_unit(
        self, tmp_path: Path, kind: dict[str, Any], relation: Relation
    ) -> None:
        tally = counted(tmp_path, **kind)
        for unit in tally.basis.units:
            change = tally.basis.unit_change(unit, 1, relation)
            pure = tally.release(epsilon=1.0, unit=unit, relation=relation, rows=5)
            assert isinstance(pure, NoisyTable)
            share = Fraction(98, 100) if change.count else Fraction(1)
            assert pure.noise.parameter == change.table.l1 / share
            assert pure.count_noise.parameter == (change.count / Fraction(2, 100) if change.count else 0)
            rho = tally.release(rho=1.0, unit=unit, relation=relation)
            assert isinstance(rho, NoisyTable)
            assert rho.noise.parameter == change.table.l2_squared / (2 * share)
            both = tally.release(epsilon=1.0, delta=1e-6, unit=unit, relation=relation)
            # The first step alone: the others audit the basis, as `tests/contract/test_audits.py` does.
            recomputed = run_steps(audit_steps(both)[:1], seed=1)
            assert recomputed.holds, "recomputed forwards from the stated noise"
            for function in (pure, rho, both):
                assert (function.claim.unit, function.claim.records_per_unit) == (unit, 1)

    def test_the_number_of_declared_nodes_is_public_for_edges(
        self, tmp_path: Path, kind: dict[str, Any]
    ) -> None:
        f = counted(tmp_path, **kind).release(epsilon=1.0, unit=edge_of(kind))
        assert isinstance(f, NoisyTable)
        assert (f.count_noise.parameter == 0) is ("nodes" in kind)
        assert f.claim.assumptions == (("the list of nodes is public",) if "nodes" in kind else ())
        if "nodes" in kind:
            assert f.count == 6
        row = counted(tmp_path, **kind).release(epsilon=1.0)
        assert isinstance(row, NoisyTable)
        assert row.count_noise.parameter > 0, "a row that is absent changes the number"

    def test_files_keep_unit_and_graph(self, tmp_path: Path, kind: dict[str, Any]) -> None:
        tally = counted(tmp_path, **kind)
        for key in (None, bytes(32)):
            tally.save(tmp_path / "g.tally", encryption_key=key)
            again = hs.load_tally(tmp_path / "g.tally", encryption_key=key)
            assert again.basis == tally.basis
            assert again.unit == "adjacency row"
        f = again.release(epsilon=1.0, unit=edge_of(kind))
        f.save(tmp_path / "g.hush")
        loaded = hs.load(tmp_path / "g.hush")
        assert loaded.claim == f.claim
        assert f"'{edge_of(kind)}'" in repr(loaded.claim)
        assert f"one {edge_of(kind)} is in the data or is not" in loaded.claim.sentence()
        assert basis_from_json(basis_as_json(tally.basis)) == tally.basis


class TestRefusals:
    @pytest.mark.parametrize("unit", ["record", "person", "directed edge", "anything"])
    def test_a_unit_that_the_graph_does_not_have(self, tmp_path: Path, unit: str) -> None:
        with pytest.raises(ClaimError, match="must be 'adjacency row' or 'edge'"):
            counted(tmp_path).release(epsilon=1.0, unit=unit)

    def test_undirected_edges_of_directed_rows(self, tmp_path: Path) -> None:
        with pytest.raises(ClaimError, match="'directed edge', got 'edge'"):
            counted(tmp_path, directed=True).release(epsilon=1.0, unit="edge")

    @pytest.mark.parametrize("unit", ["adjacency row", "edge", "directed edge"])
    def test_edges_of_plain_sets(self, tmp_path: Path, unit: str) -> None:
        tally = hs.race(hs.JaccardKernel(), rows=5)
        for sets in listed(tmp_path):
            tally.add(sets)
        with pytest.raises(ClaimError, match="must be 'record'"):
            tally.release(epsilon=1.0, unit=unit)
        with pytest.raises(ClaimError, match="unit"):
            hs.release([[1.0]], epsilon=1.0, bandwidth=1.0, unit=unit)

    def test_nodes(self, tmp_path: Path) -> None:
        with pytest.raises(ClaimError, match="not offered"):
            counted(tmp_path).release(epsilon=1.0, unit="node")

    def test_further_records(self, tmp_path: Path) -> None:
        tally = counted(tmp_path)
        for call in (tally.add, tally.remove):
            with pytest.raises(UsageError, match="one list of edges"):
                call([[1, 2]])
        with pytest.raises(UsageError, match="must be what hs"):
            hs.methods.count_graph([[1, 2]])  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="must compare sets"):
            hs.methods.count_graph(listed(tmp_path), hs.EuclideanKernel(dim=1, bandwidth=1.0))

    def test_persons(self) -> None:
        with pytest.raises(UsageError, match="max_per_unit must be left out"):
            Tally(AdjacencyRows(hs.JaccardKernel(), 4, 8, 0), max_per_unit=2)

    @pytest.mark.parametrize("kind", KINDS[1:], ids=str)
    def test_merging_another_kind_of_graph(self, tmp_path: Path, kind: dict[str, Any]) -> None:
        with pytest.raises(IncompatibleTallies):
            counted(tmp_path).merge(counted(tmp_path, **kind))

    def test_merging_plain_sets(self, tmp_path: Path) -> None:
        plain = hs.race(hs.JaccardKernel(), rows=5, width=11).add([[1]])
        with pytest.raises(IncompatibleTallies):
            counted(tmp_path).merge(plain)

    def test_a_claim_with_too_little_noise_for_its_unit(self, tmp_path: Path) -> None:
        """A file that calls the noise of a row that of an edge is refused when it is opened."""
        f = counted(tmp_path).release(epsilon=1.0)
        stream = io.BytesIO()
        forged = Claim.from_json({**f.claim.as_json(), "unit": "edge"})
        assert isinstance(f, NoisyTable)
        replace(f, facts=PublicFacts(forged)).save(stream)
        stream.seek(0)
        with pytest.raises(hs.errors.FileRefused):
            hs.load(stream)

    @pytest.mark.parametrize(
        "graph",
        [
            {"directed": 1, "nodes": None, "rows_listed": False},
            {"directed": False, "nodes": 2.0, "rows_listed": False},
            {"directed": False, "nodes": 0, "rows_listed": False},
            {"directed": False, "nodes": 3, "rows_listed": True},
            {"directed": False, "nodes": None},
            [],
        ],
    )
    def test_a_graph_that_could_not_have_been_written(self, graph: Any) -> None:
        header = json.loads(json.dumps(basis_as_json(AdjacencyRows(hs.JaccardKernel(), 4, 8, 0))))
        header["parameters"]["graph"] = graph
        with pytest.raises((ValueError, UsageError)):
            basis_from_json(header)


class TestMerging:
    def test_an_edge_may_be_in_both_lists(self, tmp_path: Path) -> None:
        tally = counted(tmp_path).merge(counted(tmp_path)).merge(counted(tmp_path))
        tally.save(tmp_path / "g.tally")
        f = hs.load_tally(tmp_path / "g.tally").release(epsilon=1.0, unit="edge", rows=5)
        assert isinstance(f, NoisyTable)
        assert f.claim.records_per_unit == 3
        assert f.noise.parameter == Fraction(3 * 4 * 5) / Fraction(98, 100)
        assert f.count_noise.parameter == Fraction(3 * 2) / Fraction(2, 100)
        assert "listed in up to 3 graphs" in f.claim.sentence()
        row = tally.release(epsilon=1.0).claim
        assert row.records_per_unit == 1, "a row is in one of them"
        assert "the neighbours of one node in one list of edges" in row.sentence()

    def test_unless_declared_otherwise(self, tmp_path: Path) -> None:
        tally = counted(tmp_path).merge(counted(tmp_path), disjoint_units=True)
        assert tally.release(epsilon=1.0, unit="edge").claim.records_per_unit == 1

    def test_rows_of_disjoint_nodes_add_up_to_the_graph(self, tmp_path: Path) -> None:
        """Sites that list the rows of their own nodes; an edge between them is one row in each."""
        whole = counted(tmp_path, [(0, 1), (1, 2), (0, 2)], sorted=True)
        parts = []
        for site, rows in {"a": [(0, 1), (0, 2)], "b": [(1, 0), (1, 2), (2, 0), (2, 1)]}.items():
            path = tmp_path / f"{site}.txt"
            path.write_text("".join(f"{u} {v}\n" for u, v in rows))
            parts.append(hs.methods.count_graph(hs.records.read_edges(path, sorted=True), rows=5, width=11))
        merged = parts[0].merge(parts[1], disjoint_units=True)
        assert np.array_equal(exact_table(merged), exact_table(whole))

    def test_halves_of_an_edge_list_do_not(self, tmp_path: Path) -> None:
        """Why all files of a graph are read by one call."""
        halves = [counted(tmp_path, edges) for edges in ([(0, 1), (0, 2)], [(0, 3), (0, 4)])]
        merged = halves[0].merge(halves[1])
        whole = counted(tmp_path, [(0, 1), (0, 2), (0, 3), (0, 4)])
        assert merged._count == whole._count + 1


def projected(edges: list[tuple[int, int]], most: int) -> dict[int, set[int]]:
    """Edges are added in their (public) order, if both ends have fewer than ``most`` so far."""
    rows: dict[int, set[int]] = {node: set() for edge in edges for node in edge}
    for u, v in edges:
        if len(rows[u]) < most and len(rows[v]) < most:
            rows[u].add(v)
            rows[v].add(u)
    return rows


def changed_rows(edges: list[tuple[int, int]], node: int, most: int) -> int:
    """Rows of other nodes that change if one node and its edges are removed before the projection."""
    left = projected(edges, most)
    right = projected([edge for edge in edges if node not in edge], most)
    return sum(left[each] != right.get(each, set()) for each in left if each != node)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("length", [10, 100, 1000])
def test_why_nodes_are_not_offered(most: int, length: int) -> None:
    """One node changes the rows of all others, whatever the bound on degrees.

    A path, with ``most − 1`` private neighbours for each of its nodes, whose edges come first. One edge that
    is not there any more lets in the next, which keeps out the one after it, and so on to the end. Degrees
    change at the ends alone, which is why the same projection works for histograms of degrees.
    """
    path = [(i, i + 1) for i in range(length)]
    leaves = [(i, 10_000 * (j + 1) + i) for i in range(length + 1) for j in range(most - 1)]
    assert changed_rows([*leaves, *path], 0, most) >= length


def test_the_cascade_in_every_order() -> None:
    """By brute force over all orders of a path of six edges: no order is safe for all graphs, and this graph
    has orders in which one node changes every other row.
    """
    path = [(i, i + 1) for i in range(6)]
    worst = max(changed_rows(list(order), node, 1) for order in permutations(path) for node in range(7))
    assert worst == 6


def test_rows_are_read_by_the_code_that_reads_files(tmp_path: Path) -> None:
    """What the audit of edges counts is what a file is counted as."""
    for kind in KINDS:
        edges = listed(tmp_path, **kind)
        lines = [*EDGES, *((v, u) for u, v in EDGES)] if kind.get("sorted") else EDGES
        graph = Graph(kind.get("directed", False), kind.get("nodes"), kind.get("sorted", False))
        sets = rows_of(graph, lines)
        (from_file,) = list(edges)
        assert sets is not None
        assert np.array_equal(sets.values, from_file.values)
        assert np.array_equal(sets.indptr, from_file.indptr)


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".csv", ".parquet"])
@pytest.mark.parametrize("kind", [{}, {"directed": True, "sorted": True}], ids=["unsorted", "sorted"])
def test_progress_is_the_fraction_of_reading_and_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, kind: dict[str, Any]
) -> None:
    monkeypatch.setattr(edge_files, "_BLOCK", 1 << 17)
    ends = np.sort(np.random.default_rng(3).integers(0, 3000, (100_000, 2)), axis=0)
    table = pa.table({"a": ends[:, 0], "b": ends[:, 1]})
    # Two files, of which the first is read in several blocks.
    for number, part in enumerate([table.slice(0, 80_000), table.slice(80_000)]):
        path = tmp_path / f"{number}{suffix}"
        if suffix == ".parquet":
            parquet.write_table(part, path, row_group_size=20_000)
        elif suffix == ".csv":
            csv.write_csv(part, path)
        else:
            text = "".join(f"{a} {b}\n" for a, b in zip(*part.to_pydict().values(), strict=True)).encode()
            path.write_bytes(gzip.compress(text) if suffix == ".txt.gz" else text)
    reported: list[float | None] = []
    edges = hs.records.read_edges(
        [tmp_path / f"{number}{suffix}" for number in (0, 1)], memory=1 << 20, **kind
    )
    hs.methods.count_graph(edges, rows=50, width=64, progress=reported.append)
    fractions = [each for each in reported if each is not None]
    assert len(fractions) == len(reported) > 4
    assert 0.0 < fractions[0] < 0.9
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)
