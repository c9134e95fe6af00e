"""``hushsum plot``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options, values
from hushsum.cli.output import write, write_json


def plot(
    function: options.ReleasedFile,
    output: Annotated[str, typer.Option("--output", "-o", help="The image to write: .png, .svg or .pdf.")],
    range: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="LOW:HIGH[,...]", help="Range to plot; default: the declared bounds."
        ),
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option(
            "--axes",
            metavar="I[,J]",
            help="Columns to draw, numbers from 0 or names; default: the first two.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="VALUES",
            help="Values of the other columns, or one for all; default: the middle of the bounds.",
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="NAMES", help="Names of the axes.")
    ] = None,
    sum: options.Sum = False,
    level: options.Level = 0.95,
    simultaneous: options.Simultaneous = False,
    json: options.Json = False,
) -> None:
    """Draw a curve with its error band, a heat map, or a slice of a function of more columns.

    hushsum plot skin.hush -o skin.png
    """
    from hushsum.jobs.draw_function import draw_function

    drawn = draw_function(
        function,
        output,
        axes=_columns(axes),
        range=values.ranges(range, "range"),
        at=None if at is None else values.numbers(at, "at"),
        labels=values.names(labels, "labels"),
        of="sum" if sum else "mean",
        level=level,
        simultaneous=simultaneous,
    )
    write_json(drawn.as_json()) if json else write(drawn.output)


def _columns(text: str | None) -> tuple[int | str, ...] | None:
    """Columns by their numbers or names."""
    names = values.names(text, "axes")
    return None if names is None else tuple(int(name) if name.isdecimal() else name for name in names)
