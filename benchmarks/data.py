"""Public data sets of the race, each with the kernel, the box and the queries that all methods share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from papers.data import dataset_file

import hushsum as hs

Rows = NDArray[np.float32]
Floats = NDArray[np.float64]

QUERIES = 500
SALARY_BOUNDS = (0.0, 320_000.0)
SALARY_BANDWIDTH = 5_000.0
_SALARIES = 25_000

# Ranges that the descriptions of the data state, or round numbers around them; not read off the records.
_FOREST_RANGES = (
    (1800, 3900),
    (0, 360),
    (0, 70),
    (0, 1400),
    (-180, 610),
    (0, 7200),
    (0, 255),
    (0, 255),
    (0, 255),
    (0, 7200),
)
_RNA_RANGES = ((-1600, 0), (0, 150), *((0, 0.5),) * 6)


@dataclass(frozen=True)
class Contest:
    """Records, one Gaussian kernel for every method, a declared box, and queries drawn from the records.

    ``matched`` is the hashable kernel with the same mean density, for the separate block of hash rows;
    ``fixed_queries`` replaces the queries.
    """

    name: str
    records: Any
    kernel: hs.GaussianKernel
    bounds: tuple[float, float]
    words: str
    fixed_queries: Any = None

    @property
    def dim(self) -> int:
        """Columns of a record; 0 for sets."""
        return int(self.records.shape[1]) if isinstance(self.records, np.ndarray) else 0

    @cached_property
    def queries(self) -> Any:
        """Queries from the data, the same in every run, unless others are given."""
        if self.fixed_queries is not None:
            return self.fixed_queries
        chosen = np.random.default_rng(1).choice(len(self.records), QUERIES, replace=False)
        return selected(self.records, chosen)

    @cached_property
    def truth(self) -> Floats:
        """The exact mean kernel values; the data are public."""
        return self.kernel.exact_sum(self.records, self.queries) / len(self.records)

    @cached_property
    def matched(self) -> hs.EuclideanKernel:
        """The Euclidean hash kernel whose mean value at the queries is that of the Gaussian one, by bisection
        on a sample; a kernel that hashes is itself.
        """
        given: Any = self.kernel
        if not isinstance(given, hs.GaussianKernel):
            hashed: hs.EuclideanKernel = given
            return hashed
        some = self.records[np.random.default_rng(2).choice(len(self.records), min(len(self.records), 4000))]
        low, high = 1e-3 * self.kernel.bandwidth, 10.0 * self.kernel.bandwidth
        for _ in range(30):
            middle = math.sqrt(low * high)
            kernel = hs.EuclideanKernel(dim=self.dim, bandwidth=middle)
            if kernel.exact_sum(some, self.queries).mean() / len(some) > self.truth.mean():
                high = middle
            else:
                low = middle
        return hs.EuclideanKernel(dim=self.dim, bandwidth=float(f"{middle:.3g}"))


def _table(name: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(dataset_file(name))


def _columns(table: Any, names: list[str]) -> Rows:
    return np.column_stack([table[name].to_numpy().astype(np.float32) for name in names])


def _salaries(name: str, records: Floats, words: str) -> Contest:
    kernel = hs.GaussianKernel(dim=1, bandwidth=SALARY_BANDWIDTH)
    known = records[np.isfinite(records)].astype(np.float32).reshape(-1, 1)
    return Contest(name, known, kernel, SALARY_BOUNDS, words)


def synthetic_salaries() -> Contest:
    """Made-up salaries, log-normal."""
    drawn = np.random.default_rng(0).lognormal(11.0, 0.5, _SALARIES)
    return _salaries("salaries", drawn, "25,000 made-up salaries, log-normal; Gaussian, bandwidth 5,000")


def nyc_salaries() -> Contest:
    """Yearly base salaries of New York City."""
    table = _table("nyc_payroll_sample")
    yearly = np.char.strip(table["pay_basis"].to_numpy(zero_copy_only=False).astype(str)) == "per Annum"
    pay = table["base_salary"].to_numpy().astype(np.float64)[yearly]
    return _salaries("nyc", pay, "New York City, yearly base salaries; Gaussian, bandwidth 5,000")


def sf_salaries() -> Contest:
    """Base pay of San Francisco in 2014."""
    table = _table("sf_salaries_2011_2014")
    pay = table["base_pay"].to_numpy(zero_copy_only=False).astype(np.float64)
    year = table["year"].to_numpy()
    return _salaries("sf", pay[year == 2014], "San Francisco, base pay 2014; Gaussian, bandwidth 5,000")


def skin() -> Contest:
    """Skin tones; exp(−‖x − q‖²/25)."""
    pixels = _columns(_table("skin_segmentation"), ["R", "G", "B"])
    kernel = hs.GaussianKernel(dim=3, bandwidth=5.0 / math.sqrt(2.0))
    return Contest("skin", pixels, kernel, (0.0, 255.0), "skin tones; exp(−‖x−q‖²/25)")


def cod_rna() -> Contest:
    """RNA features on their public ranges."""
    table = _table("cod_rna")
    names = [name for name in table.column_names if name != "target"]
    unit = _scaled(_columns(table, names), _RNA_RANGES)
    return Contest(
        "cod_rna", unit, hs.GaussianKernel(dim=8, bandwidth=0.1), (0.0, 1.0),
        "RNA, columns scaled by public ranges to [0, 1]; Gaussian, bandwidth 0.1",
    )  # fmt: skip


def covtype() -> Contest:
    """Forest data on their public ranges; 44 of the columns are 0 or 1."""
    table = _table("covtype")
    names = [name for name in table.column_names if name != "target"]
    records = _columns(table, names)
    records[:, : len(_FOREST_RANGES)] = _scaled(records[:, : len(_FOREST_RANGES)], _FOREST_RANGES)
    return Contest(
        "covtype", records, hs.GaussianKernel(dim=54, bandwidth=0.5), (0.0, 1.0),
        "forest cover, columns scaled by public ranges to [0, 1]; Gaussian, bandwidth 0.5",
    )  # fmt: skip


def _scaled(records: Rows, ranges: tuple[tuple[float, float], ...]) -> Rows:
    low, high = np.array(ranges, np.float32).T
    unit: Rows = np.clip((records - low) / (high - low), 0.0, 1.0)
    return unit


def on_salary_grid(contest: Contest) -> Contest:
    """The same salaries, queried at 200 even points from 10,000 to 250,000, for the error of the function."""
    points = np.linspace(10_000, 250_000, 200, dtype=np.float32).reshape(-1, 1)
    return replace(contest, name=f"{contest.name} (function)", fixed_queries=points)


def sample_of(contest: Contest, number: int) -> Contest:
    """Fewer records of the same kind."""
    chosen = np.random.default_rng(4).choice(len(contest.records), number, replace=False)
    return replace(contest, name=f"{contest.name} ({number:,})", records=contest.records[chosen])


def from_source(name: str, source: str, bandwidth: float, words: str, variant: str = "as it is") -> Contest:
    """A data set of the validation of plans, in its unit cube."""
    from benchmarks.plans.plan_validation import records_of

    rows = records_of(source, variant).astype(np.float32)
    kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=bandwidth)
    return Contest(name, rows, kernel, (0.0, 1.0), words)


def wiki_vote() -> Contest:
    """Whom each user of a wiki voted on, as a set; queries are users."""
    table = _table("wiki_vote")
    voter, votes = table["src"].to_numpy(), table["dst"].to_numpy()
    order = np.argsort(voter, kind="stable")
    _, starts = np.unique(voter[order], return_index=True)
    sets = [np.unique(each) for each in np.split(votes[order], starts[1:])]
    words = "sets of users that a user voted on; Jaccard kernel"
    kernel: Any = hs.JaccardKernel()
    return Contest("wiki_vote", sets, kernel, (0.0, 1.0), words)


def selected(records: Any, chosen: Any) -> Any:
    """Some of the records: rows of an array, or sets of a list."""
    return records[chosen] if isinstance(records, np.ndarray) else [records[int(i)] for i in chosen]


_UNIT = "columns scaled by declared ranges to [0, 1]; Gaussian, bandwidth"
CONTESTS: dict[str, Callable[[], Contest]] = {
    "salaries": synthetic_salaries,
    "nyc": nyc_salaries,
    "nyc_rounded": lambda: from_source(
        "nyc_rounded", "nyc pay", 1 / 64, "the same, rounded to two significant digits", "2 digits"
    ),
    "nyc_heaped": lambda: from_source(
        "nyc_heaped", "nyc pay", 1 / 64, "the same, a tenth set to the median", "10 % one value"
    ),
    "sf": sf_salaries,
    "incomes": lambda: from_source(
        "incomes", "pums income", 0.05, f"a sample of 1,000 incomes in California, {_UNIT} 0.05"
    ),
    "earnings": lambda: from_source(
        "earnings", "age and earnings", 0.05, f"age and hourly earnings, heaped, {_UNIT} 0.05"
    ),
    "skin": skin,
    "pulsar_4": lambda: from_source("pulsar_4", "pulsar 4", 0.1, f"pulsars, {_UNIT} 0.1"),
    "airfoil": lambda: from_source("airfoil", "airfoil", 0.2, f"airfoils, {_UNIT} 0.2"),
    "occupancy": lambda: from_source("occupancy", "occupancy", 0.1, f"rooms, {_UNIT} 0.1"),
    "mammography": lambda: from_source("mammography", "mammography", 0.1, f"mammography, {_UNIT} 0.1"),
    "cod_rna": cod_rna,
    "covtype": covtype,
    "wiki_vote": wiki_vote,
}
SETS = ("wiki_vote",)
COLUMNS = {
    "salaries": 1,
    "nyc": 1,
    "nyc_rounded": 1,
    "nyc_heaped": 1,
    "sf": 1,
    "incomes": 1,
    "earnings": 2,
    "skin": 3,
    "pulsar_4": 4,
    "airfoil": 5,
    "occupancy": 5,
    "mammography": 6,
    "cod_rna": 8,
    "covtype": 54,
    "wiki_vote": 0,
}
"""Of each data set; 0 for sets."""

TUNED_ON = ("nyc", "nyc_rounded", "nyc_heaped", "sf", "earnings", "skin", "cod_rna")
"""Data sets whose errors the constants of plans were fitted to, or that are like these, with others that are
not in the race (``validation_data.TUNED_ON``). The plans of all others are tests.
"""
