"""``hushsum compare``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import tell, write_result
from hushsum.declaration import common
from hushsum.operations import compare_functions


def compare(
    first: Annotated[
        str, typer.Argument(metavar="FIRST", help="A .hush file with a released function, or -.")
    ],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Another one, of other records.")],
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POINT",
            help="A public point to compare at, such as 120,80,60; repeat it. Default: chosen points.",
        ),
    ] = None,
    significance: Annotated[float, common("Level of the test.", metavar="NUMBER")] = 0.05,
    cluster_size: Annotated[
        float, common("Average number of correlated records, such as those of one person.", metavar="NUMBER")
    ] = 1.0,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Draw the difference to this file: .png, .svg or .pdf."),
    ] = None,
    sum: options.Sum = False,
    json: options.Json = False,
) -> None:
    """Compare two released functions: where they differ, MMD², and a two-sample test. Spends nothing.

    The test allows for the noise of both releases and for the sampling error of both sets of records. To
    compare methods on public data, see hushsum benchmark.

    hushsum compare spring.hush autumn.hush -o difference.png
    """
    done = compare_functions(
        first,
        second,
        at=None if at is None else [options.point(each, "at") for each in at],
        significance=significance,
        cluster_size=cluster_size,
        output=output,
        of="sum" if sum else "mean",
    )
    write_result(done, done.comparison.describe(), as_json=json)
    if done.output is not None and not json:
        tell(done.output)
