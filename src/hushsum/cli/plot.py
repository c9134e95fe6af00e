"""``hushsum plot``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.output import write, write_json
from hushsum.errors import Parameter, UsageError


def plot(
    file: options.ReleasedFile,
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
            help="Columns to draw, numbers from 0 or names, the first across; default: the first two.",
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
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous", help="Intervals that hold at all points together; the default for heat maps."
        ),
    ] = False,
    pointwise: Annotated[
        bool,
        typer.Option("--pointwise", help="Intervals that hold at each point; the default for curves."),
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="Logarithmic colours of a heat map.")] = False,
    dates: Annotated[
        str | None,
        typer.Option(
            "--dates",
            metavar="NAMES",
            help="Columns that were dates: their axes have dates along them, and ranges may be dates.",
        ),
    ] = None,
    date_unit: options.DateUnit = "days",
    date_origin: options.DateOrigin = "1970-01-01",
    json: options.Json = False,
) -> None:
    """Draw a function or a model: a curve with its error band, a heat map, or a slice of more columns.

    Of a classifier the probabilities of its classes are drawn, or where each is predicted; of other models
    what they predict.

    hushsum plot skin.hush -o skin.png
    """
    from hushsum.operations import plot_function
    from hushsum.records import DateFormat

    if simultaneous and pointwise:
        raise UsageError("simultaneous", ("and ", Parameter("pointwise"), " exclude each other"))
    written = DateFormat(option_values.names(dates, "dates") or (), unit=date_unit, origin=date_origin)
    drawn = plot_function(
        file,
        output,
        axes=_columns(axes),
        range=option_values.ranges(range, "range", None if dates is None else written),
        at=None if at is None else option_values.numbers(at, "at"),
        labels=option_values.names(labels, "labels"),
        of="sum" if sum else "mean",
        level=level,
        simultaneous=simultaneous if simultaneous or pointwise else None,
        log=log,
        dates=None if dates is None else written,
    )
    write_json(drawn.as_json()) if json else write(drawn.output)


def _columns(text: str | None) -> tuple[int | str, ...] | None:
    """Columns by their numbers or names."""
    names = option_values.names(text, "axes")
    return None if names is None else tuple(int(name) if name.isdecimal() else name for name in names)
