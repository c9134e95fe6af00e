"""Monomials: vectors of the declared length in the directions in which each bound is met."""

from __future__ import annotations

import numpy as np

from hushsum._types import Floats
from hushsum.auditing.adversarial_records import Pool, dense_rows
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.monomials import Monomials
from hushsum.kernels.base import InnerProductKernel
from hushsum.kernels.inner_product import DotProductKernel, PolynomialKernel


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Axes, diagonals and their opposites, the pair whose products differ most, and records far outside of
    the ball, each several times so that they meet.
    """
    assert isinstance(basis, Monomials)
    assert isinstance(basis.kernel, InnerProductKernel)
    dim, radius = basis.kernel.dim, basis.kernel.radius
    level = np.ones(dim)
    mixed = np.where(np.arange(dim) % 2, -1.0, 1.0)
    rows = [np.eye(dim)[0], np.eye(dim)[-1], level, -level, mixed, -mixed, *opposed_directions(dim)]
    rows = [radius * row / np.linalg.norm(row) for row in rows]
    rows += [1e6 * row for row in rows]
    return [*np.tile(np.array(rows, np.float32), (4, 1)), *dense_rows(dim, radius, rng)]


def opposed_directions(dim: int) -> list[Floats]:
    """Two orthogonal directions u, v for which Σ|u_i·u_j − v_i·v_j| is largest.

    They are the eigenvectors of the sign matrix [[1, 1], [1, −1]], each of its entries a block.
    """
    angle = np.pi / 8.0
    half = (np.arange(dim) >= dim // 2).astype(int)
    return [
        np.array([np.cos(angle), np.sin(angle)])[half],
        np.array([-np.sin(angle), np.cos(angle)])[half],
    ]


register_basis(
    Monomials.name,
    BasisCases(
        _pool,
        (
            Monomials(DotProductKernel(dim=1)),
            Monomials(DotProductKernel(dim=16, radius=3.0)),
            Monomials(DotProductKernel(dim=33), bits=16),
            Monomials(PolynomialKernel(dim=2)),
            Monomials(PolynomialKernel(dim=16, radius=0.1)),
            Monomials(PolynomialKernel(dim=9), bits=10),
        ),
    ),
)
