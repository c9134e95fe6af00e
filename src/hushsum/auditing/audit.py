"""Audits of everything, or of one basis, kernel or released function."""

from __future__ import annotations

from collections.abc import Callable

from hushsum.auditing import cases  # noqa: F401  (registers them)
from hushsum.auditing.audit_tests import (
    Randomness,
    Step,
    mechanism_steps,
    noise_steps,
    sensitivity_steps,
    smoke_steps,
)
from hushsum.auditing.registry import audited_bases, basis_cases, kernel_cases
from hushsum.auditing.released_function import released_steps
from hushsum.auditing.report import AuditReport, report_of
from hushsum.bases.base import Basis
from hushsum.errors import SecretRefused, UsageError
from hushsum.kernels.base import Kernel
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tally.tally import Tally

Target = Basis | Kernel | ReleasedFunction | None


def audit(target: Target = None, *, thorough: bool = False, seed: int | None = None) -> AuditReport:
    """Try to break what is claimed, on made-up data, and say how likely a fault would have been found.

    Private data are never touched. An audit finds faults; that it finds none is not a proof, which is why
    every row states its power: the chance that a copy with a fifth less noise, or a fifth less declared
    sensitivity, would have been caught. A sound claim is called broken with probability 1e-8 at most per row.

    Parameters
    ----------
    target : Basis, Kernel, ReleasedFunction or None
        A tally's ``basis``; a kernel, in the bases that count it; a released function, whose stated noise is
        also held against its claim. None: every registered basis, kernel and sampler, whole releases
        and models.
    thorough : bool, default False
        More neighbours, more noise levels, more releases; minutes instead of seconds.
    seed : int, optional
        Repeats an audit exactly, for tests. By default neighbours and noise are new in every run.

    Returns
    -------
    AuditReport
        Print it for a table; ``report.holds`` and ``report.as_dicts()`` are for programs.

    Raises
    ------
    UsageError
        if no audit is registered for the target.
    SecretRefused
        for a tally: audit its ``basis``, which is public.

    Examples
    --------
    >>> import hushsum as hs
    >>> report = hs.audit(hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=70, width=53).basis)
    >>> report.holds, report.weakest_power
    (True, 1.0)
    """
    steps = audit_steps(target, thorough=thorough)
    return run_steps(steps, seed=seed)


def audit_steps(target: Target = None, *, thorough: bool = False) -> list[Step]:
    """The tests that ``audit`` runs for a target, in order."""
    if isinstance(target, Tally):
        raise SecretRefused(
            rule="an audit takes nothing secret",
            got="a tally",
            remedy="audit tally.basis, or the function it released",
        )
    if target is None:
        bases = [basis for name in audited_bases() for basis in basis_cases(name).examples]
        return [
            *(step for basis in bases for step in sensitivity_steps(basis, thorough=thorough)),
            *noise_steps(thorough=thorough),
            *smoke_steps(thorough=thorough),
            *mechanism_steps(thorough=thorough),
        ]
    if isinstance(target, NoisyTable):
        return list(released_steps(target, thorough=thorough))
    if isinstance(target, Kernel):
        kernel_cases(target.name)
        makers = [basis_cases(name).of_kernel for name in audited_bases()]
        made = [make(target) for make in makers if make is not None]
        bases = [basis for basis in made if basis is not None]
    elif isinstance(target, Basis):
        basis_cases(target.name)
        bases = [target]
    else:
        raise UsageError(
            parameter="target",
            rule="must be a basis, a kernel or a released table",
            got=type(target).__name__,
            remedy="give one of them, or nothing to audit all that is registered",
        )
    return [step for basis in bases for step in sensitivity_steps(basis, thorough=thorough)]


def run_steps(
    steps: list[Step], *, seed: int | None = None, progress: Callable[[float], None] | None = None
) -> AuditReport:
    """Run tests one after the other; ``progress`` is called with the fraction done."""
    randomness = Randomness(seed)
    rows = []
    for number, step in enumerate(steps):
        rows += step.run(randomness, number)
        if progress is not None:
            progress((number + 1) / len(steps))
    return report_of(rows)
