"""The smallest ε whose predicted error is small enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hushsum.errors import Parameter, UsageError
from hushsum.kernels.parameters import positive_number
from hushsum.methods.prediction_request import Option

_MOST_EPSILON = 100.0

Best = Callable[[float, float | None], Sequence[Option]]
"""The best option for ε and δ; none where no method can make that promise."""


def promise_for_error(
    error: float, best: Best, deltas: Sequence[float | None], *, alone: bool
) -> tuple[float, float | None]:
    """The smallest ε of two digits at which the best option has at most this error, and its δ.

    The first of ``deltas`` with which some ε reaches the error is taken. Errors fall with ε, so the
    candidates are halved. ``alone`` is whether neither ε nor ρ was given.

    Raises
    ------
    UsageError
        if no ε up to 100 reaches the error, or ε or ρ was given too.
    """
    target = positive_number("error", error, remedy="give a mean absolute error such as 0.001")
    if not alone:
        raise UsageError(
            parameter="error",
            rule=("must be given without ", Parameter("epsilon"), " and ", Parameter("rho")),
            got="both",
            remedy="give one of them",
        )
    reachable = {delta: [option.error for option in best(_MOST_EPSILON, delta)] for delta in deltas}
    for delta, errors in reachable.items():
        if errors and errors[0] <= target:
            return _smallest(partial(_reached, best, delta, target)), delta
    least = [each for errors in reachable.values() for each in errors]
    raise UsageError(
        parameter="error",
        rule="must be one that some option reaches" + (f", at least {min(least):.2g}" if least else ""),
        got=f"{error:g}",
        remedy="declare bounds, plan for more records or a larger bandwidth, or accept a larger error",
    )


def _reached(best: Best, delta: float | None, target: float, epsilon: float) -> bool:
    return best(epsilon, delta)[0].error <= target


def _smallest(reached: Callable[[float], bool]) -> float:
    candidates = [float(f"{digits}e{power}") for power in range(-5, 1) for digits in range(10, 100)]
    candidates.append(_MOST_EPSILON)
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(candidates[middle]) else (middle + 1, high)
    return candidates[low]
