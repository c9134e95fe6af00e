"""Worst cases of the tables of baselines."""

from __future__ import annotations

from typing import Any

from hushsum.auditing import box_pool, register_basis
from hushsum.kernels import GaussianKernel
from hushsum.records import Bounds

from ._linear_tables import BernsteinLattice, BoxPolynomials, CosineFeatures, TrigonometricPolynomials

_LINE, _SQUARE = (Bounds.declared((0, 8), dim, "an audit") for dim in (1, 2))
_PUBLISHED: Any = {"polynomials": "monomials", "every_column": True}


register_basis(box_pool, TrigonometricPolynomials(bounds=_LINE, terms=2))
register_basis(
    box_pool,
    BernsteinLattice(kernel=GaussianKernel(dim=1, bandwidth=0.4), bounds=_LINE, degree=16),
    BernsteinLattice(kernel=GaussianKernel(dim=2, bandwidth=0.4), bounds=_SQUARE, degree=16),
)
register_basis(
    box_pool,
    BoxPolynomials(bounds=_LINE, side=0.75, order=2, weights=(65536, 32000, 9000)),
    BoxPolynomials(bounds=_SQUARE, side=1.5, order=1, weights=(65536, 32768, 32768, 16384), **_PUBLISHED),
)
register_basis(
    box_pool, CosineFeatures(kernel=GaussianKernel(dim=1, bandwidth=0.5), bounds=_LINE, features=2, seed=20)
)
