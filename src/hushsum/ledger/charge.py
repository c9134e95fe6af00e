"""Amounts of budget, as exact rationals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushsum.files.rationals import stored_rational

ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Charge:
    """An amount of budget: ε, δ and ρ, of which an accounting uses one or two. Exact.

    >>> sum([Charge(Fraction(1, 10))] * 10, Charge()) == Charge(Fraction(1))
    True
    """

    epsilon: Fraction = ZERO
    delta: Fraction = ZERO
    rho: Fraction = ZERO

    def __add__(self, other: Charge) -> Charge:
        return Charge(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: Charge) -> Charge:
        return Charge(self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)

    def fits(self, budget: Charge) -> bool:
        """Whether no part of it is above the budget's."""
        return self.epsilon <= budget.epsilon and self.delta <= budget.delta and self.rho <= budget.rho

    def at_least_zero(self) -> Charge:
        """The same, with what is below zero taken as zero."""
        return Charge(max(self.epsilon, ZERO), max(self.delta, ZERO), max(self.rho, ZERO))

    def in_words(self) -> str:
        """The parts that are in use, for people.

        >>> Charge(Fraction(1, 2), Fraction(1, 10**6)).in_words()
        'ε 0.5, δ 1e-06'
        """
        named = (("ε", self.epsilon), ("δ", self.delta), ("ρ", self.rho))
        return ", ".join(f"{name} {float(value):g}" for name, value in named if value) or "nothing"

    def as_json(self) -> dict[str, str]:
        """Exactly, as strings."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "rho": str(self.rho)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Charge:
        """What ``as_json`` wrote."""
        return cls(*(stored_rational(data[name]) for name in ("epsilon", "delta", "rho")))
