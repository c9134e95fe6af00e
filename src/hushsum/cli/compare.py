"""``hushsum compare``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.output import tell, write_facts, write_json


def compare(
    first: Annotated[
        str, typer.Argument(metavar="FIRST", help="A .hush file with a released function, or -.")
    ],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Another one, of other records.")],
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="POINT",
            help="A public point to compare at, such as 120,80,60; repeat it. Default: chosen points.",
        ),
    ] = None,
    significance: Annotated[
        float, typer.Option("--significance", metavar="NUMBER", help="Level of the test.")
    ] = 0.05,
    cluster_size: Annotated[
        float,
        typer.Option(
            "--cluster-size", metavar="NUMBER", help="Records that come together, as those of a person."
        ),
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
    from hushsum.operations import compare_functions

    done = compare_functions(
        first,
        second,
        at=None if at is None else [option_values.point(each, "at") for each in at],
        significance=significance,
        cluster_size=cluster_size,
        output=output,
        of="sum" if sum else "mean",
    )
    if json:
        write_json(done.as_json())
        return
    write_facts(done.comparison.describe())
    if done.output is not None:
        tell(done.output)
