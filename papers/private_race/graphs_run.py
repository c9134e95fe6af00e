"""Figure 6, by repetitions that the results do not have, and table 4, on one thread and in one run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from papers.private_race.curves import Curves, Settings, Subject, load_subject
from papers.private_race.graphs import (
    QUERIES,
    ROWS,
    WIDTH,
    Facts,
    Graph,
    exact_sums,
    facts_of,
    released,
    repetition,
)
from papers.provenance import made_by
from papers.result_files import update_file

import hushsum as hs

QUICK: Final = Settings(epsilons=(0.1, 1.0, 10.0), repetitions=2, quick=True)
QUICK_GRAPHS: Final = ("wiki_vote", "ego_facebook")
QUICK_TABLE: Final = {"rows": 100, "width": 10_000}
_METRIC: Final = "mean absolute error of the Jaccard sum"


def run_errors(graphs: Sequence[Graph], settings: Settings, results: Path, **table: int) -> None:
    """Add missing repetitions; results of other ε or of another version are measured anew."""
    version = made_by("papers.private_race.graphs")
    facts: dict[str, Facts] = {}
    for number in range(settings.repetitions):
        for graph in graphs:
            curves = _known(results / "figure6.json", graph.name, settings, version)
            if len(curves.chosen) > number:
                continue
            if graph.name not in facts:
                facts[graph.name] = facts_of(graph, 200 if settings.quick else QUERIES)
            mine = facts[graph.name]
            curves.records, curves.features = mine.nodes, mine.entries
            started = time.process_time()
            repetition(graph, mine, curves, number, settings, **table)
            subject = Subject("figure6", _METRIC, settings, {graph.name: curves})
            subject.seconds = time.process_time() - started
            subject.save(results)


def _known(file: Path, name: str, settings: Settings, version: str) -> Curves:
    if file.is_file():
        found = load_subject(file)
        if found.epsilons == settings.epsilons and name in found.curves:
            curves = found.curves[name]
            if curves.version == version:
                return curves
    return Curves(0, 0, version=version)


def run_times(graphs: Sequence[Graph], results: Path, *, rows: int = ROWS, width: int = WIDTH) -> None:
    """Table 4: processor seconds of one thread, all graphs in one run."""
    measured = [times_of(graph, rows=rows, width=width) for graph in graphs]
    document = {
        "rows": rows,
        "width": width,
        "version": made_by("papers.private_race.graphs"),
        "graphs": {graph.name: each for graph, each in zip(graphs, measured, strict=True)},
    }
    update_file(results / "table4.json", lambda _: json.dumps(document, indent=1) + "\n")


def times_of(graph: Graph, *, rows: int, width: int) -> dict[str, Any]:
    """Read, count, release at ε = 1, query one node at a time and all together, and sum exactly."""
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        started = time.process_time()
        yield
        seconds[name] = seconds.get(name, 0.0) + time.process_time() - started

    facts = facts_of(graph)
    tally = hs.race(hs.JaccardKernel(), rows=rows, width=width)
    with timed("read"):
        batches = list(graph.edges())
    with timed("count"):
        for batch in batches:
            tally.add(batch, threads=1)
    with timed("release"):
        f = released(tally, epsilon=1.0, rows=rows, threads=1)
    f.sum(facts.queries)
    with timed("query"):
        for query in facts.queries:
            f.sum([query])
    with timed("batch"):
        f.sum(facts.queries)
    with timed("exact"):
        exact_sums(batches, facts.queries)
    for name in ("query", "batch", "exact"):
        seconds[name] /= len(facts.queries)
    print(graph.name, seconds, file=sys.stderr, flush=True)
    return {
        "nodes": facts.nodes,
        "entries": facts.entries,
        "directed": graph.directed,
        "queries": len(facts.queries),
        "mean_sum": round(float(facts.truth.mean()), 3),
        "seconds": {name: float(f"{value:.4g}") for name, value in seconds.items()},
    }
