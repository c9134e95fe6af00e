"""Released points: public, weighted, with kernel sums that stand for those of the private records.

Boxes of unequal size that cover the declared one, each with the number of records in it, are read likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from hushsum import kernels
from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.files import Header
from hushsum.kernels import Batch, Kernel, Profile, ProfileKernel, Role
from hushsum.records import Bounds
from hushsum.tables import cell_errors

from ._base import (
    UNKNOWN_ERRORS,
    Answers,
    Detail,
    LocalFunction,
    Payload,
    Points,
    PublicFacts,
    QueryOptions,
    Quotient,
    register,
    stored_integer,
    stored_text,
)

__all__ = [
    "MOST_NUMBERS", "ONE_PROFILE", "BoxesFunction", "FeatureErrors", "PointsFunction", "RealFunction",
    "all_measured", "check_kernel", "common_fields", "encode_reals", "register_reals",
]  # fmt: skip

LEAST_EIGENVALUE = 1e-8
"""Relative to sup k(x, x): functions below are lost in rounding."""

MOST_POINTS = 1 << 12
"""The most points for which the functions are found. For more points it takes too long."""

# The part of the trace that a factorisation may leave out.
_LEFT = 1e-10

# The variance of coefficients of small eigenvalues, over that of those which decide τ: the geometric mean on
# the tuning half of ``benchmarks/coverage/intervals.py`` (skin, cod_rna, shuttle), where it is 4 to 24.
_FINER = 8.0

# The largest answer that is assumed at a place that no point sees: this number of times the noise of one
# feature, where one is measured, since a box with fewer records is not halved in the search for places; or
# this number over that of the points. Chosen on covtype, gas drift, shuttle, protein and naval propulsion in
# 5 and 10 columns.
_UNSEEN_NOISE, _UNSEEN_POINTS = 60.0, 10.0

# A variance that says nothing of a coefficient before it is measured.
_ANY = 1e30


@dataclass(frozen=True, slots=True)
class FeatureErrors:
    """Points whose weights were fitted to noisy means of their first principal functions.

    The principal functions ψ of the points are orthonormal in the kernel's space, with eigenvalues λ. A mean
    kernel value is Σ c·ψ(q) with the records' coefficients c. About those of equal weights, a coefficient has
    the variance 8τ·λ, and what was measured of it has noise; so its error has the variance ``8τλ·v/(8τλ +
    v)``. Where it was not measured, that is 8τλ, and what the fitted weights differ from equal ones is an
    error too. The factor is there because points are placed by the same coarse shape of the data that decides
    the value of τ: within it, in functions of small λ, records are less like the points. Of the kernel at q
    the part ``1 − Σψ²/k(q, q)`` is in no ψ, so that the points say nothing of it: it counts as an error of
    that part of the answer, or of the largest answer that is likely at a place where the search found too few
    records for a point, where that is larger. Such a place may have more records the smaller the budget is,
    and a typical answer at most.

    Parameters
    ----------
    measured : int
        How many functions were measured, those of the largest eigenvalues.
    noise_variance : float
        v, of the noise in each coefficient.
    prior_variance : float
        τ, found from the released coefficients: the value of greatest likelihood.
    """

    measured: int
    noise_variance: float
    prior_variance: float

    def as_json(self) -> list[float]:
        """For the header of a file."""
        return [self.measured, self.noise_variance, self.prior_variance]

    @classmethod
    def from_json(cls, data: Any) -> FeatureErrors:
        """The errors of a file's header."""
        measured, noise, prior = data
        return cls(stored_integer(measured, 1, MOST_NUMBERS), _real(noise), _real(prior))


def all_measured(points: int, noise_variance: float) -> FeatureErrors:
    """The errors of a projection on the span of the points: every function was measured, and nothing was
    assumed.
    """
    return FeatureErrors(points, noise_variance, _ANY)


class PrincipalErrors:
    """The variance of mean kernel values at queries; the functions are found once."""

    def __init__(self, kernel: Kernel, points: Floats, weights: Floats, errors: FeatureErrors) -> None:
        batch = Batch((points,), len(points))
        similar = kernel._pairwise(batch, batch)
        # The root mean square answer at the points, which are where the records are.
        self._unseen = float(np.sqrt(np.mean(np.square(weights @ similar))))
        if errors.prior_variance < _ANY:
            found = _UNSEEN_NOISE * math.sqrt(errors.noise_variance / errors.measured)
            self._unseen = min(self._unseen, max(found, _UNSEEN_POINTS / len(points)))
        values, vectors = _principal(similar / len(points))
        self._largest = kernel.size_bound()
        kept = np.flatnonzero(values > LEAST_EIGENVALUE * self._largest)[::-1]
        self._kernel, self._points = kernel, batch
        self._coefficients = vectors[:, kept] / np.sqrt(values[kept] * len(points))
        functions = similar @ self._coefficients
        self._moved = (weights - weights.sum() / len(weights)) @ functions
        self._moved[: errors.measured] = 0.0
        prior, noise = _FINER * errors.prior_variance * values[kept], errors.noise_variance
        number = errors.measured
        self._variances = prior.copy()
        self._variances[:number] = prior[:number] * noise / np.maximum(prior[:number] + noise, 1e-300)

    def variance(self, queries: Floats, means: Floats) -> Floats:
        """The variance at prepared queries, where the answers are ``means``."""
        similar = self._kernel._pairwise(self._points, Batch((queries,), len(queries)))
        functions = similar.T @ self._coefficients
        squares = np.square(functions)
        outside = np.clip(1.0 - squares.sum(axis=1) / self._largest, 0.0, 1.0)
        variance: Floats = squares @ self._variances + np.square(functions @ self._moved)
        variance += np.square(outside * np.maximum(np.abs(means), self._unseen))
        return variance


def _principal(gram: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues in rising order, and eigenvectors, of a matrix of kernel values.

    Those of a smooth kernel are nearly all below rounding, and are left out: a Cholesky factorisation with
    pivots ends at the numerical rank r, and the eigenvectors follow from r × r products of its factor. What
    is left of the matrix has a trace below n²·ε times the largest diagonal element. A matrix of a high rank,
    or one that is not positive semidefinite, is decomposed as it is.
    """
    from scipy.linalg.lapack import dpstrf

    factor, pivots, rank, _ = dpstrf(gram, lower=1)
    lower = np.tril(factor)[:, :rank]
    left = abs(float(np.trace(gram)) - float(np.square(lower).sum()))
    if 2 * rank > len(gram) or left > _LEFT * float(np.trace(gram)):
        return np.linalg.eigh(gram)
    ordered = np.empty_like(lower)
    ordered[pivots - 1] = lower
    values, turned = np.linalg.eigh(ordered.T @ ordered)
    return values, ordered @ (turned / np.sqrt(np.maximum(values, 1e-300)))


@dataclass(frozen=True, eq=False, kw_only=True)
class RealFunction(LocalFunction):
    """A released function of columns in a declared box, stored in real numbers; public and frozen.

    Parameters
    ----------
    kernel : Kernel
        The similarity whose sums are answered.
    bounds : Bounds
        The declared box.
    count, count_variance : float
        The estimated number of records, and the variance of that estimate; 0 where the number is public.
    facts : PublicFacts
    method : str
        The method that made it.
    columns : tuple of str, optional
        What the columns are called; frames of queries are read by these names.
    """

    kernel: Kernel
    bounds: Bounds
    count: float
    count_variance: float
    facts: PublicFacts
    method: str
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_kernel(self.kernel, self.bounds.dim)
        kernels.check_columns(self.columns, self.bounds.dim)
        for each in vars(self).values():
            if isinstance(each, np.ndarray):
                each.flags.writeable = False

    @property
    def dim(self) -> int:
        """The number of columns of a query."""
        return self.bounds.dim

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return math.sqrt(self.count_variance)

    def stated(self) -> Header:
        """The header of its file, without the layout of the numbers."""
        return {
            **super().stated(),
            "kernel": kernels.kernel_as_json(self.kernel),
            "bounds": self.bounds.as_json(),
            "columns": None if self.columns is None else list(self.columns),
            "count": {"value": self.count, "variance": self.count_variance},
            "method": self.method,
        }

    def _queries(self, Q: object) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        return rows.astype(np.float64)

    def _shown(self, numbers: str) -> str:
        return f"ReleasedFunction({self.kernel!r}, method={self.method!r}, {numbers}, claim={self.claim!r})"


def check_kernel(kernel: Kernel, dim: int) -> None:
    """Refuse a kernel that does not compare columns of numbers, or not as many."""
    kernels.COLUMNS.check(kernel, "a function of points in a box")
    if kernel.dim != dim:
        raise UsageError(
            "kernel", f"must have dim {dim}, one for each bound", got="another", remedy="make one with it"
        )


_CELLS_AT_A_TIME = 1 << 21
_QUERIES_AT_A_TIME = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class PointsFunction(RealFunction):
    """Weighted public points, answering ``Σ w·k(p, q)`` for any query and any kernel.

    Made by a method such as ``histogram`` or ``mwem``, or by ``hushsum.load``; not by hand. The points are
    synthetic: none of them is a record.

    Parameters
    ----------
    points : array of shape (n_points, dim)
        In the units of the data, inside ``bounds``.
    weights : array of shape (n_points,)
        They sum to about the number of records; some may be negative.
    kernel, bounds, count, count_variance, facts, method, columns
        As for `RealFunction`.
    weight_variance : float or None
        The variance of the noise in every weight, where it is independent over the points; None otherwise.
    cell_width : tuple of float, optional
        Of points that are middles of cells: the cells' widths, for the error of reading records there.
    feature_errors : FeatureErrors, optional
        Of points whose weights were fitted to noisy functions of them, for at most 4096 points.

    Notes
    -----
    Where neither ``weight_variance`` nor ``feature_errors`` is known, the errors of answers are NaN.

    Privacy
    -------
    Points and weights were computed from what was released, so using them spends nothing.
    """

    kind = "points"

    points: Floats
    weights: Floats
    weight_variance: float | None
    cell_width: tuple[float, ...] | None = None
    feature_errors: FeatureErrors | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.points.ndim != 2 or self.points.shape != (len(self.weights), self.bounds.dim):
            raise UsageError(
                "points", "must have one row a weight and one column a bound", remedy="give both alike"
            )

    def __repr__(self) -> str:
        return self._shown(f"points={len(self.weights)}")

    def sum(self, Q: object) -> Floats:
        """Kernel sums Σ w·k(p, q), shape (n_queries,); costs points × queries."""
        return self._sums(Q, squares=False)[0]

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """NaN where the method has no error estimate; ``f.describe()`` says what error bars contain."""
        sums, squares = self._sums(points, squares=self.weight_variance is not None)
        number = max(self.count, 1.0)
        if self.weight_variance is not None:
            variance = self.weight_variance * squares
            if self.cell_width is not None:
                variance += self._cell_errors(points)
        elif self._principal is not None:
            variance = number**2 * self._principal.variance(self._queries(points), sums / number)
        else:
            variance = np.full(len(sums), np.nan)
        quotient = Quotient(sums, number, variance, self.count_variance)
        return quotient.answers(options.normal_reach(len(sums)), points, options)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of points."""
        number = len(self.weights)
        return (
            Detail("method", self.method, self.method),
            Detail("points", number, f"{number} synthetic points with weights"),
            Detail("weight_variance", self.weight_variance),
            Detail("error_bars", self._error_bars(), self._error_bars(), label="error bars"),
        )

    def _error_bars(self) -> str:
        if self.cell_width is not None:
            return "noise, and records read at the middles of cells"
        if self._knows_features:
            return "noise, and an estimate of what the points do not show"
        if self.weight_variance is None:
            return UNKNOWN_ERRORS
        return "noise alone"

    def with_kernel(self, kernel: Kernel) -> PointsFunction:
        """The same points under another kernel or bandwidth; spends nothing."""
        check_kernel(kernel, self.bounds.dim)
        return self if kernel == self.kernel else replace(self, kernel=kernel, feature_errors=None)

    def stated(self) -> Header:
        """The header of its file, without the number of points."""
        return {
            **super().stated(),
            "weight_variance": self.weight_variance,
            "cell_width": None if self.cell_width is None else list(self.cell_width),
            "feature_errors": None if self.feature_errors is None else self.feature_errors.as_json(),
        }

    def _payload(self) -> Payload:
        return {"points": list(self.points.shape)}, encode_reals(self.points, self.weights), None

    @cached_property
    def _live(self) -> tuple[Floats, Floats]:
        """Points of a weight, centred on the box as queries are, and their weights."""
        used = self.weights != 0.0
        return self.points[used] - self.bounds.centre, self.weights[used]

    @property
    def _knows_features(self) -> bool:
        return self.feature_errors is not None and len(self.points) <= MOST_POINTS

    @cached_property
    def _principal(self) -> PrincipalErrors | None:
        if self.feature_errors is None or not self._knows_features:
            return None
        shares = self.weights / max(self.count, 1.0)
        return PrincipalErrors(self.kernel, self.points - self.bounds.centre, shares, self.feature_errors)

    def _cell_errors(self, Q: object) -> Floats:
        """The squared error of reading records at the middles of cells, from the noisy weights."""
        assert self.cell_width is not None
        queries, centres = self._queries(Q), self.points - self.bounds.centre
        errors, width = np.zeros(len(queries)), np.array(self.cell_width)
        step = max(1, _CELLS_AT_A_TIME // len(centres))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            errors[start : start + step] = cell_errors(
                self.kernel, centres, width, self.weights, Batch((part,), len(part))
            )
        return errors

    def _sums(self, Q: object, *, squares: bool) -> tuple[Floats, Floats]:
        """Σ w·k and, if requested, Σ k² over all points, some points and queries at a time."""
        queries = self._queries(Q)
        points, weights = self._live
        if squares:
            points, weights = self.points - self.bounds.centre, self.weights
        sums, gains = np.zeros(len(queries)), np.zeros(len(queries))
        step = max(1, _CELLS_AT_A_TIME // min(len(queries), _QUERIES_AT_A_TIME))
        for j in range(0, len(queries), _QUERIES_AT_A_TIME):
            part = slice(j, j + _QUERIES_AT_A_TIME)
            batch = Batch((queries[part],), len(queries[part]))
            for i in range(0, len(points), step):
                some = points[i : i + step]
                values = self.kernel._pairwise(Batch((some,), len(some)), batch)
                sums[part] += weights[i : i + step] @ values
                if squares:
                    gains[part] += np.einsum("ij,ij->j", values, values)
        return sums, gains


MOST_NUMBERS = 1 << 28
# The largest number that is stored. Answers multiply a few of them, and must stay finite.
_LARGEST = 1e60

_BYTES = 8


def _shapes(header: Header) -> list[tuple[int, ...]]:
    number, dim = (stored_integer(each, 1, MOST_NUMBERS) for each in header["points"])
    return [(number, dim), (number,)]


def _points(header: Header, points: Floats, weights: Floats) -> PointsFunction:
    number, dim = points.shape
    noise, width, errors = (header[name] for name in ("weight_variance", "cell_width", "feature_errors"))
    if width is not None and (not isinstance(width, list) or len(width) != dim):
        raise ValueError("cell_width")
    function = PointsFunction(
        points=points,
        weights=weights,
        weight_variance=None if noise is None else _real(noise),
        cell_width=None if width is None else tuple(map(_real, width)),
        feature_errors=None if errors is None else FeatureErrors.from_json(errors),
        **common_fields(header),
    )
    low, high = np.array(function.bounds.low), np.array(function.bounds.high)
    if (points < low).any() or (points > high).any():
        raise ValueError("a point lies outside the bounds")
    if function.cell_width is not None and (np.array(function.cell_width) > 2.0 * (high - low)).any():
        raise ValueError("a cell is wider than the box")
    if function.feature_errors is not None and function.feature_errors.measured > number:
        raise ValueError("more functions than points")
    return function


def common_fields(header: Header) -> dict[str, Any]:
    """What the header of a `RealFunction` states, as constructor's arguments."""
    columns = header["columns"]
    if not isinstance(columns, list | None):
        raise TypeError("columns")
    return {
        "kernel": kernels.kernel_from_json(header["kernel"]),
        "bounds": Bounds.from_json(header["bounds"]),
        "columns": None if columns is None else tuple(columns),
        "facts": PublicFacts.from_json(header),
        "count": _real(header["count"]["value"], at_least=1.0),
        "count_variance": _real(header["count"]["variance"]),
        "method": stored_text(header["method"]),
    }


def _real(value: object, *, at_least: float = 0.0) -> float:
    """A float from the least it may be to `_LARGEST`."""
    if type(value) is not float or not at_least <= value <= _LARGEST:
        raise ValueError("number")
    return value


def encode_reals(*arrays: Floats) -> list[memoryview]:
    """Little-endian doubles, array after array."""
    return [np.ascontiguousarray(each, dtype="<f8").data.cast("B") for each in arrays]


def register_reals(
    kind: str,
    layout: str,
    shapes: Callable[[Header], list[tuple[int, ...]]],
    build: Callable[..., RealFunction],
) -> None:
    """Make a kind of function known whose file holds arrays of real numbers, of the ``shapes`` that the entry
    ``layout`` of its header states; ``build`` takes the header and the arrays.
    """

    def size(header: Header) -> int:
        numbers = sum(map(math.prod, shapes(header)))
        if numbers > MOST_NUMBERS:
            # More than any method writes.
            raise ValueError("size")
        return _BYTES * numbers

    def built(header: Header, payload: memoryview) -> RealFunction:
        return build(header, *_decoded(payload, shapes(header)))

    register(kind, size, built, layout)


def _decoded(payload: memoryview, shapes: Sequence[tuple[int, ...]]) -> list[Floats]:
    """The arrays back; ValueError unless every number is within ±`_LARGEST`."""
    numbers = np.frombuffer(payload, dtype="<f8").astype(np.float64)
    if not (np.abs(numbers) <= _LARGEST).all():
        raise ValueError("numbers")
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        numbers[end - math.prod(shape) : end].reshape(shape).copy()
        for shape, end in zip(shapes, ends, strict=True)
    ]


register_reals(PointsFunction.kind, "points", _shapes, _points)


_UNEVEN: Final = 0.3
"""The variance of a kernel sum over records that are somewhere in a box, as a part of what it is if all of
them are at one random place of it. If each halving of a box splits its records in a uniformly distributed
ratio, it is 1/4 + 1/24 + … for a kernel that is about linear in the box.
"""

_AT_A_TIME: Final = 1 << 22


def _one_profile(kernel: ProfileKernel) -> Profile | None:
    widths = kernel.column_widths()
    found = kernel.profiles(spacings=widths, sides=widths)
    return found[0] if len(found) == 1 else None


ONE_PROFILE: Final = Role(
    "is one product of Gaussians or exponentials over its columns",
    lambda kernel: isinstance(kernel, ProfileKernel) and _one_profile(kernel) is not None,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxesFunction(RealFunction):
    """Records that are spread evenly within boxes; public and frozen. Made by ``adaptive_grid``.

    Parameters
    ----------
    low, high : array of shape (n_boxes, dim)
        The boxes, which cover ``bounds`` once.
    weights : array of shape (n_boxes,)
        The number of records in each; none is negative.
    variances : array of shape (n_boxes,)
        Of the errors of these numbers.
    kernel, bounds, count, count_variance, facts, method, columns
        As for `RealFunction`; the kernel is one product over columns.

    Notes
    -----
    The error of an answer has two parts: that of the numbers, and that of where in its box a record is. The
    second is bounded by the inequality of Bhatia and Davis (2000) from the least, the mean and the largest
    kernel value in the box.

    Privacy
    -------
    The boxes and numbers were computed from what was released, so using them spends nothing.
    """

    kind = "boxes"

    low: Floats
    high: Floats
    weights: Floats
    variances: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        ONE_PROFILE.check(self.kernel, "boxes")

    def __repr__(self) -> str:
        return self._shown(f"boxes={len(self.weights)}")

    def sum(self, Q: object) -> Floats:
        """Kernel sums, shape (n_queries,); none is negative."""
        return self._summed(self._queries(Q), lambda mean, near, far: [(self.weights, [mean])])

    def noise(self, Q: object) -> Floats:
        """The standard errors of kernel sums from the errors of the boxes' numbers alone, shape (n_queries,):
        those of the mean over each box, whatever the places of records in it.
        """
        queries = self._queries(Q)
        squares = self._summed(queries, lambda mean, near, far: [(self.variances, [mean, mean])])
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def nonnegative(self) -> BoxesFunction:
        """The function itself: no box has a negative number."""
        return self

    def with_kernel(self, kernel: Kernel) -> BoxesFunction:
        """The same boxes under another kernel or bandwidth; spends nothing."""
        return self if kernel == self.kernel else replace(self, kernel=kernel)

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        queries = self._queries(points)
        sums = self.sum(points)
        spread = _UNEVEN * (np.square(self.weights) + self.variances)

        def squares(mean: Floats, near: Floats, far: Floats) -> list[tuple[Floats, list[Floats]]]:
            # (near − mean)·(mean − far), for products over columns.
            return [
                (self.variances - spread, [mean, mean]),
                (spread, [near, mean]),
                (-spread, [near, far]),
                (spread, [mean, far]),
            ]

        variance = np.maximum(self._summed(queries, squares), 0.0)
        quotient = Quotient(sums, max(self.count, 1.0), variance, self.count_variance)
        return quotient.answers(options.normal_reach(len(sums)), points, options)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of boxes."""
        number = len(self.weights)
        bars = "noise, and an estimate of where in their boxes records are"
        return (
            Detail("method", self.method, self.method),
            Detail("boxes", number, f"{number} boxes, small where records are dense"),
            Detail("error_bars", bars, bars, label="error bars"),
        )

    def _payload(self) -> Payload:
        arrays = (self.low, self.high, self.weights, self.variances)
        return {"boxes": list(self.low.shape)}, encode_reals(*arrays), None

    @cached_property
    def _profile(self) -> Profile:
        assert isinstance(self.kernel, ProfileKernel)
        found = _one_profile(self.kernel)
        assert found is not None
        return found

    def _along(self, column: int, places: Floats) -> tuple[Floats, Floats, Floats]:
        """The mean, the largest and the least value of the profile in each box, shape (places, boxes)."""
        centre = self.bounds.centre[column]
        low = self.low[:, column] - centre - places[:, None]
        high = self.high[:, column] - centre - places[:, None]
        scale, gaussian = self._profile.scales[column], self._profile.gaussian[column]
        total = _gaussian_integral if gaussian else _exponential_integral
        mean = (total(high / scale) - total(low / scale)) * scale / (high - low)
        nearest = np.maximum(np.maximum(low, -high), 0.0) / scale
        farthest = np.maximum(np.abs(low), np.abs(high)) / scale
        values = [np.exp(-0.5 * each * each) if gaussian else np.exp(-each) for each in (nearest, farthest)]
        return np.clip(mean, values[1], values[0]), values[0], values[1]

    def _summed(
        self, queries: Floats, terms: Callable[[Floats, Floats, Floats], list[tuple[Floats, list[Floats]]]]
    ) -> Floats:
        """Σ over boxes and terms of a number times a product of factors, each of which is a product over
        columns; all points of a lattice of two columns together.
        """
        number, dim = queries.shape
        height = self._profile.height
        boxes = len(self.weights)
        if dim == 2 and number > 1:
            (across, i), (up, j) = (np.unique(each, return_inverse=True) for each in queries.T)
            if len(across) * len(up) <= 2 * number:
                table = np.zeros((len(across), len(up)))
                right = terms(*self._along(1, up))
                step = max(1, _AT_A_TIME // boxes)
                for start in range(0, len(across), step):
                    left = terms(*self._along(0, across[start : start + step]))
                    for (weight, one), (_, other) in zip(left, right, strict=True):
                        factor = height ** len(one)
                        table[start : start + step] += (
                            factor * (np.prod(one, axis=0) * weight) @ np.prod(other, axis=0).T
                        )
                return np.asarray(table[i, j])
        sums = np.zeros(number)
        step = max(1, _AT_A_TIME // (boxes * dim))
        for start in range(0, number, step):
            part = queries[start : start + step]
            found = [np.ones((len(part), boxes)) for _ in range(3)]
            for column in range(dim):
                for product, factor_of in zip(found, self._along(column, part[:, column]), strict=True):
                    product *= factor_of
            for weight, factors in terms(found[0], found[1], found[2]):
                sums[start : start + step] += height ** len(factors) * np.prod(factors, axis=0) @ weight
        return sums


def _gaussian_integral(x: Floats) -> Floats:
    """∫ exp(−t²/2) dt from 0 to x."""
    from scipy.special import erf

    return np.asarray(np.sqrt(0.5 * np.pi) * erf(x * np.sqrt(0.5)))


def _exponential_integral(x: Floats) -> Floats:
    """∫ exp(−|t|) dt from 0 to x."""
    return np.asarray(-np.sign(x) * np.expm1(-np.abs(x)))


def _box_shapes(header: Header) -> list[tuple[int, ...]]:
    number, dim = (stored_integer(each, 1, MOST_NUMBERS) for each in header["boxes"])
    return [(number, dim), (number, dim), (number,), (number,)]


def _boxes(header: Header, low: Floats, high: Floats, weights: Floats, variances: Floats) -> BoxesFunction:
    common = common_fields(header)
    bounds = common["bounds"]
    if low.shape[1] != bounds.dim or not (low < high).all():
        raise ValueError("boxes")
    if (low < bounds.low).any() or (high > bounds.high).any():
        raise ValueError("a box lies outside the bounds")
    if (weights < 0.0).any() or (variances < 0.0).any():
        raise ValueError("a negative number")
    return BoxesFunction(low=low, high=high, weights=weights, variances=variances, **common)


register_reals(BoxesFunction.kind, "boxes", _box_shapes, _boxes)
