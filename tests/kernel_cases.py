"""One table of kernels with data for each, which the unit, contract and statistical tests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import hushsum as hs
from hushsum.kernels import Kernel, ProductKernel

Records = Any
"""Whatever the kernel takes: rows of numbers, rows of codes, or a list of sets."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, and how to make records for it from a seed."""

    name: str
    kernel: Kernel

    def __str__(self) -> str:
        return self.name

    def records(self, number: int, seed: int = 0) -> Records:
        """Records at many distances from each other, some of them equal."""
        rng = np.random.default_rng(seed)
        if isinstance(self.kernel, hs.JaccardKernel):
            return [rng.integers(0, 30, rng.integers(0, 12)).tolist() for _ in range(number)]
        dim: int = getattr(self.kernel, "dim")  # noqa: B009  (not every kernel has columns)
        if isinstance(self.kernel, hs.HammingKernel):
            return rng.integers(0, 3, (number, dim))
        if isinstance(self.kernel, ProductKernel):
            parts = np.zeros((number, dim))
            for factor in self.kernel.factors:
                own = Case(self.name, factor.kernel).records(number, seed)
                parts[:, factor.columns] = own
            return parts
        spread = rng.choice([0.1, 1.0, 5.0], (number, 1))
        rows = (rng.normal(size=(number, dim)) * spread / np.sqrt(dim)).astype(np.float32)
        rows[number // 2 + 1 :: 7] = rows[0]
        return rows


def take(records: Records, which: Sequence[int] | slice) -> Records:
    """Some of the records, in the order requested."""
    if isinstance(which, slice):
        return records[which]
    return [records[i] for i in which] if isinstance(records, list) else records[list(which)]


def joined(*parts: Records) -> Records:
    """All records of the parts, one after the other."""
    if isinstance(parts[0], list):
        return [record for part in parts for record in part]
    return np.concatenate(parts)


CASES = [
    Case("euclidean", hs.EuclideanKernel(dim=3, bandwidth=1.0)),
    Case("euclidean-power", hs.EuclideanKernel(dim=5, bandwidth=2.0, power=3)),
    Case("euclidean-structured", hs.EuclideanKernel(dim=100, bandwidth=1.0, projection="structured")),
    Case("manhattan", hs.ManhattanKernel(dim=3, bandwidth=2.0)),
    Case("manhattan-power", hs.ManhattanKernel(dim=2, bandwidth=4.0, power=2)),
    Case("angular-unfolded", hs.AngularKernel(dim=4, bits=3)),
    Case("angular-folded", hs.AngularKernel(dim=4, bits=4, power=10)),
    Case("angular-structured", hs.AngularKernel(dim=100, bits=2, projection="structured")),
    Case("asymmetric-angular", hs.kernels.AsymmetricAngularKernel(dim=4, bits=3)),
    Case("asymmetric-angular-queries", hs.kernels.AsymmetricAngularKernel(dim=4, bits=3, query_radius=1.5)),
    Case("asymmetric-angular-folded", hs.kernels.AsymmetricAngularKernel(dim=3, bits=5, power=8, radius=4.0)),
    Case("jaccard", hs.JaccardKernel()),
    Case("jaccard-power", hs.JaccardKernel(power=2)),
    Case("hamming", hs.HammingKernel(dim=6)),
    Case("hamming-power", hs.HammingKernel(dim=6, power=2)),
]

COMPOSED = [
    Case(
        "numbers-and-codes",
        hs.kernels.on_columns(hs.EuclideanKernel(dim=2, bandwidth=2.0), [0, 2], of=4)
        * hs.kernels.on_columns(hs.HammingKernel(dim=2), [1, 3], of=4),
    ),
    Case(
        "two-bandwidths",
        hs.kernels.on_columns(hs.EuclideanKernel(dim=1, bandwidth=1.0), 0, of=2)
        * hs.kernels.on_columns(hs.ManhattanKernel(dim=1, bandwidth=6.0), 1, of=2),
    ),
]
"""Products of the kernels above: they hash like any other."""
