"""Kernel mean embedding on a lattice: where the kernel is a product over columns, so is its matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Rows
from hushsum.kernels.base import Batch, GaussianProfileKernel
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.records.discretised_box import CellGrid

_NUMBERS_AT_A_TIME = 1 << 22


@dataclass(frozen=True, slots=True)
class Lattice:
    """Points at the middles of cells, and the Cholesky factor of their kernel matrix, column by column.

    With ``K_j`` the matrix of column j the whole is ``K = K_1 ⊗ … ⊗ K_d``. A ridge on each of them makes
    ``(K_1 + λ) ⊗ … ⊗ (K_d + λ)``, which is not below K, so coordinates are not longer than without it; its
    factor is ``L_1 ⊗ … ⊗ L_d``.
    """

    kernel: GaussianKernel
    """In one column."""
    places: tuple[Floats, ...]
    roots: tuple[Floats, ...]

    @classmethod
    def of(cls, kernel: GaussianProfileKernel, grid: CellGrid, ridge: float) -> Lattice:
        """The middles of the grid's cells, relative to the centre of its box."""
        line = GaussianKernel(dim=1, bandwidth=kernel.gaussian_width())
        half = (np.array(grid.bounds.high) - np.array(grid.bounds.low)) / 2.0
        places = tuple(
            (np.arange(number) + 0.5) * width - side
            for number, width, side in zip(grid.bins, grid.width, half, strict=True)
        )
        roots: list[Floats] = []
        for each in places:
            batch = Batch((each[:, None],), len(each))
            gram = line._pairwise(batch, batch) + ridge * np.eye(len(each))
            roots.append(np.linalg.cholesky(gram).astype(np.float64))
        return cls(line, places, tuple(roots))

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each column."""
        return tuple(len(each) for each in self.places)

    def mean_kernel_values(self, rows: Rows) -> Floats:
        """The mean over records of k(x, z) at every point; secret. Costs records × points multiplications."""
        records, counts = np.unique(rows, axis=0, return_counts=True)
        total = np.zeros((self.shape[0], prod(self.shape[1:])))
        step = max(1, _NUMBERS_AT_A_TIME // max(total.shape))
        for start in range(0, len(records), step):
            first, *others = (
                self._values(records[start : start + step, column], column)
                for column in range(len(self.places))
            )
            product = counts[start : start + step, None].astype(np.float64)
            for values in others:
                product = (product[:, :, None] * values[:, None, :]).reshape(len(values), -1)
            total += first.T @ product
        return total.reshape(self.shape) / len(rows)

    def coordinates(self, values: Floats) -> Floats:
        """``L⁻¹`` times the values at the points."""
        return self._solved(values, lambda root: root)

    def weights(self, coordinates: Floats) -> Floats:
        """``L⁻ᵀ`` times the coordinates: the weights of the points."""
        return self._solved(coordinates, lambda root: root.T)

    def _values(self, column: NDArray[np.float32], index: int) -> Floats:
        records, points = column.astype(np.float64)[:, None], self.places[index][:, None]
        return self.kernel._pairwise(Batch((records,), len(records)), Batch((points,), len(points)))

    def _solved(self, values: Floats, side: Callable[[Floats], Floats]) -> Floats:
        from scipy.linalg import solve_triangular

        for axis, root in enumerate(self.roots):
            matrix = side(root)
            moved = np.moveaxis(values, axis, 0)
            solved = solve_triangular(matrix, moved.reshape(len(root), -1), lower=matrix is root)
            values = np.moveaxis(solved.reshape(moved.shape), 0, axis)
        return values
