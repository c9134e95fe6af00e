"""The smallest ε whose predicted error is small enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, floor, log10

from hushsum.errors import Parameter, UsageError
from hushsum.kernels.parameters import positive_number
from hushsum.methods.prediction_request import Option
from hushsum.privacy.claim import LARGE_EPSILON

Best = Callable[[float, float | None], Sequence[Option]]
"""The best option for ε and δ; none where no method can make that promise."""


def promise_for_error(
    error: float,
    best: Best,
    deltas: Sequence[float | None],
    *,
    alone: bool,
    declare_bounds: bool,
) -> tuple[float, float | None]:
    """The smallest ε of two digits at which the best option has at most this error, and its δ.

    The first of ``deltas`` with which some ε reaches the error is taken. Errors fall with ε, so the
    candidates are halved. ``alone`` is whether neither ε nor ρ was given, and ``declare_bounds`` whether
    declared bounds would allow further methods.

    Raises
    ------
    UsageError
        if no ε up to `LARGE_EPSILON` reaches the error, or ε or ρ was given too. A larger ε would be a number
        in place of a promise, and nobody who asks for an error looks at it first.
    """
    target = positive_number("error", error, remedy="give a mean absolute error such as 0.001")
    if not alone:
        raise UsageError(
            parameter="error",
            rule=("must be given without ", Parameter("epsilon"), " and ", Parameter("rho")),
            got="both",
            remedy="give one of them",
        )
    reachable = {delta: [option.error for option in best(LARGE_EPSILON, delta)] for delta in deltas}
    for delta, errors in reachable.items():
        if errors and errors[0] <= target:
            return _smallest(partial(_reached, best, delta, target)), delta
    least = [each for errors in reachable.values() for each in errors]
    further = ("declare ", Parameter("bounds"), ", which allows better methods, ") if declare_bounds else ()
    raise UsageError(
        parameter="error",
        rule=(
            "must be one that some option reaches with ",
            Parameter("epsilon"),
            f" of at most {LARGE_EPSILON:g}" + (f", at least {_above(min(least))}" if least else ""),
        ),
        got=f"{error:g}",
        remedy=(*further, "plan for more records or a larger bandwidth, or accept a larger error"),
    )


def _above(error: float) -> str:
    """A number of two digits that is not below an error.

    >>> _above(0.00321), _above(0.25)
    ('0.0033', '0.25')
    """
    step = 10.0 ** (floor(log10(error)) - 1)
    return f"{ceil(error / step - 1e-9) * step:.2g}"


def _reached(best: Best, delta: float | None, target: float, epsilon: float) -> bool:
    return best(epsilon, delta)[0].error <= target


def _smallest(reached: Callable[[float], bool]) -> float:
    candidates = [float(f"{digits}e{power}") for power in range(-5, 0) for digits in range(10, 100)]
    candidates.append(LARGE_EPSILON)
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(candidates[middle]) else (middle + 1, high)
    return candidates[low]
