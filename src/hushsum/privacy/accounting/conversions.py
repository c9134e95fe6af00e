"""From one relation or unit to another: groups of records, and replace from add/remove.

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
from fractions import Fraction

from hushsum.errors import ClaimError
from hushsum.privacy.accounting.parameters import (
    Real,
    at_least_one,
    float_above,
    positive_epsilon,
    positive_rho,
    proper_delta,
)
from hushsum.privacy.claim import Relation


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
    # (e^(mε) − 1)/(e^ε − 1) in logarithms, which do not overflow
    growth = (size - 1) * step + math.log(math.expm1(-size * step) / math.expm1(-step))
    exponent = math.log(start) + growth
    rounding = 16 * 2.0**-53 * (1 + abs(math.log(start)) + size * step + abs(growth))
    if exponent + rounding >= 0:
        raise ClaimError(
            parameter="delta",
            rule=f"must stay below 1 for a group of {size}",
            got="a bound of 1 or more",
            remedy="lower delta or epsilon",
        )
    return math.exp(exponent + rounding)


def convert_epsilon(epsilon: Real, *, have: str, want: str) -> Fraction:
    """Return the ε under the relation ``want`` of a mechanism that has ε under ``have``.

    Raises:
        ClaimError: ε is not finite and above 0, a relation is unknown, or add/remove is requested from
        replace.

    >>> convert_epsilon(Fraction(1, 2), have="add/remove", want="replace")
    Fraction(1, 1)
    >>> convert_epsilon(1, have="replace", want="add/remove")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    hushsum.errors.ClaimError: relation 'add/remove' cannot be had from 'replace', ...
    """
    return group_epsilon(epsilon, relation_steps(have, want))


def convert_rho(rho: Real, *, have: str, want: str) -> Fraction:
    """Return the ρ under the relation ``want`` of a mechanism that has ρ under ``have``.

    Raises:
        ClaimError: ρ is not finite and above 0, a relation is unknown, or add/remove is requested from
        replace.

    >>> convert_rho(Fraction(1, 50), have="add/remove", want="replace")
    Fraction(2, 25)
    """
    return group_rho(rho, relation_steps(have, want))


def convert_delta(epsilon: Real, delta: Real, *, have: str, want: str) -> float:
    """Return the δ that goes with ``convert_epsilon``; ``epsilon`` is the one under ``have``.

    Raises:
        ClaimError: a parameter is outside its range, a relation is unknown, add/remove is requested from
        replace, or the
            result is 1 or more.

    >>> f"{convert_delta(1.0, 1e-6, have='add/remove', want='replace'):.4e}"
    '3.7183e-06'
    """
    return group_delta(epsilon, delta, relation_steps(have, want))


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
    raise ClaimError(
        rule=(
            "relation 'add/remove' cannot be had from 'replace', which leaves the number "
            "of records unprotected"
        ),
        remedy="release under 'add/remove'",
    )


def _group(size: int) -> int:
    return at_least_one("group size", size, "it is the number of records one unit may have")
