"""Pictures of a released function: a curve, a heat map, or a slice of more columns. Spends nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import CategoricalKernel, ColumnKernel, Kernel
from hushsum.kernels.parameters import answer_in_words, counts_records, records_in_words
from hushsum.plotting.curve import Curve, draw_curve
from hushsum.plotting.figure import bare_figure, new_figure
from hushsum.plotting.two_column_map import TwoColumnMap, draw_heat_map
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.answers import Answers, check_question
from hushsum.releases.base import ReleasedFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Range = tuple[float, float]
Column = int | str

_CURVE_POINTS = 500
_HEAT_POINTS = 140
_SMALL_CURVE_POINTS = 120
_SMALL_HEAT_POINTS = 36
_MOST_BANDWIDTHS = 3


@dataclass(frozen=True, slots=True)
class View:
    """What of a function is shown, settled.

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
    def of(
        cls,
        function: ReleasedFunction,
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
        """Settle what is shown of a function; what is left out comes from its declared bounds and names."""
        return cls.of_columns(
            _number_of_columns(function.kernel),
            function.columns,
            function.bounds,
            axes=axes,
            range=range,
            at=at,
            labels=labels,
            of=of,
            level=level,
            simultaneous=simultaneous,
            log=log,
        )

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
        drawn = (
            _across_and_up(_axes(axes, dim, columns), columns) if axes is None else _axes(axes, dim, columns)
        )
        if labels is not None and (isinstance(labels, str) or len(labels) != len(drawn)):
            got = "a text" if isinstance(labels, str) else str(len(labels))
            raise UsageError(
                parameter="labels",
                rule=f"must name each of {len(drawn)} axes",
                got=f"{got}",
                remedy="give one for each",
            )
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

    def answers(self, function: ReleasedFunction, points: Floats) -> Answers:
        """What the function answers at the points of the picture."""
        return function.query(points, of=self.quantity, level=self.level, simultaneous=self.simultaneous)

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


def draw(function: ReleasedFunction, view: View, ax: Axes | None = None) -> Axes:
    """Draw on given axes, or in a new pyplot figure with the claim below."""
    picture = _picture(function, view)
    if ax is None:
        ax = new_figure(
            title=_title(function.kernel, view.quantity),
            caption=caption_of(
                function.claim,
                f"{slice_note(function.columns, view)} {_note(function, view, picture)}".strip(),
            ),
            height=picture.HEIGHT,
            pyplot=True,
        )[1]
    else:
        ax.set_title(_title(function.kernel, view.quantity))
    _draw_on(ax, function.kernel, picture, view)
    return ax


def figure_of(function: ReleasedFunction, view: View) -> Figure:
    """The same picture as a figure that belongs to no window, for a file."""
    picture = _picture(function, view)
    figure, ax = new_figure(
        title=_title(function.kernel, view.quantity),
        caption=caption_of(
            function.claim, f"{slice_note(function.columns, view)} {_note(function, view, picture)}".strip()
        ),
        height=picture.HEIGHT,
    )
    _draw_on(ax, function.kernel, picture, view)
    return figure


def thumbnail(function: ReleasedFunction) -> bytes:
    """A small PNG picture of a function with bounds, for a notebook."""
    view = View.of(function)
    number = _SMALL_CURVE_POINTS if len(view.axes) == 1 else _SMALL_HEAT_POINTS
    figure, ax = bare_figure()
    _draw_on(ax, function.kernel, _picture(function, view, number), view, small=True)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def caption_of(claim: Claim, note: str) -> str:
    """What stands below a picture: what it shows beside the axes, and what its release claims."""
    return f"{note} {claim.sentence()}".strip()


def _picture(function: ReleasedFunction, view: View, number: int | None = None) -> Curve | TwoColumnMap:
    dim = _number_of_columns(function.kernel)
    if len(view.axes) == 1:
        points, (x,) = view.points(dim, number or _CURVE_POINTS)
        answers = view.answers(function, points)
        return Curve(
            x,
            answers.value,
            answers.lower,
            answers.upper,
            view.level,
            simultaneous=view.simultaneous,
            stderr=_median(answers.stderr),
        )
    points, (x, y) = view.points(dim, number or _HEAT_POINTS)
    answers = view.answers(function, points)
    shape = len(y), len(x)
    return TwoColumnMap(
        x,
        y,
        answers.value.reshape(shape),
        answers.lower.reshape(shape),
        view.level,
        _median(answers.stderr),
        view.simultaneous,
        view.log,
    )


def _draw_on(
    ax: Axes, kernel: Kernel, picture: Curve | TwoColumnMap, view: View, *, small: bool = False
) -> None:
    value_label = answer_in_words(kernel, view.quantity)
    if isinstance(picture, Curve):
        draw_curve(ax, picture, x_label=view.labels[0], y_label=value_label, legend=not small)
        return
    x_label, y_label = view.labels
    draw_heat_map(ax, picture, x_label=x_label, y_label=y_label, value_label="" if small else value_label)


def _median(stderr: Floats) -> float | None:
    known = stderr[np.isfinite(stderr)]
    return float(np.median(known)) if len(known) else None


def _note(function: ReleasedFunction, view: View, picture: Curve | TwoColumnMap) -> str:
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


def _number_of_columns(kernel: Kernel) -> int:
    parts = kernel.parts()
    if kernel.dim is None or any(each.dim is None or isinstance(each, CategoricalKernel) for each in parts):
        raise UsageError(
            rule="a picture needs columns of numbers",
            got=f"a {kernel.name} function",
            remedy="query it instead",
        )
    return kernel.dim


def _axes(
    given: Column | Sequence[Column] | None, dim: int, names: tuple[str, ...] | None
) -> tuple[int, ...]:
    if given is None:
        return tuple(np.arange(min(dim, 2)).tolist())
    listed = [given] if isinstance(given, int | str) else list(given)
    axes = tuple(names.index(each) if names is not None and each in names else each for each in listed)
    numbers = [axis for axis in axes if isinstance(axis, int) and 0 <= axis < dim]
    if not 1 <= len(axes) <= 2 or len(numbers) != len(axes) or len(set(axes)) != len(axes):
        named = "" if names is None else f", or one of {', '.join(names[:8])}"
        raise UsageError(
            parameter="axes",
            rule=f"must be one or two different columns from 0 to {dim - 1}{named}",
            got=f"{','.join(map(str, listed))}",
            remedy="columns are numbered in the order in which they were counted",
        )
    return tuple(numbers)


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
            raise UsageError(
                parameter="range",
                rule="must be given, since this function was released without bounds",
                remedy="such as 0 to 100",
            )
        return tuple((bounds.low[axis], bounds.high[axis]) for axis in axes)
    pairs = _pairs(given)
    if len(pairs) not in (1, len(axes)):
        raise UsageError(
            parameter="range",
            rule=f"must be one low and high, or one for each of {len(axes)} axes",
            got=len(pairs),
        )
    for low, high in pairs:
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise UsageError(
                parameter="range",
                rule="must be finite with low < high",
                got=f"{low:g} to {high:g}",
                remedy="swap or change it",
            )
    return pairs if len(pairs) == len(axes) else pairs * len(axes)


def _pairs(given: Range | Sequence[Range]) -> tuple[Range, ...]:
    array = np.asarray(given)
    if array.shape[-1:] != (2,) or array.ndim > 2 or array.dtype.kind not in "iuf":
        raise UsageError(
            parameter="range",
            rule="must be (low, high) in numbers, or one such pair for each axis",
            got="another shape, or no numbers",
        )
    return tuple((float(low), float(high)) for low, high in array.reshape(-1, 2))


def _fixed(
    at: float | Sequence[float] | None, others: Sequence[int], dim: int, bounds: Bounds | None
) -> dict[int, float]:
    if not others and at is None:
        return {}
    if at is None:
        if bounds is None:
            raise UsageError(
                parameter="at",
                rule=(
                    "must be given for every column that is not drawn, since this function was released "
                    "without bounds"
                ),
            )
        return {column: float(bounds.centre[column]) for column in others}
    values = tuple(np.atleast_1d(np.asarray(at, np.float64)).tolist())
    if not all(np.isfinite(value) for value in values):
        raise UsageError(
            parameter="at",
            rule="must be finite",
            got="NaN or infinity",
            remedy="give numbers",
        )
    if len(values) == dim:
        return {column: values[column] for column in others}
    if len(values) == len(others):
        return dict(zip(others, values, strict=True))
    if len(values) == 1 and others:
        return dict.fromkeys(others, values[0])
    if not others:
        raise UsageError(
            parameter="at",
            rule="is for columns that are not drawn, and all are drawn",
            got=f"{len(values)} of them",
            remedy="leave it out",
        )
    raise UsageError(
        parameter="at",
        rule=f"must be one value for all columns that are not drawn, or one for each of them ({len(others)})",
        got=len(values),
        remedy=f"such as {','.join(['0'] * len(others))}",
    )


def _title(kernel: Kernel, of: str) -> str:
    words = answer_in_words(kernel, of).replace("near here", "near each point")
    what = f"{words[0].upper()}{words[1:]}"
    if not isinstance(kernel, ColumnKernel):
        return f"{what}: {kernel.name}"
    widths = kernel.column_bandwidths()
    shown = widths[:1] if len(set(widths)) == 1 else widths[:_MOST_BANDWIDTHS]
    more = " × …" if len(shown) < len(set(widths)) else ""
    return f"{what}: {kernel.unscaled().name}, bandwidth {' × '.join(f'{each:.4g}' for each in shown)}{more}"


def slice_note(columns: tuple[str, ...] | None, view: View) -> str:
    """Where the columns are that are not drawn."""
    if not view.fixed:
        return ""
    places = (f"{_name(columns, column)} = {value:g}" for column, value in view.fixed.items())
    return f"Slice at {', '.join(places)}."
