"""How far a model's predictions will be off, from declared quantities alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from hushsum.bases.base import Reading
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.methods.race import NAME as RACE
from hushsum.planning.plan import plan
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.privacy.claim import Promise

PLANNED: Final = "mean absolute error of the plan, noise and approximation together"
NOISE: Final = "standard deviation of the noise"
_ROWS: Final = (12, 25, 50, 100, 200, 400, 800, 1600)


class NoPlanWithinLimits(Exception):
    """A plan has no option within its limits of size and time."""


@dataclass(frozen=True, slots=True)
class PredictedError:
    """The error of ``of`` at one point, for so many records; ``note`` says which error, and from what."""

    of: str
    error: float
    records: int
    note: str


def planned_error(
    kernel: Kernel,
    records: int,
    method: str,
    *,
    bounds: Sequence[tuple[float, float]] | None,
    reading: Reading | None = None,
    **given: Any,
) -> float:
    """The error of the best option of :func:`hushsum.plan`; with ``reading`` of releasing what it reads.

    Raises
    ------
    NoPlanWithinLimits
        if there is none.
    """
    try:
        return plan(
            records=records,
            kernel=kernel,
            bounds=bounds,
            method=method,
            reading=reading,
            count_share=COUNT_SHARE,
            **given,
        ).best.error
    except UsageError:
        pass
    raise NoPlanWithinLimits


def error_of_hash_rows(
    kernel: Kernel,
    records: int,
    promise: Promise,
    *,
    bounds: Sequence[tuple[float, float]],
    rows: int,
    width: int,
) -> float:
    """Of hash rows, of which a release with pure ε publishes as many as suit it."""
    fewer = [each for each in _ROWS if promise.pure and each < rows]
    return planned_error(
        kernel, records, RACE, bounds=bounds, rows=[*fewer, rows], width=width, **share_of(promise, 1)
    )


def share_of(promise: Promise, tables: int) -> dict[str, Any]:
    """What each of so many tables of the same records may spend, as arguments of ``Tally.release``."""
    return part_of(promise, Fraction(1, tables))


def part_of(promise: Promise, part: Fraction) -> dict[str, Any]:
    """A part of a promise, as arguments of ``Tally.release``: parts that add up to 1 compose to the promise.

    Pure ε adds up. (ε, δ) is first turned into the ρ that gives it, and ρ adds up, also where later parts
    depend on what earlier ones released.
    """
    from hushsum.privacy.accounting.zcdp import zcdp_rho

    if part == 1:
        return {"epsilon": promise.epsilon, "delta": promise.delta or None, "rho": promise.rho}
    if promise.epsilon is None:
        assert promise.rho is not None
        return {"rho": promise.rho * part}
    if promise.pure:
        return {"epsilon": promise.epsilon * part}
    return {"rho": Fraction(zcdp_rho(promise.epsilon, promise.delta)) * part}
