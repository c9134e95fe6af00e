"""How far one unit can move a tally."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Bounds on the change of an integer vector between neighbours; exact integers.

    ``l1`` bounds the sum of the absolute changes, ``l2_squared`` the sum of their squares, ``largest`` any
    single one.

    >>> Sensitivity(l1=1000, l2_squared=1000, largest=1).times(3)
    Sensitivity(l1=3000, l2_squared=9000, largest=3)
    """

    l1: int
    l2_squared: int
    largest: int

    def times(self, records: int) -> Sensitivity:
        """The bounds when one unit holds up to ``records`` records: each moves the vector, and norms add."""
        return Sensitivity(self.l1 * records, self.l2_squared * records**2, self.largest * records)
