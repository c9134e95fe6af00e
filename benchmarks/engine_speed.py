"""Engines with two workers against one process, on one Parquet file.

Eight columns of numbers are hashed; the number of rows of the table decides how much of the work is counting.
The comparison that shows what an engine costs is one process with one thread against two workers with one
thread each; the process with all its threads is reported besides. Starting a cluster is not counted (each
engine counts a small file first); starting the processes of ``processes``, about a second each, is. In all
of them files are decoded by processes of their own, so that one process with one thread keeps up to two
cores busy while it decodes.

*Speed-up* is a ratio of wall times, and needs a machine that does nothing else. *Overhead* is the processor
time of all processes beyond that of one process, and *implied* is the speed-up that follows from it where
nothing else runs and work is divided evenly: 2 / (1 + overhead).

    python -m benchmarks.engine_speed --seconds 20
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.process_tree_time import TreeTime

import hushsum as hs
from hushsum.records import open_batches
from hushsum.tally.tally import Tally

DIM, ROWS, WIDTH, GROUPS = 8, 400, 1000, 64
_PROBE = 100_000


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
    return time, tally._state()["table"]


def measured(path: str, rows: int, engines: list[str]) -> list[dict[str, Any]]:
    """One row for each way to count the file; all tables are equal."""
    found: list[dict[str, Any]] = []
    base, table = timed(lambda: one_process(path, empty(rows), 1))
    found.append({"name": "one process, 1 thread", "wall": base.wall, "processor": base.processor})
    several, other = timed(lambda: one_process(path, empty(rows), None))
    assert np.array_equal(table, other)
    found.append({"name": "one process, all threads", "wall": several.wall, "processor": several.processor})
    for name in engines:
        for workers in (1, 2):
            time, other = _RUNS[name](path, rows, workers)
            assert np.array_equal(table, other), name
            found.append(
                {"name": f"{name}, {workers} × 1 thread", "wall": time.wall, "processor": time.processor}
            )
    for row in found:
        row["speed-up"] = base.wall / row["wall"]
        row["overhead"] = row["processor"] / base.processor - 1.0
    return found


def _processes(path: str, rows: int, workers: int) -> tuple[TreeTime, Any]:
    from hushsum.engines import processes

    return timed(lambda: processes.tally([path], empty(rows), workers=workers, threads=1))


def _dask(path: str, rows: int, workers: int) -> tuple[TreeTime, Any]:
    from distributed import Client, LocalCluster

    from hushsum.engines import dask

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        dask.tally([_small_file(path, workers)], empty(rows), client, threads=1)
        return timed(lambda: dask.tally([path], empty(rows), client, threads=1))


def _small_file(path: str, workers: int) -> str:
    """A file that is counted before the clock runs, so that every worker has started what it needs."""
    small = f"{path}.small.parquet"
    write_file(small, 100_000 * workers)
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


_RUNS = {"processes": _processes, "dask": _dask, "spark": _spark}


def records_for(seconds: float, rows: int) -> int:
    """How many records one process with one thread counts in so many seconds of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "probe.parquet")
        write_file(path, _PROBE)
        one_process(path, empty(rows), 1)
        time, _ = timed(lambda: one_process(path, empty(rows), 1))
    return int(_PROBE * seconds / time.processor)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time in one process")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--engines", default="processes,dask,spark")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "records.parquet")
        records = records_for(arguments.seconds, arguments.rows)
        write_file(path, records)
        rows = measured(path, arguments.rows, arguments.engines.split(","))
        size = Path(path).stat().st_size
    if arguments.json:
        print(json.dumps({"records": records, "bytes": size, "rows": rows}))
        return
    print(f"{records} records, {size / 1e6:.0f} MB, {arguments.rows} × {WIDTH} cells\n")
    print("| | wall, s | processor, s | speed-up | overhead | implied |\n|---|---|---|---|---|---|")
    for row in rows:
        implied = f"{2 / (1 + row['overhead']):.2f}" if ", 2 ×" in row["name"] else ""
        print(
            f"| {row['name']} | {row['wall']:.1f} | {row['processor']:.1f} | {row['speed-up']:.2f} "
            f"| {100 * row['overhead']:.0f} % | {implied} |"
        )


if __name__ == "__main__":
    main()
