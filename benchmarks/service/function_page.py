"""Pages of released functions in Chromium: size, first paint, and frames while a slider is dragged.

``python -m benchmarks function_page``. Targets for a two-dimensional grid: 1 MB, first paint within
1 s, 60 frames a second. Needs Playwright and a system Chromium. Times between frames depend on what else the
machine does; the processor time of the page's main thread, from Chromium's trace of a second drag, does not.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results

import hushsum as hs
from hushsum.plotting import reader_script, write_page

_DRAG = """async () => {
  const slider = document.querySelector("input[type=range]");
  if (slider === null) return null;
  const [low, high] = [Number(slider.min), Number(slider.max)];
  const times = [], work = [];
  let before = performance.now();
  for (let i = 0; i < 240; i += 1) {
    slider.value = low + (high - low) * (0.5 + 0.5 * Math.sin(i / 20));
    const start = performance.now();
    slider.dispatchEvent(new Event("input"));
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    if (i >= 60) times.push(now - before), work.push(now - start);
    before = now;
  }
  times.sort((a, b) => a - b);
  const size = Number(document.querySelector(".plot").dataset.points);
  return { median: times[90], ninth: times[162], size };
}"""


_FRAME = "ProxyMain::BeginMainFrame"


def _processor_time(trace: bytes) -> float:
    """Milliseconds of the page's main thread per frame: scripts, layout, painting and commit."""
    events = json.loads(trace)["traceEvents"]
    times = [each["tdur"] / 1000 for each in events if each["name"] == _FRAME and "tdur" in each]
    return float(np.median(times))


def functions() -> dict[str, Any]:
    """A grid in the plane, grids in space, and hash rows in three columns."""
    rng = np.random.default_rng(0)
    data = rng.normal(5.0, 1.5, size=(100_000, 3))
    plane, space = data[:, :2], data
    box: dict[str, Any] = {"epsilon": 1.0, "bounds": (0, 10)}
    return {
        "grid, 2 columns, Euclidean": hs.release(plane, kernel="euclidean", bandwidth=1.0, **box),
        "grid, 2 columns, Gaussian": hs.release(plane, kernel="gaussian", bandwidth=0.2, **box),
        "grid, 3 columns, Gaussian": hs.release(space, kernel="gaussian", bandwidth=0.5, **box),
        "hash rows, 3 columns": hs.release(space, delta=1e-6, bandwidth=1.0, method="race", rows=1000, **box),
    }


def main() -> None:
    """Measure and write the result."""
    from playwright.sync_api import sync_playwright

    script = reader_script().encode()
    found: dict[str, Any] = {"reader": {"bytes": len(script), "compressed": len(gzip.compress(script, 9))}}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = next(
            each for name in ("chromium", "chromium-browser", "google-chrome") if (each := shutil.which(name))
        )
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, function in functions().items():
            function.save(Path(folder, "f.hush"))
            size = write_page(str(Path(folder, "f.hush")), str(Path(folder, "f.html")))
            page = browser.new_page(viewport={"width": 1000, "height": 900})
            page.goto(Path(folder, "f.html").as_uri())
            page.wait_for_selector(".plot[data-points]")
            paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            ready = page.evaluate("performance.getEntriesByName('explored')[0].startTime")
            page.wait_for_timeout(2000)
            drag = page.evaluate(_DRAG)
            if drag is not None:
                browser.start_tracing(page=page, categories=["cc", "toplevel"])
                page.evaluate(_DRAG)
                drag["processor"] = _processor_time(browser.stop_tracing())
            found[name] = {"bytes": size, "first paint, ms": round(paint), "first picture, ms": round(ready)}
            if drag is not None:
                found[name]["frame while dragging, ms"] = {
                    "median": round(drag["median"], 1),
                    "90 %": round(drag["ninth"], 1),
                    "processor": round(drag["processor"], 1),
                    "points": drag["size"],
                }
            print(name, found[name], file=sys.stderr)
            page.close()
        browser.close()
    Results("function_page").write(found)


if __name__ == "__main__":
    main()
