"""Matrices learned on declared public rows: principal directions, whitening, discriminants, and pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, UsageError
from hushsum.records.native_batch import as_dense

FEWEST_ROWS: Final = 10
MOST_COLUMNS: Final = 1 << 12
_LEAST_RIDGE: Final = 1e-24
"""Images of records are then far from the largest number of 32 bits."""
RIDGE_ROWS: Final = 10.0
"""The ridge of whitening, in units of the variance per public row: with m rows, a covariance is known to
about its trace over m. Chosen with the three sets of the embedding benchmark in view.
"""
_LINEAR: Final = 1e-3
"""By how much of its largest number a linear step may differ from its matrix: steps may run in float32."""

Learner = Callable[[Floats, NDArray[np.int64]], Floats]
"""Rows and the codes of their labels to a matrix of shape (directions, columns)."""


def public_rows(public: object) -> Floats:
    """Public rows as an array; DataRefused for anything but rows of finite numbers."""
    shape = getattr(public, "shape", None) or np.asarray(public).shape
    if len(shape) != 2 or shape[0] < FEWEST_ROWS or not 0 < shape[1] <= MOST_COLUMNS:
        raise DataRefused(
            parameter="public",
            rule=f"must be at least {FEWEST_ROWS} rows of at most {MOST_COLUMNS} columns",
            got="another shape",
            remedy="give more public rows, or leave them out",
        )
    return as_dense(public, dim=int(shape[1])).astype(np.float64)


def label_codes(labels: object, rows: int) -> NDArray[np.int64]:
    """The places of public labels in the sorted list of them; at least two labels of two rows each."""
    given = np.asarray(labels)
    codes = np.unique(given, return_inverse=True)[1].ravel() if given.ndim == 1 else np.zeros(0, np.int64)
    if len(codes) != rows or (np.bincount(codes) < 2).any() or len(np.unique(codes)) < 2:
        raise DataRefused(
            parameter="labels",
            rule="must be one label for each public row, of two classes at least with two rows each",
            got="others",
            remedy="give the labels of the public rows, or learn without labels",
        )
    return np.asarray(codes, np.int64)


def spectrum(rows: Floats) -> tuple[Floats, Floats]:
    """Variances along principal directions, largest first, and those directions as rows."""
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / max(len(rows) - 1, 1))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1].T


def whitened(rows: Floats, codes: NDArray[np.int64]) -> Floats:
    """Principal directions, each divided by the root of its variance plus a ridge."""
    values, directions = spectrum(rows)
    ridge = RIDGE_ROWS * float(values.sum()) / len(rows)
    if ridge < _LEAST_RIDGE:
        raise DataRefused(
            parameter="public",
            rule="must differ from each other, in each half of them",
            got="rows that are all alike",
            remedy="shuffle them, or give others",
        )
    return np.asarray(directions / np.sqrt(values + ridge)[:, None])


def principal(rows: Floats, codes: NDArray[np.int64]) -> Floats:
    """Principal directions."""
    return spectrum(rows)[1]


def centred(rows: Floats, codes: NDArray[np.int64]) -> Floats:
    """The identity."""
    return np.eye(rows.shape[1])


def discriminant(rows: Floats, codes: NDArray[np.int64]) -> Floats:
    """Fisher's directions, one less than there are classes: rows are whitened within their classes, and the
    principal directions of the class means are taken.
    """
    numbers = np.bincount(codes)
    means = np.stack([rows[codes == code].mean(axis=0) for code in range(len(numbers))])
    within = whitened(rows - means[codes], codes)
    apart = (means - rows.mean(axis=0)) @ within.T
    _, _, directions = np.linalg.svd(np.sqrt(numbers)[:, None] * apart, full_matrices=False)
    return np.asarray(directions[: len(numbers) - 1] @ within)


def neighbourhood(directions: int) -> Learner:
    """Neighbourhood components (Goldberger et al. 2004), by scikit-learn, from the principal directions."""

    def learn(rows: Floats, codes: NDArray[np.int64]) -> Floats:
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        before = whitened(rows, codes)[: max(directions, min(len(rows) // 4, rows.shape[1]))]
        analysis = NeighborhoodComponentsAnalysis(
            n_components=directions, init="pca", max_iter=50, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            analysis.fit((rows - rows.mean(axis=0)) @ before.T, codes)
        return np.asarray(analysis.components_ @ before)

    return learn


def matrix_of_steps(steps: Any, rows: Floats) -> tuple[Floats, Floats]:
    """Matrix and constant of a fitted transformer or pipeline whose steps are linear, from its images of the
    unit vectors and of zero; UsageError if its images of the public rows are others.
    """
    size = max(float(np.abs(rows).max()), 1e-12)
    columns = rows.shape[1]
    origin = np.asarray(steps.transform(np.zeros((1, columns))), np.float64)
    images = np.asarray(steps.transform(size * np.eye(columns)), np.float64)
    if origin.ndim != 2 or not (np.isfinite(images).all() and np.isfinite(origin).all()):
        raise _not_linear()
    matrix = ((images - origin) / size).T
    found = np.asarray(steps.transform(rows), np.float64)
    error = np.abs(rows @ matrix.T + origin - found).max()
    if not error <= _LINEAR * max(float(np.abs(found - found.mean(axis=0)).max()), 1e-12):
        raise _not_linear()
    return matrix, np.asarray(origin[0])


def _not_linear() -> UsageError:
    return UsageError(
        parameter="steps",
        rule="must be linear: its images of unit vectors and of public rows must agree",
        got="another transformation",
        remedy="leave out steps such as Normalizer, or apply them to each record alone beforehand",
    )


def shrunk_variances(rows: Floats, matrix: Floats) -> Floats:
    """The variances of the images' columns, by the covariance that is shrunk towards a multiple of the
    identity as far as its own error demands (Ledoit and Wolf 2004).
    """
    number, columns = rows.shape
    centred = rows - rows.mean(axis=0)
    covariance = centred.T @ centred / number
    mean = float(np.trace(covariance)) / columns
    spread = float(((covariance - mean * np.eye(columns)) ** 2).sum())
    fourth = float((np.square(centred).sum(axis=1) ** 2).sum()) / number
    error = (fourth - float((covariance**2).sum())) / number
    share = min(1.0, max(0.0, error) / spread) if spread > 0.0 else 1.0
    own = ((matrix @ covariance) * matrix).sum(axis=1)
    return np.asarray(np.maximum((1.0 - share) * own + share * mean * (matrix**2).sum(axis=1), 0.0))
