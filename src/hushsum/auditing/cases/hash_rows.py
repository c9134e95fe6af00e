"""Hash rows, and the kernels that they count."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversarial_records import Pool, code_records, dense_records, set_records
from hushsum.auditing.registry import (
    BasisCases,
    audited_kernels,
    kernel_cases,
    register_basis,
    register_kernel,
)
from hushsum.bases.base import Basis
from hushsum.bases.hash_rows import HashRows
from hushsum.bases.hash_rows_of_combination import DividedRows
from hushsum.bases.weighted_increments import IncrementRows
from hushsum.kernels import (
    AngularKernel,
    AsymmetricAngularKernel,
    CombinationKernel,
    EuclideanKernel,
    HammingKernel,
    HashableCombination,
    JaccardKernel,
    Kernel,
    ManhattanKernel,
    ProductKernel,
    ScaledKernel,
    on_columns,
)
from hushsum.kernels.scaled import scaled_by

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
register_kernel(
    "asymmetric-angular",
    dense_records,
    AsymmetricAngularKernel(dim=4, bits=6),
    AsymmetricAngularKernel(dim=3, bits=4, power=10, radius=2.5),
)
register_kernel("jaccard", set_records, JaccardKernel(), JaccardKernel(power=2))
register_kernel("hamming", code_records, HammingKernel(dim=6), HammingKernel(dim=6, power=2))


def _product_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """Each factor's columns as an adversary of that kernel would choose them, in pairs that recur: records
    that differ in the columns of one factor alone, and in all.
    """
    assert isinstance(kernel, ProductKernel)
    pools = [kernel_cases(each.kernel.name).adversary(each.kernel, rng) for each in kernel.factors]
    records: list[list[object]] = []
    for _ in range(100):
        record: list[object] = [0] * kernel.dim
        for each, pool in zip(kernel.factors, pools, strict=True):
            chosen = pool[int(rng.integers(len(pool)))]
            values = [list(chosen)] if each.kernel.dim is None else np.asarray(chosen).tolist()  # type: ignore[call-overload]
            for column, value in zip(each.columns, values, strict=True):
                record[column] = value
        records.append(record)
        if len(records) > 1:
            other = list(records[-2])
            for column in kernel.factors[0].columns:
                other[column] = record[column]
            records.append(other)
    return [*records, *records[:4]]


def _combination_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """The records that attack the first component; the others have the same columns."""
    assert isinstance(kernel, CombinationKernel)
    first = kernel.components[0].kernel
    return kernel_cases(first.name).adversary(first, rng)


def _scaled_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """The records that attack the kernel, in the units of the columns."""
    assert isinstance(kernel, ScaledKernel)
    units, most = np.array(kernel.units), float(np.finfo(np.float32).max)
    inner = kernel_cases(kernel.kernel.name).adversary(kernel.kernel, rng)
    scaled = (np.clip(np.asarray(each, np.float64) * units, -most, most) for each in inner)
    # As they come, and in the units of the kernel: some of these exceed float32 where they are divided.
    return [*(each.astype(np.float32) for each in scaled), *inner[:20]]


_MIXED = (
    on_columns(EuclideanKernel(dim=2, bandwidth=1.0), [0, 2], of=4)
    * on_columns(HammingKernel(dim=1), 1, of=4)
    * on_columns(JaccardKernel(), 3, of=4)
)
register_kernel(
    "product",
    _product_records,
    _MIXED,
    EuclideanKernel(dim=3, bandwidth=1.0) * ManhattanKernel(dim=3, bandwidth=4.0),
    on_columns(AngularKernel(dim=3, bits=3), [0, 1, 2], of=4) * on_columns(EuclideanKernel(1, 1.0), 3, of=4),
)
register_kernel(
    "scaled",
    _scaled_records,
    scaled_by(EuclideanKernel(dim=3, bandwidth=0.1), (120.0, 3e5, 0.01)),
    scaled_by(ManhattanKernel(dim=2, bandwidth=0.5, power=2), (7.0, 1e-3)),
)
register_kernel(
    "combination",
    _combination_records,
    1.5 * EuclideanKernel(dim=3, bandwidth=1.0) - 0.5 * EuclideanKernel(dim=3, bandwidth=4.0, power=2),
    0.25 * _MIXED + 0.75 * on_columns(HammingKernel(dim=1), 1, of=4),
    JaccardKernel() - 3.0 * JaccardKernel(power=2),
)


def _counted(kernel: Kernel) -> Basis:
    # 70 rows and 53 cells: full and partial panels of rows, and few enough cells that a stray count would
    # fall on a used one.
    kind = DividedRows if isinstance(kernel, HashableCombination) else HashRows
    return kind(kernel, rows=70, width=53, seed=11)


def _is_combination(kernel: Kernel) -> bool:
    return isinstance(kernel, HashableCombination)


def _hash_rows_pool(basis: Basis, rng: np.random.Generator) -> Pool:
    kernel = basis.counted_kernel()
    assert kernel is not None
    return kernel_cases(kernel.name).adversary(kernel, rng)


def _increments_pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """A record and its opposite, many times so that one replaces the other: then increments of opposite signs
    change places. The zero vector, which is its own opposite. And those that attack any kernel.
    """
    kernel = basis.counted_kernel()
    assert kernel is not None
    worst = rng.normal(size=kernel.dim).astype(np.float32) * 100.0
    none = np.zeros(kernel.dim or 1, np.float32)
    return [*[worst, -worst, none] * 40, *dense_records(kernel, rng)]


_EXAMPLES = [kernel for name in audited_kernels() for kernel in kernel_cases(name).examples]
register_basis(
    HashRows.name,
    BasisCases(
        _hash_rows_pool,
        tuple(_counted(kernel) for kernel in _EXAMPLES if not _is_combination(kernel)),
        lambda kernel: None if _is_combination(kernel) else _counted(kernel),
    ),
)
register_basis(
    IncrementRows.name,
    BasisCases(
        _increments_pool,
        (
            IncrementRows(AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 11, (1, 1)),
            IncrementRows(AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 12, (1, -1)),
            IncrementRows(EuclideanKernel(dim=2, bandwidth=1.0), 40, 53, 13, (3, -1)),
        ),
    ),
)
register_basis(
    DividedRows.name,
    BasisCases(
        _hash_rows_pool,
        tuple(_counted(kernel) for kernel in _EXAMPLES if _is_combination(kernel)),
        lambda kernel: _counted(kernel) if _is_combination(kernel) else None,
    ),
)
