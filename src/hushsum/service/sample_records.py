"""Made-up records to try the service with: public by construction, since a fixed seed makes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

SAMPLE_NAME: Final = "Sample commuters"
_RECORDS: Final = 20_000
_SEED: Final = 2026


@dataclass(frozen=True, slots=True)
class Sample:
    """A made-up table as CSV, and what its owner would declare of it."""

    csv: bytes
    header: tuple[str, ...]
    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    bandwidth: float
    records: int


@cache
def sample_records() -> Sample:
    """Ages and journeys to work of people who do not exist: two towns, one with a railway.

    The same bytes at every call. No record is anybody's, so the sample may be shown, and a release of it
    protects nobody; the steps of a release are those of any other dataset.
    """
    random = np.random.default_rng(_SEED)
    near = random.random(_RECORDS) < 0.6
    age = np.where(near, random.normal(34, 9, _RECORDS), random.normal(48, 10, _RECORDS))
    minutes = np.where(near, random.gamma(6.0, 3.2, _RECORDS), random.normal(56, 11, _RECORDS))
    rows = np.column_stack([np.clip(age, 16, 75), np.clip(minutes, 1, 120)]).round(1)
    drives = np.where(random.random(_RECORDS) < np.where(near, 0.35, 0.7), "yes", "no")
    lines = [f"{a:.1f},{m:.1f},{d}" for (a, m), d in zip(rows, drives, strict=True)]
    header = ("age_years", "commute_min", "drives")
    return Sample(
        csv="\n".join([",".join(header), *lines, ""]).encode(),
        header=header,
        columns=("age_years", "commute_min"),
        bounds=((16.0, 75.0), (0.0, 120.0)),
        bandwidth=4.0,
        records=_RECORDS,
    )
