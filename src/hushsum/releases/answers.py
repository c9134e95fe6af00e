"""Answers with error bars, and the queries that they are for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from hushsum import _html
from hushsum._types import Floats, is_number
from hushsum.errors import UsageError, shown
from hushsum.records.column_groups import column_groups
from hushsum.records.columns_by_name import numbers_of
from hushsum.records.sets import as_sets

Points = Floats | tuple[tuple[Any, ...], ...]
"""Queries: rows of numbers, shape (n_queries, dim), one tuple of members for each set, or one of the values
of each column where some columns are of sets.
"""

_NUMBERS: Final = ("value", "stderr", "lower", "upper", "bound")
_MOST_SHOWN: Final = 10
_LEAST_SQUARE: Final = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a released function answers at each query.

    ``value`` ± ``stderr``, an interval from ``lower`` to ``upper`` at ``level``, and ``bound``: the largest
    standard error that any data with these answers could have, but for one case in a thousand. All arrays
    have shape (n_queries,). ``points`` are the queries, in the order of the function's columns: shape
    (n_queries, dim), or a tuple of sets.

    With ``simultaneous`` all intervals together hold with probability ``level``; otherwise each of them does.

    The standard error holds for queries chosen without regard to the hash functions. It is too small for a
    query found by optimising the function itself, and where fewer than about ten rows meet a heavy cluster;
    ``bound`` holds there too.
    """

    value: Floats
    stderr: Floats
    lower: Floats
    upper: Floats
    bound: Floats
    level: float
    points: Points
    simultaneous: bool = False

    def __len__(self) -> int:
        return len(self.value)

    @property
    def kind(self) -> str:
        """What the intervals are: ``"intervals"`` or ``"simultaneous intervals"``."""
        return "simultaneous intervals" if self.simultaneous else "intervals"

    def __iter__(self) -> Iterator[dict[str, float]]:
        """One dictionary per query."""
        for i in range(len(self)):
            yield {name: float(getattr(self, name)[i]) for name in _NUMBERS}

    def _repr_html_(self) -> str:
        """The first answers as a table, for notebooks."""
        rows = [
            [_point(self.points[i]), *(f"{getattr(self, name)[i]:.4g}" for name in _NUMBERS)]
            for i in range(min(len(self), _MOST_SHOWN))
        ]
        more = len(self) - len(rows)
        return _html.block(
            f"{len(self)} answers, {self.level:.0%} {self.kind}",
            _html.table(("at", *_NUMBERS), rows),
            _html.paragraph(f"and {more} more") if more else "",
        )


def query_points(Q: object, *, dim: int | None, columns: Sequence[str] | None) -> Points:
    """Queries as plain rows of ``dim`` numbers, or as sets where ``dim`` is None; data are read once.

    >>> query_points(3, dim=1, columns=None)
    array([[3.]])
    """
    if dim is None:
        sets = as_sets(Q)
        edges = sets.indptr.tolist()
        return tuple(tuple(sets.values[start:end].tolist()) for start, end in pairwise(edges))
    parts = numbers_of(Q, dim=dim, columns=columns)
    values = np.empty((len(parts[0].values), dim), np.float64)
    for part in parts:
        values[:, part.start : part.start + part.values.shape[1]] = part.values
    return values


def mixed_points(Q: object, *, dim: int, columns: Sequence[str] | None) -> Points:
    """Queries with columns of sets, as rows of plain values.

    >>> mixed_points([[1.5, [7, 9]]], dim=2, columns=None)
    ((1.5, (7, 9)),)
    """
    values = []
    for group in column_groups(Q, [(column,) for column in range(dim)], dim=dim, columns=columns):
        column: Any = group
        if hasattr(column, "iloc"):
            column = column.iloc[:, 0].tolist()
        elif hasattr(column, "column"):
            column = column.column(0).to_pylist()
        elif isinstance(column, np.ndarray):
            column = column[:, 0].tolist()
        values.append([tuple(each) if isinstance(each, list | np.ndarray) else each for each in column])
    return tuple(zip(*values, strict=True))


def check_question(of: str, level: float) -> None:
    """Refuse a ``query`` for something else than means or sums, or at an impossible level."""
    if of not in ("mean", "sum"):
        raise UsageError(parameter="of", rule="must be 'mean' or 'sum'", got=shown(of), remedy="choose one")
    check_level(level)


def check_level(level: float) -> None:
    """Refuse a level of an interval that is not between 0 and 1."""
    if not is_number(level) or not 0.0 < level < 1.0:
        raise UsageError(
            parameter="level", rule="must be between 0 and 1", got=shown(level), remedy="try 0.95"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """A kernel sum over the number of records, both estimated: how an interval of f(q)/N̂ is found.

    Parameters
    ----------
    sums, number : the estimates.
    sum_variance, number_variance, covariance : of their errors.
    """

    sums: Floats
    number: float
    sum_variance: Floats
    number_variance: float
    covariance: Floats | float = 0.0

    @property
    def value(self) -> Floats:
        """The mean kernel values."""
        return self.sums / self.number

    @property
    def stderr(self) -> Floats:
        """To the first order in the error of the number."""
        return np.asarray(np.sqrt(np.maximum(self._variance(self.value), 0.0)) / self.number)

    def interval(self, reach: Floats | float) -> tuple[Floats, Floats]:
        """All r for which ``sums − r·number`` is within ``reach`` standard deviations of 0 (Fieller's
        interval, which is not symmetric).

        Where 0 is within reach of the number itself the interval has no end on one side, or on both; it is
        then as long as one with a hundredth of the squared number in the denominator.
        """
        square = reach * reach
        a = self.number**2 - square * self.number_variance
        b = self.sums * self.number - square * self.covariance
        c = self.sums**2 - square * self.sum_variance
        within = np.maximum(a, _LEAST_SQUARE * self.number**2)
        inside = b * b - a * c
        # Of the two solutions (b ± root)/a, the one nearer to 0 is c/(b ± root), whatever the sign of a.
        far = b + np.where(b < 0.0, -1.0, 1.0) * np.sqrt(np.maximum(inside, 0.0))
        near = np.where(far != 0.0, c / np.where(far != 0.0, far, 1.0), 0.0)
        ends = np.sort(np.stack(np.broadcast_arrays(near, far / within)), axis=0)
        whole = (np.abs(b) + reach * np.sqrt(self.sum_variance) * self.number) / within
        lower, upper = np.where(inside < 0.0, -whole, ends[0]), np.where(inside < 0.0, whole, ends[1])
        return np.asarray(lower), np.asarray(upper)

    def _variance(self, value: Floats) -> Floats:
        """Of ``sums − value·number``."""
        variance: Floats = self.sum_variance + value**2 * self.number_variance - 2.0 * value * self.covariance
        return variance


def normal_answers(
    value: Floats, stderr: Floats, level: float, points: Points, *, simultaneous: bool = False
) -> Answers:
    """Answers whose error is about normal with a known standard deviation, which is then its own bound.

    NaN where it is not known. Simultaneous ones are Bonferroni's.
    """
    check_level(level)
    reach = _normal_reach(level, len(value), simultaneous) * stderr
    return Answers(value, stderr, value - reach, value + reach, stderr.copy(), level, points, simultaneous)


def quotient_answers(
    quotient: Quotient, level: float, points: Points, *, simultaneous: bool = False
) -> Answers:
    """The same for mean kernel values, whose number of records is an estimate too."""
    check_level(level)
    stderr = quotient.stderr
    lower, upper = quotient.interval(_normal_reach(level, len(stderr), simultaneous))
    return Answers(quotient.value, stderr, lower, upper, stderr.copy(), level, points, simultaneous)


def normal_quantile(level: float, blocks: int | None = None) -> float:
    """How many standard errors an interval reaches: Student's t where they come from blocks, else normal."""
    from scipy.special import ndtri, stdtrit

    rank = 0.5 + level / 2.0
    return float(ndtri(rank) if blocks is None else stdtrit(blocks - 1, rank))


def _normal_reach(level: float, number: int, simultaneous: bool) -> float:
    return normal_quantile(1.0 - (1.0 - level) / max(number, 1) if simultaneous else level)


def _point(point: Floats | tuple[Any, ...]) -> str:
    numbers = [
        "{" + _point(each) + "}" if isinstance(each, tuple) else f"{float(each):g}"
        for each in point[:_MOST_SHOWN]
    ]
    return ", ".join(numbers) + (", …" if len(point) > _MOST_SHOWN else "")
