"""What a noise parameter may be."""

from __future__ import annotations

from fractions import Fraction

from hushsum.errors import UsageError


def check_parameter(name: str, value: Fraction, smallest: Fraction, largest: Fraction) -> Fraction:
    """The parameter as a Fraction within its range."""
    if not isinstance(value, (int, Fraction)):
        raise UsageError(
            parameter=name,
            rule="must be a Fraction or an integer",
            got=type(value).__name__,
            remedy="use Fraction(...)",
        )
    if not smallest <= value <= largest:
        # Not as a float: a number so large has none.
        got = "less" if value < smallest else "more"
        raise UsageError(
            parameter=name, rule=f"must be from {float(smallest):.3g} to {float(largest):.3g}", got=f"{got}"
        )
    return Fraction(value)


def check_draw(size: int, threads: int) -> None:
    """Refuse a negative size and fewer than one thread."""
    if size < 0:
        raise UsageError(parameter="size", rule="must not be negative", got=f"{size}")
    if threads < 1:
        raise UsageError(parameter="threads", rule="must be at least 1", got=f"{threads}")
