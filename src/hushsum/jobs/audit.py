"""Audit all that is registered, or a released function in a file."""

from __future__ import annotations

from hushsum.auditing.audit import audit_steps, run_steps
from hushsum.auditing.report import AuditReport
from hushsum.jobs.output_files import open_function
from hushsum.jobs.progress import Progress


def audit_file(
    source: str | None, *, thorough: bool = False, progress: Progress | None = None
) -> AuditReport:
    """The audit of the function in a ``.hush`` file (``"-"``: standard input); without one, of everything.

    Neighbours and noise are new in every run.
    """
    function = None if source is None else open_function(source)
    return run_steps(audit_steps(function, thorough=thorough), progress=progress)
