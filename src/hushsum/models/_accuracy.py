"""Predicted errors before a release, and whether a release has enough records for predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.planning import plan
from hushsum.privacy import COUNT_SHARE, Promise, stated_mechanism
from hushsum.releases import ReleasedFunction
from hushsum.tables import Reading

PLANNED: Final = "mean absolute error of the plan, noise and approximation together"
NOISE: Final = "standard deviation of the noise"


class NoPlanWithinLimits(Exception):
    """A plan has no option within its limits of size and time."""


@dataclass(frozen=True, slots=True)
class PredictedError:
    """The error of ``of`` at one point, for ``records``; ``note`` says which error, and from what."""

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


def part_of(promise: Promise, part: Fraction) -> Promise:
    """A part of a promise: parts that add up to 1 compose to the promise.

    Pure ε adds up. (ε, δ) is first turned into the ρ that gives it, and ρ adds up, also where later parts
    depend on what earlier ones released.
    """
    if part == 1:
        return promise
    if promise.pure:
        assert promise.epsilon is not None
        return Promise.of(epsilon=promise.epsilon * part)
    return Promise.of(rho=rho_of(promise) * part)


def rho_of(promise: Promise) -> Fraction:
    """The ρ that gives a promise with δ."""
    from hushsum.privacy.accounting import zcdp_rho

    if promise.epsilon is None:
        assert promise.rho is not None
        return promise.rho
    return Fraction(zcdp_rho(promise.epsilon, promise.delta))


def terms_of(promise: Promise) -> dict[str, Any]:
    """A promise as the arguments of ``Tally.release``, with the noise that a model states beforehand."""
    numbers = {"epsilon": promise.epsilon, "delta": promise.delta or None, "rho": promise.rho}
    return {**numbers, "mechanism": stated_mechanism(promise)}


MODEL_COUNT_SHARE = 0.1
"""The part of a model's budget that pays for counting its records: priors and silence depend on it."""

_STANDARD_ERRORS = 5.0
_CAUTIOUS = 3.0


def enough_records(functions: Iterable[ReleasedFunction]) -> bool:
    """Whether the records are many beside the noise of their count; public, as it is read off the release.

    Below five standard errors of the count (at the usual share of a pure ε about ``70/ε`` records for one
    function, ``100/ε`` for two) noise alone may look like records. Models then fall back: they answer
    what they would without any records. Without records one release in 2000 passes, with Gaussian noise one
    in a million.
    """
    count, variance = 0.0, 0.0
    for function in functions:
        count += function.count
        variance += float(getattr(function, "count_stderr", 0.0)) ** 2
    return is_enough(count, math.sqrt(variance))


def is_enough(count: float, error: float) -> bool:
    """Whether a noisy number of records is five of its standard errors or more."""
    return count >= _STANDARD_ERRORS * error


def shares_within_noise(counts: Floats, errors: Floats) -> Floats:
    """The estimated fraction of each class, from noisy counts that are too small for better estimates;
    post-processing.

    Every class alike, unless one has so many more records than any other that noise cannot be the reason:
    five standard errors of the difference. A prediction then does not depend on noise alone.

    >>> shares_within_noise(np.array([10.0, 40.0]), np.array([10.0, 10.0])).tolist()
    [0.5, 0.5]
    >>> shares_within_noise(np.array([10.0, 90.0]), np.array([10.0, 10.0])).round(2).tolist()
    [0.25, 0.75]
    """
    alike = np.full(len(counts), 1.0 / len(counts))
    first = int(np.argmax(counts))
    others = np.arange(len(counts)) != first
    apart = _STANDARD_ERRORS * np.hypot(errors[others], errors[first])
    if not np.all(counts[first] - counts[others] > apart):
        return alike
    raised = counts - min(0.0, float(counts.min())) + _CAUTIOUS * errors
    return np.asarray(raised / raised.sum())
