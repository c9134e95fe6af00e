"""The smallest ε whose predicted error is small enough."""

from __future__ import annotations

from collections.abc import Callable

from hushsum.errors import Parameter, UsageError
from hushsum.kernels.parameters import positive_number
from hushsum.methods.error_prediction import Option

_MOST_EPSILON = 100.0


def epsilon_for_error(error: float, best: Callable[[float], list[Option]], *, alone: bool) -> float:
    """The smallest ε of two digits at which ``best`` returns an option with at most this error.

    ``alone`` is whether neither ε nor ρ was given. Errors fall with ε, so the candidates are halved.

    Raises
    ------
    UsageError
        if no ε up to 100 reaches the error, or ε was given too.
    """
    target = positive_number("error", error, remedy="give a mean absolute error such as 0.001")
    if not alone:
        raise UsageError(
            parameter="error",
            rule=("must be given without ", Parameter("epsilon"), " and ", Parameter("rho")),
            got="both",
            remedy="give one of them",
        )

    def reached(epsilon: float) -> bool:
        return any(option.error <= target for option in best(epsilon))

    if not reached(_MOST_EPSILON):
        least = [option.error for option in best(_MOST_EPSILON)]
        raise UsageError(
            parameter="error",
            rule="must be one that some option reaches" + (f", at least {least[0]:.2g}" if least else ""),
            got=f"{error:g}",
            remedy="declare bounds, plan for more records or a larger bandwidth, or accept a larger error",
        )
    candidates = [float(f"{digits}e{power}") for power in range(-5, 1) for digits in range(10, 100)]
    candidates.append(_MOST_EPSILON)
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(candidates[middle]) else (middle + 1, high)
    return candidates[low]
