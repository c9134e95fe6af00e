"""Released points: public, weighted, with kernel sums that stand for those of the private records.

Boxes of unequal size that cover the declared one, each with the number of records in it, are read likewise.
Other public points help to read a released table, and places with weights of 0 or more make the non-negative
version of a released function.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np

from hushsum import kernels
from hushsum._types import Floats, Integers
from hushsum.errors import UsageError
from hushsum.files import REAL, Header, decode_array, encode_array, encoded_size, narrowest_type
from hushsum.kernels import PROFILES, Batch, Kernel, Profile, ProfileKernel, Role
from hushsum.privacy import Statement
from hushsum.records import Bounds
from hushsum.tables import (
    FOLDS,
    WHOLE,
    FeatureReading,
    GridReading,
    GridWeights,
    Table,
    cell_errors,
    drawn_points,
    explain,
    mean_weights,
    unexplained,
)

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
    ReleasedFunction,
    file_bytes,
    load_single,
    normal_answers,
    query_points,
    register,
    stored_integer,
    stored_text,
)
from ._tables import CoefficientFunction, NoisyTable

__all__ = [
    "FEWEST_POINTS", "MOST_NUMBERS", "MOST_POINTS", "ONE_PROFILE", "PUBLIC_SAMPLE", "BoxesFunction",
    "CombinedFunction", "FeatureErrors", "ForwardedFacts", "NonnegativeFunction", "PointsFunction",
    "RealFunction", "SharpenedFunction", "all_measured", "check_kernel", "combine", "common_fields",
    "encode_reals", "nearest_probabilities", "register_reals", "released_table", "sample_points", "sharpened",
]  # fmt: skip

LEAST_EIGENVALUE = 1e-8
"""Relative to sup k(x, x): functions below are lost in rounding."""

_MOST_WITH_ERRORS = 1 << 12
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
        return self.feature_errors is not None and len(self.points) <= _MOST_WITH_ERRORS

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

_BOXES_AT_A_TIME: Final = 1 << 22


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
                step = max(1, _BOXES_AT_A_TIME // boxes)
                for start in range(0, len(across), step):
                    left = terms(*self._along(0, across[start : start + step]))
                    for (weight, one), (_, other) in zip(left, right, strict=True):
                        factor = height ** len(one)
                        table[start : start + step] += (
                            factor * (np.prod(one, axis=0) * weight) @ np.prod(other, axis=0).T
                        )
                return np.asarray(table[i, j])
        sums = np.zeros(number)
        step = max(1, _BOXES_AT_A_TIME // (boxes * dim))
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


PUBLIC_SAMPLE: Final = "the sample that parameters and answers were derived from is public"


@dataclass(frozen=True, eq=False, repr=False)
class ForwardedFacts(LocalFunction):
    """A reader of ``function``, whose claim, kernel, count, columns and bounds are those of that function."""

    function: LocalFunction

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, {self.claim!r})"

    @property
    def facts(self) -> PublicFacts:
        """The facts of the function."""
        return self.function.facts

    def stating(self, statement: Statement) -> Self:
        """The same with this statement, which is one of the function."""
        return replace(self, function=self.function.stating(statement))

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""
        return self.function.kernel

    @property
    def count(self) -> float:
        """The estimated number of records."""
        return self.function.count

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return self.function.count_stderr

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called; None if not declared."""
        return self.function.columns

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that records were clipped to; None if not declared."""
        return self.function.bounds

    def stated(self) -> Header:
        """The facts are those of the release, whose file is in this one."""
        return {"type": self.kind}


@dataclass(frozen=True, eq=False, repr=False)
class ReadWithPoints(ForwardedFacts):
    """A reader of a released table and public points. The points are read, and stored, as they are, so the
    claim states that they are public.
    """

    joined: ClassVar[str]
    """How the function and the points go together, in words."""

    function: NoisyTable
    points: Floats

    @property
    def facts(self) -> PublicFacts:
        """The facts of the function; the claim also has the assumption that the public points are public."""
        facts, known = self.function.facts, self.function.claim.assumptions
        if PUBLIC_SAMPLE in known:
            return facts
        return replace(facts, claim=replace(facts.claim, assumptions=(*known, PUBLIC_SAMPLE)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, points={len(self.points)}, {self.claim!r})"

    def details(self) -> tuple[Detail, ...]:
        """The release, and the number of public points it is read with."""
        number = len(self.points)
        return (*self.function.details(), Detail("points", number, f"{self.joined} {number} public points"))

    def _payload(self) -> Payload:
        release = file_bytes(self.function)
        layout = {"points": list(self.points.shape), "release": len(release)}
        return layout, [encode_array(self.points, REAL), release], None


def _size_with_points(header: Header) -> int:
    """The size of points and release, from the header."""
    number, dim = header["points"]
    return encoded_size((number, dim), REAL, reals=True) + stored_integer(header["release"], 0, 1 << 62)


def _read_with_points(
    header: Header, payload: memoryview, start: int | None = None
) -> tuple[NoisyTable, Floats]:
    """The released table, which starts after the points or where that is given, and the points; ValueError
    for something else, or points that are not finite.
    """
    number, dim = header["points"]
    size = encoded_size((number, dim), REAL, reals=True)
    function = load_single(io.BytesIO(bytes(payload[start or size :])))
    points = decode_array(payload[:size], (number, dim), REAL).copy()
    if not isinstance(function, NoisyTable) or not np.isfinite(points).all():
        raise ValueError("points")
    return function, points


FEWEST_POINTS: Final = 10
MOST_POINTS: Final = 10_000
# Public points at which both estimates are compared.
_COMPARED: Final = 200
_NUMBERS_AT_A_TIME: Final = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class CombinedFunction(ReadWithPoints):
    """Mean kernel values from a release and from a public sample, weighted by their inverse variances.

    Where noise is large beside the sampling error of the public points, answers come mostly from these; with
    many private records, mostly from the release. It helps if both are samples of one kind. Where they
    differ, the difference is estimated from the release at the public points and added to the variance of
    the public estimate, so that a sample of something else loses its weight.

    Attributes
    ----------
    function : ReleasedFunction
    points : array of shape (n_points, dim)
        The public sample.

    Privacy
    -------
    The points must be public. Then everything here is computed from what was released: nothing is spent.
    Points taken from the private records would be a leak.

    Notes
    -----
    Intervals allow for noise, for the sampling error of both and for the estimated difference; for what the
    sample shows too much or too little of at one query, they do not.
    """

    kind = "public combination"
    joined = "combined with"

    def __post_init__(self) -> None:
        _check_points(self.points, self.function.dim)
        self.points.flags.writeable = False

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values, shape (n_queries,)."""
        return self.query(Q).value

    def sum(self, Q: object) -> Floats:
        """Kernel sums, shape (n_queries,)."""
        return self.query(Q, of="sum").value

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """The combined answers of the release and the public points, with normal intervals."""
        queries = np.asarray(points)
        private = self.function.query(queries, threads=options.threads)
        public, variance = self._public(queries)
        variance = variance + self.difference
        noise = np.maximum(np.square(private.stderr), 1e-300)
        share = variance / (variance + noise)
        value = share * private.value + (1.0 - share) * public
        stderr = np.sqrt(share * noise)
        if options.of == "sum":
            stderr = np.hypot(stderr * self.count, value * self.count_stderr)
            value = value * self.count
        return normal_answers(value, stderr, options.level, queries, simultaneous=options.simultaneous)

    def public_share(self, Q: object) -> Floats:
        """The weight of the public sample in each answer, from 0 to 1."""
        queries = np.asarray(self._points(Q))
        noise = np.square(self.function.query(queries).stderr)
        variance = self._public(queries)[1] + self.difference
        return np.asarray(noise / np.maximum(noise + variance, 1e-300))

    @cached_property
    def difference(self) -> float:
        """The estimated mean square of the difference between both kernel means beyond their variances."""
        step = max(1, len(self.points) // _COMPARED)
        at = self.points[::step][:_COMPARED]
        private = self.function.query(at)
        public, variance = self._public(at)
        # Each point is one of the sample: it would meet itself.
        number = len(self.points)
        itself = np.array([float(self.kernel.similarity(each[None], each[None])[0, 0]) for each in at])
        others = (public * number - itself) / (number - 1)
        excess = np.square(private.value - others) - np.square(private.stderr) - variance
        return max(0.0, float(excess.mean()))

    def _public(self, queries: Floats) -> tuple[Floats, Floats]:
        """Kernel means of the public sample, and their variances as estimates of the private ones."""
        box = self.bounds
        rows = self.points if box is None else np.clip(self.points, box.low, box.high)
        means, squares = np.zeros(len(queries)), np.zeros(len(queries))
        for start in range(0, len(queries), at_a_time := max(1, _NUMBERS_AT_A_TIME // len(rows))):
            values = self.kernel.similarity(rows, queries[start : start + at_a_time])
            means[start : start + at_a_time] = values.mean(axis=0)
            squares[start : start + at_a_time] = values.var(axis=0)
        number = len(rows)
        # No spread in the sample says little: as if one more point had seen a similarity of 1.
        spread = (squares * number + np.square(1.0 - means)) / number
        return means, spread * (1.0 / number + 1.0 / max(self.count, 1.0))


def combine(function: ReleasedFunction, public: object) -> CombinedFunction:
    """Combine a released function with a public sample of the same kind of records, by their variances.

    Post-processing: it spends nothing, and it can be saved.

    Parameters
    ----------
    function : ReleasedFunction
        A released table, as tallies release them, of records of numbers.
    public : array-like of shape (n_rows, dim), or a frame with the columns of the function
        Public, 10 to 10,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> rng = np.random.default_rng(0)
    >>> tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.3), bounds=(-4, 4))
    >>> f = tally.add(rng.normal(size=(500, 1))).release(epsilon=0.05)
    >>> g = combine(f, rng.normal(size=(400, 1)))
    >>> bool(g.query([[0.0]]).stderr[0] < f.query([[0.0]]).stderr[0])
    True
    """
    table = released_table(function)
    if not isinstance(table, NoisyTable) or table.dim is None:
        rule = "must be a released table of records of numbers"
        raise UsageError("function", rule, got=type(function).__name__, remedy="release a tally")
    return CombinedFunction(table, sample_points(public, table.dim, table.columns))


def sample_points(public: object, dim: int | None, columns: Sequence[str] | None) -> Floats:
    """A public sample as the points that a function of ``dim`` columns is combined with.

    Raises
    ------
    UsageError
        for another width or number of rows, and for functions of sets.
    DataRefused
        for anything but rows of finite numbers.
    """
    points = np.array(query_points(public, dim=dim, columns=columns), np.float64) if dim else np.zeros(0)
    _check_points(points, dim)
    return points


def _check_points(points: Floats, dim: int | None) -> None:
    if dim is None or points.ndim != 2 or points.shape[1] != dim:
        rule = "must be rows of as many numbers as queries have"
        raise UsageError("public", rule, got="others", remedy="give rows like the records")
    if not FEWEST_POINTS <= len(points) <= MOST_POINTS:
        rule = f"must have {FEWEST_POINTS} to {MOST_POINTS} rows"
        raise UsageError("public", rule, got=len(points), remedy="give a part of them, or leave it out")


register(
    CombinedFunction.kind,
    _size_with_points,
    lambda *file: CombinedFunction(*_read_with_points(*file)),
    "points",
    "release",
)


@dataclass(frozen=True, eq=False, repr=False)
class SharpenedFunction(ReadWithPoints):
    """Fourier features with points that explain most of them: ``f.sharpened()``,
    ``f.with_public_points(points)``.

    Answers are unbiased whatever the points, with smaller errors the better these resemble the records:
    sampling error comes only from what they leave unexplained. Where they explain nothing, answers are those
    of ``function``. The fit takes a tenth of a second for 500 points, five for 2000.

    Privacy
    -------
    Points that were found in the release alone (``drawn``) and everything that is computed from them are
    post-processing: nothing is spent. Points that were given must be public; if they were taken from the
    private records, that would be a leak.
    """

    kind = "sharpened"
    joined = "read with"

    function: CoefficientFunction
    weights: Floats
    drawn: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.points) <= MOST_POINTS:
            remedy = "a few hundred to 2000 will do"
            raise UsageError("points", f"must be 1 to {MOST_POINTS}", got=len(self.points), remedy=remedy)
        for each in (self.points, self.weights):
            each.flags.writeable = False

    @property
    def facts(self) -> PublicFacts:
        """The facts of the function; of points that were given the claim states that they are public."""
        return self.function.facts if self.drawn else super().facts

    def details(self) -> tuple[Detail, ...]:
        """The release, and the number of points it is read with."""
        number = len(self.points)
        text = f"{self.joined} {number} {'points found in it' if self.drawn else 'public points'}"
        return (*self.function.details(), Detail("points", number, text))

    def _payload(self) -> Payload:
        release = file_bytes(self.function)
        layout = {
            "points": list(self.points.shape),
            "folds": len(self.weights),
            "origin": _DRAWN if self.drawn else _PUBLIC,
            "release": len(release),
        }
        return layout, [encode_array(self.points, REAL), encode_array(self.weights, REAL), release], None

    @cached_property
    def explained(self) -> float:
        """Which share of the released table's squares, noise included, the points explain; 0 where they do
        not help.
        """
        if not self.weights.any():
            return 0.0
        left, whole = (
            float(np.square(each.table[: self._reading.basis.features], dtype=np.float64).sum())
            for each in (self._remainder, self.function)
        )
        return 1.0 - left / max(whole, 1.0)

    def __call__(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,); parameters as for ``sum``."""
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        points = self._points(Q)
        sums = self._remainder.sum(points, threads=threads) + self._of_points(points)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """From the spread over features of what is unexplained."""
        return self._remainder._answers(points, options, self._of_points(points))

    @cached_property
    def _remainder(self) -> CoefficientFunction:
        if not self.weights.any():
            return self.function
        basis, table = self._reading.basis, self.function.table
        return replace(self.function, cells=unexplained(basis, table, self._batch, self.weights))

    @property
    def _reading(self) -> FeatureReading:
        assert isinstance(self.function.reading, FeatureReading)
        return self.function.reading

    @cached_property
    def _batch(self) -> Batch:
        return self._reading.basis.prepare_queries(self.points)

    def _of_points(self, Q: object) -> Floats:
        """The exact kernel sums of the weighted points."""
        batch = self._reading.basis.prepare_queries(Q)
        weights = mean_weights(self._reading.basis, self.weights)
        return self._reading.weighted_sums(self._batch, weights, batch)


def sharpen(function: CoefficientFunction, points: object) -> SharpenedFunction:
    """Read a release of Fourier features with the help of public points, given as queries are; of None, with
    those that are found in it.
    """
    basis, reading = function.basis, function.reading
    if not isinstance(reading, FeatureReading):
        rule = "sharpen Fourier features alone"
        raise UsageError("points", rule, got=f"a release of {basis.name}", remedy="read it without them")
    drawn = points is None
    if drawn:
        rows = drawn_points(reading, function.table, function.cell_variance, function.count)
        # Where there is none, one that has no weight.
        rows = rows if len(rows) else np.zeros((1, rows.shape[1]))
    else:
        rows = basis.prepare_queries(points).arrays[0].astype(np.float64)
    if basis.bounds is not None:
        # Prepared rows are relative to the centre of the box; points are kept as they were given.
        rows += basis.bounds.centre
    if not 1 <= len(rows) <= MOST_POINTS:
        return SharpenedFunction(function, rows, np.zeros((FOLDS, len(rows))), drawn)
    found = explain(reading.basis, function.table, basis.prepare_queries(rows))
    weights = found.weights
    table = function.table[: reading.basis.features]
    if drawn and not _resembles(table, function.cell_variance, found.share):
        weights = np.zeros_like(weights)
    return SharpenedFunction(function, rows, weights, drawn)


def sharpened(function: ReleasedFunction) -> ReleasedFunction:
    """The release read with points that are found in it, where these explain it; else the release itself."""
    if isinstance(function, CoefficientFunction):
        found = sharpen(function, None)
        return found if found.weights.any() else function
    return function


def released_table(function: Any) -> Any:
    """The release that a sharpened function reads; anything else as it is."""
    return function.function if isinstance(function, SharpenedFunction) else function


def _resembles(table: Table, variance: float, share: float) -> bool:
    """Whether points explain all but a twentieth of what is not noise in the squares of a table.

    With less, what is left of evenly spread frequencies may have a larger error than the whole, since that
    of a smooth function cancels.
    """
    whole = float(np.square(table, dtype=np.float64).sum())
    signal = whole - table.size * variance
    return (1.0 - share) * whole - (whole - signal) <= _UNEXPLAINED * signal


_UNEXPLAINED: Final = 0.05
# Where points come from, in files.
_DRAWN, _PUBLIC = "release", "public"


def _sharpened_size(header: Header) -> int:
    """The size of points, weights and release, from the header."""
    folds, (number, _) = header["folds"], header["points"]
    return _size_with_points(header) + encoded_size((folds, number), REAL, reals=True)


def _build_sharpened(header: Header, payload: memoryview) -> SharpenedFunction:
    folds, (number, dim) = header["folds"], header["points"]
    if folds != FOLDS or type(folds) is not int or header["origin"] not in (_DRAWN, _PUBLIC):
        raise ValueError("folds")
    start = encoded_size((number, dim), REAL, reals=True)
    end = start + encoded_size((folds, number), REAL, reals=True)
    weights = decode_array(payload[start:end], (folds, number), REAL).copy()
    function, points = _read_with_points(header, payload, end)
    if not isinstance(function, CoefficientFunction) or not np.isfinite(weights).all():
        raise ValueError("points")
    if function.basis.prepare_queries(points).arrays[0].shape != points.shape:
        raise ValueError("points")
    return SharpenedFunction(function, points, weights, header["origin"] == _DRAWN)


register(SharpenedFunction.kind, _sharpened_size, _build_sharpened, "points", "folds", "origin", "release")


_FINE, _COARSE = 0.25, 0.5
_FEW_PLACES: Final = 1 << 15
MOST_PLACES: Final = 1 << 18
"""Places are a quarter of the kernel's width apart where that gives at most 2^15 of them, else half of it;
a function that needs more than 2^18 has no non-negative version.
"""

_FEWEST_CELLS: Final = 8
_ITERATIONS: Final = 150
_AT_A_TIME: Final = 1 << 14


def nearest_probabilities(values: Floats) -> Floats:
    """The nearest probabilities, in squared distance (Duchi et al. 2008).

    They are the values less one constant, and 0 where that is negative.

    >>> nearest_probabilities(np.array([0.6, 0.5, -0.2])).round(2).tolist()
    [0.55, 0.45, 0.0]
    """
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class NonnegativeFunction(ForwardedFacts):
    """Kernel sums of weighted places in the box: no weight is negative, and all sum to the released number of
    records. Made by ``f.nonnegative()``.

    So the answers are those of some dataset: none is negative, means are at most the kernel's largest value,
    and a map of densities integrates to the number of records. The places are a lattice, and synthetic.

    Attributes
    ----------
    function : ReleasedFunction
        What was released.
    places : GridReading
        The lattice, and how it is read.
    weights : array of integers
        Of the places, in units of 2⁻²⁰ records.

    Privacy
    -------
    Computed from what was released, so it spends nothing.

    Notes
    -----
    Standard errors are those of ``function``, and intervals are its intervals without the part below 0,
    widened where they do not contain the answer. Kernel sums of records are never negative, so they contain
    the truth whenever those of ``function`` do: their coverage is at least the same. The answer itself is
    biased: noise that would show records where none are is gone, and the records that it hid elsewhere are
    spread over the places that remain. ``bound`` allows for that by the distance between both answers.
    """

    kind = "nonnegative"

    places: GridReading
    weights: Integers

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False

    def sum(self, Q: object) -> Floats:
        """Kernel sums, shape (n_queries,); none is negative."""
        basis = self.places.basis
        return self.places.evaluate(self.weights, basis.prepare_queries(self._points(Q)), threads=1)

    def nonnegative(self) -> NonnegativeFunction:
        """The function itself."""
        return self

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        found = self.function._answers(points, options)
        value = self.sum(points) / (max(self.count, 1.0) if options.of == "mean" else 1.0)
        return replace(
            found,
            value=value,
            lower=np.minimum(np.maximum(found.lower, 0.0), value),
            upper=np.maximum(found.upper, value),
            bound=found.bound + np.abs(value - found.value),
        )

    def details(self) -> tuple[Detail, ...]:
        """The release, and how many places have a weight."""
        used = int(np.count_nonzero(self.weights))
        words = f"kernel sums of {used} of {self.weights.size} places, none with a negative weight"
        return (*self.function.details(), Detail("places", used, words))

    def _payload(self) -> Payload:
        release = file_bytes(self.function)
        type_name = narrowest_type(self.weights)
        constants = self.places.constants_as_json()
        layout = {
            "cells": list(self.places.basis.cells),
            **({} if constants is None else {"constants": constants}),
            "weights": type_name,
            "release": len(release),
        }
        return layout, [encode_array(self.weights, type_name), release], None


def nonnegative_version(function: ReleasedFunction) -> NonnegativeFunction:
    """The nearest weights of places, in the kernel's space, that are not negative and sum to the number of
    records. It is kept for the functions that were used last.

    Raises
    ------
    UsageError
        for functions without bounds, for kernels that are not sums of products over columns or take negative
        values, and for boxes with too many places.

    Notes
    -----
    With the matrix K of kernel values between places and the released sums f there, the squared distance of
    the kernel sums of weights w is ``wᵀKw − 2·wᵀf`` but for a constant. It is minimised by projected
    gradients with momentum and restarts (Beck and Teboulle 2009; O'Donoghue and Candès 2015). K depends on
    differences alone, so products with it are convolutions.
    """
    if not isinstance(function, NoisyTable | PointsFunction):
        rule = "must be a released table, or weighted points, to have a non-negative version"
        raise UsageError("function", rule, got=type(function).__name__, remedy="take that of the release")
    places = _places(function)
    basis = places.basis
    axes = [
        np.linspace(low, high, number)
        for low, high, number in zip(basis.bounds.low, basis.bounds.high, basis.nodes, strict=True)
    ]
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    pieces = np.array_split(points, -(-len(points) // _AT_A_TIME))
    sums = np.concatenate([function.sum(piece) for piece in pieces])
    first = np.zeros(basis.nodes, np.int64)
    first.flat[0] = WHOLE
    kernel = places.evaluate(first, basis.prepare_queries(points), threads=1)
    count = max(function.count, 1.0)
    shares = _nearest_shares(kernel.reshape(basis.nodes), sums.reshape(basis.nodes) / count)
    weights = np.rint(shares * (count * WHOLE)).astype(np.int64)
    return NonnegativeFunction(function, places, weights.reshape(basis.shape))


def _places(function: ReleasedFunction) -> GridReading:
    """A lattice over the box."""
    kernel, bounds = function.kernel, function.bounds
    PROFILES.check(kernel, "a non-negative version")
    assert isinstance(kernel, ProfileKernel)
    if bounds is None:
        raise UsageError("bounds", "must be declared for a non-negative version", got="none")
    if kernel.signed or not kernel.positive_definite:
        rule = "must be positive definite, without negative values, for a non-negative version"
        raise UsageError("kernel", rule, got=kernel.name)
    for spacing, most in ((_FINE, _FEW_PLACES), (_COARSE, MOST_PLACES)):
        cells = [
            max(_FEWEST_CELLS, math.ceil(side / (spacing * width)))
            for side, width in zip(bounds.widths, kernel.column_widths(), strict=True)
        ]
        if math.prod(number + 1 for number in cells) <= most:
            basis = GridWeights(tuple(cells), bounds, (0,) * len(cells), function.columns)
            return GridReading(basis, kernel)
    rule = f"must be wide enough that {MOST_PLACES} places cover the box, for a non-negative version"
    raise UsageError("bandwidth", rule, remedy="release with a larger bandwidth or narrower bounds")


def _nearest_shares(kernel: Floats, sums: Floats) -> Floats:
    """Probabilities of a lattice's places with the sums ``sums``, where ``kernel`` are the values between the
    first place and all of them.
    """
    from scipy import fft

    axes, shape = tuple(range(kernel.ndim)), kernel.shape
    around = kernel
    for axis in axes:
        # A period that is even in every column: differences of both signs.
        behind = np.flip(np.take(around, range(1, around.shape[axis] - 1), axis), axis)
        around = np.concatenate([around, behind], axis=axis)
    period = around.shape
    transform = fft.rfftn(around).real
    inside = tuple(slice(0, each) for each in shape)
    step = 1.0 / float(transform.max())
    shares = np.full(shape, 1.0 / kernel.size)
    ahead, momentum = shares, 1.0
    for _ in range(_ITERATIONS):
        convolved = fft.irfftn(fft.rfftn(ahead, period) * transform, period)[inside]
        moved = nearest_probabilities((ahead - step * (convolved - sums)).ravel()).reshape(shape)
        if float(((ahead - moved) * (moved - shares)).sum()) > 0.0:
            momentum = 1.0
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = moved + (momentum - 1.0) / following * (moved - shares)
        shares, momentum = moved, following
    return shares


def _cells(header: Header) -> tuple[int, ...]:
    cells: Sequence[object] = header["cells"]
    if not isinstance(cells, list):
        raise TypeError("cells")
    return tuple(stored_integer(each, 1, MOST_PLACES) for each in cells)


def _payload_size(header: Header) -> int:
    places = math.prod(number + 1 for number in _cells(header))
    if places > MOST_PLACES:
        raise ValueError("cells")
    return encoded_size((places,), header["weights"]) + stored_integer(header["release"], 0, 1 << 62)


def _build(header: Header, payload: memoryview) -> NonnegativeFunction:
    cells = _cells(header)
    size = len(payload) - stored_integer(header["release"], 0, len(payload))
    function = load_single(io.BytesIO(bytes(payload[size:])))
    if not isinstance(function, NoisyTable | PointsFunction) or function.bounds is None:
        raise ValueError("release")
    basis = GridWeights(cells, function.bounds, (0,) * len(cells), function.columns)
    places = GridReading(basis, function.kernel)
    if "constants" in header:
        places = places.with_constants(header["constants"])
    elif places.constants_as_json() is not None:
        raise ValueError("constants")
    weights = decode_array(payload[:size], basis.shape, header["weights"]).astype(np.int64)
    if (weights < 0).any() or narrowest_type(weights) != header["weights"]:
        raise ValueError("weights")
    return NonnegativeFunction(function, places, weights)


register(NonnegativeFunction.kind, _payload_size, _build, "cells", "constants", "weights", "release")
