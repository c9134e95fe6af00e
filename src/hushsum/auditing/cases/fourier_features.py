"""Fourier features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.adversarial_records import Pool, dense_records
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.kernels import GaussianKernel, LaplacianKernel, MaternKernel
from hushsum.kernels.scaled import scaled_by
from hushsum.records.bounds import Bounds

_ATTEMPTS = 1 << 8
_PAIRS = 1 << 13


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Two records that are far apart, many times each so that they meet, and those that attack any kernel.

    A phase of an odd eighth of a turn has the largest |cos| + |sin|, and half a turn more the opposite signs.
    With as many columns as features, or more, a record can have such phases on all of them. In a box, the two
    are the furthest of many random pairs.
    """
    assert isinstance(basis, FourierFeatures)
    solved = _opposite_records(basis, rng) if basis.bounds is None else _far_records(basis, basis.bounds, rng)
    return [*np.tile(solved, (20, 1)), *dense_records(basis.kernel, rng)]


def _opposite_records(basis: FourierFeatures, rng: np.random.Generator) -> NDArray[np.float32]:
    """Two records of one group, half a turn apart on all features of it; shape (2, columns).

    Whole turns more change the hash that picks a record's group, and not its features.
    """
    rows = np.flatnonzero(np.arange(basis.features) // basis.block % basis.groups == 0)
    frequencies = basis.frequencies[rows].astype(np.float64)
    phases = rng.integers(0, 4, len(rows)) / 4 + 0.125
    found = []
    for wanted in (phases, phases + 0.5):
        for _ in range(_ATTEMPTS):
            turns = rng.integers(-1, 2, len(rows)) if basis.groups > 1 else 0
            record = np.linalg.lstsq(frequencies, wanted + turns, rcond=None)[0].astype(np.float32)
            if basis.groups == 1 or basis.group_of(record[np.newaxis])[0] == 0:
                break
        found.append(record)
    return np.array(found)


def _far_records(basis: FourierFeatures, box: Bounds, rng: np.random.Generator) -> NDArray[np.float64]:
    """The two records of a box, shape (2, columns), whose integers differ most among random pairs."""
    inside = rng.uniform(-1.0, 1.0, (2 * _PAIRS, box.dim))
    inside[: _PAIRS // 4] = np.sign(inside[: _PAIRS // 4]) * np.sqrt(rng.random((_PAIRS // 4, 1)))
    # A quarter of the pairs are opposite: their difference is as long as the box allows.
    inside[_PAIRS : _PAIRS + _PAIRS // 4] = -inside[: _PAIRS // 4]
    records = box.centre + inside * box.half_width
    integers = basis.map.integers(basis.prepare(records).arrays[0]).astype(np.int64)
    moved = np.abs(integers[:_PAIRS] - integers[_PAIRS:]).sum(axis=(1, 2))
    furthest = int(moved.argmax())
    return records[[furthest, _PAIRS + furthest]]


_MATERN = MaternKernel(dim=20, bandwidth=3.0, smoothness=0.5)


def _example(dim: int, features: int, seed: int, half_width: float | None = None) -> FourierFeatures:
    box = None if half_width is None else Bounds((-half_width,) * dim, (half_width,) * dim)
    return FourierFeatures(GaussianKernel(dim=dim, bandwidth=1.0), features, seed, bounds=box)


register_basis(
    FourierFeatures.name,
    BasisCases(
        _pool,
        (
            _example(1, 1, 1),
            _example(40, 37, 2),
            FourierFeatures(LaplacianKernel(dim=20, bandwidth=4.0), 17, 3),
            FourierFeatures(MaternKernel(dim=20, bandwidth=4.0), 17, 8),
            FourierFeatures(GaussianKernel(dim=20, bandwidth=4.0) * _MATERN, 17, 9),
            FourierFeatures(0.5 * GaussianKernel(dim=20, bandwidth=4.0) + 0.5 * _MATERN, 17, 10),
            FourierFeatures(scaled_by(_MATERN, [0.5 + column for column in range(20)]), 17, 11),
            _example(2, 2, 4, half_width=50.0),
            _example(1, 3, 1, half_width=2.0),
            _example(2, 6, 3, half_width=1.5),
            FourierFeatures(GaussianKernel(dim=8, bandwidth=1.0), 24, 5, groups=3),
            FourierFeatures(GaussianKernel(dim=64, bandwidth=1.0), 64, 6, structured=True),
            FourierFeatures(GaussianKernel(dim=64, bandwidth=1.0), 128, 7, groups=2, structured=True),
        ),
    ),
)
