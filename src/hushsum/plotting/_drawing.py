"""Every picture is drawn here with matplotlib: curves with bands, maps, regions of classes, and their files.

A :class:`Picture` has a title, a caption, labels of its axes and what it shows: a :class:`Curve`, a
:class:`TwoColumnMap`, a :class:`ClassMap`, :class:`ClassCurves` or a :class:`PixelMap`.
"""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import HushsumError, UsageError
from hushsum.files import atomic_file
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from ._heat_map import Raster

__all__ = [
    "BLUE", "FAINT", "GRID", "INK", "VERMILION", "ClassCurves", "ClassMap", "Curve", "Picture", "PixelMap",
    "TwoColumnMap", "View", "check_format", "function_picture", "label_dates", "new_figure", "save_figure",
    "shown_answers",
]  # fmt: skip

# Okabe and Ito's palette, distinguishable under every common kind of colour blindness.
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
INK: Final = "#262626"
FAINT: Final = "#8a8a8a"
GRID: Final = "#e3e3e3"
# From the ninth class on colours repeat.
CLASS_COLOURS: Final = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", INK)

FORMATS: Final = (".png", ".svg", ".pdf")
CURVE_HEIGHT: Final = 4.8
# Inches, of figures of their own.
MAP_HEIGHT: Final = 6.6

_CAPTION_LETTERS: Final = 108
# Where the axes begin: left of them is room for numbers such as −200,000 and their label.
_LEFT: Final = 0.13
# Room left and right of a curve, as a part of its length, so that it ends inside the picture.
_SIDE: Final = 0.015
# The width of a line, as a part of the height of a picture.
_LINE: Final = 0.008
# The largest ratio that a logarithmic scale spans.
_DECADES: Final = 1e4
# Standard errors below which a logarithmic scale shows nothing.
_NOISE: Final = 3.0


class Content(Protocol):
    """The contents of a picture; ``small`` without words, for a notebook."""

    @property
    def height(self) -> float:
        """Inches, of a figure of its own."""

    def draw(self, axes: Axes, labels: Sequence[str], *, small: bool = False) -> None:
        """Draw on axes, with their labels and that of the values."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture and its words; ``labels`` are those of its axes, and of a map also that of its values."""

    title: str
    caption: str
    content: Content
    labels: tuple[str, ...]

    def figure(self) -> Figure:
        """A figure that belongs to no window, for a file."""
        figure, axes = self._new(pyplot=False)
        self.content.draw(axes, self.labels)
        return figure

    def show(self, ax: Axes | None) -> Axes:
        """Draw on given axes, or in a new pyplot figure with the caption below."""
        if ax is None:
            ax = self._new(pyplot=True)[1]
        else:
            ax.set_title(self.title)
        self.content.draw(ax, self.labels)
        return ax

    def _new(self, *, pyplot: bool) -> tuple[Figure, Axes]:
        return new_figure(title=self.title, caption=self.caption, height=self.content.height, pyplot=pyplot)

    def thumbnail(self) -> bytes:
        """A small PNG picture without words, for a notebook."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.0, 2.6), dpi=90, facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        _plain(axes)
        self.content.draw(axes, self.labels, small=True)
        stream = io.BytesIO()
        figure.savefig(stream, format="png")
        return stream.getvalue()


@dataclass(frozen=True, slots=True)
class Curve:
    """Values and intervals along one column, shape (n,); ``truth`` only for data that one may look at.

    Intervals are NaN where they are not known; ``stderr`` is the median standard error. Of a ``difference``
    the band is coloured where it does not include 0.
    """

    x: Floats
    value: Floats
    lower: Floats
    upper: Floats
    level: float
    truth: tuple[Floats, Floats] | None = None
    simultaneous: bool = False
    stderr: float | None = None
    difference: bool = False

    height: ClassVar[float] = CURVE_HEIGHT

    def draw(self, axes: Axes, labels: Sequence[str], *, small: bool = False) -> None:
        """Draw the curve and its band."""
        known = np.isfinite(self.lower) & np.isfinite(self.upper)
        if known.any():
            where = "at all points together" if self.simultaneous else "at each point"
            narrow = "\n(narrower than the line)" if self._is_narrow(known) else ""
            colour = FAINT if self.difference else BLUE
            self._band(axes, colour, f"{self.level:.0%} interval, {where}{narrow}")
        if self.difference:
            self._band(axes, VERMILION, "significantly above 0", self.lower > 0.0)
            self._band(axes, BLUE, "significantly below 0", self.upper < 0.0)
        name, colour = ("difference", INK) if self.difference else ("released", BLUE)
        axes.plot(self.x, self.value, color=colour, linewidth=1.8, label=name)
        if self.truth is not None:
            axes.plot(*self.truth, color=VERMILION, linewidth=1.4, linestyle=(0, (4, 2)), label="true")
        axes.axhline(0.0, color=INK, linewidth=0.6)
        first, last = float(self.x[0]), float(self.x[-1])
        axes.set_xlim(first - _SIDE * (last - first), last + _SIDE * (last - first))
        lower, upper = (np.where(known, side, self.value) for side in (self.lower, self.upper))
        lowest, highest = min(0.0, float(lower.min())), max(0.0, float(upper.max()))
        margin = 0.04 * (highest - lowest) or 1.0
        axes.set_ylim(lowest - (margin if lowest < 0 else 0.0), highest + margin)
        _label(axes, labels)
        if not small:
            _legend(axes)

    def _band(self, axes: Axes, colour: str, name: str, where: NDArray[np.bool_] | None = None) -> None:
        if where is None or where.any():
            inside = None if where is None else where.tolist()
            style: dict[str, Any] = {"color": colour, "alpha": 0.24, "linewidth": 0, "label": name}
            axes.fill_between(self.x, self.lower, self.upper, where=inside, **style)

    def _is_narrow(self, known: NDArray[np.bool_]) -> bool:
        """Whether the line of the values hides the band."""
        extent = max(0.0, float(self.upper[known].max())) - min(0.0, float(self.lower[known].min()))
        return bool((self.upper - self.lower)[known].max() < _LINE * extent)


@dataclass(frozen=True, slots=True)
class TwoColumnMap:
    """Values on a grid, shape (len(y), len(x)), the ends of their intervals, and the median standard error;
    NaN and None where these are not known. ``signed`` values may be below 0 by themselves, not only by noise;
    of a ``decision`` and of a ``difference`` the sign is what counts.

    A dashed line encloses where the interval lies above 0; of a difference a solid one, and a dashed one
    where it lies below. Values below 0, which are noise unless they are signed, have the colour of 0; so
    have, on a logarithmic scale, those below three median standard errors.
    """

    x: Floats
    y: Floats
    value: Floats
    lower: Floats
    level: float
    stderr: float | None
    simultaneous: bool = True
    log: bool = False
    signed: bool = False
    decision: bool = False
    difference: bool = False
    upper: Floats | None = None

    height: ClassVar[float] = MAP_HEIGHT

    @property
    def has_edge(self) -> bool:
        """Whether the interval lies above 0 in some places and not in others."""
        return _crosses_zero(self.lower)

    def draw(self, axes: Axes, labels: Sequence[str], *, small: bool = False) -> None:
        """Draw the map with its colour bar."""
        highest = max(float(self.value.max()), np.finfo(float).tiny)
        # On a logarithmic scale whatever is within the noise has the colour of its least value.
        floor = max(highest / _DECADES, _NOISE * (self.stderr or 0.0)) if self.log else -np.inf
        mesh = axes.pcolormesh(
            self.x,
            self.y,
            np.maximum(self.value, floor),
            cmap="RdBu_r" if (self.decision or self.difference) and not self.log else "viridis",
            norm=self._norm(highest, floor),
            shading="gouraud",
            rasterized=True,
        )
        edges = [(self.lower, "white", "dashed", 0.9)]
        if self.difference and self.upper is not None:
            edges = [(self.lower, INK, "solid", 1.1), (-self.upper, INK, "dashed", 1.1)]
        for edge, colour, style, width in edges:
            if _crosses_zero(edge):
                lines: dict[str, Any] = {"colors": colour, "linestyles": style, "linewidths": width}
                axes.contour(self.x, self.y, edge, levels=[0.0], **lines)
        _colour_bar(axes, mesh, "" if small else labels[2], plain=not self.log)
        _label(axes, labels)

    def _norm(self, highest: float, floor: float) -> Normalize:
        from matplotlib.colors import LogNorm, Normalize

        if self.log:
            return LogNorm(min(floor, highest / 2.0), highest)
        lowest = float(self.value.min())
        if self.decision or self.difference:
            most = max(abs(lowest), highest)
            return Normalize(-most, most)
        return Normalize(min(0.0, lowest) if self.signed else 0.0, highest)


@dataclass(frozen=True, slots=True)
class ClassMap:
    """The most probable class on a grid by its number, and its probability; shape (len(y), len(x)).

    A place has the colour of its class, the paler the less probable that is; ``centers`` are marked.
    """

    x: Floats
    y: Floats
    largest: NDArray[np.int64]
    probability: Floats
    names: Sequence[str]
    centers: Floats | None = None

    height: ClassVar[float] = MAP_HEIGHT

    def draw(self, axes: Axes, labels: Sequence[str], *, small: bool = False) -> None:
        """Draw the regions and their legend."""
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        axes.grid(visible=False)
        colours = np.array([to_rgb(_class_colour(number)) for number in range(len(self.names))])
        # An equal probability of all classes is white.
        even = 1.0 / len(self.names)
        certainty = np.clip((self.probability - even) / max(1.0 - even, 1e-9), 0.0, 1.0)[..., None]
        image = 1.0 + (colours[self.largest] - 1.0) * (0.15 + 0.75 * certainty)
        extent = (float(self.x[0]), float(self.x[-1]), float(self.y[0]), float(self.y[-1]))
        axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest")
        if self.centers is not None:
            x, y = self.centers[:, 0], self.centers[:, 1]
            axes.scatter(x, y, marker="+", s=80, linewidths=1.8, color=INK, zorder=3)
            axes.set(xlim=extent[:2], ylim=extent[2:])
        _legend(axes, [Patch(color=colours[i], label=name) for i, name in enumerate(self.names)])
        _label(axes, labels)


@dataclass(frozen=True, slots=True)
class ClassCurves:
    """The probability of every class along one column, shape (len(x), number of classes)."""

    x: Floats
    shares: Floats
    names: Sequence[str]

    height: ClassVar[float] = CURVE_HEIGHT

    def draw(self, axes: Axes, labels: Sequence[str], *, small: bool = False) -> None:
        """Draw a curve for every class."""
        for number, name in enumerate(self.names):
            axes.plot(self.x, self.shares[:, number], color=_class_colour(number), linewidth=1.8, label=name)
        axes.set_ylim(0.0, 1.02)
        _label(axes, labels)
        _legend(axes)


@dataclass(frozen=True, slots=True)
class PixelMap:
    """The pixels of a raster, hatched where they are hidden; ``aspect`` is height over width."""

    raster: Raster
    aspect: float | None

    @property
    def height(self) -> float:
        """Inches, of a figure of its own."""
        return MAP_HEIGHT if self.aspect is None else min(max(6.2 * self.aspect, 3.2), 9.0) + 1.6

    def draw(self, axes: Axes, labels: Sequence[str], *, small: bool = False) -> None:
        """Draw the pixels, the hatching and the colour bar."""
        import matplotlib as mpl

        value = self.raster.value
        (west, south), (east, north) = self.raster.bounds.low, self.raster.bounds.high
        image = axes.imshow(
            value,
            origin="lower",
            extent=(west, east, south, north),
            cmap="viridis",
            vmin=0.0,
            vmax=max(float(value.max()), np.finfo(float).tiny),
            interpolation="nearest",
            aspect="auto" if self.aspect is None else self.aspect * (east - west) / (north - south),
        )
        x, y, hidden = self.raster.to_edges(self.raster.hidden.astype(float))
        with mpl.rc_context({"hatch.color": "#ffffff", "hatch.linewidth": 0.5}):
            if hidden.any():
                axes.contourf(x, y, hidden, levels=[0.5, 1.5], colors="none", hatches=["//////"])
        _colour_bar(axes, image, "" if small else labels[2])
        _label(axes, labels)


def _crosses_zero(values: Floats) -> bool:
    return bool(values.min() < 0.0 < values.max())


def _class_colour(number: int) -> str:
    return CLASS_COLOURS[number % len(CLASS_COLOURS)]


# --- figures and axes ---------------------------------------------------------------------------------------


def new_figure(
    *, title: str, caption: str, width: float = 8.0, height: float = CURVE_HEIGHT, pyplot: bool = False
) -> tuple[Figure, Axes]:
    """An empty figure with its title above and its caption below.

    It belongs to no window, unless ``pyplot`` makes it the current figure, which notebooks and
    ``pyplot.show()`` display.
    """
    lines = textwrap.wrap(caption, _CAPTION_LETTERS)
    foot = (0.24 + 0.17 * len(lines)) / height
    if pyplot:
        from matplotlib import pyplot as windows

        figure = windows.figure(figsize=(width, height), facecolor="white")
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), dpi=150, facecolor="white")
    axes = figure.add_axes((_LEFT, foot + 0.5 / height, 0.965 - _LEFT, 1.0 - foot - 1.05 / height))
    figure.text(_LEFT, 1.0 - 0.36 / height, title, fontsize=13, color=INK, fontweight="bold", ha="left")
    figure.text(_LEFT, foot - 0.12 / height, "\n".join(lines), fontsize=8, color=FAINT, ha="left", va="top")
    _plain(axes)
    return figure, axes


def _plain(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.grid(color=GRID, linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, length=3, color=FAINT)


def _label(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_xlabel(labels[0], color=INK)
    axes.set_ylabel(labels[1], color=INK)
    for axis in (axes.xaxis, axes.yaxis):
        label_ticks(axis)


def _legend(axes: Axes, handles: Sequence[Any] | None = None) -> None:
    """A legend; one of regions, which has handles, stands on a ground of its own."""
    axes.legend(handles=handles, frameon=handles is not None, fontsize=9, labelcolor=INK)


def _colour_bar(axes: Axes, shown: ScalarMappable, label: str, *, plain: bool = True) -> None:
    axes.grid(visible=False)
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(shown, ax=axes, pad=0.025, fraction=0.12, aspect=22)
    if label:
        bar.set_label(label, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=9, length=3, color=FAINT)
    if plain:
        label_ticks(bar.ax.yaxis)


def check_format(path: str | os.PathLike[str], formats: Sequence[str] = FORMATS) -> Path:
    """The path of a picture; raises UsageError unless its suffix is one that can be written."""
    file = Path(path)
    if file.suffix.lower() not in formats:
        rule = f"must end in one of {', '.join(formats)}"
        raise UsageError("output", rule, got=f"{file.name!r}", remedy="rename it")
    return file


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture in the format of its suffix; a reader sees the old file, none, or the whole new one.

    It is drawn in memory first, since drawing engines report a full disk each in its own way.
    """
    file = check_format(path)
    suffix = file.suffix.lower()
    # No date in the file: the same picture has the same bytes.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=suffix[1:], metadata=metadata)
    with atomic_file(file, mode=0o666) as stream:
        stream.write(drawn.getbuffer())


# --- numbers and dates along an axis ------------------------------------------------------------------------

_MINUS: Final = "\N{MINUS SIGN}"
_MOST_DECIMALS: Final = 5
_APART: Final = 10_000
# The formats of dates that are at least this many days apart.
_DATES: Final = ((365.0, "%Y"), (28.0, "%Y-%m"), (1.0, "%Y-%m-%d"), (0.0, "%m-%d %H:%M"))


def label_ticks(axis: Axis) -> None:
    """Label an axis with numbers that share their decimals."""
    from matplotlib.ticker import ScalarFormatter

    class Alike(ScalarFormatter):
        def format_ticks(self, values: Sequence[float]) -> list[str]:
            return written_alike(values)

    axis.set_major_formatter(Alike())


def label_dates(axis: Axis, to_days: Callable[[float], float], of_days: Callable[[float], float]) -> None:
    """Label an axis with dates, for numbers that ``to_days`` makes days since 1970 of.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().add_subplot()
    >>> _ = axes.set_xlim(19_723, 19_844)
    >>> label_dates(axes.xaxis, lambda day: day, lambda day: day)
    >>> [label.get_text() for label in axes.get_xticklabels()][:2]
    ['2024-01', '2024-02']
    """
    import matplotlib.dates

    untyped: Any = matplotlib.dates
    num2date = untyped.num2date
    low, high = sorted(to_days(float(end)) for end in axis.get_view_interval())
    places = untyped.AutoDateLocator(minticks=3, maxticks=7).tick_values(num2date(low), num2date(high))
    inside = [float(each) for each in places if low <= each <= high]
    step = min((after - before for before, after in pairwise(inside)), default=1.0)
    shape = next(shape for least, shape in _DATES if step >= least)
    axis.set_ticks([of_days(each) for each in inside], [num2date(each).strftime(shape) for each in inside])


def written_alike(values: Sequence[float]) -> list[str]:
    """Numbers as text, all with the decimals that the most precise one needs, and with a true minus.

    Thousands are separated from 10,000 on, so that years have no comma.

    >>> written_alike([-0.5, 0.0, 0.25])
    ['−0.50', '0.00', '0.25']
    >>> written_alike([0, 5000, 10000])
    ['0', '5,000', '10,000']
    >>> written_alike([1990, 2000])
    ['1990', '2000']
    >>> written_alike([0, 2e-07])
    ['0e+00', '2e−07']
    """
    numbers = [float(value) for value in values]
    largest = max((abs(number) for number in numbers), default=0.0)
    slack = 1e-6 * largest
    for decimals in range(_MOST_DECIMALS + 1):
        if all(abs(round(number, decimals) - number) <= slack for number in numbers):
            apart = "," if largest >= _APART else ""
            texts = [f"{round(number, decimals) + 0.0:{apart}.{decimals}f}" for number in numbers]
            break
    else:
        digits = next((d for d in range(4) if all(abs(float(f"{n:.{d}e}") - n) <= slack for n in numbers)), 4)
        texts = [f"{number:.{digits}e}" for number in numbers]
    return [text.replace("-", _MINUS) for text in texts]


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
