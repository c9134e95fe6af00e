"""The results of an audit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from hushsum import _html
from hushsum.errors import UsageError

# The power that a test of noise must have before it reports anything.
STATED_POWER = 0.99


class Half(StrEnum):
    """Which question a row answers.

    *Sensitivity*: does any neighbour move the exact sums further than declared? *Noise*: does the sampler
    hide what it is claimed to hide? *Calibration*: do the stated parameters suffice for the claim? *Smoke*:
    do whole releases of two neighbours show a gross fault? Only that.
    """

    SENSITIVITY = "sensitivity"
    NOISE = "noise"
    CALIBRATION = "calibration"
    SMOKE = "smoke"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One claim that was put to the test.

    ``claim`` is the largest value of ``quantity`` that is allowed and ``lower_bound`` what was shown to be
    reached at least (for sensitivities the largest move found, for a calibration what the stated noise
    spends). ``power`` is the probability that the fault looked for, a fifth less noise or sensitivity unless
    the half states otherwise, would have been caught. ``draws`` counts simulated pairs.
    """

    what: str
    half: Half
    quantity: str
    claim: float
    lower_bound: float
    power: float
    draws: int

    @property
    def verdict(self) -> str:
        """``"holds"``; ``"BROKEN"``; or ``"untested"``, where draws could not have shown a fault.

        A declared sensitivity is a bound, and one that no pair reaches is safe: it holds whatever the power.
        """
        if self.lower_bound > self.claim:
            return "BROKEN"
        weak = self.half is Half.NOISE and self.power < STATED_POWER
        return "untested" if weak else "holds"

    @property
    def holds(self) -> bool:
        """Whether the claim was tested and survived."""
        return self.verdict == "holds"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All rows of an audit. Printing it gives a table.

    An audit can prove that a claim is broken, never that it is kept: it states which faults it would have
    found.

    >>> row = AuditRow("discrete laplace", Half.NOISE, "epsilon", 1.0, 0.9, 0.996, 3000)
    >>> print(AuditReport((row,)))
    what              half   claim        lower bound  power  draws  verdict
    discrete laplace  noise  epsilon = 1  0.9          0.996  3000   holds
    """

    rows: tuple[AuditRow, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim was tested and survived."""
        return all(row.holds for row in self.rows)

    @property
    def broken(self) -> tuple[AuditRow, ...]:
        """The rows whose claim was broken."""
        return tuple(row for row in self.rows if row.verdict == "BROKEN")

    @property
    def weakest_power(self) -> float:
        """The smallest power of any row; 1 for an empty report."""
        return min((row.power for row in self.rows), default=1.0)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The rows for a data frame or JSON; infinity becomes None."""
        return [
            {
                **asdict(row),
                "half": str(row.half),
                "lower_bound": row.lower_bound if math.isfinite(row.lower_bound) else None,
                "verdict": row.verdict,
            }
            for row in self.rows
        ]

    def sentence(self) -> str:
        """The result in one sentence."""
        number = len(self.rows)
        if self.broken:
            first = self.broken[0]
            more = "" if len(self.broken) == 1 else f" ({len(self.broken)} of {number} claims are broken)"
            return (
                f"{first.what} claims {first.quantity} = {short(first.claim)}, "
                f"but has at least {short(first.lower_bound)}{more}"
            )
        if not self.holds:
            first = next(row for row in self.rows if not row.holds)
            return f"no claim is broken, but {first.what} has too little noise to be tested by draws"
        return f"all {number} claims hold; the weakest test had a power of {short(self.weakest_power)}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows as text."""
        head = ["what", "half", "claim", "lower bound", "power", "draws", "verdict"]
        rows = [
            [
                row.what,
                str(row.half),
                f"{row.quantity} = {short(row.claim)}",
                short(row.lower_bound),
                short(row.power),
                str(row.draws),
                row.verdict,
            ]
            for row in self.rows
        ]
        return head, rows

    def __repr__(self) -> str:
        return f"AuditReport({len(self.rows)} rows: {self.sentence()})"

    def _repr_html_(self) -> str:
        """The result in a sentence and the rows as a table, for notebooks."""
        return _html.block("Audit", _html.paragraph(self.sentence()), _html.table(*self.table()))

    def __str__(self) -> str:
        head, rows = self.table()
        widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in (head, *rows)
        )


def report_of(rows: Iterable[AuditRow]) -> AuditReport:
    """A report of at least one row; nothing audited must not look like everything in order."""
    collected = tuple(rows)
    if not collected:
        raise UsageError(
            "target",
            "must have an audit",
            got="nothing to audit",
            remedy="give a basis, a kernel or a released function",
        )
    return AuditReport(collected)


def short(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"
