"""``hushsum collect``: terms and reports of the local model."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.error_wording import Command, Group, help_of
from hushsum.cli.output import write_facts, write_json

collect = typer.Typer(
    name="collect",
    cls=Group,
    help="Collect one private report from each person, without a trusted party.",
    no_args_is_help=True,
)


def terms(
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε that each person spends by reporting.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file of terms to write.")],
    columns: options.Columns = None,
    dim: Annotated[
        int | None, typer.Option("--dim", help="Number of columns, where they have no names.")
    ] = None,
    kernel: options.KernelName = None,
    bandwidth: options.Bandwidth = None,
    scale: options.Scale = None,
    power: options.Power = None,
    bits: options.Bits = None,
    projection: options.Projection = None,
    bounds: options.BoundsText = None,
    rows: Annotated[int, typer.Option("--rows", help="Rows of the sketch.")] = 1000,
    width: Annotated[int, typer.Option("--width", help="Cells of a row.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Public seed of the hash functions.")] = 0,
    json: options.Json = False,
) -> None:
    """Write the terms under which everybody reports: kernel, bounds, rows and ε. Publish the file.

    hushsum collect terms --columns weight,height --bandwidth 10 --bounds 0:200 --epsilon 1 -o terms.json
    """
    from hushsum.jobs.kernel_and_method import KernelChoice
    from hushsum.jobs.local_reports import publish_terms
    from hushsum.methods.registry import default_kernel

    box = option_values.box(bounds, "bounds")
    made = publish_terms(
        output,
        KernelChoice(
            kernel or default_kernel("race"), bandwidth, power, bits, projection, scale=scale, bounds=box
        ),
        epsilon=epsilon,
        columns=option_values.names(columns, "columns"),
        dim=dim,
        bounds=box,
        rows=rows,
        width=width,
        seed=seed,
    )
    shown = {"terms": output, "epsilon": epsilon, "digest": made.digest.hex()}
    write_json(shown) if json else write_facts([(name, f"{value}") for name, value in shown.items()])


def reports(
    terms: Annotated[str, typer.Argument(metavar="TERMS", help="The terms that were published.")],
    files: Annotated[
        list[str],
        typer.Argument(metavar="REPORTS...", help="Files with one report per line; - is standard input."),
    ],
    output: options.ReleaseOutput,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="Declare that the reports were shuffled: claim the smaller (ε, δ)."),
    ] = None,
    honest: Annotated[
        int | None,
        typer.Option("--honest", help="With --delta: how many reports follow the protocol; default: all."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Release a function of all reports. Nothing further is spent: every report is private already.

    hushsum collect reports terms.json reports.txt -o town.hush
    """
    from hushsum.jobs.local_reports import release_reports

    released = release_reports(terms, files, output, delta=delta, honest=honest)
    if json:
        write_json(released.as_json())
        return
    write_facts(
        [
            ("function", released.output),
            ("reports", f"{released.reports:,}, each with ε = {released.local_epsilon:g}"),
            ("claim", released.claim.sentence()),
        ]
    )


for _command in (terms, reports):
    collect.command(cls=Command, help=help_of(_command))(_command)
