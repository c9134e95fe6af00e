"""``hushsum collect`` and ``hushsum report``: terms, reports and collections of the local model."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hushsum.declaration import required, setting
from hushsum.errors import UsageError
from hushsum.parties import CollectionRequest, publish_terms, release_reports, report_of

from . import options
from .declared_options import Without, command_group
from .output import write_facts, write_json, write_result


def terms(
    request: Annotated[CollectionRequest, Without("smoothness", "radius")],
    output: str = required("The file of terms to write."),
    json: options.Json = False,
) -> None:
    """Write the terms under which everybody reports: kernel, bounds, rows and ε. Publish the file.

    hushsum collect terms --columns weight,height --bandwidth 10 --bounds 0:200 --epsilon 1 -o terms.json
    """
    made = publish_terms(request, output)
    shown = {"terms": output, "epsilon": request.epsilon, "digest": made.digest.hex()}
    write_json(shown) if json else write_facts([(name, f"{value}") for name, value in shown.items()])


def reports(
    *,
    terms: str = typer.Argument(metavar="TERMS", help="The terms that were published."),
    files: list[str] = typer.Argument(
        metavar="REPORTS...", help="Files with one report per line; - is standard input."
    ),
    output: options.ReleaseOutput,
    delta: float | None = setting(None, "Declare that the reports were shuffled: claim the smaller (ε, δ)."),
    honest: int | None = setting(None, "With --delta: how many reports follow the protocol; default: all."),
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


def report(
    terms: str = typer.Argument(metavar="TERMS", help="The terms that the collector published."),
    at: str = required(
        "This person's values, or the members of a set; - reads them from standard input.", metavar="VALUES"
    ),
    insecure_noise_seed: int | None = setting(None, "", group=None),
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
        rule = "must be the numbers of a record, or the members of a set, separated by commas"
        raise UsageError("at", rule, got="something else") from None
