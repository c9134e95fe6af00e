"""Bins of a histogram."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversarial_records import Pool, dense_rows
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.bins import Bins
from hushsum.records.bounds import Bounds


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Those that attack any kernel; corners of the box; edges of cells, where rounding decides."""
    assert isinstance(basis, Bins)
    low, high, width = np.array(basis.bounds.low), np.array(basis.bounds.high), basis.grid.width
    edges = low + rng.integers(0, np.array(basis.bins) + 1, (24, len(low))) * width
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *edges, *np.nextafter(edges, high)]


register_basis(
    Bins.name,
    BasisCases(
        _pool,
        (
            Bins((40,), Bounds((-3.0,), (3.0,))),
            Bins((7, 9), Bounds((-3.0, 0.0), (3.0, 0.3))),
            Bins((3, 1, 5), Bounds((-3.0,) * 3, (3.0,) * 3)),
        ),
    ),
)
