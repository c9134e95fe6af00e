"""Release over time: the noise of every step against one release of everything, and the time of a step.

Run: ``python -m benchmarks stream_steps [--quick]``. The noise is measured on streams without records, whose
cells hold nothing else, and compared with what the plan predicts. The state of a 1000 × 1000 sketch is
encrypted and written durably at every step; its time is that of a whole ``step()``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results

import hushsum as hs
from hushsum.releases import NoisyTable

EPSILON, DELTA = 1.0, 1e-6
HORIZONS = (52, 365, 1000)
TARGET_RATIO = {365: 3.1}
TARGET_SECONDS = 1.0
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


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description="Noise and time of the steps of a stream.")
    parser.add_argument("--quick", action="store_true", help="fewer cells and steps; nothing is stored")
    quick = parser.parse_args().quick
    rows, width = (20, 100) if quick else (50, 200)
    gaussian: dict[str, float] = {"epsilon": EPSILON, "delta": DELTA}
    noise = [largest_deviation(steps, rows, width, **gaussian) for steps in HORIZONS]
    noise.append(largest_deviation(365, rows, width, epsilon=EPSILON))
    random = np.random.default_rng(0)
    sketch = hs.race(hs.EuclideanKernel(dim=3, bandwidth=5.0), rows=1000, width=1000)
    grid = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.01), bounds=(0, 1))
    taken = 3 if quick else 9
    times = [
        step_seconds(sketch, random.normal(0, 20, (5000, 3)), 365, taken),
        step_seconds(sketch, random.normal(0, 20, (5000, 3)), 10_000, taken),
        step_seconds(grid, random.uniform(size=(5000, 2)), 365, taken),
    ]
    result = {"noise": noise, "times": times, "load": os.getloadavg()[0], "processors": os.cpu_count()}
    text = report(result)
    print(text)
    if not quick:
        RESULTS.write(result)
        RESULTS.publish(text)


def report(result: dict[str, Any]) -> str:
    """Two tables."""
    lines = [
        "# Release over time",
        "",
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
    lines += [
        "",
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
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
