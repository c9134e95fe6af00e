"""The data of ``benchmarks.coverage``: real columns in two halves, and heaped variants of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Array = np.ndarray[Any, np.dtype[np.float64]]

MOST_RECORDS = 20_000
TUNING, HELD_OUT = "tuning", "held out"
PLAIN, DIGITS, TENTH, ONE = "as it is", "2 digits", "10 % one value", "one value"
HEAPS = (PLAIN, DIGITS, TENTH, ONE)
_PAY = ("pay_basis", "per Annum")


@dataclass(frozen=True)
class Source:
    """Columns of a file, what is declared of them, and the half they belong to."""

    name: str
    half: str
    file: str
    columns: tuple[str, ...]
    bandwidth: float
    bounds: tuple[tuple[float, float], ...]
    keep: tuple[str, Any] | None = None
    scaled: bool = False

    @property
    def dim(self) -> int:
        """The number of columns."""
        return len(self.bounds)


def _unit(columns: int) -> tuple[tuple[float, float], ...]:
    return ((0.0, 1.0),) * columns


_PAID = ((0.0, 300_000.0),)
_CLIMATE = ((15.0, 30.0), (10.0, 45.0))
_RNA = ("dynalign_energy", "seq1_length", "A1_freq", "U1_freq", "C1_freq", "A2_freq", "U2_freq", "C2_freq")

SOURCES = (
    Source("payroll", TUNING, "nyc_payroll_sample", ("base_salary",), 5000.0, _PAID, _PAY),
    Source("ages", TUNING, "adult", ("age",), 2.0, ((15.0, 95.0),)),
    Source("age, earnings", TUNING, "cps_earnings_2004", ("age", "target"), 2.0, ((15.0, 85.0), (0.0, 1e2))),
    Source("skin", TUNING, "skin_segmentation", ("B", "G", "R"), 10.0, ((0.0, 255.0),) * 3),
    Source("cod_rna", TUNING, "cod_rna", _RNA, 0.3, _unit(8), scaled=True),
    Source("shuttle", TUNING, "shuttle", (), 0.1, _unit(9), scaled=True),
    Source("payroll 2016", HELD_OUT, "nyc_payroll_fy2016_subset", ("base_salary",), 2000.0, _PAID, _PAY),
    Source("San Francisco", HELD_OUT, "sf_salaries_2011_2014", ("base_pay",), 4000.0, _PAID, ("year", 2014)),
    Source("room climate", HELD_OUT, "occupancy", ("temperature", "humidity"), 0.5, _CLIMATE),
    Source("kdd_http", HELD_OUT, "kdd_http", (), 0.05, _unit(3), scaled=True),
    Source("htru2", HELD_OUT, "htru2", (), 0.2, _unit(8), scaled=True),
    Source("mammography", HELD_OUT, "mammography", (), 0.2, _unit(6), scaled=True),
)  # fmt: skip


def records_of(source: Source, folder: Path) -> Array:
    """At most 20,000 records within the bounds; columns scaled to [0, 1] where the source says so."""
    frame = pd.read_parquet(folder / f"{source.file}.parquet")
    if source.keep is not None:
        column, value = source.keep
        kept = (
            frame[column].astype(str).str.strip() == value
            if isinstance(value, str)
            else frame[column] == value
        )
        frame = frame[kept]
    names = list(source.columns) or [each for each in frame.columns if each != "target"]
    rows = frame[names].dropna().to_numpy(np.float64)
    if source.scaled:
        low, high = rows.min(axis=0), rows.max(axis=0)
        rows = (rows - low) / np.maximum(high - low, 1e-9)
    rng = np.random.default_rng(0)
    rows = rows[np.sort(rng.permutation(len(rows))[:MOST_RECORDS])]
    low, high = np.array(source.bounds).T
    inside: Array = np.clip(rows, low, high)
    return inside


def heaped(rows: Array, heap: str, source: Source) -> Array:
    """A variant: values rounded to two significant digits, a tenth of the records or all of them alike."""
    low, high = np.array(source.bounds).T
    if heap == DIGITS:
        size = np.maximum(np.abs(rows), 1e-9 * np.maximum(np.abs(low), np.abs(high)))
        digits = 10.0 ** (np.floor(np.log10(size)) - 1.0)
        rounded: Array = np.clip(np.rint(rows / digits) * digits, low, high)
        return rounded
    if heap == PLAIN:
        return rows
    place = rows[np.random.default_rng(1).integers(len(rows))] + 0.0137 * source.bandwidth
    place = np.clip(place, low, high)
    if heap == ONE:
        return np.repeat(place[None], len(rows), axis=0)
    rows = rows.copy()
    rows[::10] = place
    return rows
