"""GRAPHS.md: figure 6 and table 4 from the JSON results."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from papers.pages import fill_page
from papers.private_race import graphs
from papers.private_race.curves import Curves, Settings, Subject, load_subject
from papers.private_race.data import Floats
from papers.private_race.drawing import ORANGE, SKY, Line, draw_subject
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
from papers.private_race.tables import markdown_table
from papers.provenance import made_by
from papers.result_files import update_file

import hushsum as hs
from hushsum.plotting import BLUE, FAINT, INK, VERMILION

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


BEST: Final = "best number of rows, by oracle"
LINES: Final = (
    Line(graphs.PAPER, "paper's form, R = 2,000", INK, "-", "s"),
    Line(graphs.CHOSEN, "ours, rows by default", ORANGE, "-", "v"),
    Line(graphs.PLANNED, "ours, rows planned on public nodes", BLUE, "-", "o", 2.2),
    Line(graphs.GAUSSIAN, "ours, 2,000 rows, δ = 1e-6", SKY, "--", "D"),
    Line(graphs.HASHING, "hashing alone, no noise", FAINT, ":", ""),
    Line(graphs.ZERO, "answering 0 everywhere", VERMILION, "-.", "", 1.2),
)
PUBLISHED_TIMES: Final = (
    ("Friendster", "65M", "1.8B", "18.1 min", "164 µs"),
    ("Google Plus", "72.3K", "13M", "31 s", "238 µs"),
    ("Slashdot", "82.2K", "948K", "25 s", "157 µs"),
)
"""Table 4; 90 threads. Friendster's number of nodes is from the text, since the table leaves it out."""

_TITLES: Final = {each.name: each.title for each in graphs.GRAPHS.values()}


def write_page(output: Path) -> Path:
    """Draw the figure and fill in GRAPHS.md from the results in ``output``; returns the file."""
    parts = {}
    errors, times = (output / "results" / f"{name}.json" for name in ("figure6", "table4"))
    if errors.is_file():
        subject = load_subject(errors)
        figures = output / "figures"
        figures.mkdir(exist_ok=True)
        parts["figure6"] = _errors(subject, figures)
    if times.is_file():
        document = json.loads(times.read_text(encoding="utf-8"))
        parts |= {
            "rows": f"{document['rows']:,}",
            "width": f"{document['width']:,}",
            "table4": _times(document),
        }
    return fill_page(Path(__file__).parent / "GRAPHS.md", parts, output)


def _errors(subject: Subject, figures: Path) -> str:
    ordered = {name: subject.curves[name] for name in graphs.GRAPHS if name in subject.curves}
    ordered |= subject.curves
    subject.curves = ordered
    titles = {name: _TITLES.get(name, name) for name in ordered}
    draw_subject(
        subject,
        LINES,
        figures / "figure6.png",
        y_label="mean error of the sum",
        titles={name: f"{titles[name]}, {curves.records:,} nodes" for name, curves in ordered.items()},
        limits=None if subject.settings.quick else (0.2, 8000.0),
        legend_rows=2,
        logarithmic=True,
    )
    parts = [_gains(subject, titles)]
    for name, curves in ordered.items():
        parts.append(_table(subject, curves, titles[name]))
    versions = ", ".join(dict.fromkeys(curves.version for curves in ordered.values()))
    fewest, most = subject.repetitions
    number = f"{most}" if fewest == most else f"{fewest} to {most}"
    parts.append(
        f"{number} repetitions, {subject.seconds / 60.0:.0f} minutes of processor time, hushsum {versions}.\n"
    )
    return "\n".join(parts)


def best_rows(curves: Curves) -> tuple[Floats, Floats, list[int]]:
    """The smallest mean error over numbers of rows at each ε, its standard error, and that number."""
    tried = [each for each in (*graphs.FEWER_ROWS, graphs.ROWS) if graphs.with_rows(each) in curves.values]
    means = np.array([curves.mean(graphs.with_rows(each)) for each in tried])
    errors = np.array([curves.stderr(graphs.with_rows(each)) for each in tried])
    places = means.argmin(axis=0)
    at = np.arange(means.shape[1])
    return means[places, at], errors[places, at], [tried[place] for place in places]


def _table(subject: Subject, curves: Curves, title: str) -> str:
    rows = []
    all_rows = graphs.with_rows(_all_rows(curves))
    for method, words in (
        (graphs.PAPER, "paper's form"),
        (all_rows, f"ours, {all_rows}"),
        (graphs.CHOSEN, "ours, rows by default"),
        (graphs.PLANNED, "ours, rows planned"),
        (graphs.PLANNED_POSITIVE, "the same, answers below 0 raised to 0"),
        (graphs.GAUSSIAN, "ours, all rows, δ = 1e-6"),
        (graphs.HASHING, "hashing alone, no noise"),
        (graphs.HASHING_LINEAR, "the same, hash values folded without scattering"),
    ):
        mean, error = curves.mean(method), curves.stderr(method)
        rows.append([words, *_numbers(mean, error, curves.repetitions(method))])
    mean, error, chosen = best_rows(curves)
    rows.insert(5, [BEST, *_numbers(mean, error, len(curves.chosen))])
    by_default, planned = (
        [_range([int(each.split(", ")[place]) for each in at]) for at in zip(*curves.chosen, strict=True)]
        for place in (0, 1)
    )
    rows.append(["rows by default", *by_default])
    rows.append(["rows planned", *planned])
    rows.append(["rows by oracle", *(f"{each}" for each in chosen)])
    for method, words in (
        (graphs.TABLE_COUNT, "error of N̂ from the table (algorithm 2)"),
        (graphs.PAID_COUNT, "error of N̂, paid and combined (ours)"),
    ):
        rows.append([words, *(f"{each:.1%}" if each < 10 else "> 1000%" for each in curves.mean(method))])
    zero = float(curves.mean(graphs.ZERO)[0])
    times = len(curves.chosen)
    return (
        f"**{title}**: {curves.records:,} nodes with {curves.features / curves.records:.1f} neighbours on "
        f"average; the mean sum is {zero:.1f}, {zero / curves.records:.2%} of N. "
        f"{times} repetition{'s' if times > 1 else ''}.\n\n"
        + markdown_table(["ε", *(f"{epsilon:g}" for epsilon in subject.epsilons)], rows)
        + "\n"
    )


def _all_rows(curves: Curves) -> int:
    """The rows of the tally: the largest number that was released."""
    tried = [each for each in (*graphs.FEWER_ROWS, graphs.ROWS) if graphs.with_rows(each) in curves.values]
    return max(tried)


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _numbers(means: Floats, errors: Floats, repetitions: int) -> list[str]:
    """``5.3 ± 0.1``; one repetition has no standard error."""
    texts = []
    for mean, error in zip(means, errors, strict=True):
        digits = 0 if mean >= 100 else 1 if mean >= 10 else 2
        texts.append(f"{mean:,.{digits}f}" + (f" ± {error:,.{digits}f}" if repetitions > 1 else ""))
    return texts


def _gains(subject: Subject, titles: dict[str, str]) -> str:
    """By which factor each choice lowers the error of the paper's form."""
    epsilons = [epsilon for epsilon in (0.01, 0.1, 1.0, 10.0) if epsilon in subject.epsilons]
    places = [subject.epsilons.index(epsilon) for epsilon in epsilons]
    rows = []
    for name, curves in subject.curves.items():
        paper = curves.mean(graphs.PAPER)
        all_rows = curves.mean(graphs.with_rows(_all_rows(curves)))
        for before, after, words in (
            (paper, all_rows, "fold removed, no rounding down"),
            (all_rows, curves.mean(graphs.CHOSEN), "rows by default"),
            (all_rows, curves.mean(graphs.PLANNED), "rows planned on public nodes"),
            (paper, curves.mean(graphs.PLANNED), "**all of it, pure ε**"),
            (paper, curves.mean(graphs.GAUSSIAN), "all rows with δ = 1e-6"),
        ):
            ratio = before / after
            rows.append([f"{titles[name]}: {words}", *(f"{ratio[place]:.2f} ×" for place in places)])
    head = ["error before / after, at ε =", *(f"{epsilon:g}" for epsilon in epsilons)]
    return f"What our choices gain over the paper's form:\n\n{markdown_table(head, rows)}\n"


def _times(document: dict[str, Any]) -> str:
    rows = [[f"{name} (published)", nodes, edges, "–", "–", "–", "–", sketch, query, "–", "–"]
            for name, nodes, edges, sketch, query in PUBLISHED_TIMES]  # fmt: skip
    for name, each in document["graphs"].items():
        seconds = each["seconds"]
        edges = each["entries"] if each["directed"] else each["entries"] // 2
        sketch = seconds["read"] + seconds["count"] + seconds["release"]
        rows.append(
            [
                _TITLES.get(name, name),
                f"{each['nodes']:,}",
                f"{edges:,}",
                f"{each['entries'] / each['nodes']:.1f}",
                *(f"{seconds[part]:.2f} s" for part in ("read", "count", "release")),
                f"{sketch:.2f} s",
                *(f"{1e6 * seconds[part]:.0f} µs" for part in ("query", "batch", "exact")),
            ]
        )
    head = [
        "graph", "N", "edges", "mean degree", "read", "count", "release", "sketch", "query", "in a batch",
        "exact sum",
    ]  # fmt: skip
    return f"{markdown_table(head, rows)}\n\nhushsum {document['version']}.\n"
