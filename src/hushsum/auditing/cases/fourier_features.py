"""Fourier features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.adversarial_records import Pool, dense_records
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.kernels import GaussianKernel, LaplacianKernel
from hushsum.records.bounds import Bounds

_ATTEMPTS = 1 << 8


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Two records with chosen phases, many times each so that they meet, and those that attack any kernel.

    A phase of an odd eighth of a turn has the largest |cos| + |sin|, and half a turn more the opposite signs.
    With as many columns as features, or more, a record can have such phases on all of them.
    """
    assert isinstance(basis, FourierFeatures)
    solved = _opposite_records(basis, rng)
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


def _example(dim: int, features: int, seed: int) -> FourierFeatures:
    return FourierFeatures(GaussianKernel(dim=dim, bandwidth=1.0), features, seed)


register_basis(
    FourierFeatures.name,
    BasisCases(
        _pool,
        (
            _example(1, 1, 1),
            _example(40, 37, 2),
            FourierFeatures(LaplacianKernel(dim=20, bandwidth=4.0), 17, 3),
            FourierFeatures(
                GaussianKernel(dim=2, bandwidth=1.0), 2, 4, bounds=Bounds((-50.0,) * 2, (50.0,) * 2)
            ),
            FourierFeatures(GaussianKernel(dim=8, bandwidth=1.0), 24, 5, groups=3),
            FourierFeatures(GaussianKernel(dim=64, bandwidth=1.0), 64, 6, structured=True),
            FourierFeatures(GaussianKernel(dim=64, bandwidth=1.0), 128, 7, groups=2, structured=True),
        ),
    ),
)
