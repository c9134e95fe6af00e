"""PFDA: the mean of the records' kernel curves, smoothed, with Gaussian-process noise along the line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Unpack

import numpy as np

from hushsum._types import Floats
from hushsum.declaration import shows_keywords
from hushsum.errors import UsageError
from hushsum.files import Header
from hushsum.kernels import POSITIVE_DEFINITE, Batch, Kernel, positive_integer, positive_number
from hushsum.methods import DEFAULT_DELTA, DeclaredBox, Method, OneCallKeywords, OneCallRelease, register
from hushsum.privacy import REAL_ARITHMETIC, REAL_GAUSSIAN, Mechanism, Relation
from hushsum.records import DeclaredBounds
from hushsum.releases import (
    MOST_NUMBERS,
    UNKNOWN_ERRORS,
    Answers,
    Detail,
    Payload,
    Points,
    PublicFacts,
    QueryOptions,
    RealFunction,
    common_fields,
    encode_reals,
    normal_answers,
    register_reals,
    stored_integer,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveFunction(RealFunction):
    """Values at even steps from one end of the bounds to the other, straight lines between them.

    Made by ``pfda`` or by ``hushsum.load``; not by hand. Outside the bounds the nearest end answers. The
    kernel is fixed: another one needs another release.

    Parameters
    ----------
    values : array of shape (n_points,)
        Mean kernel values, noise included.
    errors : array of shape (n_points,)
        The standard deviation of the noise in each of them; the noise is correlated along the curve.
    kernel : Kernel
        Of one column.
    bounds : Bounds
        Of one column; the first value is at its low end, the last at its high end.
    count, count_variance, facts, method, columns
        As for `RealFunction`.

    Privacy
    -------
    The values were released together, so using them spends nothing.
    """

    kind = "curve"

    values: Floats
    errors: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds.dim != 1 or self.values.ndim != 1 or len(self.values) < 2:
            raise UsageError("a curve has one column and at least two values", got="another shape")
        if self.values.shape != self.errors.shape:
            raise UsageError("a curve has one error for each value", got="another number")
        for array in (self.values, self.errors):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return self._shown(f"curve={len(self.values)}")

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._read(Q, self.values)

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q), shape (n_queries,)."""
        return self.count * self(Q)

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """Without intervals: all errors are NaN.

        Much of the error is the bias of the smoothing penalty, of which the release says nothing; ``errors``
        has the standard deviation of the noise alone.
        """
        value = self._read(points, self.values)
        unknown = np.full(len(value), np.nan)
        total = value if options.of == "mean" else self.count * value
        return normal_answers(total, unknown, options.level, points)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of steps."""
        number = len(self.values)
        return (
            Detail("method", self.method, self.method),
            Detail("steps", number, f"{number} values, straight lines between them", label="curve"),
            Detail("error_bars", UNKNOWN_ERRORS, UNKNOWN_ERRORS, label="error bars"),
        )

    def _payload(self) -> Payload:
        return {"values": len(self.values)}, encode_reals(self.values, self.errors), None

    @cached_property
    def _places(self) -> Floats:
        centre = float(self.bounds.centre[0])
        places = np.linspace(self.bounds.low[0] - centre, self.bounds.high[0] - centre, len(self.values))
        places.flags.writeable = False
        return places

    def _read(self, Q: object, numbers: Floats) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        queries = rows[:, 0].astype(np.float64)
        return np.interp(queries, self._places, numbers)


MOST_STEPS = 4096
# Relative to the largest: directions below it carry no curve, and are left out of curve and noise alike.
_SMALLEST_EIGENVALUE = 1e-12


@dataclass(frozen=True, slots=True)
class CurveSpace:
    """Curves on a grid of a line, in the eigenvectors of the noise's covariance; public.

    ``basis`` has one column an eigenvector, orthonormal in the line's L2 norm; ``curves`` the coordinates of
    the kernel curve of a record at each grid point, one row each.
    """

    basis: Floats
    eigenvalues: Floats
    curves: Floats

    @classmethod
    def of(cls, kernel: Kernel, covariance: Kernel, low: float, high: float, steps: int) -> CurveSpace:
        """From the covariance of the noise at ``steps`` even points; the line is scaled to length 1."""
        from scipy.linalg import eigh

        places = np.linspace(low, high, steps)[:, None]
        batch = Batch((places,), steps)
        spacing = 1.0 / (steps - 1)
        eigenvalues, vectors = eigh(spacing * covariance._pairwise(batch, batch))
        kept = eigenvalues > _SMALLEST_EIGENVALUE * eigenvalues[-1]
        basis = vectors[:, kept] / math.sqrt(spacing)
        return cls(basis, eigenvalues[kept], spacing * (kernel._pairwise(batch, batch) @ basis))

    def smoothed(self, penalty: float) -> Floats:
        """The curves after the penalty, in units of the noise: coordinate j times ``√λ_j/(λ_j + φ)``.

        The mean with least ``Σ‖X_i − m‖²/n + φ·‖m‖²_C`` has coordinates λ_j/(λ_j + φ) times the plain mean's;
        noise has √λ_j in that direction.
        """
        return self.curves * (np.sqrt(self.eigenvalues) / (self.eigenvalues + penalty))


@shows_keywords(OneCallKeywords, relation=Relation.REPLACE, delta=DEFAULT_DELTA)
def pfda(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    penalty: float = 0.01,
    covariance: Kernel | None = None,
    steps: int = 1024,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
) -> CurveFunction:
    """The mean of kernel curves as functional data, in one dimension. Spends ``epsilon`` and ``delta``.

    Works well for one column and a penalty far below the largest eigenvalue of the covariance, which is about
    2.5 bandwidths over the width of the bounds; above it the curve is smoothed away. The penalty's bias is no
    part of the standard errors.

    Parameters
    ----------
    X : records of shape (n, 1)
        Private; their number is public.
    kernel : Kernel
        Of one column. Each record becomes the curve ``k(x, ·)``.
    bounds : (low, high)
        Declared. Records are clipped to it and rounded to the nearest of ``steps`` points.
    penalty : float
        φ, the smoothing, on the line scaled to length 1, in units of sup k(x, x) of the covariance.
    covariance : Kernel, optional
        Covariance of the Gaussian process that is the noise, positive definite; default the kernel itself.
    steps : int
        Points of the grid; one decomposition of steps × steps, whatever the number of records.
    columns, **keywords
        As for `histogram`. The default of ``delta`` is 1e-6. ``relation`` is ``"replace"``, the only one,
        since the mean divides by the number of records.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; a delta above 0 is needed.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    (ε, δ) under replace, real arithmetic. In the eigenvectors of the covariance, scaled by the noise, the
    smoothed mean is a mean of vectors of which there are ``steps``, one for each place a record can be
    rounded to. One record replaced moves it by at most Δ = (their largest distance)/n, computed from all
    pairs, and Gaussian noise is calibrated to that Δ by Balle & Wang's formula, for every ε. The dropped
    eigenvectors are chosen without the data.

    Notes
    -----
    Mirshani, Reimherr and Slavković, *Formal privacy for functional data with Gaussian perturbations*, ICML
    2019. There Δ² is bounded by the sup of the curves' norms over φ, and the noise by ``2·ln(2/δ)·Δ²/ε²``,
    which holds for ε ≤ 1.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import pfda
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=0.1)
    >>> f = pfda([[0.3]] * 20000, kernel, bounds=(0, 1), epsilon=1.0, penalty=1e-4, steps=200)
    >>> f([[0.3], [0.9]]).round(1) + 0.0, f.claim.arithmetic
    (array([1., 0.]), 'real arithmetic')
    """
    POSITIVE_DEFINITE.check(kernel, "pfda")
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    if box.dim != 1:
        raise UsageError("bounds", "must be of one column for pfda", got=box.dim, remedy="use kme, or a grid")
    process = kernel if covariance is None else covariance
    POSITIVE_DEFINITE.check(process, "the noise of pfda")
    DeclaredBox.of(process, box, None)
    positive_number("penalty", penalty, remedy="try 0.01")
    number = positive_integer("steps", steps, at_most=MOST_STEPS)
    if number < 8:
        raise UsageError("steps", "must be at least 8", got=f"{number}", remedy="try 1024")
    prepared = OneCallRelease.of(METHOD, **keywords)
    rows = declared.records(X)
    low, high = (float(end - box.centre[0]) for end in (box.low[0], box.high[0]))

    def make() -> CurveFunction:
        smoothing = penalty * process.size_bound()
        space, vectors, furthest = _public_part(kernel, process, low, high, number, smoothing)
        place = np.rint((rows[:, 0].astype(np.float64) - low) * ((number - 1) / (high - low)))
        shares = np.bincount(np.clip(place, 0, number - 1).astype(np.int64), minlength=number) / len(rows)
        with prepared.noise() as noise:
            noisy, sigma = noise.gaussian(
                shares @ vectors, furthest / len(rows), prepared.epsilon, prepared.delta
            )
        paths = space.basis * np.sqrt(space.eigenvalues)
        return CurveFunction(
            values=paths @ noisy,
            errors=sigma * np.sqrt(np.einsum("ij,ij->i", paths, paths)),
            kernel=kernel,
            bounds=box,
            count=float(len(rows)),
            count_variance=0.0,
            facts=PublicFacts(prepared.claim),
            method=METHOD.name,
            columns=declared.columns,
        )

    return prepared.released(make, penalty=penalty, steps=number)


@lru_cache(maxsize=1)
def _public_part(
    kernel: Kernel, covariance: Kernel, low: float, high: float, steps: int, penalty: float
) -> tuple[CurveSpace, Floats, float]:
    """What does not depend on the records: the space, the smoothed curves, their largest distance."""
    space = CurveSpace.of(kernel, covariance, low, high, steps)
    vectors = space.smoothed(penalty)
    return space, vectors, largest_distance(vectors)


def largest_distance(vectors: Floats) -> float:
    """The largest Euclidean distance between two rows, rounded up by what the squares lose.

    >>> round(largest_distance(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])), 9)
    5.0
    """
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    squared = lengths[:, None] + lengths[None, :] - 2.0 * (vectors @ vectors.T)
    rounding = 4.0 * (vectors.shape[1] + 2) * float(np.finfo(np.float64).eps) * float(lengths.max())
    return math.sqrt(max(float(squared.max()), 0.0) + rounding)


METHOD = register(
    Method(
        name="pfda",
        role=POSITIVE_DEFINITE,
        one_call=pfda,
        pure=False,
        relations=(Relation.REPLACE,),
        mechanism=Mechanism.of(REAL_GAUSSIAN),
        arithmetic=REAL_ARITHMETIC,
        paper="Mirshani, Reimherr and Slavković 2019",
        most_columns=1,
    )
)


def _shapes(header: Header) -> list[tuple[int, ...]]:
    return [(stored_integer(header["values"], 1, MOST_NUMBERS),)] * 2


def _curve(header: Header, values: Floats, errors: Floats) -> CurveFunction:
    if (errors < 0.0).any():
        raise ValueError("errors")
    return CurveFunction(values=values, errors=errors, **common_fields(header))


register_reals(CurveFunction.kind, "values", _shapes, _curve)
