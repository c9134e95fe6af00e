"""The rules every privacy parameter obeys, checked once, with the safe side of rounding."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

from hushsum._types import is_number
from hushsum.errors import Argument, ClaimError

Real = float | Fraction
"""A number given by the user: a float, an int or an exact fraction."""

SMALLEST_DELTA = 1e-200
"""No δ below it is accepted: the bounds are computed with floats, which end near 1e−308."""

DELTA_MARGIN = 10
"""δ·population stays below 1/10: a δ near 1/population allows publishing one whole record at random."""


def positive(name: str, value: Real, remedy: str) -> Real:
    """Return ``value`` if it is a finite number above zero, else raise ClaimError."""
    if not is_number(value):
        raise ClaimError(
            parameter=name, rule="must be a number above 0", got=type(value).__name__, remedy=remedy
        )
    if not math.isfinite(value) or value <= 0:
        raise ClaimError(parameter=name, rule="must be finite and above 0", got=f"{value}", remedy=remedy)
    return value


def positive_epsilon(epsilon: Real) -> Real:
    """Return ε if it is finite and above 0."""
    return positive("epsilon", epsilon, "typical values lie between 0.1 and 10")


def positive_rho(rho: Real) -> Real:
    """Return ρ if it is finite and above 0."""
    return positive("rho", rho, "typical values lie between 0.001 and 2")


def positive_variance(name: str, variance: Real) -> Real:
    """Return a noise variance if it is finite, above 0 and representable as a float."""
    value = positive(name, variance, "take it from gaussian_variances(...)")
    if not 1e-100 < float(value) < 1e100:
        raise ClaimError(
            parameter=name,
            rule="must lie between 1e-100 and 1e100",
            got=f"{float(value):.3g}",
            remedy="take it from gaussian_variances(...)",
        )
    return value


def proper_delta(delta: Real) -> Real:
    """Return δ if it lies strictly between 0 and 1, and not so near 0 that floats cannot tell."""
    if not is_number(delta):
        raise ClaimError(
            parameter="delta",
            rule="must be a number between 0 and 1",
            got=type(delta).__name__,
            remedy="take 1e-6 or less",
        )
    if not 0 < delta < 1:  # also refuses nan
        raise ClaimError(
            parameter="delta",
            rule="must lie strictly between 0 and 1",
            got=f"{delta}",
            remedy="take 1e-6 or less, or ask for a pure epsilon claim",
        )
    if delta < SMALLEST_DELTA:
        raise ClaimError(
            parameter="delta",
            rule=f"must be at least {SMALLEST_DELTA:g}",
            got=f"{float(delta):.3g}",
            remedy="ask for a pure epsilon claim instead",
        )
    return delta


def at_least_one(name: str, value: int, remedy: str) -> int:
    """Return ``value`` as an int if it is an integer, NumPy's included, of at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ClaimError(
            parameter=name, rule="must be an integer of at least 1", got=type(value).__name__, remedy=remedy
        ) from None
    if number < 1 or isinstance(value, bool):
        raise ClaimError(
            parameter=name, rule="must be an integer of at least 1", got=f"{value}", remedy=remedy
        )
    return number


def cell_count(cells: int) -> int:
    """Return how many cells one unit moves, if it is an integer from 1 to 2⁵⁰."""
    number = at_least_one("cells", cells, "it is the number of cells one unit moves by 1")
    if number > 2**50:
        raise ClaimError(
            parameter="cells",
            rule="must be at most 2**50",
            got="more",
            remedy="it is the number of cells one unit moves by 1",
        )
    return number


def declared_population(population: int) -> int:
    """Return a declared number of records or persons, if it is an integer of at least 1."""
    return at_least_one("population", population, "declare the number of records or persons, or leave it out")


def check_delta(delta: Real, population: int | None, *, allow_large_delta: bool = False) -> None:
    """Refuse a δ of 1/(10·population) or more: it would allow a release that shows some records as they are.

    Publishing one unit chosen at random is (0, 1/population)-private, so δ means something only well below
    1/population. It is a *public* number: a declared size, or a noisy count already paid for; None skips the
    comparison.

    Args:
        delta: the δ of a claim, strictly between 0 and 1.
        population: how many records or persons the release covers, if known.
        allow_large_delta: accept δ up to 1 all the same.

    Raises:
        ClaimError: δ is not in (0, 1), or is too large for ``population``.

    >>> check_delta(1e-6, 50_000)
    >>> check_delta(1e-6, 500_000)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    hushsum.errors.ClaimError: delta must be below 1/(10 × population) = 2e-07, got 1e-06; lower it, or ...
    """
    proper_delta(delta)
    if population is None or allow_large_delta:
        return
    if Fraction(delta) * DELTA_MARGIN * declared_population(population) >= 1:
        raise ClaimError(
            parameter="delta",
            rule=f"must be below 1/(10 × population) = {1 / (DELTA_MARGIN * population):.3g}",
            got=f"{float(delta):.3g}",
            remedy=("lower it, or give ", Argument("allow_large_delta", True)),
        )


def float_below(value: Real) -> float:
    """Return the largest float not above ``value``; a smaller ε or δ is the stricter claim.

    >>> float_below(Fraction(1, 10)) <= Fraction(1, 10) < 0.1
    True
    """
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > Fraction(value) else nearest


def float_above(value: Real) -> float:
    """Return the smallest float not below ``value``; a larger ρ or δ is the weaker claim."""
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < Fraction(value) else nearest
