"""Engines with two workers against one process, on one Parquet file.

Eight columns of numbers are hashed into a table of 2,000 rows, as many as the paper has. An engine with one
and with two workers of one thread each is compared with one process of one thread: the mean of a run directly
before it and one directly after it, because the speed of a machine may drift. Starting a cluster is not
counted: each engine counts a small file first. Starting the processes of ``processes``, about a second each,
is. In all of them files are decoded by processes of their own, so that one process with one thread keeps more
than one core busy while it decodes. *dask* is `hushsum.engines.dask.local_cluster`, *dask, default
settings* a cluster with the settings of Dask.

*Speed-up* is a ratio of wall times of one run, and needs a machine that does nothing else: the load average
before it is reported. *Overhead* is the processor time of all processes of two workers beyond that of one
process. *Simulated* is the model of docs/explanation/scale.md with the constants
that ``python -m benchmarks scale`` measures, which no run of an engine was used for.

    python -m benchmarks engine_speed               # about ten minutes; continues where it was interrupted
    python -m benchmarks engine_speed --again       # measures everything anew
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.writer import Results, version_of_code

import hushsum as hs
from hushsum.methods import DEFAULT_WIDTH
from hushsum.records import open_batches
from hushsum.tally import Tally

_SECONDS = 0.05


class TreeTime:
    """The wall and processor seconds of a ``with`` block, in this process and all below it.

    A process that lives for less than a twentieth of a second may be missed, and of one that ends the time
    since the last sample.
    """

    def __enter__(self) -> TreeTime:
        self._root = psutil.Process()
        self._latest: dict[tuple[int, float], float] = {}
        self._sample()
        self._before = dict(self._latest)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wall = time.perf_counter() - self._start
        self._done.set()
        self._thread.join()
        self._sample()
        spent = sum(spent - self._before.get(key, 0.0) for key, spent in self._latest.items())
        # Looking through all processes of a busy machine takes time itself.
        self.processor = spent - self._sampling

    def _watch(self) -> None:
        while not self._done.wait(_SECONDS):
            self._sample()
        self._sampling = time.thread_time()

    def _sample(self) -> None:
        for process in [self._root, *self._root.children(recursive=True)]:
            try:
                times, key = process.cpu_times(), (process.pid, process.create_time())
            except psutil.Error:
                continue
            self._latest[key] = times.user + times.system


DIM, WIDTH, GROUPS = 8, DEFAULT_WIDTH, 64
DEFAULT_DASK = "dask, default settings"
TARGETS = {"dask": "≥ 1.6", "spark": "≥ 1.4"}
ENGINES = {"dask": "dask", "spark": "spark", "processes": "processes", "dask-defaults": DEFAULT_DASK}
"""The last one is last because Dask leaves the environment of its workers in this process, too."""

_PROBE = 100_000
_PROBE_SECONDS = 2.0
_SMALL = 100_000


def write_file(path: str, records: int) -> None:
    """Normal numbers in row groups of equal size."""
    rng = np.random.default_rng(0)
    step = max(1, records // GROUPS)
    schema = pa.schema([(f"c{i}", pa.float32()) for i in range(DIM)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, records, step):
            many = min(step, records - start)
            columns = [pa.array(rng.normal(size=many).astype(np.float32)) for _ in range(DIM)]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=many)


def empty(rows: int) -> Tally:
    kernel = hs.EuclideanKernel(dim=DIM, bandwidth=4.0)
    return hs.race(kernel, rows=rows, width=WIDTH, columns=[f"c{i}" for i in range(DIM)])


def one_process(path: str, tally: Tally, threads: int | None) -> Tally:
    with open_batches(path) as stream:
        for batch, _ in stream:
            tally.add(batch, threads=threads)
    return tally


def timed(call: Callable[[], Tally]) -> tuple[TreeTime, Any]:
    with TreeTime() as time:
        tally = call()
    return time, tally._table


def measured(name: str, path: str, rows: int) -> dict[str, Any]:
    """An engine with one and two workers, and one process before and after it; all tables are equal."""
    before = os.getloadavg()[0]
    base, table = timed(lambda: one_process(path, empty(rows), 1))
    found: dict[str, Any] = {}
    for workers in (1, 2):
        time, other = _RUNS[name](path, rows, workers)
        assert np.array_equal(table, other), name
        found[f"{workers} × 1 thread"] = [time.wall, time.processor]
    again, _ = timed(lambda: one_process(path, empty(rows), 1))
    found["one process"] = [(base.wall + again.wall) / 2, (base.processor + again.processor) / 2]
    found["one process (before, after)"] = [[base.wall, base.processor], [again.wall, again.processor]]
    found["load average (before, after)"] = [before, os.getloadavg()[0]]
    return found


def _processes(path: str, rows: int, workers: int) -> tuple[TreeTime, Any]:
    from hushsum.engines import processes

    return timed(lambda: processes.tally([path], empty(rows), workers=workers, threads=1))


def _dask(path: str, rows: int, workers: int) -> tuple[TreeTime, Any]:
    from hushsum.engines.dask import local_cluster

    with local_cluster(workers) as client:
        return _with_client(client, path, rows, workers)


def _dask_with_defaults(path: str, rows: int, workers: int) -> tuple[TreeTime, Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        return _with_client(client, path, rows, workers)


def _with_client(client: Any, path: str, rows: int, workers: int) -> tuple[TreeTime, Any]:
    from hushsum.engines import dask

    dask.tally([_small_file(path, workers)], empty(rows), client, threads=1)
    return timed(lambda: dask.tally([path], empty(rows), client, threads=1))


def _small_file(path: str, workers: int) -> str:
    """A file that is counted before the clock runs, so that every worker has started what it needs."""
    small = f"{path}.small.parquet"
    write_file(small, _SMALL * workers)
    return small


def _spark(path: str, rows: int, workers: int) -> tuple[TreeTime, Any]:
    from pyspark.sql import SparkSession

    from hushsum.engines import spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        spark.tally([_small_file(path, workers)], empty(rows), session)
        return timed(lambda: spark.tally([path], empty(rows), session))
    finally:
        session.stop()


_RUNS = {"processes": _processes, "dask": _dask, "dask-defaults": _dask_with_defaults, "spark": _spark}


def records_for(seconds: float, rows: int) -> int:
    """How many records one process with one thread counts in this many seconds, start-up not counted."""
    with tempfile.TemporaryDirectory() as folder:
        path, tiny = str(Path(folder) / "probe.parquet"), str(Path(folder) / "tiny.parquet")
        write_file(tiny, 1)
        start = min(timed(lambda: one_process(tiny, empty(rows), 1))[0].wall for _ in range(2))
        number = _PROBE
        while True:
            write_file(path, number)
            wall = timed(lambda: one_process(path, empty(rows), 1))[0].wall - start
            if wall >= min(_PROBE_SECONDS, seconds):
                return int(number * seconds / wall)
            number *= 2


def report(document: dict[str, Any]) -> str:
    """The table of results/engine_speed.md."""
    settings = document["settings"]
    lines = [
        "# Engines with two workers",
        "",
        f"`python -m benchmarks engine_speed`. One Parquet file of {settings['records']:,} records of {DIM}",
        f"numbers, {settings['bytes'] / 1e6:.0f} MB, is counted into {settings['rows']:,} × {WIDTH:,} cells;",
        "wall-clock seconds. Each engine was measured between two runs of one process with one thread, whose",
        "mean is shown, with workers of one thread; its start-up is not counted, except for *processes*.",
        "*Overhead* is processor time of two workers beyond that of one process. *dask* is the local cluster",
        "of the engine, *dask, default settings* one with the settings of Dask. *Simulated* is the model of",
        "docs/explanation/scale.md, with parts of equal size.",
        "",
        "| engine | one process | 1 worker (simulated) | 2 workers (simulated) | speed-up of 2 | target "
        "| overhead | target | load average before, after |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in (each for each in ENGINES if each in document["engines"]):
        run = document["engines"][name]
        (base, work), (one, _), (two, spent) = (
            run[each] for each in ("one process", "1 × 1 thread", "2 × 1 thread")
        )
        simulated = [_simulated(settings, workers, name) for workers in (1, 2)]
        before, after = run["load average (before, after)"]
        lines.append(
            f"| {ENGINES[name]} | {base:.1f} | {one:.1f} ({simulated[0]:.1f}) "
            f"| {two:.1f} ({simulated[1]:.1f}) "
            f"| **{base / two:.2f} ×** | {TARGETS.get(name, '–')} | {spent / work - 1.0:.0%} "
            f"| {'≤ 15 %' if name in TARGETS else '–'} | {before:.1f}, {after:.1f} |"
        )
    wall, processor = document["all threads"]
    lines += [
        "",
        f"One process with all its threads took {wall:.1f} s ({processor:.1f} s of processor time). A load",
        "average well above that of this run before it means that other work ran, and that speed-ups are too",
        "small.",
        "",
        f"hushsum {settings['version']}.",
        "",
    ]
    return "\n".join(lines)


def _simulated(settings: dict[str, Any], workers: int, name: str) -> float:
    from dataclasses import replace

    from benchmarks.speed.scale import CONSTANTS, Constants, Job, simulate

    constants = Constants(**CONSTANTS.read())
    if name != "processes":
        constants = replace(constants, start=0.0)
    job = Job(settings["records"], DIM, settings["rows"], WIDTH, workers)
    return simulate(job, constants, spread=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="of one process with one thread")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--output", type=Path, help="where results go")
    arguments = parser.parse_args()
    version = version_of_code()
    asked = {"seconds": arguments.seconds, "rows": arguments.rows, "code": version.digest}
    results = Results("engine_speed", arguments.output)
    document: dict[str, Any] = {} if arguments.again else results.read({})
    if any(document.get("settings", {}).get(name) != value for name, value in asked.items()):
        document = {}

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "records.parquet")
        if not document:
            records = records_for(arguments.seconds, arguments.rows)
            shown = f"{version.number} ({version.digest}, {version.day})"
            document = {"settings": {**asked, "records": records, "version": shown}, "engines": {}}
        write_file(path, document["settings"]["records"])
        document["settings"]["bytes"] = Path(path).stat().st_size
        if "all threads" not in document:
            time, _ = timed(lambda: one_process(path, empty(arguments.rows), None))
            document["all threads"] = [time.wall, time.processor]
            results.write(document)
        for name in arguments.engines.split(","):
            if name not in document["engines"]:
                document["engines"][name] = measured(name, path, arguments.rows)
                results.write(document)
                print(f"{name}: {document['engines'][name]}", file=sys.stderr)
    text = report(document)
    results.publish(text)
    print(text)


if __name__ == "__main__":
    main()
