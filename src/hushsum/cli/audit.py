"""``hushsum audit``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.auditing import AuditReport
from hushsum.cli import options
from hushsum.cli.output import progress_bar, tell, write, write_json, write_table
from hushsum.declaration import common
from hushsum.operations import audit_file

BROKEN = 1


def audit(
    file: Annotated[
        str | None,
        typer.Argument(help="A .hush file; - is standard input. Without one, all mechanisms are audited."),
    ] = None,
    thorough: Annotated[
        bool, common("More neighbours, noise levels and releases: minutes, not seconds.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Test claims statistically, and report the power of each test.

    Uses synthetic data and the public header of a file; it reads no private data and spends nothing. The exit
    code is 1 if a claim is broken or could not be tested.

    hushsum audit skin.hush
    """
    with progress_bar("auditing") as progress:
        report = audit_file(file, thorough=thorough, progress=progress)
    if json:
        write_json({"holds": report.holds, "sentence": report.sentence(), "rows": report.as_dicts()})
    else:
        _write(report)
    if not report.holds:
        tell(f"hushsum: {report.sentence()}")
        raise typer.Exit(BROKEN)


def _write(report: AuditReport) -> None:
    head, rows = report.table()
    write_table(head, rows, left=3)
    if report.holds:
        write(report.sentence().capitalize() + ".")
