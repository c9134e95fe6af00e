"""Moments: corners of the declared box, where every bound is met."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversarial_records import Pool
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.moments import Moments
from hushsum.records.bounds import Bounds
from hushsum.records.norm_clipping import UnitBall


def _moments_pool(basis: Basis, rng: np.random.Generator) -> Pool:
    assert isinstance(basis, Moments)
    box = basis.ball.bounds
    low, high = np.array(box.low), np.array(box.high)
    corners = np.where(rng.random((40, basis.ball.columns)) < 0.5, low, high)
    mirrored = corners.copy()
    mirrored[:, -1] = low[-1] + high[-1] - corners[:, -1]
    inside = rng.uniform(low, high, (12, basis.ball.columns))
    rows = [low, high, (low + high) / 2, *corners, *mirrored, *inside, *inside[:3]]
    return [*rows, *(scale * (high - low) * rng.normal(size=len(low)) for scale in (10.0, 1e6, 1e-6))]


def _box(columns: int) -> Bounds:
    box = Bounds.of([(-1.0 - i, 2.0 + i) for i in range(columns)], columns)
    assert box is not None
    return box


register_basis(
    Moments.name,
    BasisCases(
        _moments_pool,
        (
            Moments(UnitBall(_box(1))),
            Moments(UnitBall(_box(4))),
            Moments(UnitBall(_box(17))),
            Moments(UnitBall(_box(4), radius=1.9), bits=8),
        ),
    ),
)
