"""Plans against measured errors, on data that the constants of the plan were not fitted to.

    HUSHSUM_DATA=... python -m benchmarks plan_validation

Leave one data set out: what a plan guesses is the mean kernel value of queries from the data, by two
constants. These are fitted to the other data sets, ``hs.plan`` is run with them in place of those shipped,
and its best option is released. The other constants (repeated values on grids, sampling error of features,
landmarks) were fitted to the groups of ``TUNED_ON``: the others are the testing half. Each data set is run as
it is, at ε = 0.1 and 1 with its bandwidths, and with δ at the last of them; and rounded to two significant
digits, and with a tenth of the records set to one value, at ε = 1. Hash rows are planned from a public
sample, as ``hs.plan(public=...)`` does. Landmarks, which take longer than plans may here, are planned and
released by name in 5 to 20 columns, with at most 6,000 records.

The same command continues an interrupted run; ``--again`` measures anew what another version measured;
``--quick`` runs three data sets and keeps the results in ``build``.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from benchmarks.data import _RNA_RANGES, Floats, _table
from benchmarks.writer import RAW, Results, version_of_code
from papers.data import data_folder

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.kernels import Kernel
from hushsum.methods import LANDMARKS, MOST_COLUMNS, method_named
from hushsum.methods import _prediction as prediction_request
from hushsum.planning import Option, planned_tally
from hushsum.privacy import AUTO
from hushsum.tables import MAX_DIM

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
"""Groups whose errors the constants of plans were fitted to: repeated values, chance of features, landmarks.
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


Cell = dict[str, Any]
_SUMMARY = ["cells", "smallest", "one in ten below", "median", "one in ten above", "largest", "within 1.5 ×"]

_OPENING = """\
# Plans against measured errors

Measured over planned mean absolute error of f(q)/N at queries from the data. Each data set is left out of the
fit of the two constants that its own plan uses (the box in standard deviations, and the power of the number
of columns along which records vary), as are data sets of the same source. Variants: as it is, rounded to two
significant digits, a tenth of the records set to one value. Hash rows are planned from a public sample of a
hundredth of the records, 500 at least.

The other constants of plans (the share of records that counts as repeated on a grid, the chance of features,
the factors of landmarks) were fitted to one half of the data sets, the *tuning half*; the others are the
*testing half*.

Plans may count for 1 s, which leaves out landmarks. These are planned and released by name, chosen or not, in
5 to 20 columns, with at most 6,000 records; the power of their columns was chosen with all data sets in view.
"""


def write_report(results: dict[str, Any], output: Results, *, every: int) -> Path:
    """Write ``plan_validation.md``; ``every`` is how many cells a complete run has."""
    cells = results["cells"]
    versions = Counter(
        f"{each['number']}, sources {each['digest']}, {each['day']}"
        for each in (cell["version"] for cell in cells)
    )
    made_by = "; ".join(f"{number} cells by version {version}" for version, number in versions.items())
    parts = [
        _OPENING,
        f"{len(cells)} of {every} cells: {made_by}.\n",
        "## By method, testing half\n",
        _by_method([cell for cell in cells if cell["group"] not in TUNED_ON]),
        "## By method, tuning half\n",
        _by_method([cell for cell in cells if cell["group"] in TUNED_ON]),
        "## By method, all\n",
        _by_method(cells),
        "## By data set, declared quantities\n",
        _by_data([cell for cell in cells if cell["kind"] == "declared"]),
        "## Cells beyond 1.5 ×\n",
        _beyond(cells),
        "## Densities\n",
        _densities(cells),
    ]
    return output.publish("\n".join(parts))


def ratio(cell: Cell) -> float:
    """Measured over planned."""
    return float(cell["measured"] / cell["planned"])


def _by_method(cells: Sequence[Cell]) -> str:
    groups: dict[str, list[float]] = {}
    for cell in cells:
        kind = "hash rows, public sample" if cell["kind"] == "public sample" else cell["method"]
        groups.setdefault(f"{kind}, {'δ' if cell['delta'] else 'pure ε'}", []).append(ratio(cell))
    groups = dict(sorted(groups.items()))
    groups["all choices from declared quantities"] = [
        ratio(each) for each in cells if each["kind"] == "declared"
    ]
    head = [
        "what",
        "cells",
        "smallest",
        "one in ten below",
        "median",
        "one in ten above",
        "largest",
        "within 1.5 ×",
    ]
    return _markdown(head, [[name, *_summary(values)] for name, values in groups.items() if values])


def _by_data(cells: Sequence[Cell]) -> str:
    names = list(dict.fromkeys(cell["data"] for cell in cells))
    rows = []
    for name in names:
        own = [cell for cell in cells if cell["data"] == name]
        methods = ", ".join(sorted({cell["method"] for cell in own}))
        shape = f"{own[0]['records']:,} × {own[0]['columns']}"
        rows.append([name, shape, methods, *_summary([ratio(cell) for cell in own])])
    return _markdown(["data", "size", "methods", *_SUMMARY], rows)


def _summary(values: Sequence[float]) -> list[str]:
    ordered = sorted(values)

    def at(part: float) -> str:
        return f"{ordered[min(len(ordered) - 1, int(part * len(ordered)))]:.2f}"

    near = sum(1 / 1.5 <= each <= 1.5 for each in ordered)
    return [
        str(len(ordered)),
        f"{ordered[0]:.2f}",
        at(0.1),
        at(0.5),
        at(0.9),
        f"{ordered[-1]:.2f}",
        f"{near / len(ordered):.0%}",
    ]


def _beyond(cells: Sequence[Cell]) -> str:
    far = sorted((cell for cell in cells if not 1 / 1.5 <= ratio(cell) <= 1.5), key=ratio)
    if not far:
        return "None.\n"
    rows = [
        [
            cell["name"],
            cell["method"],
            f"{cell['planned']:.2e}",
            f"{cell['measured']:.2e}",
            f"{ratio(cell):.2f}",
            f"{cell['density']:.3g}",
        ]
        for cell in far
    ]
    return _markdown(["cell", "method", "planned", "measured", "ratio", "density"], rows)


def _densities(cells: Sequence[Cell]) -> str:
    """How far the guessed density is from the true one, and what was fitted."""
    declared = [cell for cell in cells if cell["kind"] == "declared"]
    if not declared:
        return ""
    away = [cell["density"] / cell["planned_density"] for cell in declared]
    box, power = zip(*(cell["constants"] for cell in declared), strict=True)
    return (
        f"The constants that were fitted without a data set: a box of {min(box):.1f} to {max(box):.1f}\n"
        f"deviations (shipped: 6), and a power of {min(power):.2f} to {max(power):.2f} (shipped: 0.27).\n"
        "True over predicted density:\n\n" + _markdown(_SUMMARY, [_summary(away)])
    )


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


EPSILONS = (0.1, 1.0)
DELTA = 1e-6
QUICK = ("adult age", "age and hours", "airfoil")
MOST_RECORDS = 20_000
MOST_OF_LANDMARKS = 6000
_QUERIES = 300
_MAX_SECONDS = 1.0
_RELEASES = {"grid": 20, LANDMARKS: 6}
_FEW_RECORDS, _RELEASES_OF_FEW = 5000, 200
_FEWEST_SEEDS, _MOST_SEEDS = 6, 24
_INCREMENTS = 2_000_000_000
"""Public seeds of features and hash rows, and how many features of records may be counted for a cell: the
errors of one seed at all queries are as one draw, so that the mean of six is known to a third of itself. Each
seed has as many releases as make 24 in all, since the noise of the number of records is one draw as well.
"""

_SPREADS = tuple(np.geomspace(3.0, 20.0, 40).tolist())
_POWERS = tuple(np.linspace(0.2, 1.0, 33).tolist())
_HASH_ROWS = (200, 1000)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="measure all cells anew")
    parser.add_argument("--quick", action="store_true", help="three data sets, into build/")
    parser.add_argument("--report", action="store_true", help="only the table, from the JSON")
    parser.add_argument("--data", help="only these data sets, by name, with commas between")
    parser.add_argument("--cells", default="", help="only cells whose name matches this regular expression")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no cell after this many")
    parser.add_argument("--output", type=Path, help="where results go")
    options = parser.parse_args(arguments)
    output = Results("plan_validation", options.output or (RAW / "quick" if options.quick else None))
    version = version_of_code().as_json()
    results: dict[str, Any] = output.read({"densities": [], "cells": []})
    if not options.report:
        data_folder()
        started = time.perf_counter()
        chosen = options.data.split(",") if options.data else QUICK if options.quick else tuple(SOURCES)
        if not results["densities"]:
            results["densities"] = list(densities(chosen if options.quick else tuple(SOURCES)))
        if options.again:
            # Cells stay until they are measured again, each with the version that measured it.
            done = {cell["name"] for cell in results["cells"] if cell["version"] == version}
        else:
            done = {cell["name"] for cell in results["cells"]}
        for name, measure in cells(chosen, results["densities"]):
            if name in done or not re.search(options.cells, name):
                continue
            if time.perf_counter() - started > options.seconds:
                print("cells are left: call again", file=sys.stderr)
                break
            found = measure()
            print(f"{name}: {found['measured'] / found['planned']:.2f}", file=sys.stderr, flush=True)
            kept = [cell for cell in results["cells"] if cell["name"] != name]
            results["cells"] = [*kept, {"name": name, **found, "version": version}]
            output.write(results)
    every = sum(1 for _ in cells(tuple(SOURCES), results["densities"]))
    print(write_report(results, output, every=every))
    return 0


@lru_cache(maxsize=2)
def rows_of(name: str, variant: str) -> Floats:
    """At most this many records, since a plan is validated as well with fewer."""
    return records_of(name, variant)[:MOST_RECORDS]


def queries_of(rows: Floats) -> Floats:
    """Drawn from the records, with their repeated values."""
    return rows[np.random.default_rng(7).choice(len(rows), min(_QUERIES, len(rows)), replace=False)]


def densities(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The true mean kernel values, on a sample, of every data set as it is."""
    for name in names:
        rows = rows_of(name, VARIANTS[0])[:8000]
        for bandwidth in SOURCES[name].bandwidths:
            kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=bandwidth)
            density = float(kernel.exact_sum(rows, rows[:300]).mean() / len(rows))
            yield {
                "data": name,
                "group": SOURCES[name].group,
                "dim": rows.shape[1],
                "bandwidth": bandwidth,
                "density": density,
            }


def fitted(found: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The box in deviations and the power of the columns that fit these densities best: least squares of
    logarithms, every group of data sets with the same weight.
    """
    weight = np.array([1.0 / sum(b["group"] == a["group"] for b in found) for a in found])
    truth = np.log([each["density"] for each in found])

    def loss(spread: float, power: float) -> float:
        away = np.array([modelled(each, spread, power) for each in found]) - truth
        return float((weight * away**2).sum())

    return min(((s, p) for s in _SPREADS for p in _POWERS), key=lambda pair: loss(*pair))


def modelled(each: dict[str, Any], spread: float, power: float) -> float:
    """The logarithm of the density of normal records in a unit box that vary along dim^power columns."""
    variance = 1.0 / (spread * each["bandwidth"]) ** 2
    return float(-0.5 * each["dim"] ** power * math.log(1.0 + 2.0 * variance))


def cells(names: Sequence[str], found: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The name of every cell, and what measures it."""
    # The testing half first, and of that several columns: there plans are least certain.
    for name in sorted(
        names, key=lambda name: (SOURCES[name].group in TUNED_ON, len(SOURCES[name].columns) == 1)
    ):
        source = SOURCES[name]
        others = [each for each in found if each["group"] != source.group] or found
        constants = fitted(others)
        for variant in VARIANTS:
            plain = variant == VARIANTS[0]
            for bandwidth in source.bandwidths if plain else source.bandwidths[-1:]:
                # In one column a grid keeps pure ε whatever δ is.
                last = bandwidth == source.bandwidths[-1]
                for delta in (None, DELTA) if plain and last and len(source.columns) > 1 else (None,):
                    for epsilon in EPSILONS if plain else EPSILONS[-1:]:
                        words = f"{name}, {variant}, h {bandwidth:.3g}, ε {epsilon:g}{', δ' if delta else ''}"
                        yield words, _Planned(name, variant, bandwidth, epsilon, delta, constants)
        if MAX_DIM < len(source.columns) <= MOST_COLUMNS:
            for bandwidth in source.bandwidths:
                for epsilon in EPSILONS:
                    words = f"{name}, landmarks, h {bandwidth:.3g}, ε {epsilon:g}"
                    yield words, _Planned(name, VARIANTS[0], bandwidth, epsilon, None, constants, LANDMARKS)
        for delta in (None, DELTA):
            words = f"{name}, hash rows, ε 1{', δ' if delta else ''}"
            yield words, _Hashed(name, VARIANTS[0], source.bandwidths[-1], delta)


class _Planned:
    """One plan from declared quantities, and what it came to; or of landmarks, chosen or not."""

    def __init__(
        self,
        name: str,
        variant: str,
        bandwidth: float,
        epsilon: float,
        delta: float | None,
        constants: tuple[float, float],
        method: str = AUTO,
    ) -> None:
        self.name, self.variant, self.bandwidth = name, variant, bandwidth
        self.epsilon, self.delta, self.constants, self.method = epsilon, delta, constants, method

    def __call__(self) -> dict[str, Any]:
        named = self.method != AUTO
        rows = rows_of(self.name, self.variant)[: MOST_OF_LANDMARKS if named else None]
        kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=self.bandwidth)
        with mock.patch.multiple(
            prediction_request, BOX_IN_DEVIATIONS=self.constants[0], EFFECTIVE_POWER=self.constants[1]
        ):
            plan = hs.plan(
                records=len(rows),
                kernel=kernel,
                bounds=(0.0, 1.0),
                epsilon=self.epsilon,
                delta=self.delta,
                method=self.method,
                max_seconds=math.inf if named else _MAX_SECONDS,
            )
        best = plan.best
        errors, density = measured(rows, kernel, best, self.epsilon, self.delta)
        return {
            "kind": self.method if named else "declared",
            "data": self.name,
            "group": SOURCES[self.name].group,
            "variant": self.variant,
            "columns": rows.shape[1],
            "records": len(rows),
            "bandwidth": self.bandwidth,
            "epsilon": self.epsilon,
            "delta": self.delta or 0.0,
            "method": best.method,
            "settings": best.settings,
            "count_share": best.count_share,
            "planned_density": plan.density,
            "density": density,
            "constants": self.constants,
            "planned": best.error,
            "measured": float(np.mean(errors)),
            "spread": float(np.std(errors)),
            "releases": len(errors),
        }


class _Hashed:
    """Hash rows planned from a public sample of a hundredth of the records, 500 at least."""

    def __init__(self, name: str, variant: str, bandwidth: float, delta: float | None) -> None:
        self.name, self.variant, self.bandwidth, self.delta = name, variant, bandwidth, delta

    def __call__(self) -> dict[str, Any]:
        rows = rows_of(self.name, self.variant)
        kernel = hs.EuclideanKernel(dim=rows.shape[1], bandwidth=self.bandwidth)
        sample = np.random.default_rng(5).permutation(len(rows))[: max(500, len(rows) // 100)]
        best = hs.plan(
            records=len(rows),
            kernel=kernel,
            epsilon=1.0,
            delta=self.delta,
            public=rows[sample],
            rows=list(_HASH_ROWS),
        ).best
        errors, density = measured(rows, kernel, best, 1.0, self.delta)
        return {
            "kind": "public sample",
            "data": self.name,
            "group": SOURCES[self.name].group,
            "variant": self.variant,
            "columns": rows.shape[1],
            "records": len(rows),
            "bandwidth": self.bandwidth,
            "epsilon": 1.0,
            "delta": self.delta or 0.0,
            "method": best.method,
            "settings": best.settings,
            "count_share": best.count_share,
            "density": density,
            "planned": best.error,
            "measured": float(np.mean(errors)),
            "spread": float(np.std(errors)),
            "releases": len(errors),
        }


def measured(
    rows: Floats, kernel: Kernel, best: Option, epsilon: float, delta: float | None, *, effort: float = 1.0
) -> tuple[list[float], float]:
    """Errors of releases as planned, at queries from the data, and the mean kernel value there. ``effort`` is
    the part of the usual number of seeds that is taken.
    """
    queries = queries_of(rows)
    truth = kernel.exact_sum(rows, queries) / len(rows)
    method, errors = method_named(best.method), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousParameter)
        if method.tally is None:
            for seed in range(max(3, round(effort * _RELEASES[best.method]))):
                f = method.release(rows, kernel, bounds=(0.0, 1.0), epsilon=epsilon, seed=seed, **best.sizes)
                errors.append(float(np.abs(f(queries) - truth).mean()))
            return errors, float(truth.mean())
        bounds = (0.0, 1.0) if method.needs_bounds else None
        on_grid = best.method in _RELEASES
        affordable = round(effort * _INCREMENTS) // (len(rows) * best.rows)
        seeds = 1 if on_grid else max(_FEWEST_SEEDS, min(_MOST_SEEDS, affordable))
        releases = _RELEASES[best.method] if on_grid else _MOST_SEEDS // seeds
        if on_grid and len(rows) < _FEW_RECORDS:
            releases = _RELEASES_OF_FEW
        for seed in range(seeds):
            tally = planned_tally(best, kernel, bounds=bounds, seed=seed).add(rows)
            for _ in range(releases):
                f = tally.release(
                    epsilon=epsilon,
                    delta=delta if best.delta else None,
                    rows="auto" if on_grid else best.rows,
                    count_share=best.count_share,
                    rounded=best.rounded,
                )
                errors.append(float(np.abs(f(queries) - truth).mean()))
    return errors, float(truth.mean())


if __name__ == "__main__":
    raise SystemExit(main())
