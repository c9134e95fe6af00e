"""Edge lists of every format and size become the same sets of neighbours as a dictionary makes of them."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.records import EdgeList, EdgeProgress, Graph, node_number
from hushsum.records import _graph as edge_files
from hushsum.records import _graph as edge_grouping

Pair = tuple[int | str, int | str]
RNG = np.random.default_rng(7)
PAIRS: list[Pair] = [(int(a), int(b)) for a, b in RNG.integers(0, 60, (400, 2)) ** 2]
PAIRS += [PAIRS[3], PAIRS[3][::-1], (9000, 9000), (2**62, -5)]


def oracle(pairs: Iterable[Pair], *, directed: bool = False, nodes: int = 0) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for node in range(nodes):
        _ = found[node]
    for first, second in pairs:
        a, b = node_number(first), node_number(second)
        _ = found[a], found[b]
        found[a].add(b)
        if not directed:
            found[b].add(a)
    return {node: others - {node} for node, others in found.items()}


def found(edges: EdgeList) -> dict[int, set[int]]:
    sets: dict[int, set[int]] = {}
    for ids, batch in edges.with_ids():
        assert len(ids) == len(batch)
        for i, node in enumerate(ids.tolist()):
            members = batch.values[batch.indptr[i] : batch.indptr[i + 1]].tolist()
            assert node not in sets, "a node was given twice"
            assert len(set(members)) == len(members), "a neighbour was given twice"
            sets[node] = set(members)
    return sets


def write(folder: Path, suffix: str, pairs: Sequence[Pair]) -> Path:
    path = folder / f"graph{suffix}"
    lines = [f"{a}\t{b}" if i % 2 else f" {a}  {b} " for i, (a, b) in enumerate(pairs)]
    text = "# Nodes: 3 Edges: 4\n% another comment\n" + "\n".join(lines)
    table = "src,weight,dst\n" + "".join(f"{a},0.5,{b}\n" for a, b in pairs)
    if suffix in (".parquet", ".feather"):
        columns = pa.table(
            {"src": [a for a, _ in pairs], "dst": [b for _, b in pairs], "weight": [0.5] * len(pairs)}
        )
        if suffix == ".parquet":
            parquet.write_table(columns, path, row_group_size=100)
        else:
            with pa.ipc.new_file(path, columns.schema) as out:
                out.write_table(columns)
        return path
    data = (table if suffix.startswith(".csv") else text).encode()
    if suffix.endswith(".gz"):
        data = gzip.compress(data)
    elif suffix.endswith(".zst"):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(data)
        data = sink.getvalue().to_pybytes()
    path.write_bytes(data)
    return path


def columns_of(suffix: str) -> tuple[str, str] | None:
    return None if suffix.startswith((".txt", ".edges")) else ("src", "dst")


SUFFIXES = [".txt", ".txt.gz", ".txt.zst", ".edges", ".csv", ".csv.gz", ".csv.zst", ".parquet", ".feather"]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_graph(suffix: str, directed: bool, tmp_path: Path) -> None:
    path = write(tmp_path, suffix, PAIRS)
    edges = hs.records.read_edges(path, columns=columns_of(suffix), directed=directed)
    assert found(edges) == oracle(PAIRS, directed=directed)


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".parquet"])
def test_names_and_numbers_are_the_same_nodes_in_every_format(suffix: str, tmp_path: Path) -> None:
    pairs: list[Pair] = [("ann", "7"), ("7", "bob"), ("07", "ann"), (str(2**70), "-3"), ("é", "ann")]
    edges = hs.records.read_edges(write(tmp_path, suffix, pairs), columns=columns_of(suffix))
    assert found(edges) == oracle(pairs)
    assert {7, -3} < set(oracle(pairs))
    (ann, seven, nobody) = edges.neighbours(["ann", 7, "nobody"])
    assert set(ann.tolist()) == oracle(pairs)[node_number("ann")]
    assert set(seven.tolist()) == {node_number("ann"), node_number("bob")}
    assert nobody.tolist() == []


@pytest.mark.parametrize("name", ["017", "-0", "0x1F", "00", "+5", "\ufeff7", "\x0b7", "1.0", "NA"])
def test_the_number_of_a_node_does_not_depend_on_other_lines(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else one edge more could rename all nodes of its block, and there would be no bound for an edge."""
    pairs: list[Pair] = [("1", "2"), (name, "3"), ("4", name)]
    more: list[list[Pair]] = [[], [("ann", "bob")]]
    path = tmp_path / "graph.txt"
    for block in (1 << 24, 8, 12):
        monkeypatch.setattr(edge_files, "_BLOCK", block)
        for others in more:
            path.write_bytes("".join(f"{a} {b}\n" for a, b in pairs + others).encode())
            assert found(hs.records.read_edges(path)) == oracle(pairs + others)


def test_a_byte_order_mark_belongs_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_bytes("\ufeff1 2\n".encode())
    assert found(hs.records.read_edges(tmp_path / "graph.txt")) == oracle([(1, 2)])


def test_a_write_that_takes_a_part_is_continued() -> None:
    class NearlyFull(io.BytesIO):
        def write(self, data: Any) -> int:
            return super().write(data[:5])

    part = NearlyFull()
    arcs = np.arange(24, dtype=np.int64).reshape(-1, 2)
    edge_grouping._Part(part, 0).write(arcs)
    assert sorted(np.frombuffer(part.getvalue(), np.int64)) == list(range(24))


@pytest.mark.parametrize("most", [1, 7, 100, 10**6])
def test_graphs_beyond_memory_are_divided(most: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edge_grouping, "_ARC_BYTES", 16)
    arcs = np.array([(a, b) for a, b in PAIRS if isinstance(a, int) and isinstance(b, int)], np.int64)
    chunks = [arcs[i : i + 50] for i in range(0, len(arcs), 50)]
    sets: dict[int, set[int]] = {}
    for ids, batch in edge_grouping._grouped(iter(chunks), most, 0, EdgeProgress()):
        for i, node in enumerate(ids.tolist()):
            assert node not in sets
            sets[node] = set(batch.values[batch.indptr[i] : batch.indptr[i + 1]].tolist())
    expected = {
        a: others for a, others in oracle(PAIRS, directed=True).items() if a in set(arcs[:, 0].tolist())
    }
    assert sets == expected
    assert list(tmp_path.iterdir()) == []


def test_a_node_that_does_not_fit_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[io.BytesIO] = []

    def file(**_: object) -> io.BytesIO:
        opened.append(io.BytesIO())
        return opened[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", file)
    arcs = np.array([(5, other) for other in range(100)] + [(6, 5)], np.int64)
    groups = edge_grouping._grouped(iter([arcs[:50], arcs[50:]]), 10, 0, EdgeProgress())
    (hub, other) = sorted(groups, key=lambda g: g[0][0])
    assert hub[0].tolist() == [5]
    assert hub[1].values.tolist() == [each for each in range(100) if each != 5]
    assert other[0].tolist() == [6]
    assert len(opened) == 2


@pytest.mark.parametrize("low", [(-(2**63), 0), (0, -(2**63)), (2**63 - 2**32, -7), (-(2**31), -(2**31))])
@pytest.mark.parametrize("spread", [1, 2**32 - 1, 2**32])
def test_arcs_are_in_order_whatever_their_range(low: tuple[int, int], spread: int) -> None:
    """Ids of up to 32 bits beyond the least are sorted as one number, others as two."""
    rng = np.random.default_rng(0)
    beyond = rng.integers(0, spread, (500, 2), endpoint=True)
    beyond[:2] = [[0, spread], [spread, 0]]
    listed = [(low[0] + int(a), low[1] + int(b)) for a, b in [*beyond, *beyond[:90]]]
    listed = [(min(a, 2**63 - 1), b) for a, b in listed]
    ids, sets = edge_grouping.neighbour_sets(np.array(listed, np.int64))
    expected: dict[int, set[int]] = defaultdict(set)
    for node, other in listed:
        expected[node].update({other} - {node})
    assert ids.tolist() == sorted(expected)
    parts = np.split(sets.values, sets.indptr[1:-1])
    assert [part.tolist() for part in parts] == [sorted(expected[node]) for node in ids.tolist()]


def test_several_files_are_one_graph(tmp_path: Path) -> None:
    first = write(tmp_path, ".txt", PAIRS[:200])
    second = write(tmp_path, ".edges", PAIRS[200:])
    assert found(hs.records.read_edges([first, second])) == oracle(PAIRS)


def test_declared_nodes_are_records_without_edges(tmp_path: Path) -> None:
    path = write(tmp_path, ".txt", [(0, 4), (4, 2)])
    assert found(hs.records.read_edges(path, nodes=7)) == oracle([(0, 4), (4, 2)], nodes=7)
    with pytest.raises(DataRefused, match="nodes must count all nodes"):
        list(hs.records.read_edges(path, nodes=4))


@pytest.mark.parametrize("memory", [1 << 20, 1 << 30])
def test_sorted_arcs_are_read_in_their_order(memory: int, tmp_path: Path) -> None:
    pairs = sorted((a, b) for a, b in PAIRS if isinstance(a, int) and isinstance(b, int) and a != b)
    path = write(tmp_path, ".txt", pairs)
    edges = hs.records.read_edges(path, directed=True, sorted=True, memory=memory)
    firsts = {a for a, _ in pairs}
    assert found(edges) == {a: others for a, others in oracle(pairs, directed=True).items() if a in firsts}
    unsorted = write(tmp_path, ".txt", [(2, 1), (1, 2)])
    with pytest.raises(DataRefused, match="rising order"):
        list(hs.records.read_edges(unsorted, directed=True, sorted=True))


def test_a_node_goes_on_from_chunk_to_chunk() -> None:
    arcs = np.array([[1, 5], [1, 6], [1, 7], [2, 1], [2, 3], [9, 1]], np.int64)
    for most in range(1, 7):
        groups = list(Graph(rows_listed=True).rows([arcs[:1], arcs[1:3], arcs[3:]], most * 80))
        assert np.concatenate([ids for ids, _ in groups]).tolist() == [1, 2, 9]
        assert np.concatenate([sets.values for _, sets in groups]).tolist() == [5, 6, 7, 1, 3, 1]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("1 2\n3\n", DataRefused),
        ("1 2\n3 4 5\n", DataRefused),
        ("1\n2\n", DataRefused),
        ("", DataRefused),
        ("# only\n% comments\n", DataRefused),
    ],
)
def test_other_text_is_refused_without_showing_it(text: str, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(text)
    with pytest.raises(error) as caught:
        list(hs.records.read_edges(path))
    assert "3 4 5" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".txt.gz", ".txt.zst"])
def test_damaged_compression_is_refused(suffix: str, tmp_path: Path) -> None:
    """Cut off anywhere, also in its last checksum, in a second part, or where nothing is left of it."""
    path = write(tmp_path, suffix, [*PAIRS, ("last", "line\n")])
    whole = path.read_bytes()
    other = tmp_path / "other.txt"
    other.write_text("1 2\n")
    for data in (whole[:-1], whole[:-40], whole[:3], b"", whole + whole[:-1], whole + b"more", b"1 2\n"):
        path.write_bytes(data)
        with pytest.raises(DataRefused, match="cannot be read as edges: it must be compressed") as caught:
            list(hs.records.read_edges([other, path]))
        assert path.name in str(caught.value)
    path.write_bytes(whole + whole)
    assert found(hs.records.read_edges(path)) == oracle([*PAIRS, ("last", "line")])


def test_a_line_end_does_not_belong_to_a_number(tmp_path: Path) -> None:
    path = tmp_path / "graph.parquet"
    parquet.write_table(pa.table({"src": ["17", "17\n"], "dst": ["1", "2"]}), path)
    assert edge_files.node_number("17\n") != 17
    assert found(hs.records.read_edges(path, directed=True))[17] == {1}


def test_missing_and_other_ids_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.parquet"
    for column in (pa.array([1, None]), pa.array([1.5, 2.0]), pa.array([2**63, 1], pa.uint64())):
        parquet.write_table(pa.table({"src": pa.array([1, 2]), "dst": column}), path)
        with pytest.raises(DataRefused):
            list(hs.records.read_edges(path))


def test_wrong_parameters_are_usage_errors(tmp_path: Path) -> None:
    path = write(tmp_path, ".parquet", PAIRS)
    for wrong in (
        {"columns": ("src",)},
        {"columns": ("src", "src")},
        {"columns": ("src", "no")},
        {"nodes": 0},
        {"memory": 5},
        {"sorted": True, "directed": True, "nodes": 3},
    ):
        with pytest.raises(UsageError):
            list(hs.records.read_edges(path, **wrong))
    for name in ("graph.docx", "graph.parquet.gz", "none.txt"):
        if name != "none.txt":
            (tmp_path / name).write_bytes(b"x")
        with pytest.raises(UsageError):
            list(hs.records.read_edges(tmp_path / name))
    with pytest.raises(UsageError):
        hs.records.read_edges([])


def test_a_tally_of_edges_is_the_tally_of_their_sets(tmp_path: Path) -> None:
    path = write(tmp_path, ".txt", PAIRS)
    streamed = hs.race(hs.JaccardKernel(), rows=10, width=50)
    for batch in hs.records.read_edges(path):
        streamed.add(batch)
    listed = hs.race(hs.JaccardKernel(), rows=10, width=50).add(list(oracle(PAIRS).values()))
    tables = [each.release(epsilon=1.0, rows=10, insecure_noise_seed=1) for each in (streamed, listed)]
    np.testing.assert_array_equal(tables[0].table, tables[1].table)  # type: ignore[attr-defined]
