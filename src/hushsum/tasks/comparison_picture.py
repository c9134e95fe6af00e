"""The picture of a comparison: the difference with its simultaneous band, or a map of it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import numpy as np

from hushsum.kernels.parameters import answer_in_words
from hushsum.plotting.curve import Curve
from hushsum.plotting.figure import BLUE, FAINT, INK, VERMILION, bare_figure, new_figure
from hushsum.plotting.ticks import label_ticks
from hushsum.plotting.two_column_map import TwoColumnMap
from hushsum.releases.answers import Answers
from hushsum.releases.plot import View, slice_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hushsum.tasks.comparison_result import Comparison

_CURVE_POINTS: Final = 201
_MAP_POINTS: Final = 33
_SMALL_MAP_POINTS: Final = 21


def draw_comparison(comparison: Comparison, view: View, ax: Axes | None = None) -> Axes:
    """Draw on given axes, or in a new pyplot figure with the result of the test below."""
    if ax is None:
        ax = _new(comparison, view, pyplot=True)[1]
    else:
        ax.set_title(_title(comparison, view))
    _draw_on(ax, comparison, view)
    return ax


def comparison_figure(comparison: Comparison, view: View) -> Figure:
    """The same picture as a figure that belongs to no window, for a file."""
    figure, ax = _new(comparison, view, pyplot=False)
    _draw_on(ax, comparison, view)
    return figure


def comparison_thumbnail(comparison: Comparison) -> bytes:
    """A small PNG picture, for a notebook."""
    view = View.of(comparison.f, level=1.0 - comparison.significance)
    figure, ax = bare_figure()
    _draw_on(ax, comparison, view, small=True)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def _new(comparison: Comparison, view: View, *, pyplot: bool) -> tuple[Figure, Axes]:
    verdict = "the distributions differ" if comparison.differ else "no difference is shown"
    said = (
        f"Two-sample test: {verdict}, p = {comparison.p_value:.2g}. Intervals allow for noise and sampling."
    )
    height = Curve.HEIGHT if len(view.axes) == 1 else TwoColumnMap.HEIGHT
    caption = f"{slice_note(comparison.f.columns, view)} {said}".strip()
    return new_figure(title=_title(comparison, view), caption=caption, height=height, pyplot=pyplot)


def _title(comparison: Comparison, view: View) -> str:
    words = answer_in_words(comparison.f.kernel, view.quantity).replace("near here", "near each point")
    return f"Difference of {words}, {comparison.names[0]} − {comparison.names[1]}"


def _draw_on(ax: Axes, comparison: Comparison, view: View, *, small: bool = False) -> None:
    dim = comparison.f.dim
    assert dim is not None
    across = len(view.axes) == 1
    points, steps = view.points(dim, _CURVE_POINTS if across else _SMALL_MAP_POINTS if small else _MAP_POINTS)
    found = comparison.difference(points, of=view.quantity, level=view.level, simultaneous=True)
    if across:
        _curve(ax, steps[0], found, view.labels[0], legend=not small)
    else:
        _map(ax, steps[0], steps[1], found, view.labels, bar=not small)


def _curve(ax: Axes, x: np.ndarray, found: Answers, label: str, *, legend: bool) -> None:
    band = f"{found.level:.0%} interval, at all points together"
    ax.fill_between(x, found.lower, found.upper, color=FAINT, alpha=0.25, linewidth=0, label=band)
    for where, colour, said in (
        (found.lower > 0.0, VERMILION, "significantly above 0"),
        (found.upper < 0.0, BLUE, "significantly below 0"),
    ):
        if where.any():
            ax.fill_between(
                x,
                found.lower,
                found.upper,
                where=where.tolist(),
                color=colour,
                alpha=0.3,
                linewidth=0,
                label=said,
            )
    ax.plot(x, found.value, color=INK, linewidth=1.6, label="difference")
    ax.axhline(0.0, color=INK, linewidth=0.6)
    ax.set_xlabel(label, color=INK)
    ax.set_ylabel("difference", color=INK)
    for axis in (ax.xaxis, ax.yaxis):
        label_ticks(axis)
    if legend:
        ax.legend(frameon=False, fontsize=9, labelcolor=INK)


def _map(
    ax: Axes, x: np.ndarray, y: np.ndarray, found: Answers, labels: tuple[str, ...], *, bar: bool
) -> None:
    shape = len(y), len(x)
    value, lower, upper = (each.reshape(shape) for each in (found.value, found.lower, found.upper))
    most = max(float(np.abs(value).max()), np.finfo(float).tiny)
    ax.grid(visible=False)
    mesh = ax.pcolormesh(
        x, y, value, cmap="RdBu_r", vmin=-most, vmax=most, shading="gouraud", rasterized=True
    )
    for edge, style in ((lower, "solid"), (-upper, "dashed")):
        if edge.min() < 0.0 < edge.max():
            ax.contour(x, y, edge, levels=[0.0], colors=INK, linewidths=1.1, linestyles=style)
    if bar:
        figure = ax.get_figure()
        assert figure is not None
        scale = figure.colorbar(mesh, ax=ax, pad=0.025, fraction=0.12, aspect=22)
        scale.set_label("difference; solid: significantly above 0, dashed: below", color=INK)
        scale.outline.set_visible(False)
        scale.ax.tick_params(colors=INK, labelsize=9, length=3, color=FAINT)
        label_ticks(scale.ax.yaxis)
    for axis in (ax.xaxis, ax.yaxis):
        label_ticks(axis)
    ax.set_xlabel(labels[0], color=INK)
    ax.set_ylabel(labels[1], color=INK)
