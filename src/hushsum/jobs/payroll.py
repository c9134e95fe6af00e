"""A made-up payroll for the demonstration: generated from a public seed, so it is nobody's data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum.records.arrow import pyarrow

SALARY_BOUNDS: Final = (0.0, 250_000.0)
"""Declared, as an owner would: what a salary may be, without looking at any."""


@dataclass(frozen=True, slots=True)
class JobGroup:
    """One mode of the mixture: its share of people, its median salary, and the spread of its logarithm."""

    name: str
    share: float
    median: float
    spread: float


GROUPS: Final = (
    JobGroup("care", 0.20, 29_000, 0.12),
    JobGroup("trade", 0.26, 41_000, 0.14),
    JobGroup("office", 0.22, 55_000, 0.10),
    JobGroup("engineering", 0.20, 92_000, 0.13),
    JobGroup("medicine", 0.09, 146_000, 0.11),
    JobGroup("management", 0.03, 195_000, 0.16),
)


def write_payroll(path: Path, *, records: int, seed: int) -> NDArray[np.float64]:
    """Write a Parquet file with a job group and a yearly salary a row; returns the salaries.

    The same seed gives the same salaries on every machine.
    """
    random = np.random.default_rng(seed)
    group = random.choice(len(GROUPS), size=records, p=[each.share for each in GROUPS])
    median = np.array([each.median for each in GROUPS])[group]
    spread = np.array([each.spread for each in GROUPS])[group]
    salary = np.clip(median * np.exp(spread * random.standard_normal(records)), *SALARY_BOUNDS).round(2)
    pa = pyarrow()
    names = pa.DictionaryArray.from_arrays(
        pa.array(group.astype(np.int8)), pa.array([each.name for each in GROUPS])
    )
    table = pa.table({"job": names, "salary": salary})
    pyarrow("parquet").write_table(table, path, row_group_size=1 << 16)
    return np.asarray(salary, np.float64)
