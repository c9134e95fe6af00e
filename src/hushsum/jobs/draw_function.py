"""Draw a released function: a curve, a heat map, or a slice of what has more columns. Spends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.jobs.file_places import check_output
from hushsum.jobs.open_function import dimension, open_function
from hushsum.kernels.base import ColumnKernel
from hushsum.kernels.hamming import HammingKernel
from hushsum.plotting.curve import Curve, draw_curve
from hushsum.plotting.figure import check_format
from hushsum.plotting.heat_map import HeatMap, draw_heat_map
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.noisy_table import NoisyTable

Floats = NDArray[np.float64]
Range = tuple[float, float]

_CURVE_POINTS = 500
_HEAT_POINTS = 140


@dataclass(frozen=True, slots=True)
class View:
    """What of a function is shown; everything left out comes from its declared bounds.

    ``axes`` are the columns drawn, one or two. ``ranges`` has one (low, high) for each of them, or one for
    all. ``at`` fixes the other columns: one value for all of them, one for each, or one for every column, of
    which those of the axes are ignored. ``labels`` are names of the axes, where the function's own do not
    serve.
    """

    axes: tuple[int, ...] | None = None
    ranges: tuple[Range, ...] | None = None
    at: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None
    sum: bool = False
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class PictureDrawn:
    """Where the picture is, and what it shows."""

    output: str
    axes: tuple[int, ...]
    ranges: tuple[Range, ...]
    fixed: dict[int, float]
    names: tuple[str, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """The picture for a machine."""
        return {
            "output": self.output,
            "axes": list(self.axes),
            "ranges": [list(each) for each in self.ranges],
            "fixed": {str(column): value for column, value in self.fixed.items()},
        }


def draw_function(source: str, output: str, view: View) -> PictureDrawn:
    """Write a picture; its suffix says whether as PNG, SVG or PDF.

    Raises
    ------
    UsageError
        if the function has no columns of numbers to draw, or neither bounds nor a range says where to look.
    """
    check_format(check_output(output, inputs=[source]))
    function = open_function(source)
    picture = _frame(function, view, output)
    point = np.zeros(_columns(function))
    for column, value in picture.fixed.items():
        point[column] = value
    draw = _draw_curve if len(picture.axes) == 1 else _draw_heat_map
    draw(function, view, picture, point)
    return picture


def _frame(function: NoisyTable, view: View, output: str) -> PictureDrawn:
    """Settle what is shown."""
    dim = _columns(function)
    axes = view.axes if view.axes is not None else tuple(range(min(dim, 2)))
    if not 1 <= len(axes) <= 2 or len(set(axes)) != len(axes) or not all(0 <= axis < dim for axis in axes):
        raise UsageError(
            parameter="axes",
            rule=f"must be one or two different columns from 0 to {dim - 1}",
            got=f"{','.join(map(str, axes))}",
            remedy="columns are numbered in the order in which they were counted",
        )
    if view.labels is not None and len(view.labels) != len(axes):
        raise UsageError(
            parameter="labels",
            rule=f"must name each of {len(axes)} axes",
            got=len(view.labels),
            remedy="give one for each",
        )
    bounds = function.bounds
    ranges = _ranges(view.ranges, axes, bounds)
    others = [column for column in range(dim) if column not in axes]
    return PictureDrawn(output, axes, ranges, _fixed(view.at, others, dim, bounds), function.columns)


def _columns(function: NoisyTable) -> int:
    dim = dimension(function)
    if dim is None or isinstance(function.kernel, HammingKernel):
        raise UsageError(
            f"a picture needs columns of numbers, got a {function.kernel.name} function; query it instead"
        )
    return dim


def _ranges(
    given: tuple[Range, ...] | None, axes: tuple[int, ...], bounds: Bounds | None
) -> tuple[Range, ...]:
    if given is None:
        if bounds is None:
            raise UsageError(
                "the range to draw must be given, since this function was released without bounds; "
                "give --range such as 0:100"
            )
        return tuple((bounds.low[axis], bounds.high[axis]) for axis in axes)
    if len(given) not in (1, len(axes)):
        raise UsageError(
            f"the range must be one low:high, or one for each of {len(axes)} axes, got {len(given)}"
        )
    for low, high in given:
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise UsageError(
                f"a range must be finite with low < high, got {low:g}:{high:g}; swap or change it"
            )
    return given if len(given) == len(axes) else given * len(axes)


def _fixed(
    at: tuple[float, ...] | None, others: Sequence[int], dim: int, bounds: Bounds | None
) -> dict[int, float]:
    if not others and at is None:
        return {}
    if at is None:
        if bounds is None:
            raise UsageError(
                "a slice must fix every column that is not drawn, since this function was "
                "released without bounds; give --at"
            )
        return {column: float(bounds.centre[column]) for column in others}
    if not all(np.isfinite(value) for value in at):
        raise UsageError("fixed values must be finite, got NaN or infinity; give numbers")
    if len(at) == dim:
        return {column: at[column] for column in others}
    if len(at) == len(others):
        return dict(zip(others, at, strict=True))
    if len(at) == 1 and others:
        return dict.fromkeys(others, at[0])
    raise UsageError(
        "at must be one value for all columns that are not drawn, or one for each of them "
        f"({len(others)}), got {len(at)}; such as --at {','.join(['0'] * len(others))}"
        if others
        else f"at fixes columns that are not drawn, got {len(at)} and all are drawn; leave --at out"
    )


def _draw_curve(function: NoisyTable, view: View, picture: PictureDrawn, point: Floats) -> None:
    axis, (low, high) = picture.axes[0], picture.ranges[0]
    x = np.linspace(low, high, _CURVE_POINTS)
    queries = np.tile(point, (len(x), 1))
    queries[:, axis] = x
    answers = function.query(queries, of=_of(view), level=view.level)
    draw_curve(
        Curve(x, answers.value, answers.lower, answers.upper, view.level),
        picture.output,
        title=_title(function, view),
        caption=caption_of(function.claim, _slice_note(picture)),
        x_label=_label(view, picture, 0),
        y_label=_value_label(view),
    )


def _draw_heat_map(function: NoisyTable, view: View, picture: PictureDrawn, point: Floats) -> None:
    x, y = (np.linspace(low, high, _HEAT_POINTS) for low, high in picture.ranges)
    across, up = np.meshgrid(x, y)
    queries = np.tile(point, (across.size, 1))
    queries[:, picture.axes[0]], queries[:, picture.axes[1]] = across.ravel(), up.ravel()
    answers = function.query(queries, of=_of(view), level=view.level)
    note = f"Standard error {np.median(answers.stderr):.2g} (median)."
    if answers.lower.min() < 0.0 < answers.lower.max():
        note += f" Dashed: where the {view.level:.0%} interval lies above 0."
    draw_heat_map(
        HeatMap(x, y, answers.value.reshape(across.shape), answers.lower.reshape(across.shape)),
        picture.output,
        title=_title(function, view),
        caption=caption_of(function.claim, f"{_slice_note(picture)} {note}".strip()),
        x_label=_label(view, picture, 0),
        y_label=_label(view, picture, 1),
        value_label=_value_label(view),
    )


def caption_of(claim: Claim, note: str) -> str:
    """What stands below a picture: what it shows beside the axes, and what its release claims."""
    return f"{note} {claim.sentence()}".strip()


def _of(view: View) -> str:
    return "sum" if view.sum else "mean"


def _title(function: NoisyTable, view: View) -> str:
    what = "Released kernel sum" if view.sum else "Released mean kernel value"
    kernel = function.kernel
    scale = f", bandwidth {kernel.bandwidth:g}" if isinstance(kernel, ColumnKernel) else ""
    return f"{what}, {kernel.name}{scale}"


def _value_label(view: View) -> str:
    return "kernel sum f(q)" if view.sum else "mean kernel value f(q)/N"


def _label(view: View, picture: PictureDrawn, position: int) -> str:
    if view.labels is not None:
        return view.labels[position]
    names, axis = picture.names, picture.axes[position]
    return names[axis] if names is not None and axis < len(names) else f"column {axis}"


def _slice_note(picture: PictureDrawn) -> str:
    if not picture.fixed:
        return ""
    return (
        "Slice at "
        + ", ".join(f"column {column} = {value:g}" for column, value in picture.fixed.items())
        + "."
    )
