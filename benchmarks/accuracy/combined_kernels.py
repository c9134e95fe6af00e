"""Fitted kernels, and what products and combinations cost.

    HUSHSUM_DATA=... python -m benchmarks combined_kernels

Three tables in ``benchmarks/results/combined_kernels.md``: the error of fits of the Gaussian kernel by
Euclidean ones; the mean error of releases of a fitted Gaussian, by hash rows, against Fourier features of the
Gaussian itself, on skin tones at ε = 1 and δ = 1e-6; and processor time per record and row of counting a
product. Nothing is tuned.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmarks.data import skin
from benchmarks.writer import Results

import hushsum as hs
from hushsum._types import Floats
from hushsum.kernels import CombinationKernel, Kernel
from hushsum.tables import HashRows

RESULTS = Results("combined_kernels")
BANDWIDTH = 40.0
REPETITIONS = 5
QUERIES = 200
RECORDS = 20_000
ROWS = 1000


def main() -> int:
    parts = [
        "# Combined kernels",
        "## The Gaussian by Euclidean kernels, up to three standard deviations",
        table(("Σ\\|weight\\| at most", "signed", "kernels", "largest error", "rms error"), fits()),
        "## Releases of a fitted Gaussian: skin tones, ε = 1, δ = 1e-6",
        f"Mean absolute error of f(q)/N against the exact Gaussian kernel of bandwidth {BANDWIDTH:g}, "
        f"at {QUERIES} records as queries, over {REPETITIONS} releases of {RECORDS} records.",
        table(("released", "error"), releases()),
        "## Processor time of counting, nanoseconds per record and row",
        table(("kernel", "time"), counting()),
    ]
    print(RESULTS.publish("\n\n".join(parts)).read_text(encoding="utf-8"))
    return 0


def gaussian(distance: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * distance**2))


def fits() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for limit, signed in ((4.0, False), (1.0, True), (2.0, True), (4.0, True), (8.0, True)):
        fit = hs.kernels.fit_kernel(
            gaussian, distances=np.linspace(0.0, 3.0, 61), dim=3, most_weight=limit, signed=signed
        )
        number = len(fit.kernel.components) if isinstance(fit.kernel, CombinationKernel) else 1
        rows.append(
            (
                f"{limit:g}",
                "yes" if signed else "no",
                str(number),
                f"{fit.max_error:.2g}",
                f"{fit.rms_error:.2g}",
            )
        )
    return rows


def releases() -> list[tuple[str, ...]]:
    X = np.asarray(skin().records, np.float64)
    rng = np.random.default_rng(0)
    X = X[rng.choice(len(X), RECORDS, replace=False)]
    queries = X[:QUERIES]
    exact = hs.GaussianKernel(dim=3, bandwidth=BANDWIDTH)
    truth = exact.exact_sum(X, queries) / len(X)
    # The whole range of the data: a cube of side 255.
    distances = np.concatenate((np.linspace(0.0, 4.0, 61), np.linspace(4.2, 255.0 * 3**0.5 / BANDWIDTH, 20)))
    rows: list[tuple[str, ...]] = []
    for limit in (2.0, 4.0, 8.0):
        fit = hs.kernels.fit_kernel(
            lambda r: gaussian(r / BANDWIDTH), distances=distances * BANDWIDTH, dim=3, most_weight=limit
        )
        label = f"hash rows of a fit with Σ\\|weight\\| ≤ {limit:g}, largest error {fit.max_error:.2g}"
        rows.append((label, f"{_error(fit.kernel, 'race', X, queries, truth):.2g}"))
    for method in ("fourier_features", "grid"):
        rows.append((f"{method} of the Gaussian", f"{_error(exact, method, X, queries, truth):.2g}"))
    return rows


def _error(kernel: Kernel, method: str, X: Floats, queries: Floats, truth: Floats) -> float:
    errors = []
    for seed in range(REPETITIONS):
        sizes: dict[str, Any] = {"rows": 5000} if method == "race" else {}
        f = hs.release(
            X, kernel=kernel, bounds=(0, 255), epsilon=1.0, delta=1e-6, method=method, records=RECORDS,
            seed=seed, **sizes,
        )  # fmt: skip
        errors.append(np.abs(f(queries) - truth).mean())
    return float(np.mean(errors))


def counting() -> list[tuple[str, ...]]:
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(RECORDS, 2))
    codes = rng.integers(0, 3, (RECORDS, 1))
    both = np.column_stack((numbers, codes))
    near, same = hs.EuclideanKernel(dim=2, bandwidth=1.0), hs.HammingKernel(dim=1)
    joined = hs.kernels.on_columns(near, [0, 1], of=3) * hs.kernels.on_columns(same, 2, of=3)
    cases: list[tuple[str, Kernel, Any]] = [
        ("euclidean, 2 columns", near, numbers),
        ("hamming, 1 column", same, codes),
        ("their product", joined, both),
    ]
    rows: list[tuple[str, ...]] = []
    for name, kernel, records in cases:
        basis = HashRows(kernel, ROWS, 1000, 1)
        batch, spent = basis.prepare(records), []
        for _ in range(3):
            table_of_counts = np.zeros(basis.shape, np.int64)
            start = time.process_time()
            basis.accumulate(table_of_counts, batch, step=1, threads=1)
            spent.append(time.process_time() - start)
        rows.append((name, f"{min(spent) / RECORDS / ROWS * 1e9:.1f}"))
    return rows


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
