"""What a claim costs a dataset: its charge in the dataset's unit, relation and accounting."""

from __future__ import annotations

from fractions import Fraction

from hushsum.errors import ClaimError, Parameter
from hushsum.ledger.dataset_terms import Accounting, Charge, DatasetTerms
from hushsum.privacy.accounting.conversions import group_delta, group_epsilon, group_rho, relation_steps
from hushsum.privacy.accounting.mechanisms import check_mechanism
from hushsum.privacy.claim import PERSON, RECORD, Claim, Relation


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
            remedy=("release under 'add/remove', or with ", Parameter("max_per_unit")),
        )
    if terms.max_per_unit is None:
        raise ClaimError(
            rule=(
                "a claim for records must be multiplied by the records a person may have, "
                "which this dataset does not declare"
            ),
            remedy=("release with ", Parameter("max_per_unit")),
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
