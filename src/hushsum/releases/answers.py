"""Answers with error bars, and the queries that they are for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from hushsum import _html
from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.records.numbers import numbers_of
from hushsum.records.sets import as_sets

Points = Floats | tuple[tuple[int, ...], ...]
"""Queries: rows of numbers, shape (n_queries, dim), or one tuple of members for each set."""

_NUMBERS: Final = ("value", "stderr", "lower", "upper", "bound")
_MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a released function answers at each query.

    ``value`` ± ``stderr``, an interval from ``lower`` to ``upper`` at ``level``, and ``bound``: the largest
    standard error that any data with these answers could have, but for one case in a thousand. All arrays
    have shape (n_queries,). ``points`` are the queries, in the order of the function's columns: shape
    (n_queries, dim), or a tuple of sets.

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

    def __len__(self) -> int:
        return len(self.value)

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
            f"{len(self)} answers, {self.level:.0%} intervals",
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


def check_question(of: str, level: float) -> None:
    """Refuse a ``query`` for something else than means or sums, or at an impossible level."""
    if of not in ("mean", "sum"):
        raise UsageError(parameter="of", rule="must be 'mean' or 'sum'", got=shown(of), remedy="choose one")
    check_level(level)


def check_level(level: float) -> None:
    """Refuse a level of an interval that is not between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise UsageError(parameter="level", rule="must be between 0 and 1", got=f"{level}", remedy="try 0.95")


def normal_answers(value: Floats, stderr: Floats, level: float, points: Points) -> Answers:
    """Answers whose error is about normal with a known standard deviation, which is then its own bound.

    NaN where it is not known.
    """
    from scipy.special import ndtri

    check_level(level)
    reach = float(ndtri(0.5 + level / 2.0)) * stderr
    return Answers(value, stderr, value - reach, value + reach, stderr.copy(), level, points)


def _point(point: Floats | tuple[int, ...]) -> str:
    numbers = [f"{float(each):g}" for each in point[:_MOST_SHOWN]]
    return ", ".join(numbers) + (", …" if len(point) > _MOST_SHOWN else "")
