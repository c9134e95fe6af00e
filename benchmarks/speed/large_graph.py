"""A power-law graph of Friendster's size, from a streaming generator to 2,000 queries of a mapped file.

65.6 million nodes and 3.6 billion adjacency entries at scale 1; ``--scales 64 16`` runs 1/64 and 1/16 of it.
Every scale runs in a process of its own, which generates batches of nodes, counts them in a tally of R × W
cells, releases it at ε = 1, writes the file, maps it and queries it. The report has seconds of wall-clock and
processor time of every part, the share of the generation, which a real graph does not need, the peak memory,
and the growth of the counting beyond its fixed cost against the number of nodes. ``--loops`` measures the
hashing and the counting loops alone, and as a yardstick increments node by node straight into a table.

    python -m benchmarks large_graph --scales 64 1 --loops      # about 10 minutes on two free cores
    python -m benchmarks large_graph --scales 16 4 --count-only

What is measured replaces the results of the same scales. Processor times show what wall-clock times were on a
machine that did other work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results, version_of_code
from numpy.typing import NDArray

import hushsum as hs
from hushsum import _native
from hushsum.records import Sets

NODES = 65_608_366
ENTRIES = 3_612_134_270
QUERIES = 2_000
_BATCH = 1 << 18
_COMMUNITY = 1_000
_LARGEST_DEGREE = 5_214
_LEAST_DEGREE = 0.4102
"""Of the mean degree, which is then that of Friendster."""

_LOOP_ROWS = 1_000
"""Of the yardstick's table, which has 64 bits per cell."""


Sets64 = tuple[NDArray[np.int64], NDArray[np.int64]]


def batches(nodes: int, seed: int = 0) -> Iterator[Sets]:
    """The neighbours of all nodes, in their order: degrees follow a power law with the mean of Friendster;
    half of a node's neighbours belong to its community, the others anywhere, some nodes far more often.
    """
    mean = ENTRIES / NODES
    for number, start in enumerate(range(0, nodes, _BATCH)):
        random = np.random.default_rng([seed, number])
        many = min(_BATCH, nodes - start)
        tail = 1.0 - random.random(many, np.float32)
        degrees = np.minimum(_LEAST_DEGREE * mean * tail**-0.6, _LARGEST_DEGREE).astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        # Every second entry is in the community, the others anywhere.
        values = np.repeat(np.arange(start, start + many) // _COMMUNITY * _COMMUNITY, degrees)
        where = random.random(len(values), np.float32)
        values[::2] += (where[::2] * np.float32(_COMMUNITY)).astype(np.int64)
        anywhere = where[1::2].astype(np.float64)
        values[1::2] = anywhere * anywhere * anywhere * nodes
        yield Sets(values, indptr)


class Clock:
    """Wall-clock and processor time of named parts."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = {}

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        """Time some work, and add it to what its part took so far."""
        wall, processor = time.perf_counter(), time.process_time()
        result = work()
        spent = self.parts.setdefault(name, [0.0, 0.0])
        spent[0] += time.perf_counter() - wall
        spent[1] += time.process_time() - processor
        return result


def measure(scale: int, rows: int, width: int, folder: Path | None) -> dict[str, Any]:
    """One run, end to end, or of the counting alone if there is no folder for the file."""
    nodes = NODES // scale
    clock = Clock()
    load_before = os.getloadavg()[0]
    tally = hs.race(hs.JaccardKernel(), rows=rows, width=width)
    entries, queries = _count(tally, nodes, clock)
    result: dict[str, Any] = {
        "scale": scale,
        "rows": rows,
        "width": width,
        "nodes": nodes,
        "entries": entries,
        "peak GB while counting": _peak(),
    }
    if folder is not None:
        result |= _release_and_query(tally, queries, clock, folder / "graph.hush")
    result["seconds (wall, processor)"] = {
        name: [round(each, 3) for each in part] for name, part in clock.parts.items()
    }
    result["load average (before, after)"] = [round(each, 1) for each in (load_before, os.getloadavg()[0])]
    return result | {"peak GB": _peak(), "version": str(version_of_code())}


def _count(tally: hs.Tally, nodes: int, clock: Clock) -> tuple[int, list[NDArray[np.int64]]]:
    """Fill the tally; the number of entries, and the sets to query."""
    stream = batches(nodes)
    entries = 0
    queries: list[NDArray[np.int64]] = []
    while (batch := clock.run("generate", lambda: next(stream, None))) is not None:
        if not queries:
            queries = [batch.values[batch.indptr[i] : batch.indptr[i + 1]].copy() for i in range(QUERIES)]
        clock.run("count" if entries else "count the first batch", partial(tally.add, batch))
        entries += len(batch.values)
    return entries, queries


def _release_and_query(
    tally: hs.Tally, queries: list[NDArray[np.int64]], clock: Clock, path: Path
) -> dict[str, Any]:
    f: Any = clock.run("release", lambda: tally.release(epsilon=1.0, rows=tally.basis.shape[0]))
    clock.run("write the file", lambda: f.save(path))
    expected = f.sum(queries[:20])
    mapped: Any = clock.run("open the file", lambda: hs.load(path))
    clock.run("first query", lambda: mapped.sum([queries[0]]))
    clock.run(f"{QUERIES} queries", lambda: [mapped.sum([query]) for query in queries])
    if not np.array_equal(mapped.sum(queries[:20]), expected):
        raise SystemExit("the mapped file answers otherwise than the release")
    warm = []
    for query in queries * 3:
        start = time.perf_counter()
        mapped.sum([query])
        warm.append(time.perf_counter() - start)
    return {
        "warm query µs (least, median)": [round(x * 1e6, 1) for x in (min(warm), float(np.median(warm)))],
        "file GB": round(path.stat().st_size / 1e9, 3),
    }


def _peak() -> float:
    """GB of this program alone: what ``getrusage`` reports begins with the memory of the parent process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1e6, 2)


def growth(results: list[dict[str, Any]]) -> list[float]:
    """Processor time of counting per node after the first batch, in multiples of that of the smallest graph.

    The first batch pays for the memory of the table as well. A graph of one batch has no growth.
    """
    if any("count" not in run["seconds (wall, processor)"] for run in results):
        return [1.0] * len(results)
    each = [run["seconds (wall, processor)"]["count"][1] / (run["nodes"] - _BATCH) for run in results]
    return [value / each[0] for value in each]


def loops(rows: int, width: int) -> dict[str, float]:
    """Nanoseconds of one thread's processor time: hashing, counting, and the yardstick."""
    kernel, random = hs.JaccardKernel(), np.random.default_rng(0)

    def sets(many: int, size: int) -> Sets64:
        return random.integers(0, 1 << 40, many * size), np.arange(many + 1, dtype=np.int64) * size

    def least(work: Callable[[], object], repeats: int = 6) -> float:
        best = np.inf
        for _ in range(repeats):
            start = time.thread_time()
            work()
            best = min(best, time.thread_time() - start)
        return float(best)

    hasher = kernel.hasher(rows=256, width=1000, seed=0)
    small = np.zeros((256, 1000), np.int64)
    large, long = sets(20_000, 5), sets(20_000, 105)
    hashing = least(lambda: hasher.count(*long, small, 1, 1), 20) - least(
        lambda: hasher.count(*large, small, 1, 1), 20
    )
    wide = kernel.hasher(rows=rows, width=width, seed=0)
    table = _native.CounterTable(rows, width)
    nodes = 1 << 17
    some = sets(nodes, 5)
    wide.count(*some, table, 1, 1)
    counting = least(lambda: wide.count(*some, table, 1, 1))
    only = kernel.hasher(rows=rows, width=2, seed=0)
    few = np.zeros((rows, 2), np.int64)
    without = least(lambda: only.count(*some, few, 1, 1))
    straight = np.ones((rows, width), np.int64)
    cells = random.integers(0, width, (2_000, rows)).astype(np.uint32)
    node_major = least(lambda: _native.bare_increments(cells, straight, 1, rows)) / cells.size
    scatter = (counting - without) / nodes / rows
    return {
        "hashing, per entry and row": round(hashing / (20_000 * 100 * 256) * 1e9, 4),
        "counting with hashes of 5 entries, per node and row": round(counting / nodes / rows * 1e9, 2),
        "scatter, per increment": round(scatter * 1e9, 2),
        "straight into the table, node by node, per increment": round(node_major * 1e9, 2),
        "ratio": round(node_major / scatter, 1),
    }


def page(document: dict[str, Any]) -> str:
    """The results as Markdown."""
    runs = document["scales"]
    parts = list(dict.fromkeys(part for run in runs for part in run["seconds (wall, processor)"]))
    names = [f"1/{run['scale']}" if run["scale"] > 1 else "full" for run in runs]
    first = runs[0]
    lines = [
        "# A graph of Friendster's size",
        "",
        "`python -m benchmarks large_graph`. A generated power-law graph is counted in a tally of",
        f"{first['rows']:,} rows × {first['width']:,} cells and released at ε = 1 with all rows; the",
        f"file is written, mapped, and queried {QUERIES:,} times, one node at a time, which reads and",
        "checks its pages for the first time. Seconds of wall-clock time on two cores, and of processor",
        "time of both. Other work ran on the machine; the load average is that of the whole machine, with",
        "this run in it.",
        "",
        _row(["", *names]),
        _row(["---", *("---:" for _ in runs)]),
        _row(["nodes", *(f"{run['nodes']:,}" for run in runs)]),
        _row(["adjacency entries", *(f"{run['entries']:,}" for run in runs)]),
    ]
    for part in parts:
        cells = [run["seconds (wall, processor)"].get(part) for run in runs]
        texts = ["–" if each is None else f"{each[0]:,.2f} s, {each[1]:,.2f} s" for each in cells]
        lines.append(_row([f"{part}: wall, processor", *texts]))
    totals = [_totals(run) for run in runs]
    lines += [
        _row(
            [
                "**all but generation**: wall, processor",
                *(f"**{w:,.1f} s, {p:,.1f} s**" for w, p, _ in totals),
            ]
        ),
        _row(["generation, of all processor time", *(f"{share:.0%}" for _, _, share in totals)]),
        _row(["counting per node after the first batch", *(f"{each:.2f} ×" for each in growth(runs))]),
    ]
    for words, key, form in (
        ("warm query, least and median", "warm query µs (least, median)", "{0[0]:.0f} µs, {0[1]:.0f} µs"),
        ("file", "file GB", "{0:.2f} GB"),
        ("peak memory while counting", "peak GB while counting", "{0:.1f} GB"),
        ("peak memory, with the mapped file", "peak GB", "{0:.1f} GB"),
        ("load average before and after", "load average (before, after)", "{0[0]:.1f}, {0[1]:.1f}"),
    ):
        lines.append(_row([words, *(form.format(run[key]) if key in run else "–" for run in runs)]))
    lines += ["", "The paper's run of Friendster took 18.1 minutes on 90 threads, and 164 µs per query.", ""]
    if runs[-1]["scale"] > 1:
        seconds = runs[-1]["seconds (wall, processor)"]
        per_node = seconds["count"][1] / (runs[-1]["nodes"] - _BATCH)
        whole = seconds["count the first batch"][1] + per_node * (NODES - _BATCH)
        lines += [
            f"**The full size has not been run.** In proportion to 1/{runs[-1]['scale']}, counting",
            f"{NODES:,} nodes takes {whole:,.0f} s of processor time at this load, or {whole / 2:,.0f} s of",
            "two cores.",
            "",
        ]
    if loops := document.get("loops"):
        lines += [
            "## The loops",
            "",
            "Nanoseconds of one thread's processor time, the least of several runs.",
            "",
        ]
        lines += [_row(["loop", "ns"]), _row(["---", "---:"])]
        lines += [_row([name, f"{value:g}"]) for name, value in loops.items()]
        lines.append("")
    versions = ", ".join(dict.fromkeys(run["version"] for run in runs))
    return "\n".join([*lines, f"hushsum {versions}.", ""])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _totals(run: dict[str, Any]) -> tuple[float, float, float]:
    """Wall and processor seconds without the generation, and the share of the generation."""
    seconds = dict(run["seconds (wall, processor)"])
    generation = seconds.pop("generate")
    wall, processor = (sum(part[place] for part in seconds.values()) for place in (0, 1))
    return wall, processor, generation[1] / (generation[1] + processor)


def main() -> None:
    """Run the requested scales, smallest first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scales", type=int, nargs="*", default=[])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--width", type=int, default=500_000)
    parser.add_argument("--loops", action="store_true", help="measure the loops too")
    parser.add_argument("--count-only", action="store_true", help="neither release nor query")
    parser.add_argument("--output", type=Path, help="where results are written")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        with tempfile.TemporaryDirectory() as folder:
            place = None if options.count_only else Path(folder)
            print(json.dumps(measure(options.one, options.rows, options.width, place)))
        return
    results = Results("large_graph", options.output)
    document = results.read({"scales": []})
    if options.loops:
        document["loops"] = loops(min(options.rows, _LOOP_ROWS), options.width)
    for scale in sorted(options.scales, reverse=True):
        how = ["--rows", str(options.rows), "--width", str(options.width)]
        how += ["--count-only"] * options.count_only
        run = [sys.executable, "-m", "benchmarks.speed.large_graph", "--one", str(scale), *how]
        found = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
        others = [each for each in document["scales"] if each["scale"] != scale]
        document["scales"] = sorted([*others, found], key=lambda each: -each["scale"])
        print(json.dumps(found, indent=2, ensure_ascii=False), flush=True)
    results.write(document)
    if document["scales"]:
        results.publish(page(document))


if __name__ == "__main__":
    main()
