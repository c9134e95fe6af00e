"""``hushsum report``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import write_result
from hushsum.declaration import common
from hushsum.errors import UsageError
from hushsum.parties import report_of


def report(
    terms: Annotated[str, typer.Argument(metavar="TERMS", help="The terms that the collector published.")],
    at: Annotated[
        str,
        common(
            "This person's values, or the members of a set; - reads them from standard input.",
            metavar="VALUES",
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
    made = report_of(terms, _record(at), insecure_noise_seed=insecure_noise_seed).decode("ascii")
    write_result({"report": made}, made, as_json=json)


def _record(at: str) -> tuple[float, ...]:
    """A person's values, which no error repeats."""
    try:
        return options.point(sys.stdin.readline() if at == "-" else at, "at")
    except UsageError:
        raise UsageError(
            "at",
            "must be the numbers of a record, or the members of a set, separated by commas",
            got="something else",
        ) from None
