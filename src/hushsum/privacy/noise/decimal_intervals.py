"""Real numbers between two decimals, for draws that the first random bits leave undecided."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Interval:
    """A real number between two decimals."""

    low: Decimal
    high: Decimal


def decimals(digits: int) -> Context:
    """Decimal arithmetic of so many digits that never overflows."""
    return Context(prec=digits, Emin=-(10**17), Emax=10**17, traps=[])


def exp(value: Interval, context: Context) -> Interval:
    """The decimal module rounds exp and ln correctly, so the neighbours enclose them."""
    return Interval(context.next_minus(context.exp(value.low)), context.next_plus(context.exp(value.high)))


def ln(value: Interval, context: Context) -> Interval:
    """The natural logarithm."""
    return Interval(context.next_minus(context.ln(value.low)), context.next_plus(context.ln(value.high)))


def fraction(value: Fraction, context: Context) -> Interval:
    """A rational number."""
    middle = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Interval(context.next_minus(middle), context.next_plus(middle))


def times(left: Interval, right: Interval, context: Context) -> Interval:
    """The product of two positive intervals."""
    return Interval(
        context.next_minus(context.multiply(left.low, right.low)),
        context.next_plus(context.multiply(left.high, right.high)),
    )


def rest(value: Interval, context: Context) -> Interval:
    """One minus a number."""
    return Interval(
        context.next_minus(context.subtract(Decimal(1), value.high)),
        context.next_plus(context.subtract(Decimal(1), value.low)),
    )


def negative(value: Interval) -> Interval:
    """The number with the other sign."""
    return Interval(value.high.copy_negate(), value.low.copy_negate())


def plus(left: Interval, right: Interval, context: Context) -> Interval:
    """The sum."""
    return Interval(
        context.next_minus(context.add(left.low, right.low)),
        context.next_plus(context.add(left.high, right.high)),
    )


def over(left: Interval, right: Interval, context: Context) -> Interval:
    """The quotient of two positive intervals."""
    return Interval(
        context.next_minus(context.divide(left.low, right.high)),
        context.next_plus(context.divide(left.high, right.low)),
    )


def root(value: Interval, context: Context) -> Interval:
    """The square root of a positive number; the decimal module rounds it correctly."""
    return Interval(context.next_minus(context.sqrt(value.low)), context.next_plus(context.sqrt(value.high)))
