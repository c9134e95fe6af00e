"""Draw a released function or model into a file. Spends nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hushsum.errors import UsageError
from hushsum.jobs.model_answers import AnsweringModel
from hushsum.jobs.output_files import STANDARD, check_output
from hushsum.jobs.plot_model import model_figure
from hushsum.plotting.figure import check_format, save_figure
from hushsum.plotting.ticks import label_dates
from hushsum.records.columns_by_name import choose_columns
from hushsum.records.dates import DateFormat
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load_released
from hushsum.releases.plot import Column, Range, View, figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class PictureDrawn:
    """Where the picture is, and what it shows."""

    output: str
    view: View

    def as_json(self) -> dict[str, Any]:
        """The picture for a machine."""
        return {
            "output": self.output,
            "axes": list(self.view.axes),
            "ranges": [list(each) for each in self.view.ranges],
            "fixed": {str(column): value for column, value in self.view.fixed.items()},
        }


def plot_function(
    source: str,
    output: str,
    *,
    axes: Sequence[Column] | None = None,
    range: Sequence[Range] | None = None,
    at: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    of: str = "mean",
    level: float = 0.95,
    simultaneous: bool | None = None,
    log: bool = False,
    dates: DateFormat | None = None,
) -> PictureDrawn:
    """Write a picture; its suffix says whether as PNG, SVG or PDF. The parameters are those of ``f.plot``;
    axes of the columns of ``dates`` have dates along them.

    Raises
    ------
    UsageError
        if there are no columns of numbers to draw, or neither bounds nor a range says where to look.
    """
    check_format(check_output(output, inputs=[source]))
    released = load_released(sys.stdin.buffer if source == STANDARD else source)
    shown: dict[str, Any] = {
        "axes": axes, "range": range, "at": at, "labels": labels, "of": of, "level": level,
        "simultaneous": simultaneous, "log": log,
    }  # fmt: skip
    if isinstance(released, Bundle):
        if of != "mean":
            raise UsageError(parameter="sum", rule="is for functions", got="a model", remedy="leave it out")
        view, figure = model_figure(AnsweringModel.of(released), released, **shown)
    else:
        assert isinstance(released, ReleasedFunction)
        view = View.of(released, **shown)
        figure = figure_of(released, view)
    if dates is not None:
        _label_dates(figure, view, released, dates)
    save_figure(figure, output)
    return PictureDrawn(output, view)


def _label_dates(figure: Figure, view: View, released: Bundle | ReleasedFunction, dates: DateFormat) -> None:
    """Write dates along the axes of the columns that contain them."""
    names = released.about["feature_names"] if isinstance(released, Bundle) else released.columns
    if names is None:
        raise UsageError(
            parameter="dates", rule="must name columns", got="a file whose columns have no names"
        )
    positions = choose_columns(names, dates.columns, "dates")
    drawn = figure.axes[0]
    for axis, column in zip((drawn.xaxis, drawn.yaxis), view.axes, strict=False):
        if column in positions:
            label_dates(axis, dates.days, dates.of_days)
