"""How long ``import hushsum`` takes, beside ``import numpy``, and what it brings along. Target: below 0.35
s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

TARGET_SECONDS = 0.35
HEAVY = ("scipy", "pyarrow", "pandas", "polars", "matplotlib", "sklearn", "typer", "rich", "cryptography")
_SCRIPT = """
import sys, time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
print(",".join(sorted({{name.split(".")[0] for name in sys.modules}})))
"""


def seconds_to_import(module: str, runs: int) -> tuple[float, set[str]]:
    """The best time of several fresh interpreters, and the packages loaded."""
    best, loaded = float("inf"), set[str]()
    for _ in range(runs):
        command = [sys.executable, "-c", _SCRIPT.format(module=module)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        best = min(best, float(lines[0]))
        loaded = set(lines[1].split(","))
    return best, loaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    runs = 3 if arguments.quick else 10
    numpy_seconds, _ = seconds_to_import("numpy", runs)
    seconds, loaded = seconds_to_import("hushsum", runs)
    heavy = sorted(loaded & set(HEAVY))
    result = {
        "import_hushsum_seconds": seconds,
        "import_numpy_seconds": numpy_seconds,
        "target_seconds": TARGET_SECONDS,
        "heavy_packages": heavy,
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        print(f"import hushsum {seconds:.3f} s (target < {TARGET_SECONDS} s); numpy {numpy_seconds:.3f} s")
        print(f"heavy packages loaded: {', '.join(heavy) or 'none'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
