"""Public data sets that plans are validated on: columns, ranges that are declared for them, and variants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.accuracy_data import _RNA_RANGES, Floats, _table

Ranges = tuple[tuple[float, float], ...]

_HTRU2 = ((0, 200), (0, 100), (-2, 10), (-2, 70), (0, 250), (0, 120), (-5, 40), (-5, 1200))
_SHUTTLE = (
    (0, 150), (-5000, 5100), (0, 150), (-5000, 5000), (-200, 450), (-27_000, 16_000), (-50, 110),
    (-360, 280), (-360, 270),
)  # fmt: skip
_PROTEIN = (
    (0, 50_000), (0, 20_000), (0, 1), (0, 400), (0, 6_000_000), (0, 600), (0, 110_000), (0, 400), (0, 60),
)  # fmt: skip
_OCCUPANCY = ((10, 35), (0, 100), (0, 2000), (300, 2500), (0, 0.01))
_AIRFOIL = ((0, 20_000), (0, 25), (0, 0.4), (0, 80), (0, 0.06))
_PIXELS = ((0, 255),) * 3
_PAY = ((0, 320_000),)


@dataclass(frozen=True)
class Source:
    """Columns of a file, and round numbers around the ranges that its description states.

    ``bandwidths`` are those that plans are validated with, in parts of the ranges; ``group`` names data sets
    that are so alike that they count as one.
    """

    file: str
    columns: tuple[str, ...]
    ranges: Ranges
    bandwidths: tuple[float, ...]
    group: str
    where: Callable[[Any], Any] | None = None


def _per_year(table: Any) -> Any:
    basis = table["pay_basis"].to_numpy(zero_copy_only=False).astype(str)
    return np.char.strip(basis) == "per Annum"


def _in_2014(table: Any) -> Any:
    return table["year"].to_numpy() == 2014


def _numbered(letter: str, last: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(1, last + 1))


_PROFILE = ("profile_mean", "profile_std", "profile_kurtosis", "profile_skewness")
_DMSNR = ("dmsnr_mean", "dmsnr_std", "dmsnr_kurtosis", "dmsnr_skewness")
_AIR = ("temperature", "humidity", "light", "co2", "humidity_ratio")
_WING = ("frequency", "attack_angle", "chord_length", "free_stream_velocity", "suction_side_displacement")
_RNA = ("dynalign_energy", "seq1_length", "A1_freq", "U1_freq", "C1_freq", "A2_freq", "U2_freq", "C2_freq")

SOURCES: dict[str, Source] = {
    "nyc pay": Source("nyc_payroll_sample", ("base_salary",), _PAY, (1 / 320, 1 / 64), "pay", _per_year),
    "sf pay": Source("sf_salaries_2011_2014", ("base_pay",), _PAY, (1 / 320, 1 / 64), "pay", _in_2014),
    "earnings": Source("cps_earnings_2004", ("target",), ((0, 100),), (0.005, 0.02), "cps"),
    "pums income": Source("pums_california_1000", ("income",), ((0, 500_000),), (0.02, 0.05), "pums"),
    "adult age": Source("adult", ("age",), ((0, 120),), (0.02, 0.05), "adult"),
    "age and earnings": Source(
        "cps_earnings_2004", ("age", "target"), ((0, 100), (0, 100)), (0.02, 0.05), "cps"
    ),
    "age and hours": Source("adult", ("age", "hours_per_week"), ((0, 120), (0, 100)), (0.02, 0.05), "adult"),
    "pulsar 2": Source("htru2", _PROFILE[:2], _HTRU2[:2], (0.02, 0.05), "htru2"),
    "skin": Source("skin_segmentation", ("R", "G", "B"), _PIXELS, (0.0139, 0.04), "skin"),
    "smtp": Source("kdd_smtp", _numbered("f", 3), ((-3, 17),) * 3, (0.03, 0.1), "kdd_smtp"),
    "http": Source("kdd_http", _numbered("f", 3), ((-3, 17),) * 3, (0.03, 0.1), "kdd_http"),
    "pulsar 4": Source("htru2", _PROFILE, _HTRU2[:4], (0.1,), "htru2"),
    "occupancy": Source("occupancy", _AIR, _OCCUPANCY, (0.1, 0.2), "occupancy"),
    "airfoil": Source("airfoil", _WING, _AIRFOIL, (0.1, 0.2), "airfoil"),
    "mammography": Source(
        "mammography", _numbered("f", 6), ((-1, 32), (-1, 6), (-1, 30), (-1, 10), (-1, 24), (-1, 2)),
        (0.1, 0.2), "mammography",
    ),
    "thyroid": Source("annthyroid", _numbered("f", 6), ((0, 1),) * 6, (0.1, 0.2), "annthyroid"),
    "cod_rna": Source("cod_rna", _RNA, _RNA_RANGES, (0.1, 0.2), "cod_rna"),
    "pulsar": Source("htru2", (*_PROFILE, *_DMSNR), _HTRU2, (0.1, 0.2), "htru2"),
    "shuttle": Source("shuttle", _numbered("f", 9), _SHUTTLE, (0.03, 0.1), "shuttle"),
    "protein": Source("protein_casp", _numbered("F", 9), _PROTEIN, (0.1, 0.2), "protein_casp"),
    "glove": Source("glove_twitter_25d", _numbered("f", 25), ((-6, 6),) * 25, (0.2, 0.4), "glove"),
}  # fmt: skip

TUNED_ON = ("pay", "cps", "adult", "skin", "kdd_smtp", "annthyroid", "cod_rna", "shuttle", "protein_casp")
"""Groups whose errors the constants of plans were fitted to: heaps on grids, chance of features, landmarks.
The others are the testing half. The two constants of the typical density are fitted to all, each left out in
turn.
"""

VARIANTS = ("as it is", "2 digits", "10 % one value")


def records_of(name: str, variant: str = VARIANTS[0]) -> Floats:
    """Records in the unit cube of their declared ranges, in a fixed random order."""
    source = SOURCES[name]
    table = _table(source.file)
    rows = np.column_stack(
        [table[each].to_numpy(zero_copy_only=False).astype(np.float64) for each in source.columns]
    )
    if source.where is not None:
        rows = rows[source.where(table)]
    rows = np.random.default_rng(1).permutation(rows[np.isfinite(rows).all(axis=1)])
    if variant == "2 digits":
        rows = two_digits(rows)
    if variant == "10 % one value":
        rows[: len(rows) // 10] = np.median(rows, axis=0)
        rows = np.random.default_rng(2).permutation(rows)
    low, high = np.array(source.ranges, np.float64).T
    unit: Floats = np.clip((rows - low) / (high - low), 0.0, 1.0)
    return unit


def two_digits(rows: Floats) -> Floats:
    """Numbers rounded to two significant digits."""
    size = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(rows), 1e-300))) - 1.0)
    return np.where(rows == 0.0, 0.0, np.rint(rows / size) * size)
