"""Write the golden files of the present format version: small files that every later Hushsum must still read.

Run once for each format version, ``python -m tests.golden.make``. Files that exist are left alone: they are
promises. The noise comes from an insecure seed and the records from arithmetic, so nothing here is private.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hushsum as hs
from hushsum.files.container import VERSION
from hushsum.kernels import Kernel
from hushsum.releases import TableFunction

FOLDER = Path(__file__).parent / f"v{VERSION}"
KEY = bytes(range(32))

POINTS = [[0.25 * i, (7 * i % 11) - 5.0] for i in range(40)]
CODES = [[i % 3, i % 2, i % 5] for i in range(40)]
SETS = [list(range(i % 4, i % 7)) for i in range(40)]

KERNELS: dict[str, tuple[Kernel, Any]] = {
    "euclidean": (hs.EuclideanKernel(dim=2, bandwidth=2.0), POINTS),
    "structured": (hs.EuclideanKernel(dim=2, bandwidth=2.0, power=2, projection="structured"), POINTS),
    "manhattan": (hs.ManhattanKernel(dim=2, bandwidth=2.0), POINTS),
    "angular": (hs.AngularKernel(dim=2, bits=2), POINTS),
    "jaccard": (hs.JaccardKernel(), SETS),
    "hamming": (hs.HammingKernel(dim=3), CODES),
}
PROMISES: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 1.0},
    "delta": {"epsilon": 1.0, "delta": 1e-6},
    "rho": {"rho": 0.5, "relation": "replace"},
}


def empty(kernel: Kernel, **options: Any) -> hs.Tally:
    """The tally that a golden file holds, before any record."""
    return hs.race(kernel, rows=4, width=8, seed=11, **options)


def answers(function: TableFunction, queries: Any) -> dict[str, Any]:
    """What a released function says, as JSON values."""
    return {
        "count": function.count,
        "claim": function.claim.as_json(),
        "mean": function(queries).tolist(),
        "sum": function.sum(queries).tolist(),
        "stderr": function.query(queries).stderr.tolist(),
    }


def main() -> None:
    """Write what is missing."""
    FOLDER.mkdir(exist_ok=True)
    expected_path = FOLDER / "expected.json"
    expected = json.loads(expected_path.read_text()) if expected_path.exists() else {}
    for name, (kernel, records) in KERNELS.items():
        promises = PROMISES if name == "euclidean" else {"epsilon": PROMISES["epsilon"]}
        for promise, options in promises.items():
            path = FOLDER / f"{name}-{promise}.hush"
            if not path.exists():
                f = empty(kernel).add(records).release(rows=4, insecure_noise_seed=5, **options)
                assert isinstance(f, TableFunction)
                f.save(path)
                expected[path.name] = answers(f, records[:3])
        if not (FOLDER / f"{name}.tally").exists():
            empty(kernel).add(records).save(FOLDER / f"{name}.tally")
    kernel, records = KERNELS["euclidean"]
    if not (FOLDER / "encrypted.tally").exists():
        empty(kernel).add(records).save(FOLDER / "encrypted.tally", key=KEY)
    if not (FOLDER / "persons.tally").exists():
        capped = empty(kernel, bounds=[(0.0, 10.0), (-5.0, 5.0)], max_per_unit=3)
        capped.add(records, units=[i % 9 for i in range(40)]).save(FOLDER / "persons.tally")
    expected_path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
