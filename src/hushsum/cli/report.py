"""``hushsum report``: one person's report in the local model."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.output import write, write_json
from hushsum.errors import UsageError


def report(
    terms: Annotated[str, typer.Argument(metavar="TERMS", help="The terms that the collector published.")],
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="VALUES",
            help="This person's values, or the members of a set; - reads them from standard input.",
        ),
    ],
    insecure_noise_seed: options.InsecureNoiseSeed = None,
    json: options.Json = False,
) -> None:
    """Make one person's report, which is private by itself: send it to the collector once.

    The report is one line of 24 characters. It is ε-differentially private, with the ε of the terms, whoever
    reads it. Making and sending a second report spends ε again. Other users of a computer can see the
    arguments of commands, and shells keep them: give --at - there.

    hushsum report terms.json --at 63.5,170
    """
    from hushsum.jobs.local_reports import report_of

    made = report_of(terms, _record(at), insecure_noise_seed=insecure_noise_seed).decode("ascii")
    write_json({"report": made}) if json else write(made)


def _record(at: str) -> tuple[float, ...]:
    """A person's values, which no error repeats."""
    try:
        return option_values.point(sys.stdin.readline() if at == "-" else at, "at")
    except UsageError:
        raise UsageError(
            parameter="at",
            rule="must be the numbers of a record, or the members of a set, separated by commas",
            got="something else",
            remedy="such as 120,80,60",
        ) from None
