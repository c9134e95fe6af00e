"""Records that an adversary would choose: extreme, equal, empty, opposite. Made up here, never read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hushsum.kernels.base import ColumnKernel, Kernel

Pool = Sequence[object]
"""Records, one by one; any number of them in a list form a batch."""

Adversary = Callable[[Kernel, np.random.Generator], Pool]

HUGE = (3.4e38, 1e30, 1e20, 16_777_217.0)
TINY = (1e-45, 1.2e-38, 1e-20)


def dense_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """Rows of float32: huge, tiny, zero of both signs, at hash boundaries, opposite pairs, duplicates."""
    return dense_rows(kernel.dim or 1, kernel.bandwidth if isinstance(kernel, ColumnKernel) else 1.0, rng)


def dense_rows(dim: int, scale: float, rng: np.random.Generator) -> Pool:
    """The same for a basis that counts ``dim`` columns without a kernel; boundaries are multiples of
    ``scale``.
    """
    rows = [np.zeros(dim), np.full(dim, -0.0)]
    for size in (*HUGE, *TINY):
        rows += [np.full(dim, size), np.full(dim, -size), np.eye(dim)[0] * size]
    mixed = np.ones(dim)
    mixed[::2] = -1.0
    rows += [mixed * 3e38, mixed * scale, np.eye(dim)[-1] * scale, -np.eye(dim)[-1] * scale]
    ordinary = rng.normal(size=(40, dim)) * scale * rng.choice([0.1, 1.0, 100.0], (40, 1))
    far = rng.normal(size=(8, dim)) * scale * 1e6
    lattice = rng.integers(-3, 4, (8, dim)) * scale
    rows += [*ordinary, *ordinary[:4], *far, *-far, *lattice]
    with np.errstate(under="ignore"):
        return [row.astype(np.float32) for row in rows]


def code_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """Rows of codes: the extremes of int32, constant rows, rows that differ in one place, duplicates."""
    dim = kernel.dim or 1
    ends = np.iinfo(np.int32)
    rows = [np.full(dim, code) for code in (0, 1, -1, 2, ends.min, ends.max)]
    ordinary = rng.integers(0, 3, (40, dim))
    once = ordinary[:8].copy()
    once[:, 0] += 7
    return [row.astype(np.int64) for row in (*rows, *ordinary, *ordinary[:4], *once)]


def set_records(kernel: Kernel, rng: np.random.Generator) -> Pool:
    """Sets: empty, single, repeated members, long ones across every tile, disjoint ones, extreme members."""
    ends = np.iinfo(np.int64)
    sets: list[list[int]] = [[], [], [0], [-1], [ends.min], [ends.max], [5] * 9, [5], [0, ends.max]]
    sets += [
        list(range(start, start + size)) for start, size in ((0, 7), (0, 8), (0, 9), (100, 33), (1000, 300))
    ]
    sets += [rng.integers(0, 30, rng.integers(1, 12)).tolist() for _ in range(30)]
    sets += [(rng.integers(0, 1 << 40, 5) + (1 << 50)).tolist() for _ in range(8)]
    return [*sets, *sets[-4:]]
