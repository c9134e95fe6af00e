"""Fourier features."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversaries import Pool, dense_records
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.kernels import GaussianKernel, LaplacianKernel
from hushsum.records.bounds import Bounds


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Two records with chosen phases, many times each so that they meet, and those that attack any kernel.

    A phase of an odd eighth of a turn has the largest |cos| + |sin|, and half a turn more the opposite signs.
    With as many columns as features, or more, a record can have such phases on all of them.
    """
    assert isinstance(basis, FourierFeatures)
    phases = rng.integers(0, 4, basis.features) / 4 + 0.125
    both = np.stack([phases, phases + 0.5])
    solved = np.linalg.lstsq(basis.frequencies.astype(np.float64), both.T, rcond=None)[0].T
    return [*np.tile(solved.astype(np.float32), (20, 1)), *dense_records(basis.kernel, rng)]


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
        ),
    ),
)
