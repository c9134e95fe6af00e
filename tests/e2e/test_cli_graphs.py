"""Graphs on the command line: edge lists in, nodes queried."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from tests.e2e.cli_process import Shell
from tests.exact_tallies import exact_state, exact_table

import hushsum as hs

EDGES = [(a, b) for a, b in np.random.default_rng(2).integers(0, 40, (300, 2)).tolist()]
TEXT = "# FromNodeId\tToNodeId\n" + "".join(f"{a}\t{b}\n" for a, b in EDGES)
TALLY = ("tally", "graph.txt.gz", "--edges")
SIZE = ("--rows", "8", "--width", "50")


@pytest.fixture
def graph(shell: Shell) -> Shell:
    (shell.folder / "graph.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    return shell


@pytest.mark.parametrize("options", [(), ("--directed",), ("--nodes", "45")])
def test_a_graph_is_counted_as_in_python(graph: Shell, options: tuple[str, ...]) -> None:
    graph.ok(
        "tally", "graph.txt.gz", "--edges", "1,2", "--kernel", "jaccard", *SIZE, *options, "-o", "g.tally"
    )
    nodes = 45 if "--nodes" in options else None
    expected = hs.race(hs.JaccardKernel(), rows=8, width=50)
    for batch in hs.records.read_edges(
        graph.folder / "graph.txt.gz", directed="--directed" in options, nodes=nodes
    ):
        expected.add(batch)
    counted = exact_state(hs.load_tally(graph.folder / "g.tally"))
    np.testing.assert_array_equal(counted["table"], exact_table(expected))
    assert counted["count"] == (nodes or len({node for edge in EDGES for node in edge}))


def test_a_node_is_answered_as_its_neighbours_are(graph: Shell) -> None:
    graph.ok("tally", "graph.txt.gz", "--edges", "1,2", "--kernel", "jaccard", *SIZE, "-o", "g.tally")
    graph.ok("release", "g.tally", "--epsilon", "1", "--rows", "8", "--yes", "-o", "g.hush")
    others = sorted({b for a, b in EDGES if a == 7} | {a for a, b in EDGES if b == 7} - {7})
    at = graph.ok("query", "g.hush", "--at", ",".join(map(str, others)), "--json").json
    where = ("--graph", "graph.txt.gz", "--edges", "1,2")
    node = graph.ok("query", "g.hush", "--node", "7", *where, "--json").json
    assert node["answers"][0]["value"] == at["answers"][0]["value"]
    assert node["answers"][0]["at"] == "7"
    assert "7" in graph.ok("query", "g.hush", "--node", "7", *where).text


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (
            (
                "tally",
                "graph.txt.gz",
                "--edges",
                "1,2",
                "--kernel",
                "gaussian",
                "--bandwidth",
                "1",
                "-o",
                "x.tally",
            ),
            "--edges",
        ),
        (("tally", "graph.txt.gz", "--edges", "1", "--kernel", "jaccard", "-o", "x.tally"), "two columns"),
        (("tally", "graph.txt.gz", "--edges", "a,b", "--kernel", "jaccard", "-o", "x.tally"), "positions"),
        ((*TALLY, "1,2", "--set-column", "s", "--kernel", "jaccard", "-o", "x.tally"), "--set-column"),
        (("tally", "ok.csv", "--directed", "--kernel", "jaccard", "-o", "x.tally"), "--edges"),
        (("tally", "-", "--edges", "1,2", "--kernel", "jaccard", "-o", "x.tally"), "files"),
        (("query", "g.hush", "--node", "1"), "--graph"),
        (("query", "g.hush", "--node", "1", "--at", "1", "--graph", "graph.txt.gz"), "one of them"),
    ],
)
def test_wrong_options_are_usage_errors(graph: Shell, command: tuple[str, ...], part: str) -> None:
    assert part in graph.refused(2, *command)


def test_an_edge_is_claimed_booked_and_reported(graph: Shell) -> None:
    """The unit is the same word in the claim, the ledger, its report and the file."""
    counted = graph.ok(
        *TALLY, "1,2", "--kernel", "jaccard", *SIZE, "--nodes", "45", "-o", "g.tally", "--json"
    ).json
    assert (counted["unit"], counted["graph"]) == ("adjacency row", "undirected, 45 declared nodes")
    graph.ok("ledger", "init", "--ledger", "l.db", "--dataset", "d", "--epsilon", "3", "--unit", "edge")
    release = ("release", "g.tally", "--epsilon", "1", "--rows", "8", "--yes", "-o", "g.hush")
    booked = ("--ledger", "l.db", "--dataset", "d")
    assert "does not convert" in graph.refused(2, *release, *booked)
    assert "--unit" in graph.refused(2, *release, "--unit", "directed edge")
    assert "not offered" in graph.refused(2, *release, "--unit", "node")
    claim = graph.ok(*release, *booked, "--unit", "edge", "--json").json["claim"]
    assert claim["unit"] == "edge"
    assert claim["assumptions"] == ["the list of nodes is public"]
    assert "one edge is in the data or is not" in graph.ok("show", "g.hush").text
    assert "| unit | edge |" in graph.ok("ledger", "export", "--ledger", "l.db", "--dataset", "d").text
    assert "undirected, 45 declared nodes" in graph.ok("show", "g.tally").text
