"""``hushsum collect``: terms, and releases of the reports that persons have sent."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Without, command_group
from hushsum.cli.output import write_facts, write_json, write_result
from hushsum.declaration import common
from hushsum.parties import CollectionRequest, publish_terms, release_reports


def terms(
    request: Annotated[CollectionRequest, Without("smoothness", "radius")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file of terms to write.")],
    json: options.Json = False,
) -> None:
    """Write the terms under which everybody reports: kernel, bounds, rows and ε. Publish the file.

    hushsum collect terms --columns weight,height --bandwidth 10 --bounds 0:200 --epsilon 1 -o terms.json
    """
    made = publish_terms(request, output)
    shown = {"terms": output, "epsilon": request.epsilon, "digest": made.digest.hex()}
    write_json(shown) if json else write_facts([(name, f"{value}") for name, value in shown.items()])


def reports(
    terms: Annotated[str, typer.Argument(metavar="TERMS", help="The terms that were published.")],
    files: Annotated[
        list[str],
        typer.Argument(metavar="REPORTS...", help="Files with one report per line; - is standard input."),
    ],
    output: options.ReleaseOutput,
    delta: Annotated[
        float | None, common("Declare that the reports were shuffled: claim the smaller (ε, δ).")
    ] = None,
    honest: Annotated[
        int | None, common("With --delta: how many reports follow the protocol; default: all.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Release a function of all reports. Nothing further is spent: every report is private already.

    hushsum collect reports terms.json reports.txt -o town.hush
    """
    released = release_reports(terms, files, output, delta=delta, honest=honest)
    write_result(
        released,
        [
            ("function", released.output),
            ("reports", f"{released.reports:,}, each with ε = {released.local_epsilon:g}"),
            ("claim", released.claim.sentence()),
        ],
        as_json=json,
    )


collect = command_group(
    "collect", "Collect one private report from each person, without a trusted party.", terms, reports
)
