"""Declared steps: columns whose values are multiples of a step, such as ages, counts and prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hushsum._types import is_number
from hushsum.errors import UsageError, shown
from hushsum.records.bounds import Bounds

DeclaredSteps = float | Sequence[float | None] | Mapping[str, float | None]
"""One step for all columns, one for each, None for a column without, or a dictionary by column name."""

Steps = tuple[float | None, ...]

_TOLERANCE = 1e-6


def declared_steps(
    value: DeclaredSteps | None, bounds: Bounds, columns: Sequence[str] | None = None
) -> Steps | None:
    """A ``steps=`` argument as one step, or None, for each column; None if no column has one.

    >>> declared_steps({"age": 1.0}, Bounds.of([(0, 120), (0, 9)], 2), ["age", "weight"])
    (1.0, None)

    Raises
    ------
    UsageError
        The value has another shape, a step is not above 0, or a column is not a whole number of steps wide.
    """
    if value is None:
        return None
    steps = _in_order(value, bounds.dim, columns)
    for step, low, high in zip(steps, bounds.low, bounds.high, strict=True):
        if step is not None:
            steps_between(low, high, step)
    return None if all(step is None for step in steps) else steps


def steps_between(low: float, high: float, step: float) -> int:
    """How many steps a column is wide."""
    number = round((high - low) / step)
    if number < 1 or abs(number * step - (high - low)) > _TOLERANCE * (high - low):
        raise UsageError(
            parameter="steps",
            rule="must divide the distance of the bounds of a column",
            got=f"{step:g} from {low:g} to {high:g}",
            remedy="declare bounds that are values, and the distance of neighbouring values",
        )
    return number


def _in_order(value: DeclaredSteps, dim: int, columns: Sequence[str] | None) -> Steps:
    if isinstance(value, Mapping):
        names = list(columns or ())
        if not set(value) <= set(names):
            raise UsageError(
                parameter="steps",
                rule="by name must name columns, whose names are declared",
                got="other names",
                remedy="give columns=, or a list with one step or None for each column",
            )
        return tuple(_step(value.get(name)) for name in names)
    if isinstance(value, Sequence):
        if len(value) != dim:
            raise UsageError(
                parameter="steps",
                rule=f"must be {dim} numbers or None, one for each column",
                got=f"{len(value)}",
                remedy="give one each",
            )
        return tuple(_step(each) for each in value)
    return (_step(value),) * dim


_LARGEST = 1e300


def _step(value: object) -> float | None:
    if value is None:
        return None
    if not is_number(value) or not 0.0 < value < _LARGEST:
        raise UsageError(
            parameter="steps",
            rule="must be numbers above 0",
            got=shown(value),
            remedy="give the distance of neighbouring values",
        )
    return float(value)
