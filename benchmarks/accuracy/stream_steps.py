"""Release over time: the noise of every step against one release of everything, and the time of a step.

Run: ``python -m benchmarks stream_steps [--quick] [--part PART]``. The noise is measured on streams without
records, whose cells hold nothing else, and compared with what the plan predicts. The state of a 1000 × 1000
sketch is encrypted and written durably at every step; its time is that of a whole ``step()``.

Without a horizon the variance is computed, exactly, and compared with that of the best factorisations known
for a horizon. Coverage is that of intervals for 95 % at eleven points, after 100 steps; hash functions are
drawn anew in every run, and once more held fixed, where the approximation error of a point is the same in all
runs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results

import hushsum as hs
from hushsum.privacy import MOST_STEPS, Factorisation, TreeSums, View
from hushsum.releases import NoisyTable

EPSILON, DELTA = 1.0, 1e-6
HORIZONS = (52, 365, 1000)
TARGET_RATIO = {365: 3.1}
TARGET_SECONDS = 1.0
FAR = 1 << 24
PARTS = ("noise", "times", "endless", "coverage", "alarms")
RESULTS = Results("stream_steps")


def largest_deviation(steps: int, rows: int, width: int, **promise: Any) -> dict[str, Any]:
    """Of the last step, which has the most noise, in units of one release.

    The deviation over the cells of one stream, and its standard error. The largest of several steps would be
    biased upwards: each is measured with an error.
    """
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=rows, width=width)
    once = tally.release(rows=rows, **promise)
    assert isinstance(once, NoisyTable)
    alone = float(once.table.std())
    stream = hs.stream(tally, horizon=steps, **promise)
    for _ in range(steps):
        last = stream.step()
    measured = float(last.table.std()) / alone
    binary = steps.bit_length()
    return {
        "steps": steps,
        "promise": promise,
        "predicted": stream.plan.ratio,
        "measured": measured,
        "stderr": measured / (rows * width) ** 0.5,
        "target": TARGET_RATIO.get(steps) if "delta" in promise else None,
        "fresh releases": steps**0.5 if "delta" in promise else float(steps),
        "binary tree": (binary * (binary - 1)) ** 0.5 if "delta" in promise else binary * (binary - 1) ** 0.5,
        "state in tables": round(stream.plan.state_bytes / 8 / (rows * width)),
    }


def step_seconds(tally: hs.Tally, records: Any, steps: int, taken: int) -> dict[str, Any]:
    """The median of some steps, with the state encrypted on disk."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HUSHSUM_STATE"] = folder
        stream = hs.stream(
            tally,
            horizon=steps,
            epsilon=EPSILON,
            delta=DELTA,
            path=f"{folder}/a.stream",
            encryption_key=os.urandom(32),
        )
        seconds, processor = [], []
        for _ in range(taken):
            stream.add(records)
            start, used = time.perf_counter(), time.process_time()
            stream.step()
            seconds.append(time.perf_counter() - start)
            processor.append(time.process_time() - used)
        size = Path(folder, "a.stream").stat().st_size
        stream.close()
    return {
        "table": f"{tally.basis.name}, {tally.basis.shape[0]} × {tally.basis.shape[1]}",
        "steps": steps,
        "seconds": float(np.median(seconds)),
        "processor_seconds": float(np.median(processor)),
        "target": TARGET_SECONDS,
        "state_megabytes": size / 1e6,
    }


def endless(far: int) -> dict[str, Any]:
    """The variance without a horizon over that of the best factorisations for the horizon ``far``.

    Of the exact weights binom(2k, k)/4^k it is Σ_{k<t} c_k²·Σ_{k<far} c_k² at step t; of the best one known,
    and of all that there can be, only a bound on the largest over all steps is known (Mathias 1993).
    """
    plan, tree = Factorisation.best(None, View(), fraction_bits=26), TreeSums.best(None, View())
    k = np.arange(1, far)
    exact = np.cumsum(np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))]) ** 2)
    steps = np.unique(
        np.concatenate([np.geomspace(1, far, 20_000), np.linspace(1, far, 50_000)]).astype(np.int64)
    )
    variance = plan.bounds().column_squared * plan.gains(View(), steps)
    ratio = variance / (exact[steps - 1] * exact[-1])
    mean = 1.0 / np.sin((2 * np.arange(1, far + 1) - 1) * np.pi / (2 * far))
    known, least = (0.5 + mean.mean() / 2) ** 2, ((far + 1) / far * mean.mean() / 2) ** 2
    shown = [
        each for each in (1, 10, 100, 365, 1000, 10_000, 1 << 17, 1 << 20, 1 << 22, 1 << 24) if each <= far
    ]
    at = np.array(shown)
    own = plan.bounds().column_squared * plan.gains(View(), at)
    trees = []
    for each in (step for step in shown if step <= MOST_STEPS):
        within, one = np.arange(1, each + 1), TreeSums.best(each, View())
        variances = [plan.levels**2 * plan.gains(View(), within).max() for plan in (tree, one)]
        trees.append(float(variances[0] / variances[1]))
    return {
        "far": far,
        "largest": float(ratio.max()),
        "mean": float(ratio.mean()),
        "known": float(variance.max() / known),
        "least": float(variance.max() / least),
        "steps": shown,
        "over the horizon": (own / (exact[at - 1] * exact[-1])).tolist(),
        "over this step": (own / exact[at - 1] ** 2).tolist(),
        "trees": trees,
        "tables": plan.tables,
    }


def coverage(runs: int, *, method: str, fixed: bool, horizon: int | None, **promise: Any) -> dict[str, Any]:
    """How often intervals for 95 % hold the true sums after 100 steps, over points."""
    random, points = np.random.default_rng(0), np.linspace(-2.5, 2.5, 11)[:, np.newaxis]
    held = np.zeros(len(points))
    for run in range(runs):
        if method == "grid":
            kernel: Any = hs.GaussianKernel(dim=1, bandwidth=0.5)
            tally = hs.grid(kernel, bounds=(-4, 4))
        else:
            kernel = hs.EuclideanKernel(dim=1, bandwidth=1.0)
            tally = hs.race(kernel, rows=200, width=100, bounds=(-4, 4), seed=0 if fixed else run)
        stream = hs.stream(tally, horizon=horizon, insecure_noise_seed=run, **promise)
        records = random.normal(size=(5000, 1))
        for part in np.array_split(records, 100):
            function = stream.add(part, threads=1).step(threads=1)
        found = function.query(points, of="sum")
        true = kernel.similarity(records, points).sum(axis=0)
        held += (found.lower <= true) & (true <= found.upper)
    rates = held / runs
    about = {
        "method": method,
        "hash functions": "fixed" if fixed else "new",
        "horizon": horizon,
        "runs": runs,
    }
    return about | {"promise": promise, "mean": rates.mean(), "least": rates.min(), "most": rates.max()}


def alarms(runs: int, steps: int, rate: float) -> dict[str, Any]:
    """How many of some streams without a horizon, and without drift, raise an alarm in their first steps."""
    kernel, found = hs.GaussianKernel(dim=1, bandwidth=0.5), 0
    for run in range(runs):
        random = np.random.default_rng(run)
        stream = hs.stream(hs.grid(kernel, bounds=(-4, 4)), epsilon=1.0, delta=1e-6, insecure_noise_seed=run)
        made = [stream.add(random.normal(size=(300, 1)), threads=1).step(threads=1) for _ in range(steps)]
        found += hs.drift(made, false_alarm=rate).alarm is not None
    return {"runs": runs, "steps": steps, "rate": rate, "alarms": found}


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description="Noise and time of the steps of a stream.")
    parser.add_argument("--quick", action="store_true", help="fewer cells and steps; nothing is stored")
    parser.add_argument(
        "--part", choices=PARTS, action="append", help="measure this again, and keep the others"
    )
    given = parser.parse_args()
    quick, parts = given.quick, given.part or PARTS
    result: dict[str, Any] = {}
    rows, width = (20, 100) if quick else (50, 200)
    if "noise" in parts:
        result["noise"] = measured_noise(rows, width)
    if "times" in parts:
        result |= {"times": measured_times(3 if quick else 9), "load": os.getloadavg()[0]}
        result["processors"] = os.cpu_count()
    if "endless" in parts:
        result["endless"] = endless(1 << 16 if quick else FAR)
    if "coverage" in parts:
        runs = 20 if quick else 300
        result["coverage"] = [
            coverage(runs, method=method, fixed=fixed, horizon=horizon, epsilon=EPSILON, **more)
            for method, fixed, horizon, more in (
                ("grid", False, 100, {}),
                ("grid", False, None, {}),
                ("race", False, 100, {}),
                ("race", True, 100, {}),
                ("grid", False, 100, {"delta": DELTA}),
            )
        ]
    if "alarms" in parts:
        result["alarms"] = alarms(5 if quick else 100, 20, 0.1)
    if given.part and not quick:
        result = RESULTS.read({}) | result
    text = report(result)
    print(text)
    if not quick:
        RESULTS.write(result)
        RESULTS.publish(text)


def measured_noise(rows: int, width: int) -> list[dict[str, Any]]:
    """The largest deviations of some horizons."""
    gaussian: dict[str, float] = {"epsilon": EPSILON, "delta": DELTA}
    noise = [largest_deviation(steps, rows, width, **gaussian) for steps in HORIZONS]
    noise.append(largest_deviation(365, rows, width, epsilon=EPSILON))
    return noise


def measured_times(taken: int) -> list[dict[str, Any]]:
    """The times of a step of two sketches and a grid."""
    random = np.random.default_rng(0)
    sketch = hs.race(hs.EuclideanKernel(dim=3, bandwidth=5.0), rows=1000, width=1000)
    grid = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.01), bounds=(0, 1))
    return [
        step_seconds(sketch, random.normal(0, 20, (5000, 3)), 365, taken),
        step_seconds(sketch, random.normal(0, 20, (5000, 3)), 10_000, taken),
        step_seconds(grid, random.uniform(size=(5000, 2)), 365, taken),
    ]


def report(result: dict[str, Any]) -> str:
    """A table for each part."""
    tables = {
        "noise": noise_table,
        "endless": endless_table,
        "coverage": coverage_table,
        "times": times_table,
    }
    lines = ["# Release over time"]
    for part, table in tables.items():
        if part in result:
            lines += ["", *table(result)]
    if "alarms" in result:
        found = result["alarms"]
        lines += [
            "",
            f"Of {found['runs']} streams without a horizon and without drift {found['alarms']} raised an "
            f"alarm in {found['steps']} steps; the rate for all there will ever be is {found['rate']:g}.",
        ]
    return "\n".join(lines) + "\n"


def endless_table(result: dict[str, Any]) -> list[str]:
    """Variances without a horizon."""
    found = result["endless"]
    lines = [
        f"Without a horizon, {found['tables']} buffers: the variance over that of the exact weights for the "
        f"horizon {found['far']} is at most {found['largest']:.2f} at all steps up to it, "
        f"{found['mean']:.2f} in the mean. Its largest value is {found['known']:.2f} times that of the best "
        f"factorisation known for this horizon, and {found['least']:.2f} times the proven minimum "
        f"(Mathias 1993). Under pure ε the tree is the best one for the horizon {FAR}.",
        "",
        f"| step | over the horizon {found['far']} | over a horizon of this step | pure ε, over the same |",
        "|---|---|---|---|",
    ]
    columns = (found[name] for name in ("steps", "over the horizon", "over this step", "trees"))
    for step, far, this, tree in zip_longest(*columns):
        lines.append(f"| {step} | {far:.2f} | {this:.2f} | {'' if tree is None else f'{tree:.2f}'} |")
    return lines


def coverage_table(result: dict[str, Any]) -> list[str]:
    """How often intervals hold."""
    lines = [
        "Coverage of intervals for 95 % after 100 steps, of the kernel sums at eleven points.",
        "",
        "| method | hash functions | horizon | promise | runs | mean | lowest | highest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in result["coverage"]:
        promise = ", ".join(f"{name} {value:g}" for name, value in each["promise"].items())
        lines.append(
            f"| {each['method']} | {each['hash functions'] if each['method'] == 'race' else ''} | "
            f"{each['horizon'] or 'none'} | {promise} | {each['runs']} | {each['mean']:.3f} | "
            f"{each['least']:.2f} | {each['most']:.2f} |"
        )
    return lines


def noise_table(result: dict[str, Any]) -> list[str]:
    """The largest deviations."""
    lines = [
        "Largest standard deviation of a cell over all steps, in units of one release of everything under "
        "the same claim.",
        "",
        "| steps | promise | predicted | measured | target | binary tree | fresh releases | state, in "
        "tables |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in result["noise"]:
        promise = ", ".join(f"{name} {value:g}" for name, value in each["promise"].items())
        target = "" if each["target"] is None else f"≤ {each['target']}"
        lines.append(
            f"| {each['steps']} | {promise} | {each['predicted']:.2f} | {each['measured']:.2f} ± "
            f"{each['stderr']:.2f} | {target} | "
            f"{each['binary tree']:.1f} | {each['fresh releases']:.1f} | {each['state in tables']} |"
        )
    return lines


def times_table(result: dict[str, Any]) -> list[str]:
    """The times of a step."""
    lines = [
        f"One `step()`, with the state encrypted and written durably; load average {result['load']:.0f} on "
        f"{result['processors']} processors, so that only the processor time is comparable if it is high.",
        "",
        "| table | steps | seconds | of them processor | target | state, MB |",
        "|---|---|---|---|---|---|",
    ]
    for each in result["times"]:
        lines.append(
            f"| {each['table']} | {each['steps']} | {each['seconds']:.2f} | "
            f"{each['processor_seconds']:.2f} | ≤ {each['target']:g} | {each['state_megabytes']:.0f} |"
        )
    return lines


if __name__ == "__main__":
    main()
