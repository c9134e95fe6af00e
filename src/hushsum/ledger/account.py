"""The account of one dataset: what a claim costs it, what was spent of its budget, what remains, and whether
a charge still fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hushsum.errors import BudgetExhausted, ClaimError, Parameter, UsageError, shown
from hushsum.ledger.dataset_terms import Accounting, Charge, DatasetTerms
from hushsum.privacy.accounting.conversions import group_delta, group_epsilon, group_rho, relation_steps
from hushsum.privacy.accounting.zcdp import zcdp_epsilon
from hushsum.privacy.claim import PERSON, RECORD, Claim, Relation, exact
from hushsum.privacy.mechanism import check_mechanism

OPEN = "open"
FROZEN = "frozen"
RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Account:
    """What was spent on the whole data and on each declared part, and whether more may be.

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
        return self.whole + _largest(self.parts)

    @property
    def remaining(self) -> Charge:
        """The largest charge a release of the whole data may still have."""
        return (self.terms.budget - self.spent).at_least_zero()

    def remaining_in(self, part: str | None) -> Charge:
        """The largest charge a release of this part may still have."""
        if part is None:
            return self.remaining
        used = self.whole + self.parts[self._place(part)]
        return (self.terms.budget - used).at_least_zero()

    def debited(self, charge: Charge, *, part: str | None, dataset: str) -> Account:
        """The account after the charge.

        Raises
        ------
        BudgetExhausted
            if it does not fit, or nothing may be spent.
        """
        if self.state != OPEN:
            raise BudgetExhausted(rule=_closed(dataset, self.state))
        after = self.charged(charge, part=part)
        if not after.spent.fits(self.terms.budget):
            raise BudgetExhausted(
                rule=(
                    f"the release would spend {charge.in_words()} of dataset {dataset!r}, which has "
                    f"{self.remaining_in(part).in_words()} left of {self.terms.budget.in_words()}"
                ),
                remedy="nothing was released, ask for less",
            )
        return after

    def charged(self, charge: Charge, *, part: str | None = None) -> Account:
        """The account after the charge, whether or not it fits; for what happened already."""
        if part is None:
            return replace(self, whole=self.whole + charge)
        place = self._place(part)
        return replace(
            self, parts=(*self.parts[:place], self.parts[place] + charge, *self.parts[place + 1 :])
        )

    def voided(self, charge: Charge, *, part: str | None) -> Account:
        """The account with the charge of a debit taken back that was never drawn."""
        return self.charged(Charge() - charge, part=part)

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

    def least_laplace_scale(self, l1: int) -> float | None:
        """The least scale of Laplace noise the next release may have, if one unit moves it by ``l1`` in
        L1.
        """
        largest = self.largest_pure_epsilon
        return l1 / largest if largest else None

    def least_gaussian_variance(self, l2_squared: int) -> float | None:
        """The least variance of Gaussian noise under ρ-accounting, if one unit moves it by √l2_squared in
        L2.
        """
        left = self.remaining.rho
        return float(Fraction(l2_squared) / (2 * left)) if left else None

    def as_json(self) -> dict[str, Any]:
        """Exactly, for an event."""
        return {
            "terms": self.terms.as_json(),
            "whole": self.whole.as_json(),
            "parts": [each.as_json() for each in self.parts],
            "state": self.state,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Account:
        """What ``as_json`` wrote."""
        return cls(
            DatasetTerms.from_json(data["terms"]),
            Charge.from_json(data["whole"]),
            tuple(Charge.from_json(each) for each in data["parts"]),
            data["state"],
        )

    def _place(self, part: str) -> int:
        if part not in self.terms.partition:
            known = ", ".join(map(repr, self.terms.partition)) or "none declared"
            raise UsageError(
                parameter="part",
                rule=f"must be one of the dataset's parts ({known})",
                got=shown(part),
                remedy="choose one",
            )
        return self.terms.partition.index(part)


def _largest_float(start: float, fits: Callable[[Fraction], bool]) -> float:
    while start > 0 and not fits(exact("epsilon", start)):
        start = math.nextafter(start, 0.0)
    return start


def _largest(parts: tuple[Charge, ...]) -> Charge:
    return Charge(
        max((each.epsilon for each in parts), default=Fraction(0)),
        max((each.delta for each in parts), default=Fraction(0)),
        max((each.rho for each in parts), default=Fraction(0)),
    )


def _closed(dataset: str, state: str) -> str:
    if state == FROZEN:
        return (
            f"dataset {dataset!r} is frozen: a restored backup does not know what was spent after it; "
            "charge that with: hushsum ledger write-off"
        )
    return f"dataset {dataset!r} is retired, and nothing more may be released from it"


def charge_for(claim: Claim, terms: DatasetTerms, *, part: str | None = None) -> Charge:
    """What a claim costs a dataset on these terms.

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
            rule="a release with a noise seed protects nobody and cannot be debited",
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
            rule="a release of one part must claim 'add/remove'",
            got="'replace', which does not cover a unit that moves to another part",
            remedy="release under 'add/remove'",
        )
    steps = relation_steps(claim.relation, terms.relation)
    if claim.unit == terms.unit:
        return steps
    if (claim.unit, terms.unit) != (RECORD, PERSON):
        raise ClaimError(
            rule=f"the dataset's unit is {terms.unit!r}",
            got=f"a claim for the unit {claim.unit!r}, which does not convert",
            remedy=f"keep a dataset with the unit {claim.unit!r}",
        )
    if claim.relation is Relation.REPLACE:
        raise ClaimError(
            rule=(
                "a claim for records under 'replace' does not protect persons, whose number of "
                "records may change"
            ),
            remedy=(
                "release a function under 'add/remove', or with ",
                Parameter("max_per_unit"),
                "; models do not take persons yet, so one that claims 'replace' needs a dataset of records",
            ),
        )
    if terms.max_per_unit is None:
        raise ClaimError(
            rule=(
                "this dataset protects persons, and does not declare how many records a person may have, "
                "by which a claim for records is multiplied"
            ),
            remedy=(
                "release a function with ",
                Parameter("max_per_unit"),
                "; models do not take persons yet: fit one in a dataset that declares this number, where it "
                "costs that many times its epsilon",
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
                rule="this dataset adds rho",
                got="a claim in epsilon and delta, from which rho does not follow",
                remedy="release with rho, or with pure epsilon",
            )
        return Charge(rho=charge.rho or charge.epsilon**2 / 2)
    if claim.promise.rho is not None:
        raise ClaimError(
            rule="this dataset adds epsilon",
            got="a claim in rho",
            remedy="release with epsilon" + ("" if terms.accounting is Accounting.PURE else " and delta"),
        )
    if terms.accounting is Accounting.PURE and charge.delta:
        raise ClaimError(
            rule="this dataset takes pure epsilon only", got="a delta", remedy="release without delta"
        )
    return charge
