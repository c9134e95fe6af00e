"""The data of figures 3 and 7 at the bandwidths of the paper's table 2, with held-out queries.

The hash kernel has the bandwidth of the table. The other methods release a Gaussian kernel, whose bandwidth
is matched so that both have the same mean density at the queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from benchmarks.data import CONTESTS, Floats, Rows, on_salary_grid

import hushsum as hs

HELD_OUT: Final = 2000
_MATCHED_ON = 4000
_LONGEST_FOREST = 7200.0
"""Metres: the widest of the public ranges of the forest data's columns."""

_FOREST_LOW: Final = {"Elevation": 1800.0, "Vertical": -180.0}


@dataclass(frozen=True)
class HeldOut:
    """Records, queries that are not among them, the hash kernel of table 2, and a declared box.

    ``measure`` is what the paper reports: the mean relative error, or the root mean square over a grid.
    """

    name: str
    records: Rows
    queries: Rows
    hashed: hs.EuclideanKernel
    bounds: tuple[float, float]
    measure: str
    words: str

    @property
    def dim(self) -> int:
        """Columns of a record."""
        return int(self.records.shape[1])

    @cached_property
    def gaussian(self) -> hs.GaussianKernel:
        """The Gaussian kernel of the same mean density, by bisection on a sample."""
        rng = np.random.default_rng(2)
        some = self.records[rng.choice(len(self.records), min(len(self.records), _MATCHED_ON), replace=False)]
        at = self.queries[:500]
        density = self.hashed.exact_sum(some, at).mean()
        low, high = 0.1 * self.hashed.bandwidth, 1000.0 * self.hashed.bandwidth
        for _ in range(30):
            middle = math.sqrt(low * high)
            kernel = hs.GaussianKernel(dim=self.dim, bandwidth=middle)
            low, high = (low, middle) if kernel.exact_sum(some, at).mean() > density else (middle, high)
        return hs.GaussianKernel(dim=self.dim, bandwidth=float(f"{middle:.3g}"))

    @cached_property
    def hashed_truth(self) -> Floats:
        """Exact mean values of the hash kernel; the data are public."""
        return self.hashed.exact_sum(self.records, self.queries) / len(self.records)

    @cached_property
    def gaussian_truth(self) -> Floats:
        """Exact mean values of the Gaussian kernel."""
        return self.gaussian.exact_sum(self.records, self.queries) / len(self.records)


def held_out(
    name: str, records: Rows, bandwidth: float, bounds: tuple[float, float], words: str, number: int
) -> HeldOut:
    """A number of records taken out as queries, at random but the same ones in every run."""
    chosen = np.random.default_rng(9).choice(len(records), number, replace=False)
    kept = np.ones(len(records), np.bool_)
    kept[chosen] = False
    kernel = hs.EuclideanKernel(dim=records.shape[1], bandwidth=bandwidth)
    return HeldOut(name, records[kept], records[chosen], kernel, bounds, "relative", words)


def _salaries(name: str, words: str, number: int) -> HeldOut:
    contest = on_salary_grid(CONTESTS[name]())
    kernel = hs.EuclideanKernel(dim=1, bandwidth=5000.0)
    return HeldOut(name, contest.records, contest.queries, kernel, contest.bounds, "rms", words)


def nyc(number: int = HELD_OUT) -> HeldOut:
    """New York salaries; σ = 5,000, queried on the paper's grid of 200 points."""
    return _salaries("nyc", "NYC salaries, σ = $5k", number)


def sf(number: int = HELD_OUT) -> HeldOut:
    """San Francisco salaries; σ = 5,000, on the same grid."""
    return _salaries("sf", "SF salaries, σ = $5k", number)


def skin(number: int = HELD_OUT) -> HeldOut:
    """Skin tones in their own units; σ = 5."""
    pixels = CONTESTS["skin"]().records
    return held_out("skin", pixels, 5.0, (0.0, 255.0), "skin, σ = 5", number)


def cod_rna(number: int = HELD_OUT) -> HeldOut:
    """RNA features on their public ranges; σ = 0.5 there: in raw units one column would decide alone."""
    rows = CONTESTS["cod_rna"]().records
    return held_out("cod_rna", rows, 0.5, (0.0, 1.0), "cod_rna, σ = 0.5", number)


def covtype(number: int = HELD_OUT) -> HeldOut:
    """Forest data in raw units (metres and degrees), all columns divided by 7,200; σ = 20."""
    import pyarrow.parquet as pq
    from papers.data import dataset_file

    table = pq.read_table(dataset_file("covtype"))
    names = [name for name in table.column_names if name != "target"]
    rows = np.column_stack([table[name].to_numpy().astype(np.float32) for name in names])
    low = np.array([next((v for k, v in _FOREST_LOW.items() if k in name), 0.0) for name in names])
    # By position where the columns have no names: elevation, and the height above water.
    if not low.any():
        low[[0, 4]] = tuple(_FOREST_LOW.values())
    rows = np.clip((rows - low.astype(np.float32)) / np.float32(_LONGEST_FOREST), 0.0, 1.0)
    return held_out("covtype", rows, 20.0 / _LONGEST_FOREST, (0.0, 1.0), "covtype, σ = 20", number)


DATA: Final[dict[str, Callable[[int], HeldOut]]] = {
    "nyc": nyc,
    "sf": sf,
    "skin": skin,
    "cod_rna": cod_rna,
    "covtype": covtype,
}
