"""Size and power of the test of ``hs.compare``: ``python -m benchmarks compare_test``.

*Size*: how often the test rejects at level 0.05 when both samples come from one population, real records of
``benchmarks.coverage.intervals``, drawn with replacement, as they are and rounded to two digits. Of the
constants of ``hs.compare`` some were chosen on samples of normal distributions; the filter of the statistic
by its power on payroll 2016, room climate and htru2; the score part and the smoothing of the weights by size
and power on the sources for tuning, protein_casp and naval_propulsion, after a size of 0.08 had been seen on
htru2. So power is measured on other sources.

*Power*: how often it rejects when one sample is shifted. The peer is the dpMMD test of Kim and Schrab,
*Differentially private permutation tests* (2023), which sees both samples and publishes one bit: pure ε for
a replaced record. Ours sees two released functions, each of which keeps answering; under add/remove, and
under replace with a public number of records. The peer is computed here from the definition in the paper: the
V-statistic of 500 permutations, each with Laplace noise of scale 2·√2/(n·ε). So that 20,000 records fit, the
kernel is factorised on a lattice or at 800 of them, which keeps its mean on the diagonal within 0.02
(checked in each run). On samples of 300 records the statistic equals that of the authors' package to six
digits.

*Drift*: how often a stream of 24 steps without a change raises an alarm, and how soon a change is found.

    HUSHSUM_DATA=… python -m benchmarks compare_test [--runs 400] [--minutes 7] [--only size|power|drift]

Cells that were measured with as many runs are not measured again. ``--minutes``
stops before the next cell; the next call continues.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.coverage.intervals import DIGITS, HELD_OUT, PLAIN, SOURCES, Array, Source, heaped, records_of
from benchmarks.writer import Results, version_of_code

import hushsum as hs

RESULTS = Results("compare_test")
LEVEL, PERMUTATIONS, LANDMARKS = 0.05, 500, 800
SIZE_RECORDS = 1000
EPSILONS = (0.1, 1.0, 3.0)
SHIFTS = (2.5, 4.0)
"""Lengths of the shift in standard deviations, times √N."""

Cell = dict[str, Any]


def basis(method: str, source: Source, bandwidth: float, bounds: Any) -> hs.Tally:
    """An empty tally; both samples are counted in one like it."""
    if method == "race":
        return hs.race(hs.EuclideanKernel(dim=source.dim, bandwidth=2 * bandwidth), rows=400, bounds=bounds)
    kernel = hs.GaussianKernel(dim=source.dim, bandwidth=bandwidth)
    if method == "grid":
        return hs.grid(kernel, bounds=bounds)
    return hs.fourier_features(kernel, features=512, bounds=bounds)


def population(name: str, heap: str = PLAIN) -> tuple[Source, Array]:
    source = next(each for each in SOURCES if each.name == name)
    assert source.half == HELD_OUT
    return source, heaped(records_of(source, Path(os.environ["HUSHSUM_DATA"])), heap, source)


SIZE = [
    ("payroll 2016", "grid", 1.0, DIGITS),
    ("San Francisco", "fourier", 1.0, DIGITS),
    ("payroll 2016", "grid", 0.1, PLAIN),
    ("htru2", "fourier", 1.0, PLAIN),
    ("payroll 2016", "grid", 3.0, DIGITS),
    ("room climate", "grid", 1.0, DIGITS),
    ("San Francisco", "fourier", 0.1, DIGITS),
    ("mammography", "race", 1.0, PLAIN),
    ("htru2", "fourier", 3.0, PLAIN),
    ("kdd_http", "fourier", 1.0, PLAIN),
    ("San Francisco", "fourier", 3.0, DIGITS),
    ("room climate", "grid", 0.1, PLAIN),
    ("room climate", "grid", 3.0, DIGITS),
    ("mammography", "race", 0.1, PLAIN),
]


def size(cell: Cell, runs: int) -> Cell:
    """Rejections without a difference."""
    source, rows = population(cell["source"], cell["heap"])
    delta = None if cell["method"] == "grid" else 1e-6
    rng = np.random.default_rng(1)
    p = []
    for run in range(runs):
        pair = [
            basis(cell["method"], source, source.bandwidth, source.bounds)
            .add(rows[rng.integers(len(rows), size=SIZE_RECORDS)])
            .release(epsilon=cell["epsilon"], delta=delta, insecure_noise_seed=2 * run + i)
            for i in range(2)
        ]
        p.append(hs.compare(*pair).p_value)
    return {"rejected": float(np.mean(np.array(p) <= LEVEL)), "delta": delta or 0.0}


POWER_SOURCES = ("San Francisco", "kdd_http", "mammography")
POWER = [
    *((name, 1000, shift, 1.0) for shift in SHIFTS[::-1] for name in POWER_SOURCES),
    *((name, 10_000, 4.0, 1.0) for name in POWER_SOURCES),
    *((name, 1000, 4.0, epsilon) for epsilon in (0.3, 0.1) for name in POWER_SOURCES[::2]),
]


def power(cell: Cell, runs: int) -> Cell:
    """Rejections of a mean shift, by the peer and by two releases."""
    source, rows = population(cell["source"])
    records, epsilon = cell["records"], cell["epsilon"]
    # Scales are declared: those of the population, as if they were known from elsewhere.
    scaled = np.clip((rows - rows.mean(axis=0)) / rows.std(axis=0), -5.0, 5.0)
    step = cell["shift"] / np.sqrt(records) / np.sqrt(source.dim)
    # The peer's default kernel exp(−‖x − y‖²/d).
    bandwidth = float(np.sqrt(source.dim / 2.0))
    method = "grid" if source.dim <= 2 else "fourier"
    rng = np.random.default_rng(2)
    rejected = {"dpMMD": 0, "exact MMD": 0, "add/remove": 0, "replace": 0}
    for run in range(runs):
        x, y = (scaled[rng.integers(len(scaled), size=records)] for _ in range(2))
        y = np.clip(y + step, -6.0, 6.0)
        private, exact = dpmmd(x, y, bandwidth, epsilon, rng)
        rejected["dpMMD"] += private
        rejected["exact MMD"] += exact
        for relation in ("add/remove", "replace"):
            pair = [
                basis(method, source, bandwidth, (-6.0, 6.0))
                .add(each)
                .release(
                    epsilon=epsilon,
                    delta=None if method == "grid" else 1e-6,
                    relation=relation,
                    insecure_noise_seed=2 * run + i,
                )
                for i, each in enumerate((x, y))
            ]
            rejected[relation] += hs.compare(*pair).p_value <= LEVEL
    return {"method": method, **{name: int(number) / runs for name, number in rejected.items()}}


def dpmmd(
    x: Array, y: Array, bandwidth: float, epsilon: float, rng: np.random.Generator
) -> tuple[bool, bool]:
    """Whether the dpMMD test rejects, and whether it does without noise."""
    rows = np.concatenate([x, y])
    n, m = len(x), len(y)
    kernel = hs.GaussianKernel(dim=x.shape[1], bandwidth=bandwidth)
    line = np.linspace(-6.0, 6.0, 25)
    if x.shape[1] <= 2:
        some = np.stack(np.meshgrid(*[line] * x.shape[1]), axis=-1).reshape(-1, x.shape[1])
    else:
        some = np.unique(rows[rng.permutation(len(rows))[:LANDMARKS]], axis=0)
    values, vectors = np.linalg.eigh(kernel.similarity(some, some))
    kept = values > 1e-9 * values[-1]
    features = (kernel.similarity(some, rows).T @ (vectors[:, kept] / np.sqrt(values[kept]))).astype(
        np.float32
    )
    assert abs(float(np.square(features).sum(axis=1).mean()) - 1.0) < 0.02
    features -= features.mean(axis=0)
    statistics = np.empty(PERMUTATIONS + 1)
    for b in range(0, PERMUTATIONS, 100):
        chosen = np.zeros((100, n + m), np.float32)
        for each in chosen:
            each[rng.permutation(n + m)[:n]] = 1.0 / n + 1.0 / m
        # The sum over the others is minus that over the chosen, since features are centred.
        statistics[b : b + 100] = np.linalg.norm(chosen @ features, axis=1)
    statistics[-1] = np.linalg.norm(features[:n].mean(axis=0) - features[n:].mean(axis=0))
    noise = rng.laplace(scale=2.0 * np.sqrt(2.0) / (min(n, m) * epsilon), size=PERMUTATIONS + 1)
    return tuple(bool(np.mean(each >= each[-1]) <= LEVEL) for each in (statistics + noise, statistics))  # type: ignore[return-value]


DRIFT = [("room climate", epsilon, shift) for epsilon in (0.3, 1.0) for shift in (0.0, 0.3)]
STEPS, PER_STEP, CHANGE = 24, 500, 13


def drifting(cell: Cell, runs: int) -> Cell:
    """Streams whose records are shifted from step 13 on."""
    source, rows = population(cell["source"])
    scaled = np.clip((rows - rows.mean(axis=0)) / rows.std(axis=0), -5.0, 5.0)
    rng = np.random.default_rng(3)
    early, found, delay = 0, 0, []
    for run in range(runs):
        tally = basis("grid", source, 1.0, (-6.0, 6.0))
        stream = hs.stream(tally, horizon=STEPS, epsilon=cell["epsilon"], delta=1e-6, insecure_noise_seed=run)
        steps = []
        for step in range(1, STEPS + 1):
            part = scaled[rng.integers(len(scaled), size=PER_STEP)]
            moved = part + (cell["shift"] if step >= CHANGE else 0.0)
            steps.append(stream.add(np.clip(moved, -6.0, 6.0)).step())
        at = hs.drift(steps, false_alarm=LEVEL).detected_at
        if at is not None and (at < CHANGE or cell["shift"] == 0.0):
            early += 1
        elif at is not None:
            found += 1
            delay.append(at - CHANGE + 1)
    return {
        "false_alarms": early / runs,
        "found": found / runs,
        "steps_until_found": float(np.median(delay)) if delay else None,
    }


JOBS: dict[str, tuple[list[Cell], Callable[[Cell, int], Cell]]] = {
    "size": ([dict(zip(("source", "method", "epsilon", "heap"), each, strict=True)) for each in SIZE], size),
    "power": (
        [dict(zip(("source", "records", "shift", "epsilon"), each, strict=True)) for each in POWER],
        power,
    ),
    "drift": ([dict(zip(("source", "epsilon", "shift"), each, strict=True)) for each in DRIFT], drifting),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--only", choices=tuple(JOBS))
    parser.add_argument("--records", type=int, help="of power, this number per sample alone")
    given = parser.parse_args()
    end = time.monotonic() + 60.0 * given.minutes
    done: dict[str, Any] = RESULTS.read({"cells": []})
    for job, (cells, measure) in JOBS.items():
        if given.only not in (None, job):
            continue
        for cell in cells:
            if given.records is not None and cell.get("records", given.records) != given.records:
                continue
            key = {"job": job, **cell}
            known = [
                each for each in done["cells"] if all(each.get(name) == value for name, value in key.items())
            ]
            if known and known[0]["runs"] >= given.runs:
                continue
            if time.monotonic() > end:
                break
            started = time.process_time()
            found = measure(cell, given.runs)
            spent = (time.process_time() - started) / given.runs
            fresh = {**key, "runs": given.runs, **found, "seconds_per_run": round(spent, 3)}
            done["cells"] = [each for each in done["cells"] if each not in known] + [fresh]
            done["version"] = version_of_code().as_json()
            RESULTS.write(done)
            write_report(done)
            print(fresh, flush=True)


def write_report(done: dict[str, Any]) -> None:
    """The tables in words, for people."""
    lines = [
        "# Size and power of the two-sample test, and drift",
        "",
        f"Written by `python -m benchmarks compare_test`, version {done['version']['number']}, commit "
        f"{done['version']['commit'][:10]}. Level {LEVEL}. Constants were chosen on samples of normal "
        "distributions, the filter of the statistic by its power on payroll 2016, room climate and htru2, "
        "its score part and the smoothing of weights on the sources for tuning, protein_casp and "
        "naval_propulsion, after a size of 0.08 had been seen on htru2; power is measured on other sources.",
        "",
        "## Size: both samples from one population, 1,000 records each",
        "",
        "| source | basis | ε | δ | records | rejected | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    chosen = {job: [each for each in done["cells"] if each["job"] == job] for job in JOBS}
    order = list(JOBS)
    for job in order:
        place = {json.dumps(cell): i for i, cell in enumerate(JOBS[job][0])}
        chosen[job].sort(
            key=lambda each: place.get(json.dumps({k: each[k] for k in JOBS[each["job"]][0][0]}), 0)
        )
    for each in chosen["size"]:
        lines.append(
            f"| {each['source']} | {each['method']} | {each['epsilon']:g} | {each['delta']:g} | "
            f"{each['heap']} | {each['rejected']:.3f} | {each['runs']} |"
        )
    lines += [
        "",
        "## Power: one sample shifted by shift/√N standard deviations",
        "",
        "dpMMD sees both samples, and publishes one bit. The columns *add/remove* and *replace* are "
        "`hs.compare` of two releases under that relation, by a grid with pure ε for one and two columns, by "
        "Fourier features with δ = 1e-6 for more. *no noise* is the permutation test on the records.",
        "",
        "| source | N | shift | ε | no noise | dpMMD | add/remove | replace | runs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in chosen["power"]:
        lines.append(
            f"| {each['source']} | {each['records']:,} | {each['shift']:g} | {each['epsilon']:g} | "
            f"{each['exact MMD']:.3f} | {each['dpMMD']:.3f} | {each['add/remove']:.3f} | "
            f"{each['replace']:.3f} | {each['runs']} |"
        )
    lines += [
        "",
        f"## Drift: {STEPS} steps of {PER_STEP} records, shifted from step {CHANGE} on",
        "",
        f"`hs.drift` with a false-alarm rate of {LEVEL} over the horizon; shifts in standard deviations.",
        "",
        "| source | ε (δ = 1e-6) | shift | false alarms | found | steps until found (median) | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in chosen["drift"]:
        later = "" if each["steps_until_found"] is None else f"{each['steps_until_found']:g}"
        lines.append(
            f"| {each['source']} | {each['epsilon']:g} | {each['shift']:g} | {each['false_alarms']:.3f} | "
            f"{each['found']:.3f} | {later} | {each['runs']} |"
        )
    RESULTS.publish("\n".join(lines))


if __name__ == "__main__":
    main()
