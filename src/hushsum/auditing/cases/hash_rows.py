"""Hash rows, and the kernels that they count."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversaries import Pool, code_records, dense_records, set_records
from hushsum.auditing.registry import (
    BasisCases,
    audited_kernels,
    kernel_cases,
    register_basis,
    register_kernel,
)
from hushsum.bases.base import Basis
from hushsum.bases.hash_rows import HashRows
from hushsum.kernels import (
    AngularKernel,
    EuclideanKernel,
    HammingKernel,
    JaccardKernel,
    Kernel,
    ManhattanKernel,
)

register_kernel(
    "euclidean",
    dense_records,
    EuclideanKernel(dim=3, bandwidth=1.0),
    EuclideanKernel(dim=33, bandwidth=2.0, power=3),
    EuclideanKernel(dim=100, bandwidth=1.0, projection="structured"),
)
register_kernel(
    "manhattan", dense_records, ManhattanKernel(dim=3, bandwidth=2.0), ManhattanKernel(2, 4.0, power=2)
)
register_kernel(
    "angular",
    dense_records,
    AngularKernel(dim=4, bits=6),
    AngularKernel(dim=4, bits=4, power=10),
    AngularKernel(dim=100, bits=6, projection="structured"),
)
register_kernel("jaccard", set_records, JaccardKernel(), JaccardKernel(power=2))
register_kernel("hamming", code_records, HammingKernel(dim=6), HammingKernel(dim=6, power=2))


def _hash_rows(kernel: Kernel) -> Basis:
    # 70 rows and 53 cells: full and partial panels of rows, and few enough cells that a stray count would
    # fall on a used one.
    return HashRows(kernel, rows=70, width=53, seed=11)


def _hash_rows_pool(basis: Basis, rng: np.random.Generator) -> Pool:
    kernel = basis.counted_kernel()
    assert kernel is not None
    return kernel_cases(kernel.name).adversary(kernel, rng)


register_basis(
    HashRows.name,
    BasisCases(
        _hash_rows_pool,
        tuple(_hash_rows(kernel) for name in audited_kernels() for kernel in kernel_cases(name).examples),
        _hash_rows,
    ),
)
