"""The rules that every privacy parameter obeys; zero-concentrated privacy; conversions between claims.

From one relation or unit to another: groups of records, and replace from add/remove.

=================  ======  =====  ==========================
from               ε       ρ      δ
=================  ======  =====  ==========================
one unit           ε       ρ      δ
m units            m·ε     m²·ρ   δ·(e^(mε) − 1)/(e^ε − 1)
replace one unit   2·ε     4·ρ    δ·(1 + e^ε)
=================  ======  =====  ==========================

Replacing a unit is removing one and adding one, so the last row is m = 2. The way back does not exist: a
mechanism that publishes the exact number of records is perfectly private under replace and not private at all
under add/remove.

ε and ρ are exact: a float is the rational number it stands for. δ is rounded up.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from hushsum._types import is_number
from hushsum.errors import Argument, ClaimError
from hushsum.privacy._claim import Promise, Relation

Real = float | Fraction
"""A number given by the user: a float, an int or an exact fraction."""

SMALLEST_DELTA = 1e-200
"""No δ below it is accepted: the bounds are computed with floats, which end near 1e−308."""

DELTA_MARGIN = 10
"""δ·population stays below 1/10: a δ near 1/population allows publishing one whole record at random."""


def _refusal(name: str, rule: str, value: object, remedy: str) -> ClaimError:
    """The refusal of a parameter, which shows numbers alone: any other object may be one of the records."""
    plain = is_number(value) or isinstance(value, bool)
    return ClaimError(name, rule, got=f"{value}" if plain else type(value).__name__, remedy=remedy)


def positive(name: str, value: Real, remedy: str) -> Real:
    """Return ``value`` if it is a finite number above zero, else raise ClaimError."""
    if not is_number(value) or not math.isfinite(value) or value <= 0:
        raise _refusal(name, "must be a finite number above 0", value, remedy)
    return value


def positive_epsilon(epsilon: Real) -> Real:
    """Return ε if it is finite and above 0."""
    return positive("epsilon", epsilon, "typical values lie between 0.1 and 10")


def positive_rho(rho: Real) -> Real:
    """Return ρ if it is finite and above 0."""
    return positive("rho", rho, "typical values lie between 0.001 and 2")


def positive_variance(name: str, variance: Real) -> Real:
    """Return a noise variance if it is finite, above 0 and representable as a float."""
    remedy = "take it from gaussian_variances(...)"
    if not 1e-100 < float(positive(name, variance, remedy)) < 1e100:
        raise _refusal(name, "must lie between 1e-100 and 1e100", float(variance), remedy)
    return variance


def proper_delta(delta: Real) -> Real:
    """Return δ if it lies strictly between 0 and 1, and not so near 0 that floats cannot tell."""
    if not is_number(delta) or not SMALLEST_DELTA <= delta < 1:  # also refuses nan
        rule = f"must be a number from {SMALLEST_DELTA:g} to below 1"
        raise _refusal("delta", rule, delta, "take 1e-6 or less, or request a pure epsilon claim")
    return delta


def at_least_one(name: str, value: int, remedy: str, *, at_most: float = math.inf) -> int:
    """Return ``value`` as an int if it is an integer, NumPy's included, of at least 1."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= at_most:
        reach = "of at least 1" if at_most == math.inf else f"from 1 to {at_most}"
        raise _refusal(name, f"must be an integer {reach}", value, remedy)
    return number


def cell_count(cells: int) -> int:
    """Return how many cells one unit moves, if it is an integer from 1 to 2⁵⁰."""
    return at_least_one("cells", cells, "it is the number of cells one unit moves by 1", at_most=2**50)


def proper_share(share: Real) -> Fraction:
    """Return the fraction of the budget that pays for the noisy count, if it lies between 0 and 1."""
    if not is_number(share) or not 0 < share < 1:
        raise _refusal("count_share", "must be above 0 and below 1", share, "try 0.02")
    return Fraction(share)


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
            "delta",
            f"must be below 1/(10 × population) = {1 / (DELTA_MARGIN * population):.3g}",
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


SMALLEST = math.nextafter(0.0, 1.0)


def zcdp_delta(rho: Real, epsilon: Real) -> float:
    """Return a δ for which every ρ-zCDP mechanism is (ε, δ)-private.

    ``δ = min over α > 1 of exp((α−1)(αρ−ε)) / (α−1) · (1 − 1/α)^α``. Its logarithm is convex in α, with the
    derivative ``(2α−1)ρ − ε + log(1 − 1/α)``, whose root is bracketed and bisected. Every α > 1 gives a valid
    δ, so an inaccurate root costs tightness, never truth; the rounding of the exponent is added to it.

    Raises:
        ClaimError: ρ or ε is not finite and above 0.

    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy", Proposition 12.

    >>> f"{zcdp_delta(0.02, 1.0):.2e}"
    '8.83e-08'
    """
    return _delta(float_above(positive_rho(rho)), float_below(positive_epsilon(epsilon)))


def zcdp_epsilon(rho: Real, delta: Real) -> float:
    """Return the least ε for which ``zcdp_delta(rho, ε) ≤ delta``, rounded up.

    Raises:
        ClaimError: ρ is not finite and above 0, or δ not in (0, 1).

    >>> round(zcdp_epsilon(0.02, 1e-6), 4)
    0.8999
    """
    spent, bound = float_above(positive_rho(rho)), float_below(proper_delta(delta))
    # Bun & Steinke's simpler conversion, from which the optimal one can only descend.
    meets = (spent + 2 * math.sqrt(-spent * math.log(bound))) * (1 + 1e-9)
    return narrowed(0.0, meets, lambda epsilon: _delta(spent, epsilon) <= bound, relative=1e-12)


def zcdp_rho(epsilon: Real, delta: Real) -> float:
    """Return the largest ρ for which ``zcdp_delta(ρ, epsilon) ≤ delta``, rounded down.

    A table whose one unit moves it by Δ₂ then takes discrete Gaussian noise of variance ``Δ₂²/(2ρ)``.

    Raises:
        ClaimError: ε is not finite and above 0, or δ not in (0, 1).

    >>> round(zcdp_rho(1.0, 1e-6), 5)
    0.02436
    """
    return _rho(float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta)))


@lru_cache(maxsize=512)
def _rho(target: float, bound: float) -> float:
    """Cached, because a plan needs it for the tables of many options at the same ε and δ."""
    logarithm = -math.log(bound)
    meets = (target / (math.sqrt(logarithm + target) + math.sqrt(logarithm))) ** 2 * (1 - 1e-9)
    fails = 2 * meets
    while _delta(fails, target) <= bound:
        meets, fails = fails, 2 * fails
    return narrowed(fails, meets, lambda rho: _delta(rho, target) <= bound, relative=1e-12)


def _delta(rho: float, epsilon: float) -> float:
    """The optimised bound for floats, by bisection over the logarithm of x = α − 1."""

    def rises(logarithm: float) -> bool:
        x = math.exp(logarithm)
        return (1 + 2 * x) * rho - epsilon > math.log1p(1 / x)

    highest = math.log(epsilon / (2 * rho) + 1 / math.sqrt(2 * rho))
    x = math.exp(narrowed(math.log(1e-12), highest, rises, width=1e-9))
    terms = (x * (1 + x) * rho, -x * epsilon, -x * math.log1p(1 / x), -math.log1p(x))
    rounding = 8 * 2.0**-52 * (1 + sum(map(abs, terms)))
    exponent = math.fsum(terms) + rounding
    return 1.0 if exponent >= 0 else max(math.exp(exponent), SMALLEST)


def narrowed(
    fails: float, meets: float, holds: Callable[[float], bool], *, width: float = 0.0, relative: float = 0.0
) -> float:
    """Bisect [fails, meets] to a width, or to one relative to the larger end, and return the end at which
    ``holds`` is true.
    """
    for _ in range(200):
        if abs(meets - fails) <= max(width, relative * max(abs(meets), abs(fails))):
            break
        middle = (fails + meets) / 2
        fails, meets = (fails, middle) if holds(middle) else (middle, meets)
    return meets


def group_epsilon(epsilon: Real, size: int) -> Fraction:
    """Return the ε for groups of ``size`` units, exactly: size·ε.

    Raises:
        ClaimError: ε is not finite and above 0, or ``size`` is below 1.

    >>> group_epsilon(Fraction(1, 10), 3)
    Fraction(3, 10)
    """
    return Fraction(positive_epsilon(epsilon)) * _group(size)


def group_rho(rho: Real, size: int) -> Fraction:
    """Return the ρ for groups of ``size`` units, exactly: size²·ρ.

    Raises:
        ClaimError: ρ is not finite and above 0, or ``size`` is below 1.

    Bun & Steinke (2016), "Concentrated differential privacy", Proposition 1.9.

    >>> group_rho(Fraction(1, 50), 3)
    Fraction(9, 50)
    """
    return Fraction(positive_rho(rho)) * _group(size) ** 2


def group_delta(epsilon: Real, delta: Real, size: int) -> float:
    """Return the δ that goes with ``group_epsilon``: δ·(1 + e^ε + … + e^((size−1)ε)), rounded up.

    Raises:
        ClaimError: a parameter is outside its range, or the result is 1 or more and promises nothing.

    Vadhan (2017), "The complexity of differential privacy", Lemma 2.2.

    >>> f"{group_delta(1.0, 1e-6, 3):.3e}"
    '1.111e-05'
    """
    step, size = float_above(positive_epsilon(epsilon)), _group(size)
    start = float_above(proper_delta(delta))
    if size == 1:
        return start
    growth = _log_growth(step, size)
    exponent = math.log(start) + growth
    rounding = 16 * 2.0**-53 * (1 + abs(math.log(start)) + size * step + abs(growth))
    if exponent + rounding >= 0:
        rule = f"must stay below 1 for a group of {size}"
        raise ClaimError("delta", rule, got="a bound of 1 or more", remedy="lower delta or epsilon")
    return math.exp(exponent + rounding)


def _log_growth(step: float, size: int) -> float:
    """ln (e^(mε) − 1)/(e^ε − 1), by terms that do not overflow."""
    return (size - 1) * step + math.log(math.expm1(-size * step) / math.expm1(-step))


def promise_of_one(promise: Promise, size: int) -> Promise:
    """The promise for one unit that gives ``promise`` for groups of ``size`` units: the way back of
    ``group_epsilon``, ``group_rho`` and ``group_delta``, with δ rounded down.

    >>> promise_of_one(Promise.of(epsilon=1.0), 4)
    Promise(epsilon=Fraction(1, 4), delta=Fraction(0, 1), rho=None)
    >>> one = promise_of_one(Promise.of(epsilon=1.0, delta=1e-6), 4)
    >>> assert one.epsilon is not None
    >>> group_epsilon(one.epsilon, 4) == 1, 0.999999e-6 < group_delta(one.epsilon, one.delta, 4) <= 1e-6
    (True, True)
    """
    size = _group(size)
    if promise.epsilon is None:
        assert promise.rho is not None
        return Promise.of(rho=promise.rho / size**2)
    epsilon = promise.epsilon / size
    if promise.pure or size == 1:
        return Promise.of(epsilon=epsilon, delta=promise.delta or None)
    step = float_above(epsilon)
    growth = _log_growth(step, size)
    # group_delta rounds up, twice at most: once here, and once where it is computed.
    rounding = 64 * 2.0**-53 * (1 + abs(math.log(float(promise.delta))) + size * step + abs(growth))
    return Promise.of(epsilon=epsilon, delta=promise.delta * Fraction(math.exp(-growth - rounding)))


def relation_steps(have: str, want: str) -> int:
    """Return how many steps of the relation ``have`` lead to any neighbour under ``want``: 1 or 2.

    Raises:
        ClaimError: a relation is unknown, or add/remove is requested from replace, whose steps never change
        the size.
    """
    known, requested = Relation.of(have), Relation.of(want)
    if known is requested:
        return 1
    if requested is Relation.REPLACE:
        return 2
    rule = (
        "relation 'add/remove' cannot be had from 'replace', which leaves the number of records unprotected"
    )
    raise ClaimError(rule, remedy="release under 'add/remove'")


def _group(size: int) -> int:
    return at_least_one("group size", size, "it is the number of records one unit may have")
