"""The weights of records on a grid, in NumPy: what the native loop adds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.tables import WHOLE, GridWeights
from hushsum.tables._grid import _PARTS, _PLACES, part_table


def grid_weights(
    basis: GridWeights, rows: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes around each prepared record and their integer weights, both of shape (n, Π (degree + 1))."""
    nodes = np.zeros((len(rows), 1), np.int64)
    weights = np.ones((len(rows), 1), np.int64)
    largest = np.zeros(len(rows), np.int64)
    whole, places, most = 1, _PLACES[len(basis.cells)], _PARTS[len(basis.cells)]
    axes = zip(basis.cells, basis.spacing, basis.degrees, strict=True)
    for column, (number, spacing, degree) in enumerate(axes):
        along = rows[:, column].astype(np.float64) / spacing + 0.5 * number
        if degree == 0:
            around = np.clip(np.floor(along + 0.5), 0, number).astype(np.int64)[:, None]
            parts = np.ones((len(rows), 1), np.int64)
        else:
            place = np.clip(np.floor(along * places), 0, number * places - 1).astype(np.int64)
            cell, inside = np.divmod(place, places)
            around = cell[:, None] + np.arange(degree + 1)
            parts = part_table(degree, most, places)[inside].astype(np.int64)
            whole *= most
        largest = largest * parts.shape[1] + parts.argmax(axis=1)
        nodes = (nodes[:, :, None] * basis.nodes[column] + around[:, None, :]).reshape(len(rows), -1)
        weights = (weights[:, :, None] * parts[:, None, :]).reshape(len(rows), -1)
    if whole < WHOLE:
        weights *= WHOLE // whole
    elif whole > WHOLE:
        shift = (whole // WHOLE).bit_length() - 1
        weights = (weights + (1 << (shift - 1))) >> shift
        weights[np.arange(len(rows)), largest] += WHOLE - weights.sum(axis=1)
    return nodes, weights
