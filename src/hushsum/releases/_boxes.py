"""Boxes of unequal size that cover the declared one, each with the number of records in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.files import Header
from hushsum.kernels import Kernel, Profile, ProfileKernel, Role

from ._base import Answers, Detail, Payload, Points, QueryOptions, Quotient, stored_integer
from ._points import MOST_NUMBERS, RealFunction, common_fields, encode_reals, register_reals

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
        for array in (self.low, self.high, self.weights, self.variances):
            array.flags.writeable = False

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

    def _queries(self, Q: object) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        return rows.astype(np.float64)

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


def _shapes(header: Header) -> list[tuple[int, ...]]:
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


register_reals(BoxesFunction.kind, "boxes", _shapes, _boxes)
