"""One million points to a heat map of 512 × 512: the time of every step, and of a command from CSV to HTML.

``python -m benchmarks heat_map``. Target: 5 s end to end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results

import hushsum as hs

POINTS = 1_000_000
SIZE = 512
BOX = [(2.1, 2.6), (48.7, 49.0)]


def points() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Twelve centres with crowds of three widths around them."""
    rng = np.random.default_rng(0)
    centres = rng.normal([2.35, 48.86], [0.06, 0.04], size=(12, 2))
    widths = rng.choice([0.004, 0.01, 0.02], size=(POINTS, 1))
    made: np.ndarray[Any, np.dtype[np.float64]]
    made = centres[rng.integers(0, 12, POINTS)] + rng.normal(size=(POINTS, 2)) * widths * [1.5, 1.0]
    return made


def main() -> None:
    """Measure and write the result."""
    data = points()
    seconds: dict[str, float] = {}

    def timed(name: str, run: Any) -> Any:
        start, processor = time.perf_counter(), time.process_time()
        result = run()
        seconds[name] = round(time.perf_counter() - start, 3)
        seconds[f"{name}, processor"] = round(time.process_time() - processor, 3)
        print(f"{name:<24} {seconds[name]:7.2f} s", file=sys.stderr)
        return result

    heat = timed("count and release", lambda: hs.heatmap(data, bounds=BOX, bandwidth=400, epsilon=1.0))
    timed("raster", lambda: heat.raster(SIZE))
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("html", "png", "geojson", "tif"):
            timed(suffix, lambda suffix=suffix: heat.save(Path(folder, f"map.{suffix}"), size=SIZE))
        np.savetxt(Path(folder, "points.csv"), data, delimiter=",", header="lon,lat", comments="", fmt="%.6f")
        words = "heatmap points.csv --columns lon,lat --bounds 2.1:2.6,48.7:49.0 --bandwidth 400 --epsilon 1"
        command = [sys.executable, "-m", "hushsum", *words.split(), "-o", "map.html", "--yes"]

        def run() -> None:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)

        timed("command, CSV to HTML", run)
    Results("heat_map").write({"points": POINTS, "size": SIZE, "seconds": seconds})


if __name__ == "__main__":
    main()
