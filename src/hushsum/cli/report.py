"""``hushsum report``: one person's report in the local model."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options, values
from hushsum.cli.output import write, write_json


def report(
    terms: Annotated[str, typer.Argument(metavar="TERMS", help="The terms that the collector published.")],
    at: Annotated[
        str, typer.Option("--at", metavar="VALUES", help="This person's values, or the members of a set.")
    ],
    insecure_noise_seed: options.InsecureNoiseSeed = None,
    json: options.Json = False,
) -> None:
    """Make one person's report, which is private by itself: send it to the collector once.

    The report is one line of 24 characters. It is ε-differentially private, with the ε of the terms, whoever
    reads it. Making and sending a second report spends ε again.

    hushsum report terms.json --at 63.5,170
    """
    from hushsum.jobs.local_reports import report_of

    made = report_of(terms, values.point(at, "at"), insecure_noise_seed=insecure_noise_seed).decode("ascii")
    write_json({"report": made}) if json else write(made)
