"""How far a model's predictions will be off, from declared quantities alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hushsum.bases.base import Reading
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
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
        kernel, records, "race", bounds=bounds, rows=[*fewer, rows], width=width, **share_of(promise, 1)
    )


def share_of(promise: Promise, tables: int) -> dict[str, Any]:
    """What each of so many tables of the same records may spend, as arguments of ``Tally.release``."""
    from fractions import Fraction

    from hushsum.privacy.accounting.zcdp import zcdp_rho

    if tables == 1 or promise.epsilon is None:
        return {"epsilon": promise.epsilon, "delta": promise.delta or None, "rho": promise.rho}
    if promise.pure:
        return {"epsilon": promise.epsilon / tables}
    return {"rho": Fraction(zcdp_rho(promise.epsilon, promise.delta)) / tables}
