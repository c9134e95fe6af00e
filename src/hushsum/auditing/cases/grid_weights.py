"""Weights on a grid."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversarial_records import Pool, dense_rows
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.grid_weights import GridWeights
from hushsum.records.bounds import Bounds


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Those that attack any kernel; the corners of the box; and middles and ends of cells, where weights of
    even and of odd degree are most uneven.
    """
    assert isinstance(basis, GridWeights)
    low, high, spacing = (np.array(side) for side in (basis.bounds.low, basis.bounds.high, basis.spacing))
    middles = low + (rng.integers(0, np.array(basis.cells), (24, len(low))) + 0.5) * spacing
    edges = low + rng.integers(0, np.array(basis.cells) + 1, (24, len(low))) * spacing
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *middles, *edges]


def _example(cells: tuple[int, ...], degrees: tuple[int, ...]) -> GridWeights:
    return GridWeights(cells, Bounds((-3.0,) * len(cells), (3.0,) * len(cells)), degrees)


register_basis(
    GridWeights.name,
    BasisCases(
        _pool,
        (
            _example((40,), (2,)),
            _example((40,), (5,)),
            _example((12,), (0,)),
            _example((8, 9), (3, 3)),
            _example((8, 9), (0, 4)),
            _example((8, 9), (0, 0)),
            _example((8, 9), (2, 5)),
            _example((6, 7, 8), (4, 4, 4)),
            _example((3,) * 4, (3,) * 4),
        ),
    ),
)
