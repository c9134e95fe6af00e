"""Audit all that is registered, or a released function or model in a file."""

from __future__ import annotations

from hushsum.auditing import AuditReport, audit_steps, mechanism_cases, run_steps
from hushsum.errors import UsageError
from hushsum.releases import Bundle, ReleasedFunction

from ._files import Progress, open_released


def audit_file(
    source: str | None, *, thorough: bool = False, progress: Progress | None = None
) -> AuditReport:
    """Audit the contents of a ``.hush`` file (``"-"``: standard input); without one, every mechanism. Of a
    model its released tables are audited.

    Neighbours and noise are new in every run.
    """
    if source is None:
        return run_steps(audit_steps(None, thorough=thorough), progress=progress)
    released = open_released(source)
    if isinstance(released, ReleasedFunction):
        return run_steps(audit_steps(released, thorough=thorough), progress=progress)
    assert isinstance(released, Bundle)
    # One of several alike tables stands for all, such as those of classes.
    parts = {(type(part).__name__, part.kernel): part for part in released.parts.values()}
    if not parts:
        model = str(released.about["model"])
        rule = "the audit of a file needs a released table"
        raise UsageError(rule, got=f"a {model} without one", remedy=_audit_of_mechanism(model))
    steps = [step for part in parts.values() for step in audit_steps(part, thorough=thorough)]
    return run_steps(steps, progress=progress)


def _audit_of_mechanism(model: str) -> str:
    """The remedy for a model whose file does not describe its noise: audit its mechanism on made-up records.

    >>> _audit_of_mechanism("PrivateKernelSVC")
    "audit its mechanism, on made-up records, with 'hushsum audit' without a file"
    """
    cases = [case for case in mechanism_cases() if model in case.name]
    if not cases:
        return "its mechanism is audited by benchmarks/outside_audits in the source"
    command = "hushsum audit --thorough" if all(case.thorough for case in cases) else "hushsum audit"
    return f"audit its mechanism, on made-up records, with '{command}' without a file"
