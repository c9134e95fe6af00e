"""Draw a released function into a file. Spends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hushsum.jobs.output_files import check_output, open_function
from hushsum.plotting.figure import check_format, save_figure
from hushsum.releases.plot import Column, Range, View, figure_of


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


def draw_function(
    source: str,
    output: str,
    *,
    axes: Sequence[Column] | None = None,
    range: Sequence[Range] | None = None,
    at: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    of: str = "mean",
    level: float = 0.95,
    simultaneous: bool = False,
) -> PictureDrawn:
    """Write a picture; its suffix says whether as PNG, SVG or PDF. The parameters are those of ``f.plot``.

    Raises
    ------
    UsageError
        if the function has no columns of numbers to draw, or neither bounds nor a range says where to look.
    """
    check_format(check_output(output, inputs=[source]))
    function = open_function(source)
    view = View.of(
        function, axes=axes, range=range, at=at, labels=labels, of=of, level=level, simultaneous=simultaneous
    )
    save_figure(figure_of(function, view), output)
    return PictureDrawn(output, view)
