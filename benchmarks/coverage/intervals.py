"""How many 95 % intervals hold, per method, data, heaping and ε: ``python -m benchmarks intervals``.

Each cell is 40 releases, whose errors at all queries are few draws, each with a noise of its own and, where
a method has one, a public seed of its own, at 150 queries drawn from the data and 50 fixed ones, which are
drawn from the declared box; on plain data also at queries found by climbing on the released function
itself, for which intervals are not meant. A cell's *mean* is over releases and queries, its *worst* is the
release with the fewest that hold, of the first 10. *exact* is the worst release of intervals that are right
by construction (1.96 times the root mean square error that each query has over these releases): below 0.85
it says that the queries of the cell have so few independent errors that no interval of 95 % could do
better.

    HUSHSUM_DATA=… python -m benchmarks intervals [--quick] [--again] [--only METHOD] [--half "held out"]
    HUSHSUM_DATA=… python -m benchmarks intervals --bands

Cells that were measured are not measured again unless ``--again`` is given.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.writer import Results, version_of_code

import hushsum as hs
from hushsum import baselines, methods

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


_MOST_PAIRS = 2000
Make = Callable[[Array, Source, float, int], Any]


@dataclass(frozen=True)
class Measured:
    """A method: from how many columns to how many, its release, and the kernel of its answers."""

    name: str
    least: int
    most: int
    make: Make
    euclidean: bool = False
    slow: bool = False
    releases: int = 40
    bands: bool = False

    def kernel(self, source: Source) -> Any:
        """Gaussian, or Euclidean for hash rows."""
        kind = hs.EuclideanKernel if self.euclidean else hs.GaussianKernel
        return kind(source.dim, source.bandwidth)


def _planned(method: str, kernel: str = "gaussian", **extra: Any) -> Make:
    def make(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
        return hs.release(
            rows, kernel=kernel, bandwidth=source.bandwidth, bounds=list(source.bounds), epsilon=epsilon,
            method=method, records=len(rows), seed=seed, insecure_noise_seed=seed, **extra,
        )  # fmt: skip

    return make


def _tallied(start: Callable[[Any, Source, float, int, int], Any]) -> Make:
    def make(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
        kernel = hs.GaussianKernel(source.dim, source.bandwidth)
        tally = start(kernel, source, epsilon, len(rows), seed)
        return tally.add(rows).release(epsilon=epsilon, insecure_noise_seed=seed)

    return make


def _direct(method: Callable[..., Any], **extra: Any) -> Make:
    def make(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
        kernel = hs.GaussianKernel(source.dim, source.bandwidth)
        named = {name: value(source) if callable(value) else value for name, value in extra.items()}
        if "seed" in named:
            named["seed"] = seed
        return method(
            rows, kernel, bounds=list(source.bounds), epsilon=epsilon, insecure_noise_seed=seed, **named
        )

    return make


def _sharpened(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
    """With 300 records for public points, as if they had been public."""
    f = _planned("fourier_features")(rows, source, epsilon, seed)
    return f.with_public_points(rows[:: max(1, len(rows) // 300)])


def _per_column(source: Source, per_bandwidth: float, most: int) -> int:
    """Coefficients along a column: some for each bandwidth of the longest side, at most ``most`` in all."""
    side = max(high - low for low, high in source.bounds) / source.bandwidth
    return max(3, min(math.ceil(per_bandwidth * side), int(most ** (1.0 / source.dim))))


METHODS = (
    Measured("grid", 1, 3, _planned("grid"), bands=True),
    Measured("histogram", 1, 2, _direct(baselines.histogram)),
    Measured("hermite", 1, 2, _tallied(lambda k, s, e, n, seed: baselines.hermite(
        k, bounds=list(s.bounds), records=n, epsilon=e))),
    Measured("lsq_fgt", 1, 2, _tallied(lambda k, s, e, n, seed: baselines.lsq_fgt(
        k, bounds=list(s.bounds), order=4))),
    Measured("fourier_series", 1, 2, _tallied(lambda k, s, e, n, seed: baselines.fourier_series(
        k, bounds=list(s.bounds), frequencies=_per_column(s, 0.5, _MOST_PAIRS), tapered=True))),
    Measured("trigonometric", 1, 2, _tallied(lambda k, s, e, n, seed: baselines.trigonometric(
        k, bounds=list(s.bounds), terms=_per_column(s, 1.5, _MOST_PAIRS)))),
    Measured("bernstein", 1, 2, _tallied(lambda k, s, e, n, seed: baselines.bernstein(
        k, bounds=list(s.bounds), degree=_per_column(s, 1.5, 1600), iterations=64))),
    Measured("fourier_features", 1, 99, _planned("fourier_features"), bands=True),
    Measured("sharpened features", 2, 99, _sharpened),
    Measured("lsq_rff", 1, 99, _tallied(lambda k, s, e, n, seed: baselines.lsq_rff(
        k, bounds=list(s.bounds), features=max(20, min(150, int(0.03 * n * e))), seed=seed))),
    Measured("race", 1, 99, _planned("race", "euclidean"), euclidean=True, bands=True),
    Measured("landmarks", 3, 99, _direct(methods.landmarks, points=400, seed=0), slow=True),
    Measured("kme", 1, 2, _direct(baselines.kme, lattice=lambda s: _per_column(s, 1.0, 900))),
    Measured("pfda", 1, 1, _direct(baselines.pfda)),
    Measured("mwem", 1, 1, _direct(baselines.mwem), slow=True),
    Measured("privbayes", 1, 9, _direct(baselines.privbayes, seed=0), slow=True),
)  # fmt: skip


Cell = dict[str, Any]
_LOWEST, _HIGHEST, _WORST = 0.93, 0.98, 0.85

_HEAD = """# Coverage of 95 % intervals

`HUSHSUM_DATA=… python -m benchmarks intervals`. Each cell is one method on one data set, heaped in one way,
at one ε: 40 releases with their own noise and public seeds, 150 queries drawn from the data and 50 drawn
from the declared box. At most 20,000 records. The data sets are in two halves: what was changed in the
library was tried on the *tuning* half only.

Numbers are means over cells of how many intervals hold; in brackets the lowest and the highest cell. *In
range* are cells with 0.93 to 0.98. *Worst* is the median over cells of the worst of the first 10 releases,
and how many cells have none below 0.85; *exact* the same for intervals that are right by construction (1.96
root mean square errors of each query over the same releases): errors of queries near each other are one
error, so that releases with many misses are unavoidable. *Fixed* are the queries from the box. *Climbed*
are queries found by climbing on the released function, for which intervals are not meant.

Every cell has seeds of noise of its own. Where the error of the number of records dominates, as in one column
at ε = 1, a cell has forty errors in all, so single cells deviate from their true coverage by some hundredths.
"""


def _cover(cells: list[Cell], name: str = "mean") -> str:
    values = [cell[name] for cell in cells]
    if not values:
        return ""
    return f"{sum(values) / len(values):.3f} ({min(values):.2f}–{max(values):.2f})"


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def _row(label: list[str], cells: list[Cell]) -> str:
    stated = [cell for cell in cells if cell["states"]]
    if not stated:
        return "| " + " | ".join([*label, str(len(cells)), "states no interval", *[""] * 6]) + " |"
    climbed = [cell["climbed"] for cell in stated if cell["climbed"] is not None]
    good = sum(_LOWEST <= cell["mean"] <= _HIGHEST for cell in stated)
    worst = sum(cell["worst"] >= _WORST for cell in stated)
    exact = sum(cell["exact_worst"] >= _WORST for cell in stated)
    number = len(stated)
    return "| " + " | ".join([
        *label, str(number), _cover(stated), f"{good}/{number}",
        f"{_median(cell['worst'] for cell in stated):.2f}, {worst}/{number}",
        f"{_median(cell['exact_worst'] for cell in stated):.2f}, {exact}/{number}",
        _cover(stated, "fixed_mean"), f"{sum(climbed) / len(climbed):.2f}" if climbed else "",
        f"{_median(cell['stderr_over_rms'] for cell in stated):.2f}",
    ]) + " |"  # fmt: skip


def _table(title: str, keys: tuple[str, ...], names: tuple[str, ...], cells: list[Cell]) -> list[str]:
    head = [
        *names,
        "cells",
        "holds",
        "in range",
        "worst, ≥ 0.85",
        "exact, ≥ 0.85",
        "fixed",
        "climbed",
        "stderr/rms",
    ]
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[key] for key in keys), []).append(cell)
    lines += [_row([str(part) for part in group], found) for group, found in groups.items()]
    return [*lines, ""]


def _bands(cells: list[Cell]) -> list[str]:
    """How often the simultaneous intervals of a release hold at all queries."""
    lines = [
        "## Simultaneous intervals",
        "",
        "The share of 20 releases whose simultaneous 95 % intervals hold at all 150 queries from the data:",
        "its standard error is 0.05 per cell.",
        "",
        "| method | ε | data sets | all hold, mean | lowest |",
        "|---|---|---|---|---|",
    ]
    for method, epsilon in dict.fromkeys((cell["method"], cell["epsilon"]) for cell in cells):
        found = [cell["together"] for cell in cells if (cell["method"], cell["epsilon"]) == (method, epsilon)]
        mean = sum(found) / len(found)
        lines.append(f"| {method} | {epsilon:g} | {len(found)} | {mean:.3f} | {min(found):.2f} |")
    return [*lines, ""] if cells else []


def write_report(cells: dict[str, Cell], results: Results) -> None:
    """Write the tables of the cells that were measured."""
    every = list(cells.values())
    order = {name: place for place, name in enumerate(HEAPS)}
    every.sort(key=lambda cell: order[cell["heap"]])
    spread = [cell for cell in every if cell["heap"] != ONE]
    lines = [_HEAD]
    names = sorted({cell["method"] for cell in every})
    by_method = sorted(spread, key=lambda cell: (names.index(cell["method"]), cell["half"] != TUNING))
    lines += _table(
        "By method and half, without *one value*", ("method", "half"), ("method", "half"), by_method
    )
    by_dim = sorted(spread, key=lambda cell: (names.index(cell["method"]), cell["dim"], cell["epsilon"]))
    keys = ("method", "dim", "epsilon")
    lines += _table("By method, columns and ε, without *one value*", keys, ("method", "columns", "ε"), by_dim)
    by_heap = sorted(every, key=lambda cell: (names.index(cell["method"]), order[cell["heap"]]))
    lines += _table("By method and heaping", ("method", "heap"), ("method", "heaping"), by_heap)
    lines += _bands([cell for cell in every if "together" in cell])
    lines += [
        "With *one value* all queries from the data are one query: a release holds or misses all of them,",
        "so that the worst release is 0 unless none misses, and means are steps of a tenth.",
    ]
    halves = {half: [each.name for each in SOURCES if each.half == half] for half in (TUNING, HELD_OUT)}
    lines += ["", *(f"*{half.capitalize()}*: {', '.join(found)}." for half, found in halves.items())]
    lines += ["", f"*{PLAIN.capitalize()}* is the data without heaping added."]
    sources = Counter(cell.get("sources", "earlier ones") for cell in every)
    lines += [
        "",
        "Sources: " + ", ".join(f"{name} ({number} cells)" for name, number in sources.items()) + ".",
    ]
    results.publish("\n".join(lines))


EPSILONS = (0.1, 1.0)
WORST_OF, QUERIES, FIXED, CLIMBERS, BANDS = 10, 150, 50, 10, 20
_CLIMBS = 12


class Truth:
    """Exact mean kernel values at the queries of one variant of the data."""

    def __init__(self, rows: Array, source: Source) -> None:
        self.rows, self.source = rows, source
        low, high = np.array(source.bounds).T
        self.centre = (low + high) / 2
        rng = np.random.default_rng(5)
        drawn = rows[rng.choice(len(rows), QUERIES)]
        self.queries = np.concatenate([drawn, rng.uniform(low, high, (FIXED, source.dim))])
        # Heaped data have few distinct records: their kernels are summed once, with weights.
        self.distinct, self.repeats = np.unique(rows, axis=0, return_counts=True)
        self._known: dict[str, Array] = {}

    def at(self, kernel: Any, queries: Array) -> Array:
        """Mean kernel values."""
        similar = kernel.similarity(self.distinct - self.centre, queries - self.centre)
        mean: Array = self.repeats @ similar / len(self.rows)
        return mean

    def values(self, kernel: Any) -> Array:
        """At the queries of every release."""
        if kernel.name not in self._known:
            self._known[kernel.name] = self.at(kernel, self.queries)
        return self._known[kernel.name]


def climbed(f: Any, truth: Truth, kernel: Any, seed: int) -> tuple[Array, Array]:
    """Queries from the data, moved uphill on the released function, and the truth there."""
    rng = np.random.default_rng(seed)
    best = truth.queries[rng.choice(QUERIES, CLIMBERS)]
    value = f(best)
    for _ in range(_CLIMBS):
        tried = best + rng.normal(0.0, 0.3 * truth.source.bandwidth, best.shape)
        found = f(tried)
        better = found > value
        best, value = np.where(better[:, None], tried, best), np.where(better, found, value)
    return best, truth.at(kernel, best)


def seeds_of(key: str, number: int) -> Sequence[int]:
    """Of the releases of one cell. No two cells have the same: otherwise all of them would have the same few
    errors of N̂, and be above or below 0.95 together.
    """
    start = (zlib.crc32(key.encode()) % (1 << 24)) << 6
    return range(start, start + number)


def measured(key: str, method: Measured, source: Source, truth: Truth, epsilon: float) -> dict[str, Any]:
    """One cell."""
    heap = key.split(" | ")[2]
    kernel = method.kernel(source)
    exact = truth.values(kernel)
    errors, reach, held, climbs = [], [], [], []
    start = time.process_time()
    for seed in seeds_of(key, method.releases):
        f = method.make(truth.rows, source, epsilon, seed)
        answers = f.query(truth.queries)
        errors.append(answers.value - exact)
        reach.append(answers.stderr)
        if not np.isfinite(answers.stderr).any():
            break
        held.append((answers.lower <= exact) & (exact <= answers.upper))
        if heap == PLAIN and not method.slow:
            queries, true = climbed(f, truth, kernel, seed)
            found = f.query(queries)
            climbs.append(float(((found.lower <= true) & (true <= found.upper)).mean()))
    error, stderr = np.array(errors), np.array(reach)
    cell: dict[str, Any] = {
        "method": method.name, "data": source.name, "half": source.half, "dim": source.dim, "heap": heap,
        "epsilon": epsilon, "releases": len(errors), "sources": version_of_code().digest,
        "seconds": round(time.process_time() - start, 2),
    }  # fmt: skip
    if not np.isfinite(stderr).any():
        return {**cell, "states": False}
    first = error[:WORST_OF]
    own = 1.96 * np.sqrt((first**2).mean(axis=0))
    kept, parts = np.array(held), (slice(0, QUERIES), slice(QUERIES, None))
    per_release = kept[:, parts[0]].mean(axis=1)
    fixed = kept[:, parts[1]].mean(axis=1)
    ideal = (np.abs(first) <= own)[:, parts[0]].mean(axis=1)
    ratio = np.sqrt((stderr[:, parts[0]] ** 2).mean() / (error[:, parts[0]] ** 2).mean())
    return {
        **cell,
        "states": True,
        "mean": round(float(per_release.mean()), 4),
        "worst": round(float(per_release[:WORST_OF].min()), 4),
        "fixed_mean": round(float(fixed.mean()), 4),
        "fixed_worst": round(float(fixed[:WORST_OF].min()), 4),
        "exact_worst": round(float(ideal.min()), 4),
        "climbed": round(float(np.mean(climbs)), 4) if climbs else None,
        "error": float(f"{np.abs(error[:, parts[0]]).mean():.3g}"),
        "stderr_over_rms": round(float(ratio), 2),
    }


def together(key: str, method: Measured, source: Source, truth: Truth, epsilon: float) -> float:
    """The share of releases whose simultaneous intervals hold at all queries from the data."""
    exact = truth.values(method.kernel(source))[:QUERIES]
    held = []
    for seed in seeds_of(key, BANDS):
        f = method.make(truth.rows, source, epsilon, seed)
        answers = f.query(truth.queries[:QUERIES], simultaneous=True)
        held.append(bool(np.all((answers.lower <= exact) & (exact <= answers.upper))))
    return float(np.mean(held))


def main() -> None:
    """Measure what is missing, and write both files after every data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one data set of one column, ε = 1")
    parser.add_argument("--again", action="store_true", help="measure cells that are known")
    parser.add_argument("--only", default="", help="methods, separated by commas")
    parser.add_argument("--half", default="", help="tuning or held out")
    parser.add_argument("--data", default="", help="one data set")
    parser.add_argument("--bands", action="store_true", help="only simultaneous intervals, on plain data")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    results = Results("intervals", given.output)
    cells: dict[str, dict[str, Any]] = results.read({})
    folder, chosen = Path(os.environ["HUSHSUM_DATA"]), [each for each in given.only.split(",") if each]
    warnings.simplefilter("ignore", UserWarning)
    for source in SOURCES:
        if given.half not in ("", source.half) or given.data not in ("", source.name):
            continue
        if given.quick and source is not SOURCES[0]:
            continue
        rows = records_of(source, folder)
        for heap in HEAPS[:1] if given.bands else HEAPS:
            truth = Truth(heaped(rows, heap, source), source)
            for method in METHODS:
                if not method.least <= source.dim <= method.most or (chosen and method.name not in chosen):
                    continue
                for epsilon in EPSILONS[1:] if given.quick else EPSILONS:
                    key = f"{method.name} | {source.name} | {heap} | {epsilon:g}"
                    if given.bands:
                        if heap == PLAIN and method.bands and "together" not in cells[key]:
                            cells[key]["together"] = together(key, method, source, truth, epsilon)
                            print(key, cells[key]["together"], flush=True)
                        continue
                    if key in cells and not given.again:
                        continue
                    cells[key] = measured(key, method, source, truth, epsilon)
                    print(key, {k: v for k, v in cells[key].items() if k in _SHOWN}, flush=True)
            results.write(cells)
    write_report(cells, results)


_SHOWN = ("states", "mean", "worst", "fixed_mean", "exact_worst", "climbed", "stderr_over_rms", "seconds")

if __name__ == "__main__":
    main()
