"""Write the golden files: small files that every later Hushsum must still read.

``python -m tests.golden.make``. Files that exist are left alone: they are promises. The noise comes from an
insecure seed and the records from arithmetic, so nothing here is private.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import hushsum as hs
from hushsum.baselines import bernstein, fourier_series, hermite, histogram_tally, lsq_rff, trigonometric
from hushsum.files import TablePacker
from hushsum.kernels import Kernel
from hushsum.releases import NoisyTable

FOLDER = Path(__file__).parent / "files"
KEY = bytes(range(32))

POINTS = [[0.25 * i, (7 * i % 11) - 5.0] for i in range(40)]
CODES = [[i % 3, i % 2, i % 5] for i in range(40)]
SETS = [list(range(i % 4, i % 7)) for i in range(40)]
MIXED = [[*point, code[0], members] for point, code, members in zip(POINTS, CODES, SETS, strict=True)]
PRODUCT = (
    hs.kernels.on_columns(hs.EuclideanKernel(dim=2, bandwidth=2.0), [0, 1], of=4)
    * hs.kernels.on_columns(hs.HammingKernel(dim=1), 2, of=4)
    * hs.kernels.on_columns(hs.JaccardKernel(), 3, of=4)
)

KERNELS: dict[str, tuple[Kernel, Any]] = {
    "euclidean": (hs.EuclideanKernel(dim=2, bandwidth=2.0), POINTS),
    "structured": (hs.EuclideanKernel(dim=2, bandwidth=2.0, power=2, projection="structured"), POINTS),
    "manhattan": (hs.ManhattanKernel(dim=2, bandwidth=2.0), POINTS),
    "angular": (hs.AngularKernel(dim=2, bits=2), POINTS),
    "jaccard": (hs.JaccardKernel(), SETS),
    "hamming": (hs.HammingKernel(dim=3), CODES),
    "asymmetric": (hs.kernels.AsymmetricAngularKernel(dim=2, bits=2, radius=4.0), POINTS),
    "product": (PRODUCT, MIXED),
    "combination": (1.5 * hs.EuclideanKernel(2, 2.0) - 0.5 * hs.ManhattanKernel(2, 2.0), POINTS),
}
BOX = [(0.0, 10.0), (-5.0, 5.0)]
WIDE = hs.GaussianKernel(dim=2, bandwidth=3.0)
COEFFICIENTS: dict[str, Callable[[], hs.Tally]] = {
    "grid": lambda: hs.grid(WIDE, bounds=BOX, columns=["a", "b"]),
    "features": lambda: hs.fourier_features(WIDE, features=6, seed=11, sobol=False),
    "even_features": lambda: hs.fourier_features(WIDE, features=16, seed=11),
    "bins": lambda: histogram_tally(WIDE, bounds=BOX, bins=4),
    "series": lambda: fourier_series(WIDE, bounds=BOX, frequencies=1),
    "trigonometric": lambda: trigonometric(WIDE, bounds=BOX, terms=3),
    "bernstein": lambda: bernstein(WIDE, bounds=BOX, degree=3),
    "hermite": lambda: hermite(WIDE, bounds=BOX, order=1),
    "cosines": lambda: lsq_rff(WIDE, features=5, seed=11),
}
PROMISES: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 1.0},
    "delta": {"epsilon": 1.0, "delta": 1e-6},
    "rho": {"rho": 0.5, "relation": "replace"},
}


def empty(kernel: Kernel, **options: Any) -> hs.Tally:
    """The tally that a golden file holds, before any record."""
    return hs.race(kernel, rows=4, width=8, seed=11, **options)


def packed(function: NoisyTable) -> NoisyTable:
    """The same function in the form of large tables."""
    packer = TablePacker(function.basis.shape, unit=function.step)
    return replace(function, cells=packer.add(function.table.astype("int64").reshape(-1)).finish())


def answers(function: NoisyTable, queries: Any) -> dict[str, Any]:
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
    for path, function, queries in _released():
        if not path.exists():
            f = function()
            assert isinstance(f, NoisyTable)
            f.save(path)
            expected[path.name] = answers(f, queries)
    _write_tallies()
    expected_path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


def _released() -> Iterator[tuple[Path, Callable[[], Any], Any]]:
    for name, (kernel, records) in KERNELS.items():
        promises = PROMISES if name == "euclidean" else {"epsilon": PROMISES["epsilon"]}
        for promise, options in promises.items():
            tally = empty(kernel).add(records)
            release = partial(tally.release, rows=4, insecure_noise_seed=5, **options)
            yield FOLDER / f"{name}-{promise}.hush", release, records[:3]
    for name, empty_of in COEFFICIENTS.items():
        counted = empty_of().add(POINTS)
        release = partial(counted.release, insecure_noise_seed=5, **PROMISES["epsilon"])
        yield FOLDER / f"{name}-epsilon.hush", release, POINTS[:3]
    kernel, records = KERNELS["euclidean"]
    large = hs.race(kernel, rows=70, width=60, seed=11).add(records)
    release = partial(large.release, insecure_noise_seed=5, **PROMISES["delta"])
    yield FOLDER / "euclidean-packed.hush", release, records[:3]
    yield FOLDER / "euclidean-rounded.hush", partial(release, rounded=True), records[:3]
    yield FOLDER / "euclidean-mapped.hush", lambda: packed(as_table(release())), records[:3]


def as_table(function: object) -> NoisyTable:
    """A released table, for the type checker."""
    assert isinstance(function, NoisyTable)
    return function


def _write_tallies() -> None:
    for name, (kernel, records) in KERNELS.items():
        if not (FOLDER / f"{name}.tally").exists():
            empty(kernel).add(records).save(FOLDER / f"{name}.tally")
    kernel, records = KERNELS["euclidean"]
    if not (FOLDER / "encrypted.tally").exists():
        empty(kernel).add(records).save(FOLDER / "encrypted.tally", encryption_key=KEY)
    for name, tally in COEFFICIENTS.items():
        if not (FOLDER / f"{name}.tally").exists():
            tally().add(POINTS).save(FOLDER / f"{name}.tally")
    if not (FOLDER / "persons.tally").exists():
        capped = empty(kernel, bounds=[(0.0, 10.0), (-5.0, 5.0)], max_per_unit=3)
        capped.add(records, units=[i % 9 for i in range(40)]).save(FOLDER / "persons.tally")


if __name__ == "__main__":
    main()
