"""Kernel sums from weights on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hushsum.kernels.base import Batch, Floats, Kernel

_REACH = 6.5
"""Narrowed bandwidths beyond which a Gaussian is taken as 0: it is below 1e-9 there."""

_NUMBERS_AT_A_TIME = 1 << 22
_NODES_A_QUERY = 20_000
"""Windows with more nodes are summed with the whole grid by matrix products."""


class GridReader:
    """Sums a kernel over the nodes of a grid, narrowed by the variance of a record's weights.

    A Gaussian kernel is a product over columns, so only the nodes near a query are summed. Other kernels are
    summed over all nodes, and the table is sharpened by second differences instead, to the same order.

    Parameters
    ----------
    kernel : Kernel
        What the answers are for.
    places : list of arrays
        The nodes along each column, relative to the centre of the box.
    spacing : list of float
        Their distances.
    """

    def __init__(self, kernel: Kernel, places: Sequence[Floats], spacing: Sequence[float]) -> None:
        self.kernel, self.places, self.spacing = kernel, places, spacing
        bandwidth: float = getattr(kernel, "bandwidth")  # noqa: B009  (kernels that a grid reads have one)
        self.bandwidth = bandwidth / math.sqrt(getattr(kernel, "power", 1))
        self.separable = kernel.name == "gaussian"

    def sums(self, table: NDArray[np.integer], batch: Batch) -> Floats:
        """Σ over nodes of the table times the narrowed kernel at each query."""
        queries = batch.arrays[0].astype(np.float64)
        if not self.separable:
            return self._direct_sums(table, batch)
        windows = [self._window(column) for column in range(len(self.places))]
        if math.prod(windows) <= _NODES_A_QUERY:
            return self._window_sums(table, queries, windows)
        return self._product_sums(table, queries)

    def gains(self, batch: Batch) -> Floats:
        """Σ over nodes of the squared narrowed kernel at each query."""
        queries = batch.arrays[0].astype(np.float64)
        if not self.separable:
            return self._direct_gains(batch)
        gain = np.ones(len(queries))
        step = max(1, _NUMBERS_AT_A_TIME // max(len(places) for places in self.places))
        for start in range(0, len(queries), step):
            for column, places in enumerate(self.places):
                away = places[None, :] - queries[start : start + step, column, None]
                gain[start : start + step] *= (self._narrowed(away, column) ** 2).sum(axis=1)
        return gain

    def _narrowed(self, away: Floats, column: int) -> Floats:
        """The Gaussian that a record's weights widen to the one asked for."""
        variance = self._variance(column)
        result: Floats = np.exp(-0.5 * away**2 / variance) * (self.bandwidth / math.sqrt(variance))
        return result

    def _variance(self, column: int) -> float:
        return self.bandwidth**2 - self.spacing[column] ** 2 / 4.0

    def _window(self, column: int) -> int:
        reach = _REACH * math.sqrt(self._variance(column)) / self.spacing[column]
        return min(len(self.places[column]), 2 * math.ceil(reach) + 1)

    def _window_sums(self, table: NDArray[np.integer], queries: Floats, windows: Sequence[int]) -> Floats:
        """The nodes near each query, gathered."""
        flat = table.reshape(-1)
        sums = np.empty(len(queries))
        step = max(1, _NUMBERS_AT_A_TIME // math.prod(windows))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            nodes = np.zeros((len(part), 1), np.int64)
            factors = []
            for column, (places, window) in enumerate(zip(self.places, windows, strict=True)):
                nearest = np.rint((part[:, column] - places[0]) / self.spacing[column])
                first = np.clip(nearest - window // 2, 0, len(places) - window).astype(np.int64)
                near = first[:, None] + np.arange(window)
                factors.append(self._narrowed(places[near] - part[:, column, None], column))
                nodes = (nodes[:, :, None] * len(places) + near[:, None, :]).reshape(len(part), -1)
            values = flat[nodes].astype(np.float64)
            for factor in factors[::-1]:
                values = np.matmul(values.reshape(len(part), -1, factor.shape[1]), factor[:, :, None])[..., 0]
            sums[start : start + step] = values[:, 0]
        return sums

    def _product_sums(self, table: NDArray[np.integer], queries: Floats) -> Floats:
        """All nodes, one column after the other."""
        values = table.astype(np.float64).reshape(len(self.places[0]), -1)
        sums = np.empty(len(queries))
        step = max(1, _NUMBERS_AT_A_TIME // max(values.shape))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            factors = [
                self._narrowed(places[None, :] - part[:, column, None], column)
                for column, places in enumerate(self.places)
            ]
            kept = factors[0] @ values
            for factor in factors[:0:-1]:
                kept = np.matmul(kept.reshape(len(part), -1, factor.shape[1]), factor[:, :, None])[..., 0]
            sums[start : start + step] = kept.reshape(len(part), -1)[:, 0]
        return sums

    def _direct_sums(self, table: NDArray[np.integer], batch: Batch) -> Floats:
        sharp = sharpened(table.astype(np.float64)).reshape(-1)
        sums = np.zeros(len(batch))
        for first, block in self._blocks(batch):
            sums += sharp[first : first + len(block)] @ block
        return sums

    def _direct_gains(self, batch: Batch) -> Floats:
        """Sharpening is its own transpose, so it may act on the kernel in place of the table."""
        shape = tuple(len(places) for places in self.places)
        gains = np.empty(len(batch))
        step = max(1, _NUMBERS_AT_A_TIME // math.prod(shape))
        for start in range(0, len(batch), step):
            rows = batch.arrays[0][start : start + step]
            blocks = [block for _, block in self._blocks(Batch((rows,), len(rows)))]
            sharp = sharpened(np.concatenate(blocks).reshape(*shape, len(rows)), axes=len(shape))
            gains[start : start + step] = (sharp.reshape(-1, len(rows)) ** 2).sum(axis=0)
        return gains

    def _blocks(self, batch: Batch) -> list[tuple[int, Floats]]:
        grid = np.stack(np.meshgrid(*self.places, indexing="ij"), axis=-1).reshape(-1, len(self.places))
        nodes = grid.astype(np.float32)
        step = max(1, _NUMBERS_AT_A_TIME // max(len(batch), 1))
        return [
            (first, self.kernel._pairwise(Batch((part,), len(part)), batch))
            for first in range(0, len(nodes), step)
            for part in [nodes[first : first + step]]
        ]


def sharpened(table: Floats, axes: int | None = None) -> Floats:
    """The table less an eighth of its second differences along each column, which undoes the spread of the
    weights to second order. The columns are all axes, or the first ones.

    >>> sharpened(np.array([0.125, 0.75, 0.125])).round(3).tolist()
    [0.062, 0.906, 0.062]
    """
    for axis in range(table.ndim if axes is None else axes):
        along = np.moveaxis(table, axis, 0)
        sharp = 1.25 * along
        sharp[1:] -= along[:-1] / 8.0
        sharp[:-1] -= along[1:] / 8.0
        table = np.moveaxis(sharp, 0, axis)
    return table
