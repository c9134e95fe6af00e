"""Figure 6 and table 4; ``python -m papers.private_race.graphs_run``, or one part of it by name.

``errors`` adds the repetitions that ``results/figure6.json`` does not have, one of every graph at a time, and
can be stopped at any time; about 2 minutes of processor time each. ``times`` measures table 4 anew, on one
thread and in one run: start it on a quiet machine. ``report`` writes GRAPHS.md from the results there are.
``--quick`` has two repetitions, two graphs and few rows, and writes to ``build/private_race``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from papers.data import output_folder
from papers.private_race.curves import Curves, Settings, Subject, load_subject
from papers.private_race.graphs import (
    GRAPHS,
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
from papers.private_race.graphs_report import write_page
from papers.provenance import made_by
from papers.result_files import update_file

import hushsum as hs

HERE: Final = Path(__file__).parent
REPETITIONS: Final = 5
_QUICK: Final = Settings(epsilons=(0.1, 1.0, 10.0), repetitions=2, quick=True)
_QUICK_GRAPHS: Final = ("wiki_vote", "ego_facebook")
_QUICK_TABLE: Final = {"rows": 100, "width": 10_000}
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is requested, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m papers.private_race.graphs_run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="?", default="all", choices=["errors", "times", "report", "all"])
    parser.add_argument("--quick", action="store_true", help="two repetitions, few rows and queries")
    parser.add_argument("--graphs", nargs="+", default=[], choices=list(GRAPHS), help="only these")
    parser.add_argument("--repetitions", type=int, help=f"{REPETITIONS} by default")
    parser.add_argument("--output", type=Path, help="where results, figure and page go")
    options = parser.parse_args(arguments)
    output: Path = options.output or output_folder(HERE, quick=options.quick)
    results = output / "results"
    results.mkdir(parents=True, exist_ok=True)
    settings = _QUICK if options.quick else Settings(repetitions=REPETITIONS)
    settings = replace(settings, repetitions=options.repetitions or settings.repetitions, say=_say)
    table = _QUICK_TABLE if options.quick else {}
    names = options.graphs or (_QUICK_GRAPHS if options.quick else GRAPHS)
    graphs = [GRAPHS[name] for name in names]
    runs: dict[str, Callable[[], None]] = {
        "errors": lambda: run_errors(graphs, settings, results, **table),
        "times": lambda: run_times(graphs, results, **table),
    }
    for name, run in runs.items():
        if options.what in (name, "all"):
            run()
    print(write_page(output))
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
