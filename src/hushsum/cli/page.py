"""``hushsum page``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import write_result
from hushsum.declaration import common
from hushsum.operations import STANDARD, check_answers_output
from hushsum.plotting import write_page


def page(
    function: Annotated[str, typer.Argument(metavar="FILE", help="A .hush file: a function or a model.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The page to write: .html.")],
    title: Annotated[str | None, common("Title of the page; default: the name of the file.")] = None,
    range: Annotated[
        str | None,
        common("What to draw of each column; default: the declared bounds.", metavar="LOW:HIGH[,...]"),
    ] = None,
    labels: Annotated[str | None, common("Names of the columns.", metavar="NAMES")] = None,
    mean: Annotated[
        bool, common("Show the share of all records first, not the number near a point.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Write one HTML file that shows a released function and answers queries offline, in any browser.

    It contains the function and its reader and loads nothing from anywhere.

    hushsum page skin.hush -o skin.html
    """
    check_answers_output(output, inputs=[] if function == STANDARD else [function])
    written = write_page(
        function,
        output,
        title=title,
        range=options.ranges(range, "range"),
        labels=options.names(labels, "labels"),
        of="mean" if mean else "sum",
    )
    write_result(written, written.output, as_json=json)
