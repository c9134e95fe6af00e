"""One path of a Gaussian process, extended point by point and stored."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from hushsum._types import Floats, Rows
from hushsum.errors import SecretRefused, UsageError

Covariance = Callable[[Rows, Rows], Floats]

SMALLEST_JITTER = 1e-8
"""λ over sup k: the variance that every point has for itself, whatever is known about its neighbours."""

_BLOCK = 256
"""Rows of the factor that are kept and solved together."""


class GaussianPath:
    """G + √λ·J at the points queried so far: G a path with the given covariance, J fresh at every point.

    New values are drawn from the law given all earlier ones, by further rows of the Cholesky factor of
    K + λI = LLᵀ: the values are L·ξ for independent standard normal ξ, so a further point needs one ξ more.
    The joint law of all values does not depend on the order or the times of the questions. The n-th point
    costs n² operations; 4·n² bytes are held.

    Parameters
    ----------
    covariance : callable
        ``covariance(A, B)``, the matrix k(a, b).
    largest : float
        sup k(x, x).
    jitter : float
        λ, at least 1e-8·sup k and fixed beforehand. Two points at a distance that floating point cannot see
        still differ by independent noise of this variance, so their difference reveals no gradient.

    Privacy
    -------
    Conditional variances are never taken below λ, where rounding alone could bring them. The state is secret:
    anyone who knows the path can subtract it from the answers.
    """

    def __init__(
        self, covariance: Covariance, dim: int, *, largest: float = 1.0, jitter: float = SMALLEST_JITTER
    ) -> None:
        if not (math.isfinite(jitter) and jitter >= SMALLEST_JITTER * largest):
            raise UsageError(
                parameter="jitter",
                rule=f"must be at least {SMALLEST_JITTER:g} times the largest variance",
                got=f"{jitter:g}",
                remedy="leave it out",
            )
        self._covariance = covariance
        self._jitter = jitter
        self._points: Rows = np.empty((0, dim), np.float32)
        self._normals: Floats = np.empty(0)
        # Block b of the factor's rows: what is left of its diagonal block, and that block.
        self._left: list[Floats] = []
        self._diagonal: list[Floats] = []

    def __len__(self) -> int:
        return len(self._normals)

    def emptied(self) -> GaussianPath:
        """A path that knows no point yet, with the same covariance."""
        return GaussianPath(self._covariance, self._points.shape[1], largest=0.0, jitter=self._jitter)

    def extend(self, points: Rows, normals: Floats) -> Floats:
        """The values at new points, from as many standard normal numbers."""

        def draw(across: Floats, corner: Floats, part: slice) -> tuple[Floats, Floats]:
            fresh = normals[part]
            return across.T @ self._normals + corner @ fresh, fresh

        return self._grow(points, draw)

    def recall(self, points: Rows, values: Floats) -> None:
        """Take over values that this path had earlier."""
        from scipy.linalg import solve_triangular

        def remember(across: Floats, corner: Floats, part: slice) -> tuple[Floats, Floats]:
            known = values[part]
            left = known - across.T @ self._normals
            return known, np.asarray(solve_triangular(corner, left, lower=True), np.float64)

        self._grow(points, remember)

    def _grow(self, points: Rows, fill: Callable[[Floats, Floats, slice], tuple[Floats, Floats]]) -> Floats:
        """Add rows to the factor, at most to the end of a block at a time."""
        values = np.empty(len(points))
        start = 0
        while start < len(points):
            room = _BLOCK - len(self) % _BLOCK
            part = slice(start, min(start + room, len(points)))
            across, corner = self._rows(points[part])
            values[part], normals = fill(across, corner, part)
            self._keep(points[part], across, corner, normals)
            start = part.stop
        return values

    def _rows(self, points: Rows) -> tuple[Floats, Floats]:
        """L⁻¹·K(earlier, new), and the factor of what the earlier points leave open about the new ones."""
        across = self._solve(self._covariance(self._points, points))
        rest = self._covariance(points, points)
        rest[np.diag_indices_from(rest)] += self._jitter
        return across, _floored_cholesky(rest - across.T @ across, self._jitter)

    def _solve(self, right: Floats) -> Floats:
        from scipy.linalg import solve_triangular

        found = np.empty_like(right)
        for block, (left, diagonal) in enumerate(zip(self._left, self._diagonal, strict=True)):
            first = block * _BLOCK
            last = min(first + _BLOCK, len(self))
            size = last - first
            rest = right[first:last] - left[:size] @ found[:first]
            found[first:last] = solve_triangular(diagonal[:size, :size], rest, lower=True, check_finite=False)
        return found

    def _keep(self, points: Rows, across: Floats, corner: Floats, normals: Floats) -> None:
        first = len(self) % _BLOCK
        if first == 0:
            self._left.append(np.zeros((_BLOCK, len(self))))
            self._diagonal.append(np.zeros((_BLOCK, _BLOCK)))
        width = self._left[-1].shape[1]
        last = first + len(points)
        self._left[-1][first:last] = across[:width].T
        self._diagonal[-1][first:last, :first] = across[width:].T
        self._diagonal[-1][first:last, first:last] = corner
        self._points = np.concatenate((self._points, points))
        self._normals = np.concatenate((self._normals, normals))

    def __repr__(self) -> str:
        return "<GaussianPath CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            rule="a path must not be pickled or copied: it would be continued twice", remedy="serve answers"
        )


def _floored_cholesky(matrix: Floats, floor: float) -> Floats:
    """The factor of a matrix whose pivots are at least ``floor`` but for rounding, which is undone."""
    factor = np.zeros_like(matrix)
    for i in range(len(matrix)):
        pivot = math.sqrt(max(float(matrix[i, i] - factor[i, :i] @ factor[i, :i]), floor))
        factor[i, i] = pivot
        factor[i + 1 :, i] = (matrix[i + 1 :, i] - factor[i + 1 :, :i] @ factor[i, :i]) / pivot
    return factor
