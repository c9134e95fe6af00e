"""Memory while streaming: a tally plus a constant, whatever the file's size. Shown with 50 million
generated rows.

A child process runs ``hushsum tally -`` and reads CSV from a pipe that this process fills; its peak
resident memory is compared between a small and a large stream. Nothing is written to disk but the tally.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_CHILD = """
import resource, sys
from hushsum.cli.main import run
try:
    run()
except SystemExit as end:
    code = end.code or 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
raise SystemExit(code)
"""


def peak_megabytes(rows: int, table_rows: int) -> tuple[float, float]:
    """Peak memory of the child in MB, and its CPU seconds, for a stream of ``rows`` records."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-c", _CHILD, "tally", "-", "--columns", "a,b", "--kernel", "euclidean",
            "--bandwidth", "1", "--rows", str(table_rows), "-o", str(Path(folder) / "t.tally"),
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write(b"a,b\n")
        block = _block()
        count = block.count(b"\n")
        for _ in range(rows // count):
            child.stdin.write(block)
        child.stdin.close()
        said = child.stderr.read().decode().split()
        if child.wait() != 0:
            raise SystemExit(" ".join(said))
        return int(said[-1]) / 1024, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def _block() -> bytes:
    numbers = np.random.default_rng(0).standard_normal((100_000, 2))
    return b"".join(b"%.4f,%.4f\n" % (a, b) for a, b in numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="five million rows instead of fifty")
    parser.add_argument("--table-rows", type=int, default=50)
    arguments = parser.parse_args()
    small, large = (500_000, 5_000_000) if arguments.quick else (5_000_000, 50_000_000)
    small_peak, _ = peak_megabytes(small, arguments.table_rows)
    large_peak, seconds = peak_megabytes(large, arguments.table_rows)
    result = {
        "small_rows": small,
        "small_peak_mb": small_peak,
        "large_rows": large,
        "large_peak_mb": large_peak,
        "ratio": large_peak / small_peak,
        "cpu_seconds": seconds,
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        print(f"peak memory: {small_peak:.0f} MB for {small:,} rows, {large_peak:.0f} MB for {large:,} rows")
        print(f"ratio {large_peak / small_peak:.2f} (target: constant, about 1); {seconds:.0f} s of CPU")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
