"""``hushsum plot``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Reworded, Without
from hushsum.cli.output import write_result
from hushsum.declaration import common
from hushsum.errors import Parameter, UsageError
from hushsum.operations import QueryTerms, plot_function
from hushsum.records import DateFormat


def plot(
    file: options.ReleasedFile,
    output: Annotated[str, typer.Option("--output", "-o", help="The image to write: .png, .svg or .pdf.")],
    range: Annotated[
        str | None, common("Range to plot; default: the declared bounds.", metavar="LOW:HIGH[,...]")
    ] = None,
    axes: Annotated[
        str | None,
        common(
            "Columns to draw, numbers from 0 or names, the first across; default: the first two.",
            metavar="I[,J]",
        ),
    ] = None,
    at: Annotated[
        str | None,
        common(
            "Values of the other columns, or one for all; default: the middle of the bounds.",
            metavar="VALUES",
        ),
    ] = None,
    labels: Annotated[str | None, common("Names of the axes.", metavar="NAMES")] = None,
    *,
    terms: Annotated[
        QueryTerms,
        Without("estimator", "threads"),
        Reworded({"simultaneous": "Intervals that hold at all points together; the default for heat maps."}),
    ],
    pointwise: Annotated[bool, common("Intervals that hold at each point; the default for curves.")] = False,
    log: Annotated[bool, common("Logarithmic colours of a heat map.")] = False,
    dates: Annotated[
        DateFormat,
        Without("date_format"),
        Reworded(
            {"dates": "Columns that were dates: their axes have dates along them, and ranges may be dates."},
            listed=True,
        ),
    ],
    json: options.Json = False,
) -> None:
    """Draw a function or a model: a curve with its error band, a heat map, or a slice of more columns.

    Of a classifier the probabilities of its classes are drawn, or where each is predicted; of other models
    what they predict.

    hushsum plot skin.hush -o skin.png
    """
    if terms.simultaneous and pointwise:
        raise UsageError("simultaneous", ("and ", Parameter("pointwise"), " exclude each other"))
    written = dates if dates.columns else None
    drawn = plot_function(
        file,
        output,
        axes=_columns(axes),
        range=options.ranges(range, "range", written),
        at=None if at is None else options.numbers(at, "at"),
        labels=options.names(labels, "labels"),
        of=terms.of,
        level=terms.level,
        simultaneous=terms.simultaneous if terms.simultaneous or pointwise else None,
        log=log,
        dates=written,
    )
    write_result(drawn, drawn.output, as_json=json)


def _columns(text: str | None) -> tuple[int | str, ...] | None:
    """Columns by their numbers or names."""
    names = options.names(text, "axes")
    return None if names is None else tuple(int(name) if name.isdecimal() else name for name in names)
