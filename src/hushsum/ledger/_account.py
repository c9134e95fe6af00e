"""Amounts of budget, the terms of a dataset, which are fixed when its budget is set, and its account."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import reduce

from hushsum.errors import Argument, BudgetExhausted, ClaimError, Parameter, UsageError, shown
from hushsum.files import Stored
from hushsum.privacy import (
    DIRECTED_EDGE,
    EDGE,
    PERSON,
    RECORD,
    Claim,
    Promise,
    Relation,
    check_mechanism,
    checked_unit,
    exact,
)
from hushsum.privacy.accounting import (
    at_least_one,
    check_delta,
    group_delta,
    group_epsilon,
    group_rho,
    relation_steps,
    zcdp_epsilon,
    zcdp_rho,
)

ZERO = Fraction(0)
Number = float | Fraction


@dataclass(frozen=True, slots=True)
class Charge(Stored):
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
        return budget.at_least(self) == budget

    def at_least(self, other: Charge) -> Charge:
        """The larger of each part."""
        return Charge(
            max(self.epsilon, other.epsilon), max(self.delta, other.delta), max(self.rho, other.rho)
        )

    def in_words(self) -> str:
        """The parts that are in use, for people.

        >>> Charge(Fraction(1, 2), Fraction(1, 10**6)).in_words()
        'ε 0.5, δ 1e-06'
        """
        named = (("ε", self.epsilon), ("δ", self.delta), ("ρ", self.rho))
        return ", ".join(f"{name} {float(value):g}" for name, value in named if value) or "nothing"


class Accounting(StrEnum):
    """Which sum is bounded. Each is proven for releases chosen one by one, looking at earlier results.

    Such a bound is a *filter*: the analyst picks the next mechanism, and its parameters, after seeing all
    results so far, and the ledger grants or refuses. Sums of ε and δ are filters (Rogers, Roth, Ullman &
    Vadhan 2016, "Privacy odometers and filters"), and so is the sum of ρ (Feldman & Zrnic 2021, "Individual
    privacy accounting via a Rényi filter", with every individual's loss at its bound). Composing privacy loss
    distributions over releases is tighter, but proven only for a list that was fixed beforehand; for that
    there is ``privacy.accounting.compose``, without a ledger.
    """

    PURE = "pure"
    """Σε ≤ ε, and every δ is 0."""
    BASIC = "basic"
    """Σε ≤ ε and Σδ ≤ δ."""
    ZCDP = "zcdp"
    """Σρ ≤ ρ, with pure ε as ε²/2; reported as ε once, at the dataset's δ."""


@dataclass(frozen=True, slots=True)
class DatasetTerms(Stored):
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
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
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
                raise UsageError("max_per_unit", "is for persons", got=f"the unit {unit!r}")
            max_per_unit = at_least_one("max_per_unit", max_per_unit, "leave it out if unknown")
        if partition and unit in (EDGE, DIRECTED_EDGE):
            raise UsageError("partition", "must be left out for edges: an edge may change rows of two parts")
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


def _budget(
    epsilon: Number | None, delta: Number | None, rho: Number | None, accounting: str | None
) -> tuple[Accounting, Charge, Fraction | None]:
    kind, zcdp = _accounting(delta, rho, accounting), Argument("accounting", "zcdp")
    if kind is not Accounting.ZCDP:
        if rho is not None:
            got = f"it for {str(kind)!r}"
            raise ClaimError("rho", ("is for ", zcdp), got=got, remedy="give epsilon")
        promise = Promise.of(epsilon=epsilon, delta=delta)
        if (promise.delta > 0) != (kind is Accounting.BASIC):
            rule, got, remedy = (
                ("above 0", "none", "give one") if kind is Accounting.BASIC else ("0", "one", "leave it out")
            )
            words = (f"must be {rule} for ", Argument("accounting", str(kind)))
            raise ClaimError("delta", words, got=got, remedy=remedy)
        assert promise.epsilon is not None
        return kind, Charge(promise.epsilon, promise.delta), None
    report = None if delta is None else exact("delta", delta)
    if rho is not None:
        total = Promise.of(epsilon=epsilon, rho=rho).rho
        assert total is not None
        return kind, Charge(rho=total), report
    if not report:
        raise ClaimError(
            (Parameter("rho"), ", or epsilon and delta, must be given for ", zcdp), got="neither"
        )
    requested = Promise.of(epsilon=epsilon, delta=report)
    assert requested.epsilon is not None
    return kind, Charge(rho=Fraction(zcdp_rho(requested.epsilon, requested.delta))), report


def _accounting(delta: Number | None, rho: Number | None, accounting: str | None) -> Accounting:
    if accounting is None and rho is not None:
        return Accounting.ZCDP
    if accounting is None:
        return Accounting.BASIC if delta else Accounting.PURE
    try:
        return Accounting(accounting)
    except ValueError:
        known = ", ".join(repr(str(each)) for each in Accounting)
        raise UsageError("accounting", f"must be one of {known}", got=shown(accounting)) from None


def _checked_parts(partition: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(partition)) != len(partition) or any(not name.strip() for name in partition):
        raise UsageError(
            "partition", "must name each part once", got="an empty or repeated name", remedy="name each once"
        )
    if len(partition) == 1:
        raise UsageError(
            "partition", "must name at least two parts", got="one", remedy="leave it out for the whole data"
        )
    return tuple(partition)


OPEN = "open"
FROZEN = "frozen"
RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Account(Stored):
    """The amounts spent on the whole data and on each declared part, and whether more may be spent.

    Privacy
    -------
    *Parallel composition.* Given all earlier results, a release of a part that is the same in both worlds has
    the same distribution in both, so only releases of the whole and of the parts that differ count, however
    they were chosen. Let W be the charges of the whole and P_j those of part j, both in the dataset's unit
    and relation (`charge_for`). The bound is ``W + max_j P_j``, the largest taken for ε, δ and ρ
    separately, which is never less. It covers every way in which one unit can change:

    ====================  ==============  ==================================================================
    the unit              neighbours in   what differs
    ====================  ==============  ==================================================================
    appears, disappears   add/remove      one part j, by one step: W + P_j
    is replaced inside    replace         one part j, by two add/remove steps, and P_j is priced for two
    its part
    moves to another      replace         parts i and j, by one add/remove step each: see below
    part
    appears twice         neither         two units, that is two steps: use max_per_unit
    ====================  ==============  ==================================================================

    *A unit that moves.* Let the releases of part i have the add/remove claims (ε_r, δ_r) or ρ_r. A part is
    priced for s = 2 steps: 2ε_r, δ_r(1 + e^ε_r), 4ρ_r. One step in i and one in j cost Σ_i ε_r + Σ_j ε_r,
    which is half of P_i plus half of P_j, so at most the larger. For δ, Σ_i δ_r + Σ_j δ_r ≤ (P_i + P_j)/2,
    because 1 + e^ε ≥ 2; for ρ it is (P_i + P_j)/4. A release of the whole sees one replaced unit, which W is
    priced for. All these are sums over the releases, so they hold however releases of parts and of the whole
    follow each other, and for a ρ that is converted at the dataset's δ afterwards.

    *Persons with up to m records* in all, with claims for records: s = m steps under add/remove, 2m under
    replace. Let a person change part j in a_j records, Σ a_j ≤ s. Part j then loses a_j·ε, a_j²·ρ and
    δ(1 + e^ε + … + e^((a_j − 1)ε)), each at most the fraction a_j/s of what s steps cost: the first a_j terms
    of a growing sequence have a smaller mean than all s of them. The sum over parts is a weighted mean of the
    P_j, so at most the largest, even if the person has records in several parts. With claims *for persons*
    each release has its own cap, and a person with records in two parts would lose both P_i and P_j: the
    partition then must keep all records of a person in one part, as `DatasetTerms` declares.
    """

    terms: DatasetTerms
    whole: Charge
    parts: tuple[Charge, ...]
    state: str

    @classmethod
    def opened(cls, terms: DatasetTerms) -> Account:
        """The account of a new dataset."""
        return cls(terms, Charge(), tuple(Charge() for _ in terms.partition), OPEN)

    @property
    def spent(self) -> Charge:
        """The bound on what any unit has lost."""
        return self.whole + reduce(Charge.at_least, self.parts, Charge())

    @property
    def remaining(self) -> Charge:
        """The largest charge a release of the whole data may still have."""
        return (self.terms.budget - self.spent).at_least(Charge())

    def remaining_in(self, part: str | None) -> Charge:
        """The largest charge a release of this part may still have."""
        if part is None:
            return self.remaining
        used = self.whole + self.parts[self._place(part)]
        return (self.terms.budget - used).at_least(Charge())

    def debited(self, charge: Charge, *, part: str | None, dataset: str) -> Account:
        """The account after the charge.

        Raises
        ------
        BudgetExhausted
            if it does not fit, or nothing may be spent.
        """
        if self.state != OPEN:
            raise BudgetExhausted(_closed(dataset, self.state))
        after = self.charged(charge, part=part)
        if not after.spent.fits(self.terms.budget):
            left, total = self.remaining_in(part).in_words(), self.terms.budget.in_words()
            raise BudgetExhausted(
                f"the release would spend {charge.in_words()} of dataset {dataset!r}, "
                f"which has {left} left of {total}",
                remedy="nothing was released; request less",
            )
        return after

    def charged(self, charge: Charge, *, part: str | None = None) -> Account:
        """The account after the charge, whether or not it fits; for what happened already."""
        if part is None:
            return replace(self, whole=self.whole + charge)
        parts = [*self.parts]
        parts[self._place(part)] += charge
        return replace(self, parts=tuple(parts))

    def voided(self, charge: Charge, *, part: str | None) -> Account:
        """The account with the charge of a debit taken back that was never drawn."""
        return self.charged(Charge() - charge, part=part)

    def written_off(self, charge: Charge) -> Account:
        """The account after a charge from outside of it; a frozen one is open again."""
        return self.charged(charge).in_state(RETIRED if self.state == RETIRED else OPEN)

    def with_budget(self, budget: Charge) -> Account:
        """The same account with another total."""
        return replace(self, terms=self.terms.with_budget(budget))

    def in_state(self, state: str) -> Account:
        """The same account, open, frozen or retired."""
        return replace(self, state=state)

    def epsilon_at(self, charge: Charge) -> float | None:
        """A charge reported as ε: itself, or ρ converted once at the dataset's δ; None without such a δ."""
        if self.terms.accounting is not Accounting.ZCDP:
            return float(charge.epsilon)
        if self.terms.report_delta is None:
            return None
        return zcdp_epsilon(charge.rho, self.terms.report_delta) if charge.rho else 0.0

    @property
    def largest_pure_epsilon(self) -> float:
        """The largest pure ε the next release of the whole data may have: a float that, read as the
        decimal it is written as, still fits.
        """
        left = self.remaining
        if self.terms.accounting is not Accounting.ZCDP:
            return _largest_float(float(left.epsilon), lambda value: value <= left.epsilon)
        return _largest_float(math.sqrt(2 * left.rho), lambda value: value**2 / 2 <= left.rho)

    def _place(self, part: str) -> int:
        if part not in self.terms.partition:
            known = ", ".join(map(repr, self.terms.partition)) or "none declared"
            raise UsageError("part", f"must be one of the dataset's parts ({known})", got=shown(part))
        return self.terms.partition.index(part)


def _largest_float(start: float, fits: Callable[[Fraction], bool]) -> float:
    while start > 0 and not fits(exact("epsilon", start)):
        start = math.nextafter(start, 0.0)
    return start


def _closed(dataset: str, state: str) -> str:
    if state == FROZEN:
        return (
            f"dataset {dataset!r} is frozen: a restored backup does not know what was spent after it; "
            "charge that with: hushsum ledger write-off"
        )
    return f"dataset {dataset!r} is retired, and nothing more may be released from it"


def charge_for(claim: Claim, terms: DatasetTerms, *, part: str | None = None) -> Charge:
    """The price of a claim for a dataset on these terms.

    The claim is checked (secure noise, a known mechanism), then converted to the dataset's unit and relation
    by counting how many of its steps lead to any of the dataset's neighbours, and then put into the dataset's
    accounting. ρ-accounting takes pure ε as ε²/2 (Bun & Steinke 2016, Proposition 1.4).

    Raises
    ------
    ClaimError
        if any of it cannot be proven.
    """
    if not claim.secure:
        raise ClaimError(
            "a release with a noise seed protects nobody and cannot be debited",
            remedy=("leave ", Parameter("insecure_noise_seed"), " out"),
        )
    check_mechanism(claim)
    return _in_accounting(_for_group(claim, steps_to(claim, terms, part=part)), claim, terms)


def steps_to(claim: Claim, terms: DatasetTerms, *, part: str | None = None) -> int:
    """How many neighbour steps of the claim lead to any neighbour of the dataset.

    Records to persons: a person with up to m records is m steps under add/remove. A replaced person may bring
    another number of records, which steps under replace never do, so that is refused, as is the way from
    persons to records: one record moved from one person to another changes two persons. Rows, edges and
    directed edges of a graph are never converted: a node has any number of edges, and an undirected edge is
    two directed ones in some lists and one in others.

    In a declared part the steps are those of the whole data, because a unit may be replaced inside its part:
    under replace that is two add/remove steps. A claim under replace is refused there: a unit that moves
    between parts changes the size of both, and such a claim assumes that sizes do not change. `Account` has
    the proof for all ways in which a unit can change.

    Raises
    ------
    ClaimError
        if no number of steps does.
    """
    if part is not None and terms.relation is Relation.REPLACE and claim.relation is not Relation.ADD_REMOVE:
        raise ClaimError(
            "a release of one part must claim 'add/remove'",
            got="'replace', which does not cover a unit that moves to another part",
            remedy="release under 'add/remove'",
        )
    steps = relation_steps(claim.relation, terms.relation)
    if claim.unit == terms.unit:
        return steps
    if (claim.unit, terms.unit) != (RECORD, PERSON):
        raise ClaimError(
            f"the dataset's unit is {terms.unit!r}",
            got=f"a claim for the unit {claim.unit!r}, which does not convert",
            remedy=f"keep a dataset with the unit {claim.unit!r}",
        )
    if claim.relation is Relation.REPLACE:
        raise ClaimError(
            "a claim for records under 'replace' does not protect persons, whose number of "
            "records may change",
            remedy=(
                "release under 'add/remove', or with ",
                Parameter("max_per_unit"),
                "; a model that does not take it needs a dataset of records",
            ),
        )
    if terms.max_per_unit is None:
        raise ClaimError(
            "this dataset protects persons, and does not declare how many records a person may have, "
            "by which a claim for records is multiplied",
            remedy=(
                "release with ",
                Parameter("max_per_unit"),
                ", or in a dataset that declares this number, where it costs that many times its epsilon",
            ),
        )
    return steps * terms.max_per_unit


def _for_group(claim: Claim, steps: int) -> Charge:
    promise = claim.promise
    if promise.rho is not None:
        return Charge(rho=group_rho(promise.rho, steps))
    assert promise.epsilon is not None
    epsilon = group_epsilon(promise.epsilon, steps)
    if steps == 1 or promise.delta == 0:
        return Charge(epsilon, promise.delta)
    return Charge(epsilon, Fraction(group_delta(promise.epsilon, promise.delta, steps)))


def _in_accounting(charge: Charge, claim: Claim, terms: DatasetTerms) -> Charge:
    if terms.accounting is Accounting.ZCDP:
        if charge.delta:
            raise ClaimError(
                "this dataset adds rho",
                got="a claim in epsilon and delta, from which rho does not follow",
                remedy="release with rho, or with pure epsilon",
            )
        return Charge(rho=charge.rho or charge.epsilon**2 / 2)
    if claim.promise.rho is not None:
        raise ClaimError(
            "this dataset adds epsilon",
            got="a claim in rho",
            remedy="release with epsilon" + ("" if terms.accounting is Accounting.PURE else " and delta"),
        )
    if terms.accounting is Accounting.PURE and charge.delta:
        raise ClaimError(
            "this dataset takes pure epsilon only", got="a delta", remedy="release without delta"
        )
    return charge
