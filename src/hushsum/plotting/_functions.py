"""The part of a released function that is drawn, and its picture: a curve, a heat map, or a slice of more
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from hushsum._types import Floats
from hushsum.errors import HushsumError, UsageError
from hushsum.kernels import (
    CategoricalKernel,
    ColumnKernel,
    Kernel,
    answer_in_words,
    counts_records,
    records_in_words,
)
from hushsum.records import Bounds
from hushsum.releases import Answers, Column, PlotKeywords, Range, ReleasedFunction, check_question

from ._drawing import Curve, Picture, TwoColumnMap

_CURVE_POINTS, _MAP_POINTS = 500, 140
_SMALL_CURVE_POINTS, _SMALL_MAP_POINTS = 120, 36
_MOST_BANDWIDTHS = 3


@dataclass(frozen=True, slots=True)
class View:
    """The part of a function that is shown.

    ``axes`` are the columns drawn, one or two; ``ranges`` has one (low, high) for each, ``labels`` one name.
    ``fixed`` has a value for every column that is not drawn, by position.
    """

    axes: tuple[int, ...]
    ranges: tuple[Range, ...]
    fixed: dict[int, float]
    labels: tuple[str, ...]
    quantity: str
    level: float
    simultaneous: bool = True
    log: bool = False

    @classmethod
    def of(cls, function: ReleasedFunction, **shown: Unpack[PlotKeywords]) -> View:
        """Settle what is shown of a function, with its declared bounds and names; see :meth:`of_columns`."""
        return cls.of_columns(number_of_columns(function), function.columns, function.bounds, **shown)

    @classmethod
    def of_columns(
        cls,
        dim: int,
        columns: tuple[str, ...] | None,
        bounds: Bounds | None,
        *,
        axes: Column | Sequence[Column] | None = None,
        range: Range | Sequence[Range] | None = None,
        at: float | Sequence[float] | None = None,
        labels: Sequence[str] | None = None,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool | None = None,
        log: bool = False,
    ) -> View:
        """Settle what is shown of columns with declared bounds and names.

        ``at`` is one value for all columns that are not drawn, one for each, or one for every column, of
        which those of the axes are ignored. A map of longitude and latitude has longitude across unless the
        axes are given. ``simultaneous`` of None is True for heat maps, whose line encloses an area, and False
        for curves.
        """
        check_question(of, level)
        drawn = _axes(axes, dim, columns)
        if axes is None:
            drawn = _across_and_up(drawn, columns)
        if labels is not None and (isinstance(labels, str) or len(labels) != len(drawn)):
            got = "a text" if isinstance(labels, str) else len(labels)
            raise UsageError("labels", f"must name each of {len(drawn)} axes", got=got)
        names = [_name(columns, axis) for axis in drawn] if labels is None else labels
        others = [column for column in np.arange(dim).tolist() if column not in drawn]
        return cls(
            drawn,
            _ranges(range, drawn, bounds),
            _fixed(at, others, dim, bounds),
            tuple(names),
            of,
            level,
            len(drawn) == 2 if simultaneous is None else simultaneous,
            log,
        )

    def points(self, dim: int, number: int) -> tuple[Floats, list[Floats]]:
        """Queries on even steps along each axis, and those steps."""
        steps = [np.linspace(low, high, number) for low, high in self.ranges]
        rows = np.zeros((number ** len(steps), dim))
        for column, value in self.fixed.items():
            rows[:, column] = value
        # The first axis runs fastest: a grid then has shape (y, x).
        for axis, values in zip(self.axes, np.meshgrid(*steps), strict=True):
            rows[:, axis] = values.ravel()
        return rows, steps

    def as_json(self) -> dict[str, Any]:
        """The columns that are drawn, their ranges, and the values of the others."""
        fixed = {str(column): value for column, value in self.fixed.items()}
        return {"axes": list(self.axes), "ranges": [list(each) for each in self.ranges], "fixed": fixed}

    def note(self, columns: tuple[str, ...] | None) -> str:
        """Where the columns are that are not drawn."""
        places = (f"{_name(columns, column)} = {value:g}" for column, value in self.fixed.items())
        return f"Slice at {', '.join(places)}." if self.fixed else ""


def function_picture(function: ReleasedFunction, view: View, *, small: bool = False) -> Picture:
    """The picture of a function; a ``small`` one has fewer points."""
    number = (_SMALL_CURVE_POINTS, _SMALL_MAP_POINTS) if small else (_CURVE_POINTS, _MAP_POINTS)
    points, steps = view.points(number_of_columns(function), number[len(view.axes) - 1])
    shown = function
    if not small and len(view.axes) == function.dim == 2:
        shown = never_negative(function)
    answers = shown.query(points, of=view.quantity, level=view.level, simultaneous=view.simultaneous)
    content = shown_answers(view, steps, answers)
    notes = (view.note(function.columns), _error_note(function, view, content), function.claim.sentence())
    name = answer_in_words(function.kernel, view.quantity)
    caption = " ".join(filter(None, notes))
    return Picture(_title(function.kernel, name), caption, content, (*view.labels, name))


def never_negative(function: ReleasedFunction) -> ReleasedFunction:
    """The non-negative version of a function, from which maps are drawn; the function where it has none, or
    where a service does not give it away.
    """
    try:
        return function.nonnegative()
    except HushsumError:
        return function


def shown_answers(
    view: View, steps: Sequence[Floats], answers: Answers, *, difference: bool = False
) -> Curve | TwoColumnMap:
    """Answers at the points of a view, as a curve or a map."""
    known = answers.stderr[np.isfinite(answers.stderr)]
    stderr = float(np.median(known)) if len(known) else None
    ends = (answers.value, answers.lower, answers.upper)
    if len(steps) == 1:
        (x,) = steps
        together = view.simultaneous
        return Curve(x, *ends, view.level, simultaneous=together, stderr=stderr, difference=difference)
    x, y = steps
    value, lower, upper = (each.reshape(len(y), len(x)) for each in ends)
    shown = (view.level, stderr, view.simultaneous, view.log)
    return TwoColumnMap(x, y, value, lower, *shown, difference=difference, upper=upper)


def _error_note(function: ReleasedFunction, view: View, picture: Curve | TwoColumnMap) -> str:
    """The error in words that need no mathematics, and what a line in the picture means."""
    if picture.stderr is None:
        return "The standard error is not known."
    if not counts_records(function.kernel):
        note = f"Standard error {picture.stderr:.2g} (median)."
    elif view.quantity == "sum":
        note = f"Standard error {records_in_words(picture.stderr)} (median)."
    else:
        number = records_in_words(picture.stderr * max(function.count, 0.0))
        note = f"Standard error {number} (median), {100 * picture.stderr:.2g} % of all."
    if isinstance(picture, Curve):
        return note
    if picture.has_edge:
        together = "together " if picture.simultaneous else ""
        note += f" Dashed: where the {picture.level:.0%} intervals of all points {together}lie above 0."
        if not picture.simultaneous:
            note = note.replace("intervals of all points lie", "interval of each point lies")
    return note


def number_of_columns(function: ReleasedFunction) -> int:
    """The number of columns of a function that can be drawn; raises UsageError for sets and categories."""
    kernel = function.kernel
    parts = kernel.parts()
    if kernel.dim is None or any(each.dim is None or isinstance(each, CategoricalKernel) for each in parts):
        rule = "a picture needs columns of numbers"
        raise UsageError(rule, got=f"a {kernel.name} function", remedy="query it instead")
    return kernel.dim


def _axes(
    given: Column | Sequence[Column] | None, dim: int, names: tuple[str, ...] | None
) -> tuple[int, ...]:
    if given is None:
        return tuple(np.arange(min(dim, 2)).tolist())
    listed = [given] if isinstance(given, int | str) else list(given)
    axes = tuple(names.index(each) if names is not None and each in names else each for each in listed)
    numbers = tuple(axis for axis in axes if isinstance(axis, int) and 0 <= axis < dim)
    if not 1 <= len(axes) <= 2 or len(set(numbers)) != len(axes):
        named = "" if names is None else f", or one of {', '.join(names[:8])}"
        rule = f"must be one or two different columns from 0 to {dim - 1}{named}"
        remedy = "columns are numbered in the order in which they were counted"
        raise UsageError("axes", rule, got=",".join(map(str, listed)), remedy=remedy)
    return numbers


_LONGITUDE = ("longitude", "lon", "lng", "long")
_LATITUDE = ("latitude", "lat")


def _across_and_up(axes: tuple[int, ...], names: tuple[str, ...] | None) -> tuple[int, ...]:
    """The axes of a map in the order of maps: longitude across and latitude up, whatever the order of the
    columns.
    """
    if len(axes) != 2 or names is None or len(names) <= max(axes):
        return axes
    words = [names[axis].strip().lower().rpartition("_")[2] for axis in axes]
    return axes[::-1] if words[0] in _LATITUDE and words[1] in _LONGITUDE else axes


def _name(names: tuple[str, ...] | None, column: int) -> str:
    return names[column] if names is not None and column < len(names) else f"column {column}"


def _ranges(
    given: Range | Sequence[Range] | None, axes: tuple[int, ...], bounds: Bounds | None
) -> tuple[Range, ...]:
    if given is None:
        if bounds is None:
            rule = "must be given, since this function was released without bounds"
            raise UsageError("range", rule, remedy="such as 0 to 100")
        return tuple((bounds.low[axis], bounds.high[axis]) for axis in axes)
    array = np.asarray(given)
    if array.shape[-1:] != (2,) or array.ndim > 2 or array.dtype.kind not in "iuf":
        rule = "must be (low, high) in numbers, or one such pair for each axis"
        raise UsageError("range", rule, got="another shape, or no numbers")
    pairs = tuple((float(low), float(high)) for low, high in array.reshape(-1, 2))
    if len(pairs) not in (1, len(axes)):
        rule = f"must be one low and high, or one for each of {len(axes)} axes"
        raise UsageError("range", rule, got=len(pairs))
    for low, high in pairs:
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            rule = "must be finite with low < high"
            raise UsageError("range", rule, got=f"{low:g} to {high:g}", remedy="swap or change it")
    return pairs if len(pairs) == len(axes) else pairs * len(axes)


def _fixed(
    at: float | Sequence[float] | None, others: Sequence[int], dim: int, bounds: Bounds | None
) -> dict[int, float]:
    if at is None:
        if others and bounds is None:
            rule = "must be given for every column that is not drawn, since the function has no bounds"
            raise UsageError("at", rule)
        return {column: float(bounds.centre[column]) for column in others} if bounds is not None else {}
    values = np.atleast_1d(np.asarray(at, np.float64)).tolist()
    if not np.isfinite(values).all():
        raise UsageError("at", "must be finite", got="NaN or infinity")
    if len(values) == dim:
        return {column: values[column] for column in others}
    if not others:
        rule = "is for columns that are not drawn, and all are drawn"
        raise UsageError("at", rule, got=f"{len(values)} of them")
    if len(values) not in (1, len(others)):
        rule = f"must be one value for all columns that are not drawn, or one for each ({len(others)})"
        remedy = f"such as {','.join(['0'] * len(others))}"
        raise UsageError("at", rule, got=len(values), remedy=remedy)
    return dict(zip(others, values if len(values) > 1 else values * len(others), strict=True))


def _title(kernel: Kernel, name: str) -> str:
    words = name.replace("near here", "near each point")
    what = f"{words[0].upper()}{words[1:]}"
    if not isinstance(kernel, ColumnKernel):
        return f"{what}: {kernel.name}"
    widths = kernel.column_bandwidths()
    shown = widths[:1] if len(set(widths)) == 1 else widths[:_MOST_BANDWIDTHS]
    more = " × …" if len(shown) < len(set(widths)) else ""
    return f"{what}: {kernel.unscaled().name}, bandwidth {' × '.join(f'{each:.4g}' for each in shown)}{more}"
