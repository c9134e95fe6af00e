"""Explain a table of Fourier features by public points, so that chance acts on the remainder alone.

A row's answer is right in expectation over its frequency, and so is its answer for any points with weights:
E Re(Σ α_i e^{iω·(r_i − q)}) = Σ α_i k(r_i, q), which can be computed without chance. Taking the points' part
out of every row, and adding its exact sum back, changes no expectation. What is left of the variance is that
of what the points do not explain, at most ``E|φ(ω) − Σ α_i e^{iω·r_i}|²/m`` instead of ``E|φ(ω)|²/m``. Points
that resemble the records explain nearly all.

The weights are fitted to the released, noisy table: post-processing, free of charge. Rows are cut into folds,
and a fold's rows are explained by weights fitted to the others, so that weights and rows are independent and
nothing is fitted away: answers stay unbiased, and the spread over rows an honest error, whatever the points.
Only the penalty is chosen from all folds, one of five. (Control variates with cross-fitting.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.bases.base import Table
from hushsum.bases.fourier_feature_errors import AMPLITUDE
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.kernels.base import Batch

FOLDS = 5
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties of squared weights, where a point's own part of the fit counts 1. The one that explains unseen
rows best is taken, or none of them.
"""

_ROWS_AT_A_TIME = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Points' weights, what they leave of the table in each row, and the share of its energy that they
    explain.

    ``share`` is measured on rows that the weights were not fitted to, noise included; it is 0 where no
    penalty helps, and then the table is left as it was.
    """

    weights: Floats
    remainder: NDArray[np.int64]
    share: float


def explain(basis: FourierFeatures, table: Table, points: Batch) -> Explained:
    """Weights of public points that resemble the released table, fitted across folds."""
    folds = _folds(basis.features, basis.block)
    nothing = Explained(np.zeros(len(points)), table.astype(np.int64), 0.0)
    if not folds:
        return nothing
    # A row counts the records of its group alone, which are one part in `groups` of all.
    amplitude = AMPLITUDE / basis.groups
    values = table.astype(np.float64) / amplitude
    moments = [_Moments.of(basis, rows, values, points) for rows in folds]
    fits = [_fits(moments, fold) for fold in range(FOLDS)]
    errors = [
        sum(moments[fold].error(fits[fold][choice]) for fold in range(FOLDS)) for choice in range(len(RIDGES))
    ]
    best = int(np.argmin(errors))
    share = 1.0 - errors[best] / max(sum(each.energy for each in moments), 1.0)
    if share <= 0.0:
        return nothing
    weights = np.zeros(len(points))
    remainder = np.empty(table.shape, np.int64)
    for fold, rows in enumerate(folds):
        fit = fits[fold][best]
        weights += fit * (len(rows) / basis.features)
        # A cell is a whole number with noise of many units: rounding what is left of it is not a loss.
        remainder[rows] = np.rint(table[rows] - amplitude * _parts(basis, rows, points, fit))
    return Explained(weights, remainder, share)


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Sums over the rows of one fold: points with points, points with the table, the table with itself."""

    rows: int
    gram: Floats
    cross: Floats
    energy: float

    @classmethod
    def of(cls, basis: FourierFeatures, rows: NDArray[np.int64], values: Floats, points: Batch) -> _Moments:
        gram, cross = np.zeros((len(points), len(points))), np.zeros(len(points))
        for part in _chunks(rows):
            waves = _waves(basis, part, points)
            gram += waves @ waves.T
            cross += waves @ values[part].reshape(-1)
        return cls(len(rows), gram, cross, float(np.square(values[rows]).sum()))

    def error(self, weights: Floats) -> float:
        """The squared length of what the weights leave of the fold's rows."""
        return float(self.energy - 2.0 * weights @ self.cross + weights @ self.gram @ weights)


def _fits(moments: list[_Moments], left_out: int) -> list[Floats]:
    """Weights for each penalty, from all folds but one.

    The penalty draws them towards equal weights, the best such: points drawn like the records should have
    them.
    """
    others = [each for fold, each in enumerate(moments) if fold != left_out]
    rows = sum(each.rows for each in others)
    gram = sum((each.gram for each in others), np.zeros_like(moments[0].gram)) / rows
    cross = sum((each.cross for each in others), np.zeros_like(moments[0].cross)) / rows
    equal = np.full(len(cross), cross.sum() / max(gram.sum(), 1.0))
    rest = cross - gram @ equal
    from scipy.linalg import solve

    fits = []
    for ridge in RIDGES:
        penalised = gram.copy()
        penalised.flat[:: len(cross) + 1] += ridge
        fits.append(equal + solve(penalised, rest, assume_a="pos", overwrite_a=True))
    return fits


def _folds(rows: int, block: int) -> list[NDArray[np.int64]]:
    """Whole blocks, dealt out in turn; none where there are fewer blocks than folds."""
    blocks = np.arange(rows) // block
    if blocks[-1] + 1 < FOLDS:
        return []
    return [np.flatnonzero(blocks % FOLDS == fold) for fold in range(FOLDS)]


def _chunks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.array_split(rows, -(-len(rows) // _ROWS_AT_A_TIME))


def _waves(basis: FourierFeatures, rows: NDArray[np.int64], points: Batch) -> NDArray[np.float32]:
    """Cosines and sines of the points on some rows, shape (points, 2·rows)."""
    waves = _native.FeatureMap(np.ascontiguousarray(basis.frequencies[rows])).waves(points.arrays[0])
    return waves.reshape(len(points), -1)


def _parts(basis: FourierFeatures, rows: NDArray[np.int64], points: Batch, weights: Floats) -> Floats:
    """What the weighted points add to each row, shape (rows, 2)."""
    return np.concatenate([(weights @ _waves(basis, part, points)).reshape(-1, 2) for part in _chunks(rows)])
