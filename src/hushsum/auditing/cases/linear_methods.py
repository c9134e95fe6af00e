"""Series, polynomials, lattices and features on a declared box."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversarial_records import Pool, dense_rows
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.bernstein import BernsteinLattice
from hushsum.bases.box_polynomials import BoxPolynomials
from hushsum.bases.cosine_features import CosineFeatures
from hushsum.bases.declared_box import BoxBasis
from hushsum.bases.fourier_series import FourierSeries
from hushsum.bases.trigonometric import TrigonometricPolynomials
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.records.bounds import Bounds

_PLACES = 33


def _one(bandwidth: float = 1.0) -> GaussianKernel:
    return GaussianKernel(dim=1, bandwidth=bandwidth)


def _box(ends: tuple[float, float], dim: int) -> Bounds:
    return Bounds.declared(ends, dim, "an audit")


def _box_pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Corners, the centre, a fine walk along the diagonal and the sides of the box, and records far outside
    of it.
    """
    assert isinstance(basis, BoxBasis)
    low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
    walk = np.linspace(0.0, 1.0, _PLACES)[:, np.newaxis]
    diagonal = low + walk * (high - low)
    side = diagonal.copy()
    side[:, 1:] = low[1:]
    inside = rng.uniform(low, high, (24, basis.dim))
    return [*diagonal, *side, *inside, *dense_rows(basis.dim, 1.0, rng)]


register_basis(
    FourierSeries.name,
    BasisCases(
        _box_pool,
        (
            FourierSeries(kernel=_one(), bounds=_box((0, 8), 1), frequencies=2, padding=1.0),
            FourierSeries(
                kernel=GaussianKernel(dim=2, bandwidth=3.0),
                bounds=_box((-4, 4), 2),
                frequencies=1,
                padding=0.5,
                taper=2.0 / 3.0,
            ),
        ),
    ),
)
register_basis(
    TrigonometricPolynomials.name,
    BasisCases(_box_pool, (TrigonometricPolynomials(bounds=_box((0, 8), 1), terms=2),)),
)
register_basis(
    BernsteinLattice.name,
    BasisCases(
        _box_pool,
        (
            BernsteinLattice(kernel=_one(0.4), bounds=_box((0, 8), 1), degree=16),
            BernsteinLattice(kernel=GaussianKernel(dim=2, bandwidth=0.4), bounds=_box((0, 8), 2), degree=16),
        ),
    ),
)
register_basis(
    BoxPolynomials.name,
    BasisCases(
        _box_pool,
        (
            BoxPolynomials(bounds=_box((0, 8), 1), side=0.75, order=2, weights=(65536, 32000, 9000)),
            BoxPolynomials(
                bounds=_box((0, 8), 2),
                side=1.5,
                order=1,
                weights=(65536, 32768, 32768, 16384),
                polynomials="monomials",
                every_column=True,
            ),
        ),
    ),
)
register_basis(
    CosineFeatures.name,
    BasisCases(_box_pool, (CosineFeatures(kernel=_one(0.5), bounds=_box((0, 8), 1), features=2, seed=20),)),
)
