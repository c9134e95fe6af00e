"""Amounts of budget, and what is fixed about a dataset when its budget is set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from hushsum.errors import Argument, ClaimError, Parameter, UsageError, shown
from hushsum.files.encoding import stored_rational
from hushsum.privacy.accounting.parameters import at_least_one, check_delta
from hushsum.privacy.accounting.zcdp import zcdp_rho
from hushsum.privacy.claim import DIRECTED_EDGE, EDGE, PERSON, Promise, Relation, checked_unit, exact

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


class Accounting(StrEnum):
    """Which sum is bounded. Each is proven for releases chosen one by one, looking at earlier results.

    Such a bound is a *filter*: the analyst picks the next mechanism, and its parameters, after seeing all
    results so far, and the ledger grants or refuses. Sums of ε and δ are filters (Rogers, Roth, Ullman &
    Vadhan 2016, "Privacy odometers and filters"), and so is the sum of ρ (Feldman & Zrnic 2021, "Individual
    privacy accounting via a Rényi filter", with every individual's loss at its bound). Composing privacy loss
    distributions over releases is tighter, but proven only for a list that was fixed beforehand; for that
    there is ``privacy.accounting.fixed_list_composition``, without a ledger.
    """

    PURE = "pure"
    """Σε ≤ ε, and every δ is 0."""
    BASIC = "basic"
    """Σε ≤ ε and Σδ ≤ δ."""
    ZCDP = "zcdp"
    """Σρ ≤ ρ, with pure ε as ε²/2; reported as ε once, at the dataset's δ."""


@dataclass(frozen=True, slots=True)
class DatasetTerms:
    """A total budget, and whom it protects in which sense. Made by :meth:`of`.

    ``max_per_unit`` is the most records a person has; without it claims for records are refused where the
    unit is the person. ``population`` is the *declared* number of units: records, persons or edges.
    ``partition`` names disjoint parts of the data: all records of a unit lie in one part. ``report_delta`` is
    the δ at which ρ is reported as ε.
    """

    accounting: Accounting
    budget: Charge
    unit: str
    max_per_unit: int | None
    relation: Relation
    population: int | None
    partition: tuple[str, ...]
    report_delta: Fraction | None
    allow_large_delta: bool

    @classmethod
    def of(
        cls,
        *,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        rho: float | Fraction | None = None,
        accounting: str | None = None,
        unit: str = "record",
        max_per_unit: int | None = None,
        relation: str | Relation = Relation.ADD_REMOVE,
        population: int | None = None,
        partition: tuple[str, ...] = (),
        allow_large_delta: bool = False,
    ) -> DatasetTerms:
        """Check the combination and read the numbers exactly.

        Without ``accounting``: ``epsilon`` is pure, ``epsilon`` and ``delta`` are basic, ``rho`` (and
        ``delta`` to report it as ε) is zcdp. With ``accounting="zcdp"``, ``epsilon`` and ``delta`` become
        the largest ρ that implies them.

        Raises
        ------
        ClaimError
            if the numbers make no budget, or δ is 1/(10 × population) or more without ``allow_large_delta``.

        >>> DatasetTerms.of(epsilon=1.0).budget.in_words()
        'ε 1'
        """
        kind, budget, report = _budget(epsilon, delta, rho, accounting)
        bound = report if kind is Accounting.ZCDP else budget.delta
        if population is not None:
            population = at_least_one(
                "population", population, "declare how many records or persons there are"
            )
        if bound:
            # The claims' own δ sum to at most this one, so the rule holds for each of them.
            check_delta(bound, population, allow_large_delta=allow_large_delta)
        checked_unit(unit)
        if max_per_unit is not None:
            if unit != PERSON:
                raise UsageError(
                    parameter="max_per_unit",
                    rule="is for persons",
                    got=f"the unit {unit!r}",
                    remedy="leave it out",
                )
            max_per_unit = at_least_one("max_per_unit", max_per_unit, "leave it out if unknown")
        if partition and unit in (EDGE, DIRECTED_EDGE):
            raise UsageError(
                parameter="partition",
                rule="must be left out for edges: an edge may change rows of two parts",
            )
        return cls(
            kind,
            budget,
            unit,
            max_per_unit,
            Relation.of(relation),
            population,
            _checked_parts(partition),
            report or None,
            allow_large_delta,
        )

    def with_budget(self, budget: Charge) -> DatasetTerms:
        """The same terms with another budget, checked by the same rules."""
        if self.accounting is Accounting.ZCDP:
            return replace(self, budget=Charge(rho=Promise.of(rho=budget.rho).rho or Fraction(0)))
        fresh = DatasetTerms.of(
            epsilon=budget.epsilon,
            delta=budget.delta if self.accounting is Accounting.BASIC else None,
            population=self.population,
            allow_large_delta=self.allow_large_delta,
        )
        return replace(self, budget=fresh.budget)

    def as_json(self) -> dict[str, Any]:
        """Exactly, with rationals as strings."""
        return {
            "accounting": str(self.accounting),
            "budget": self.budget.as_json(),
            "unit": self.unit,
            "max_per_unit": self.max_per_unit,
            "relation": str(self.relation),
            "population": self.population,
            "partition": list(self.partition),
            "report_delta": None if self.report_delta is None else str(self.report_delta),
            "allow_large_delta": self.allow_large_delta,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DatasetTerms:
        """What ``as_json`` wrote."""
        return cls(
            Accounting(data["accounting"]),
            Charge.from_json(data["budget"]),
            data["unit"],
            data["max_per_unit"],
            Relation.of(data["relation"]),
            data["population"],
            tuple(data["partition"]),
            None if data["report_delta"] is None else stored_rational(data["report_delta"]),
            data["allow_large_delta"],
        )


def _budget(
    epsilon: float | Fraction | None,
    delta: float | Fraction | None,
    rho: float | Fraction | None,
    accounting: str | None,
) -> tuple[Accounting, Charge, Fraction | None]:
    kind = _accounting(delta, rho, accounting)
    if kind is not Accounting.ZCDP:
        if rho is not None:
            raise ClaimError(
                parameter="rho",
                rule=("is for ", Argument("accounting", "zcdp")),
                got=f"it for {str(kind)!r}",
                remedy="give epsilon",
            )
        promise = Promise.of(epsilon=epsilon, delta=delta)
        if (promise.delta > 0) != (kind is Accounting.BASIC):
            needed = kind is Accounting.BASIC
            raise ClaimError(
                parameter="delta",
                rule=(f"must be {'above 0' if needed else '0'} for ", Argument("accounting", str(kind))),
                got="none" if needed else "one",
                remedy="give one" if needed else "leave it out",
            )
        assert promise.epsilon is not None
        return kind, Charge(promise.epsilon, promise.delta), None
    report = None if delta is None else exact("delta", delta)
    if rho is not None:
        total = Promise.of(epsilon=epsilon, rho=rho).rho
        assert total is not None
        return kind, Charge(rho=total), report
    if not report:
        raise ClaimError(
            rule=(
                Parameter("rho"),
                ", or epsilon and delta, must be given for ",
                Argument("accounting", "zcdp"),
            ),
            got="neither",
            remedy="give it",
        )
    requested = Promise.of(epsilon=epsilon, delta=report)
    assert requested.epsilon is not None
    return kind, Charge(rho=Fraction(zcdp_rho(requested.epsilon, requested.delta))), report


def _accounting(
    delta: float | Fraction | None, rho: float | Fraction | None, accounting: str | None
) -> Accounting:
    if accounting is None:
        if rho is not None:
            return Accounting.ZCDP
        return Accounting.BASIC if delta else Accounting.PURE
    try:
        return Accounting(accounting)
    except ValueError:
        known = ", ".join(repr(str(each)) for each in Accounting)
        raise UsageError(
            parameter="accounting", rule=f"must be one of {known}", got=shown(accounting), remedy="choose one"
        ) from None


def _checked_parts(partition: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(partition)) != len(partition) or any(not name.strip() for name in partition):
        raise UsageError(
            parameter="partition",
            rule="must name each part once",
            got="an empty or repeated name",
            remedy="name each once",
        )
    if len(partition) == 1:
        raise UsageError(
            parameter="partition",
            rule="must name at least two parts",
            got="one",
            remedy="leave it out for the whole data",
        )
    return tuple(partition)
