"""Linear transformations learned on public data, applied to each record alone, bit for bit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, FileRefused, UsageError
from hushsum.records.ball import clipped_to_ball
from hushsum.records.dense import as_dense

FEWEST_ROWS: Final = 10
RIDGE_ROWS: Final = 10.0
"""The ridge of whitening, in units of the variance per public row: with m rows, a covariance is known to
about its trace over m. Chosen with the three sets of the embedding benchmark in view.
"""

_SHORT: Final = 0.1
"""The quantile of lengths that results are clipped to. The direction of a whitened record tells more than its
length, so most may be shortened: chosen with the three sets of the embedding benchmark in view.
"""
_INPUT_BITS: Final = 20
_MATRIX_BITS: Final = 20
_MOST_COLUMNS: Final = 1 << 12


@dataclass(frozen=True, eq=False)
class Transform:
    """x ↦ M·(x − centre), learned on declared public data, in whole numbers.

    A record is clipped to ``input_radius``, rounded to 20 bits, multiplied by a matrix of whole numbers, and
    scaled. ``radius`` is the length to which the result is to be clipped: a tenth of the public rows that the
    matrix was not learned from are shorter.

    Made by :meth:`whitening`, :meth:`principal` or :meth:`centring`; not by hand.

    Attributes
    ----------
    matrix : array of int64, shape (dim, columns)
    offset : array of int64, shape (dim,)
        The image of the centre.
    scale : float
        What a step of the result is worth.
    input_radius, radius : float
        Declared for records, and learned from public rows for results.
    variances : array of shape (dim,)
        Of the columns of results, estimated from public rows and shrunk (Ledoit and Wolf 2004). Where public
        rows vary much, classes are expected to differ much.

    Privacy
    -------
    The matrix must not depend on private records: its data are declared public, which the claim of a release
    states as an assumption. Products and sums of whole numbers below 2⁵³ are exact in double precision in any
    order, so a record's image does not depend on the batch, on its place in it or on the library that
    multiplies. (In floating point it would: a matrix product gives a row other last bits in another batch.)

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(1000, 3)) * [1.0, 0.1, 0.01]
    >>> transform = Transform.whitening(rows, input_radius=5.0)
    >>> transform.apply(rows).std(axis=0).round(1).tolist()
    [1.0, 0.7, 0.1]
    """

    matrix: NDArray[np.int64]
    offset: NDArray[np.int64]
    scale: float
    input_radius: float
    radius: float
    variances: Floats
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        outputs, columns = self.matrix.shape
        numbers = (self.scale, self.input_radius, self.radius)
        largest = int(np.abs(self.matrix).max(initial=0))
        if (
            self.offset.shape != (outputs,)
            or not 0 < columns <= _MOST_COLUMNS
            or largest > 1 << _MATRIX_BITS
            or int(np.abs(self.offset).max(initial=0)) >= 1 << 52
            or not all(math.isfinite(each) and each > 0.0 for each in numbers)
            or self.variances.shape != (outputs,)
            or not (np.isfinite(self.variances) & (self.variances >= 0.0)).all()
        ):
            raise FileRefused(rule="the transformation makes no sense", remedy="ask who wrote it")
        told = hashlib.sha256()
        for array in (self.matrix, self.offset):
            told.update(np.array(array.shape, "<i8").tobytes())
            told.update(np.ascontiguousarray(array, "<i8").tobytes())
        told.update(np.array(numbers, "<f8").tobytes())
        told.update(np.ascontiguousarray(self.variances, "<f8").tobytes())
        object.__setattr__(self, "digest", told.hexdigest())

    @property
    def dim(self) -> int:
        """Columns of the result."""
        return int(self.matrix.shape[0])

    @property
    def columns(self) -> int:
        """Columns of a record."""
        return int(self.matrix.shape[1])

    @classmethod
    def whitening(cls, public: object, *, input_radius: float, directions: int | None = None) -> Transform:
        """Principal directions of public rows, each divided by the root of its variance plus a ridge.

        Parameters
        ----------
        public : array-like of shape (n_rows, n_columns)
            Public, at least 10 rows; resembling the private records. No labels are used.
        input_radius : float
            Declared: longer records are shortened to it first.
        directions : int, optional
            Keep so many, those of the largest variance. Default: all.
        """
        rows = _rows(public)
        return cls._learned(rows, input_radius, directions, _whitened)

    @classmethod
    def principal(cls, public: object, *, input_radius: float, directions: int | None = None) -> Transform:
        """Principal directions of public rows, centred and not scaled; parameters as :meth:`whitening`."""
        return cls._learned(_rows(public), input_radius, directions, _principal)

    @classmethod
    def centring(cls, public: object, *, input_radius: float) -> Transform:
        """Records less the mean of public rows; parameters as :meth:`whitening`."""
        return cls._learned(_rows(public), input_radius, None, _centred)

    @classmethod
    def _learned(cls, rows: Floats, input_radius: float, directions: int | None, learn: Any) -> Transform:
        if not 1e-15 <= input_radius <= 1e15:
            raise UsageError(
                parameter="input_radius",
                rule="must be from 1e-15 to 1e15",
                got=f"{input_radius:g}",
                remedy="give the length that no record exceeds",
            )
        if directions is not None and not 1 <= directions <= rows.shape[1]:
            raise UsageError(
                parameter="directions",
                rule=f"must be from 1 to {rows.shape[1]}, the number of columns",
                got=directions,
                remedy="leave it out",
            )
        clipped = clipped_to_ball(rows, input_radius)
        half = len(clipped) // 2
        parts = ((clipped[:half], clipped[half:]), (clipped[half:], clipped[:half]))
        lengths = np.concatenate(
            [
                np.linalg.norm((held - fit.mean(axis=0)) @ learn(fit)[:directions].T, axis=1)
                for fit, held in parts
            ]
        )
        matrix = learn(clipped)[:directions]
        largest = float(np.abs(matrix).max()) or 1.0
        whole = np.rint(matrix / largest * (1 << _MATRIX_BITS)).astype(np.int64)
        centre = np.rint(clipped.mean(axis=0) * ((1 << _INPUT_BITS) / input_radius)).astype(np.int64)
        scale = largest * input_radius / float(1 << (_MATRIX_BITS + _INPUT_BITS))
        return cls(
            whole,
            whole @ centre,
            scale,
            float(input_radius),
            max(float(np.quantile(lengths, _SHORT)), 1e-12),
            _variances(clipped, matrix),
        )

    def apply(self, rows: object) -> Floats:
        """The images of records, shape (n_records, dim); each depends on its record alone, bit for bit.

        Raises
        ------
        DataRefused
            for anything but rows of finite numbers of the right width.
        """
        dense = as_dense(rows, dim=self.columns).astype(np.float64)
        steps = np.rint(clipped_to_ball(dense, self.input_radius) * ((1 << _INPUT_BITS) / self.input_radius))
        products = steps @ self.matrix.T.astype(np.float64)
        images: Floats = (products - self.offset.astype(np.float64)) * self.scale
        return images

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, as arrays for a file."""
        return {
            "transform matrix": self.matrix,
            "transform offset": self.offset,
            "transform scales": np.array([self.scale, self.input_radius, self.radius]),
            "transform variances": self.variances,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Transform:
        """The inverse of :meth:`arrays`; FileRefused for arrays that make no transformation."""
        scale, input_radius, radius = (float(each) for each in arrays["transform scales"])
        matrix, offset = arrays["transform matrix"], arrays["transform offset"]
        variances = arrays["transform variances"]
        if matrix.ndim != 2 or offset.ndim != 1 or matrix.dtype.kind != "i" or offset.dtype.kind != "i":
            raise FileRefused(rule="the transformation makes no sense", remedy="ask who wrote it")
        whole = matrix.astype(np.int64), offset.astype(np.int64)
        return cls(*whole, scale, input_radius, radius, variances.astype(np.float64))


def _rows(public: object) -> Floats:
    shape = getattr(public, "shape", None) or np.asarray(public).shape
    if len(shape) != 2 or shape[0] < FEWEST_ROWS or not 0 < shape[1] <= _MOST_COLUMNS:
        raise DataRefused(
            parameter="public",
            rule=f"must be at least {FEWEST_ROWS} rows of at most {_MOST_COLUMNS} columns",
            got="another shape",
            remedy="give more public rows, or leave them out",
        )
    return as_dense(public, dim=int(shape[1])).astype(np.float64)


def _spectrum(rows: Floats) -> tuple[Floats, Floats]:
    """Variances along principal directions, largest first, and those directions as rows."""
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / max(len(rows) - 1, 1))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1].T


def _whitened(rows: Floats) -> Floats:
    values, directions = _spectrum(rows)
    ridge = max(RIDGE_ROWS * float(values.sum()) / len(rows), 1e-300)
    return np.asarray(directions / np.sqrt(values + ridge)[:, None])


def _principal(rows: Floats) -> Floats:
    return _spectrum(rows)[1]


def _centred(rows: Floats) -> Floats:
    return np.eye(rows.shape[1])


def _variances(rows: Floats, matrix: Floats) -> Floats:
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
