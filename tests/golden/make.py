"""Write the golden files of each format version: small files that every later Hushsum must still read.

Run once for each format version, ``python -m tests.golden.make``. Files that exist are left alone: they are
promises. The noise comes from an insecure seed and the records from arithmetic, so nothing here is private.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hushsum as hs
from hushsum.kernels import Kernel
from hushsum.releases import TableFunction

FOLDERS = {version: Path(__file__).parent / f"v{version}" for version in (1, 2)}
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


def empty(kernel: Kernel, version: int, **options: Any) -> hs.Tally:
    """The tally that a golden file holds, before any record."""
    return hs.race(kernel, rows=4, width=8, seed=11, scattered=version > 1, **options)


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
    for version, folder in FOLDERS.items():
        folder.mkdir(exist_ok=True)
        expected_path = folder / "expected.json"
        expected = json.loads(expected_path.read_text()) if expected_path.exists() else {}
        for path, function, queries in _released(version, folder):
            if not path.exists():
                f = function()
                assert isinstance(f, TableFunction)
                f.save(path)
                expected[path.name] = answers(f, queries)
        _write_tallies(version, folder)
        expected_path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


def _released(version: int, folder: Path) -> Iterator[tuple[Path, Callable[[], Any], Any]]:
    for name, (kernel, records) in KERNELS.items():
        promises = PROMISES if name == "euclidean" else {"epsilon": PROMISES["epsilon"]}
        for promise, options in promises.items():
            tally = empty(kernel, version).add(records)
            release = partial(tally.release, rows=4, insecure_noise_seed=5, **options)
            yield folder / f"{name}-{promise}.hush", release, records[:3]
    if version > 1:
        kernel, records = KERNELS["euclidean"]
        large = hs.race(kernel, rows=70, width=60, seed=11).add(records)
        release = partial(large.release, insecure_noise_seed=5, **PROMISES["delta"])
        yield folder / "euclidean-packed.hush", release, records[:3]
        yield folder / "euclidean-rounded.hush", partial(release, rounded=True), records[:3]


def _write_tallies(version: int, folder: Path) -> None:
    for name, (kernel, records) in KERNELS.items():
        if not (folder / f"{name}.tally").exists():
            empty(kernel, version).add(records).save(folder / f"{name}.tally")
    kernel, records = KERNELS["euclidean"]
    if not (folder / "encrypted.tally").exists():
        empty(kernel, version).add(records).save(folder / "encrypted.tally", encryption_key=KEY)
    if not (folder / "persons.tally").exists():
        capped = empty(kernel, version, bounds=[(0.0, 10.0), (-5.0, 5.0)], max_per_unit=3)
        capped.add(records, units=[i % 9 for i in range(40)]).save(folder / "persons.tally")


if __name__ == "__main__":
    main()
