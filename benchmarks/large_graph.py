"""A power-law graph of Friendster's size, from a streaming generator to 2,000 queries of a mapped file.

65.6 million nodes and 3.6 billion adjacency entries at scale 1; ``--scales 64 16`` runs 1/64 and 1/16 of it.
Every scale runs in a process of its own, which generates batches of nodes, counts them in a tally of R × W
cells, releases it at ε = 1, writes the file, maps it and queries it. The report has seconds of wall-clock and
processor time of every part, the share of the generation, which a real graph does not need, the peak memory,
and the growth of the counting beyond its fixed cost against the number of nodes. ``--loops`` measures the
hashing and the counting loops alone, and as a yardstick increments node by node straight into a table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hushsum as hs
from hushsum import _native
from hushsum.records.sets import Sets

NODES = 65_608_366
ENTRIES = 3_612_134_270
QUERIES = 2_000
_BATCH = 1 << 18
_COMMUNITY = 1_000
_LARGEST_DEGREE = 5_214

Sets64 = tuple[NDArray[np.int64], NDArray[np.int64]]


def batches(nodes: int, seed: int = 0) -> Iterator[Sets]:
    """The neighbours of all nodes, in their order: degrees follow a power law with the mean of Friendster;
    half of a node's neighbours belong to its community, the others anywhere, some nodes far more often.
    """
    mean = ENTRIES / NODES
    for number, start in enumerate(range(0, nodes, _BATCH)):
        random = np.random.default_rng([seed, number])
        many = min(_BATCH, nodes - start)
        tail = random.random(many, np.float32)
        degrees = np.minimum(0.392 * mean * tail**-0.6, _LARGEST_DEGREE).astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        values = np.empty(indptr[-1], np.int64)
        where = random.random(len(values), np.float32)
        owners = np.repeat(np.arange(start, start + many), degrees)
        inside = np.arange(len(values)) % 2 == 0
        values[inside] = owners[inside] // _COMMUNITY * _COMMUNITY + where[inside] * _COMMUNITY
        values[~inside] = where[~inside].astype(np.float64) ** 3 * nodes
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


def measure(scale: int, rows: int, width: int, folder: Path) -> dict[str, Any]:
    """One run, end to end."""
    nodes = NODES // scale
    clock = Clock()
    path = folder / "graph.hush"
    queries, expected, entries, counted = _count_and_release(nodes, rows, width, clock, path)
    mapped: Any = clock.run("open the file", lambda: hs.load(path))
    clock.run("first query", lambda: mapped.sum([queries[0]]))
    clock.run(f"{QUERIES} queries", lambda: [mapped.sum([query]) for query in queries])
    if not np.array_equal(mapped.sum(queries[:20]), expected):
        raise SystemExit("the mapped file answers otherwise than the release")
    mapped.cells.verify()
    warm = []
    for query in queries:
        start = time.perf_counter()
        mapped.sum([query])
        warm.append(time.perf_counter() - start)
    seconds = {name: [round(x, 3) for x in part] for name, part in clock.parts.items()}
    return {
        "scale": f"1/{scale}",
        "nodes": nodes,
        "entries": entries,
        "seconds (wall, processor)": seconds,
        "ns per node and row (processor)": round(clock.parts["count"][1] / nodes / rows * 1e9, 2),
        "warm query µs (least, median)": [round(x * 1e6, 1) for x in (min(warm), float(np.median(warm)))],
        "file GB": round(path.stat().st_size / 1e9, 3),
        "peak GB while counting": counted,
        "peak GB": _peak(),
    }


def _count_and_release(
    nodes: int, rows: int, width: int, clock: Clock, path: Path
) -> tuple[list[NDArray[np.int64]], NDArray[np.float64], int, float]:
    """Write the file; the sets to query with some answers, the entries, and the peak while counting."""
    tally = hs.race(hs.JaccardKernel(), rows=rows, width=width)
    stream = batches(nodes)
    entries = 0
    queries: list[NDArray[np.int64]] = []
    while (batch := clock.run("generate", lambda: next(stream, None))) is not None:
        if not queries:
            queries = [batch.values[batch.indptr[i] : batch.indptr[i + 1]] for i in range(QUERIES)]
        entries += len(batch.values)
        clock.run("count", partial(tally.add, batch))
    counted = _peak()
    f: Any = clock.run("release", lambda: tally.release(epsilon=1.0, rows=rows))
    clock.run("write the file", lambda: f.save(path))
    return queries, f.sum(queries[:20]), entries, counted


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


def growth(results: list[dict[str, Any]]) -> list[str]:
    """Processor time of counting per node, against the smallest graph."""
    first = results[0]
    base = first["seconds (wall, processor)"]["count"][1] / first["nodes"]
    lines = []
    for each in results:
        seconds = each["seconds (wall, processor)"]
        own = sum(part[1] for name, part in seconds.items())
        ratio = seconds["count"][1] / each["nodes"] / base
        share = seconds["generate"][1] / own
        lines.append(
            f"{each['scale']}: counting {ratio:.2f} × linear; generation {share:.0%} of all processor time"
        )
    return lines


def loops(rows: int, width: int) -> dict[str, float]:
    """Nanoseconds of one thread's processor time: hashing, counting, and the yardstick."""
    kernel, random = hs.JaccardKernel(), np.random.default_rng(0)

    def sets(many: int, size: int) -> Sets64:
        return random.integers(0, 1 << 40, many * size), np.arange(many + 1, dtype=np.int64) * size

    def least(work: Callable[[], object], repeats: int = 4) -> float:
        best = np.inf
        for _ in range(repeats):
            start = time.thread_time()
            work()
            best = min(best, time.thread_time() - start)
        return float(best)

    hasher = kernel.hasher(rows=256, width=1000, seed=0)
    small = np.zeros((256, 1000), np.int64)
    large, long = sets(20_000, 5), sets(20_000, 105)
    hashing = least(lambda: hasher.count(*long, small, 1, 1)) - least(
        lambda: hasher.count(*large, small, 1, 1)
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


def main() -> None:
    """Run the requested scales, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, nargs="*", default=[64, 16])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--width", type=int, default=500_000)
    parser.add_argument("--loops", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
            print(json.dumps(measure(options.one, options.rows, options.width, Path(folder))))
        return
    if options.loops:
        print(json.dumps(loops(256, options.width), indent=2))
        return
    results = []
    for scale in sorted(options.scales, reverse=True):
        sizes = ["--rows", str(options.rows), "--width", str(options.width)]
        run = [sys.executable, __file__, "--one", str(scale), *sizes]
        results.append(json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout))
        print(json.dumps(results[-1], indent=2, ensure_ascii=False), flush=True)
    print("\n".join(growth(results)))


if __name__ == "__main__":
    main()
