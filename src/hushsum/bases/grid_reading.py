"""Kernel sums from weights on a grid, for any kernel that is a sum of products over columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels.base import Batch, ProfileKernel
from hushsum.kernels.profiles import Profile

_NUMBERS_AT_A_TIME = 1 << 22
_NODES_A_QUERY = 20_000
"""Windows with more nodes are summed with the whole grid by matrix products."""

_GAUSSIAN_REACH = 6.5
"""Deviations beyond which a Gaussian is taken as 0: it is below 1e-9 there."""

_NARROWEST = 0.09
"""The least variance of a narrowed Gaussian, in squared spacings."""


class GridReader:
    """Sums a kernel over the nodes of a grid, undoing the spread of a record's weights.

    A kernel is read as a sum of profiles that are products over columns. Of a profile that is narrow only the
    nodes near a query are summed; one that is wide is summed over all of them by matrix products.

    Parameters
    ----------
    kernel : ProfileKernel
        What the answers are for.
    places : list of arrays
        The nodes along each column, relative to the centre of the box.
    spacing : list of float
        Their distances.
    """

    def __init__(self, kernel: ProfileKernel, places: Sequence[Floats], spacing: Sequence[float]) -> None:
        self.kernel, self.places, self.spacing = kernel, places, spacing
        sides = [float(column[-1] - column[0]) for column in places]
        self.profiles = kernel.profiles(spacing=max(spacing), sides=sides)

    def sums(self, table: NDArray[np.integer], batch: Batch) -> Floats:
        """Σ over nodes of the table times the narrowed kernel at each query."""
        queries = batch.arrays[0].astype(np.float64)
        total = np.zeros(len(queries))
        wide = []
        for profile in self.profiles:
            windows = [self._window(profile, column) for column in range(len(self.places))]
            if math.prod(windows) <= _NODES_A_QUERY < table.size:
                total += profile.height * self._window_sums(profile, table, queries, windows)
            else:
                wide.append(profile)
        if wide:
            total += self._product_sums(wide, table, queries)
        return total

    def gains(self, batch: Batch) -> Floats:
        """Σ over nodes of the squared narrowed kernel at each query: products over columns of the inner
        products of the profiles' factors.
        """
        queries = batch.arrays[0].astype(np.float64)
        heights = np.array([profile.height for profile in self.profiles])
        gain = np.empty(len(queries))
        most = max(len(places) for places in self.places) * len(heights)
        step = max(1, _NUMBERS_AT_A_TIME // max(most, len(heights) ** 2))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            inner = np.ones((len(part), len(heights), len(heights)))
            for column in range(len(self.places)):
                factors = np.stack([self._factors(each, part, column) for each in self.profiles], axis=1)
                inner *= factors @ factors.transpose(0, 2, 1)
            gain[start : start + step] = np.einsum("i,qij,j->q", heights, inner, heights)
        return gain

    def _factors(self, profile: Profile, queries: Floats, column: int) -> Floats:
        """Along one column, of all its nodes, shape (queries, nodes)."""
        return _factor(profile, self.places[column] - queries[:, column, None], self.spacing[column])

    def _window(self, profile: Profile, column: int) -> int:
        reach = _reach(profile, self.spacing[column])
        number = len(self.places[column])
        return number if 2 * reach + 1 >= number else 2 * math.ceil(reach) + 1

    def _window_sums(
        self, profile: Profile, table: NDArray[np.integer], queries: Floats, windows: Sequence[int]
    ) -> Floats:
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
                away = places[near] - part[:, column, None]
                factors.append(_factor(profile, away, self.spacing[column]))
                nodes = (nodes[:, :, None] * len(places) + near[:, None, :]).reshape(len(part), -1)
            sums[start : start + step] = _contracted(flat[nodes].astype(np.float64), factors[::-1])
        return sums

    def _product_sums(
        self, profiles: Sequence[Profile], table: NDArray[np.integer], queries: Floats
    ) -> Floats:
        """All nodes, one column after the other."""
        values = table.astype(np.float64).reshape(len(self.places[0]), -1)
        sums = np.zeros(len(queries))
        step = max(1, _NUMBERS_AT_A_TIME // max(values.shape))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            for profile in profiles:
                factors = [self._factors(profile, part, column) for column in range(len(self.places))]
                kept = _contracted(factors[0] @ values, factors[:0:-1])
                sums[start : start + step] += profile.height * kept
        return sums


def _contracted(values: Floats, factors: Sequence[Floats]) -> Floats:
    """Values of each query at the nodes, shape (queries, nodes), times the factors of the last column, then
    of the one before, and so on.
    """
    for factor in factors:
        values = np.matmul(values.reshape(len(factor), -1, factor.shape[1]), factor[:, :, None])[..., 0]
    return values.reshape(len(values), -1)[:, 0]


def _factor(profile: Profile, away: Floats, spacing: float) -> Floats:
    """What a node ``away`` from the query counts along one column, so that a record, spread over its nodes
    as a quadratic B-spline, counts as the profile states.

    A spread record has a variance of a quarter of the squared spacing. A Gaussian is narrowed by that, as far
    as the spacing allows, and keeps its integral. Other profiles are sharpened by second differences.
    """
    if profile.gaussian:
        variance = _narrowed_variance(profile, spacing)
        result: Floats = np.exp(-0.5 * away**2 / variance) * (profile.scale / math.sqrt(variance))
        return result
    distance, scale = np.abs(away), profile.scale
    beside = np.exp(-np.abs(away - spacing) / scale) + np.exp(-np.abs(away + spacing) / scale)
    sharp: Floats = 1.25 * np.exp(-distance / scale) - beside / 8.0
    return sharp


def _reach(profile: Profile, spacing: float) -> float:
    """How far from a query nodes count, in spacings; infinite for a profile with a long tail."""
    if not profile.gaussian:
        return math.inf
    return _GAUSSIAN_REACH * math.sqrt(_narrowed_variance(profile, spacing)) / spacing


def _narrowed_variance(profile: Profile, spacing: float) -> float:
    return max(profile.scale**2 - spacing**2 / 4.0, _NARROWEST * spacing**2)
