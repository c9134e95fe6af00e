"""Cells: a public summary of records by the weight, the mean and the spread of those in each cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats

_NUMBERS_AT_A_TIME = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Public groups of records, of which only weight, mean and spread are known.

    Parameters
    ----------
    weights : array of shape (n_cells,)
        About the number of records of each cell; not negative.
    means : array of shape (n_cells, dim)
    variances : array of shape (n_cells, dim)
        Of the records of each cell, along each column.
    covariances : array of shape (n_cells, dim, dim), optional
        Where they are known.
    noise : array of shape (n_cells,), optional
        The variance that noise adds to each coordinate of a mean.

    Examples
    --------
    >>> cells = Cells(np.array([1.0, 3.0]), np.array([[0.0], [4.0]]), np.array([[1.0], [1.0]]))
    >>> float(cells.total), cells.inertia(np.array([[3.0]]))
    (4.0, 16.0)
    """

    weights: Floats
    means: Floats
    variances: Floats
    covariances: Floats | None = None
    noise: Floats | None = None

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def dim(self) -> int:
        """The number of columns."""
        return int(self.means.shape[1])

    @property
    def total(self) -> float:
        """The weight of all cells."""
        return float(self.weights.sum())

    @property
    def effective_total(self) -> float:
        """The number of records whose chance makes means as uncertain as the noise does."""
        if self.noise is None:
            return self.total
        ratio = self.weights * self.noise / np.maximum(self.variances.mean(axis=1), 1e-300)
        return float((self.weights / (1.0 + ratio)).sum())

    def full_covariances(self) -> Floats:
        """The covariances, with zeros off the diagonal where only variances are known."""
        if self.covariances is not None:
            return self.covariances
        return np.asarray(self.variances[:, :, None] * np.eye(self.dim))

    def inertia(self, centres: Floats) -> float:
        """Σ ‖x − c(x)‖² over the records, if all records of a cell have the centre nearest to its mean."""
        _, square = nearest_centres(self.means, centres)
        return float(self.weights @ (square + self.variances.sum(axis=1)))

    def in_units(self, factor: Floats, shift: Floats) -> Cells:
        """The same cells after x ↦ factor·x + shift, column by column."""
        covariances = None
        if self.covariances is not None:
            covariances = self.covariances * factor[:, None] * factor
        return Cells(
            self.weights, self.means * factor + shift, self.variances * np.square(factor), covariances
        )

    def chosen(self, kept: NDArray[np.bool_]) -> Cells:
        """Some of the cells."""
        covariances = None if self.covariances is None else self.covariances[kept]
        noise = None if self.noise is None else self.noise[kept]
        return Cells(self.weights[kept], self.means[kept], self.variances[kept], covariances, noise)


def nearest_centres(points: Floats, centres: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The place of the nearest centre of each point, and its squared distance.

    >>> nearest_centres(np.array([[0.0], [5.0]]), np.array([[1.0], [4.0]]))
    (array([0, 1]), array([1., 1.]))
    """
    nearest = np.empty(len(points), np.int64)
    square = np.empty(len(points))
    block = max(1, _NUMBERS_AT_A_TIME // max(1, len(centres)))
    for start in range(0, len(points), block):
        some = points[start : start + block]
        # Distances from the differences, not from products, so that a point at a centre has distance 0.
        lengths = np.square(centres).sum(axis=1) - 2.0 * some @ centres.T
        chosen = np.argmin(lengths, axis=1)
        nearest[start : start + block] = chosen
        square[start : start + block] = np.square(some - centres[chosen]).sum(axis=1)
    return nearest, square
