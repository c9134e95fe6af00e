"""Weights on a grid."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversaries import Pool, dense_rows
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.grid_weights import GridWeights
from hushsum.records.bounds import Bounds


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Those that attack any kernel; the corners of the box; and the middles of cells, where weights are most
    uneven.
    """
    assert isinstance(basis, GridWeights)
    low, high, spacing = (np.array(side) for side in (basis.bounds.low, basis.bounds.high, basis.spacing))
    middles = low + (rng.integers(0, np.array(basis.cells), (24, len(low))) + 0.5) * spacing
    edges = low + rng.integers(0, np.array(basis.cells) + 1, (8, len(low))) * spacing
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *middles, *edges]


def _example(dim: int, cells: tuple[int, ...]) -> GridWeights:
    return GridWeights(cells, Bounds((-3.0,) * dim, (3.0,) * dim))


register_basis(
    GridWeights.name,
    BasisCases(
        _pool,
        (
            _example(1, (40,)),
            _example(2, (8, 9)),
            _example(3, (6, 7, 8)),
            GridWeights((3,) * 4, Bounds((-3.0,) * 4, (3.0,) * 4)),
        ),
    ),
)
