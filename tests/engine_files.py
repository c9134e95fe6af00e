"""Files that engines count in tests, and the counts of one process to compare with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

import hushsum as hs
from hushsum.records import open_batches
from hushsum.tally import Tally
from tests.exact_tallies import exact_state

COLUMNS = ["a", "b"]
ROWS = 3000


def empty(max_per_unit: int | None = None) -> Tally:
    kernel = hs.EuclideanKernel(dim=2, bandwidth=1.0)
    return hs.race(kernel, rows=12, width=40, columns=COLUMNS, max_per_unit=max_per_unit)


def write_files(folder: Path) -> list[str]:
    """Three files of different formats; the Parquet file has ten row groups, one of them empty."""
    random = np.random.default_rng(11)
    tables = [
        pa.table(
            {
                "who": [f"p{each}" for each in random.integers(0, 500, ROWS)],
                "b": random.normal(size=ROWS),
                "a": random.normal(size=ROWS),
            }
        )
        for _ in range(3)
    ]
    paths = [str(folder / name) for name in ("one.parquet", "two.csv", "three.arrow")]
    with pa.parquet.ParquetWriter(paths[0], tables[0].schema) as writer:
        for start in range(0, ROWS, ROWS // 9 + 1):
            writer.write_table(tables[0].slice(start, ROWS // 9 + 1))
        writer.write_table(tables[0].slice(0, 0))
    pa.csv.write_csv(tables[1], paths[1])
    pa.feather.write_feather(tables[2], paths[2])
    return paths


def one_process(paths: list[str], tally: Tally) -> Tally:
    """The same files counted one after another."""
    unit_column = None if tally.max_per_unit is None else "who"
    for path in paths:
        for batch, units in open_batches(path, columns=COLUMNS, unit_column=unit_column):
            tally.add(batch, units=units)
    return tally


def counts(tally: Tally) -> list[Any]:
    """Everything that was counted, to be compared bit for bit."""
    state = exact_state(tally)
    cap = state["cap"]
    persons = [] if cap is None else [each.tolist() for each in cap.state()]
    return [state["table"].tolist(), state["count"], state["moves"], persons, tally.max_per_unit]


def read_tables(paths: list[str]) -> list[pa.Table]:
    """The files as tables, for engines that are given records."""
    readers = {"parquet": pa.parquet.read_table, "csv": pa.csv.read_csv, "arrow": pa.feather.read_table}
    return [readers[path.rsplit(".", 1)[1]](path) for path in paths]
