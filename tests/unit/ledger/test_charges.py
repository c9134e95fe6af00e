"""What claims cost a dataset: units, relations and accountings, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import pytest

from hushsum.errors import ClaimError, UsageError
from hushsum.ledger import Charge, DatasetTerms, charge_for
from hushsum.privacy import UNITS, Relation
from tests.ledger_fixtures import claim_of

REPLACE = Relation.REPLACE


def test_the_same_unit_and_relation_cost_the_claim() -> None:
    assert charge_for(claim_of(epsilon=0.1), DatasetTerms.of(epsilon=1)) == Charge(Fraction(1, 10))
    both = charge_for(claim_of(epsilon=0.1, delta=1e-7), DatasetTerms.of(epsilon=1, delta=1e-6))
    assert both == Charge(Fraction(1, 10), Fraction(1, 10**7))
    assert charge_for(claim_of(rho=0.25), DatasetTerms.of(rho=1)) == Charge(rho=Fraction(1, 4))


def test_pure_epsilon_enters_rho_as_half_its_square() -> None:
    assert charge_for(claim_of(epsilon=0.5), DatasetTerms.of(rho=1)) == Charge(rho=Fraction(1, 8))


def test_replace_from_add_remove_takes_two_steps() -> None:
    assert charge_for(claim_of(epsilon=0.5), DatasetTerms.of(epsilon=2, relation=REPLACE)).epsilon == 1
    assert charge_for(claim_of(rho=0.5), DatasetTerms.of(rho=9, relation=REPLACE)).rho == 2
    terms = DatasetTerms.of(epsilon=2, delta=1e-3, relation=REPLACE)
    delta = charge_for(claim_of(epsilon=0.5, delta=1e-6), terms).delta
    assert delta >= Fraction(1, 10**6) * (1 + Fraction(math.exp(0.5)))
    assert math.isclose(delta, 1e-6 * (1 + math.exp(0.5)), rel_tol=1e-12)


def test_records_to_persons_takes_as_many_steps_as_records() -> None:
    person = DatasetTerms.of(epsilon=9, unit="person", max_per_unit=3)
    assert charge_for(claim_of(epsilon=0.5), person).epsilon == Fraction(3, 2)
    replaced = DatasetTerms.of(rho=99, unit="person", max_per_unit=3, relation=REPLACE)
    assert charge_for(claim_of(rho=0.5), replaced).rho == 18
    assert charge_for(claim_of(epsilon=0.5, unit="person", per_unit=7), person).epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    ("claim", "terms"),
    [
        (claim_of(epsilon=1, relation=REPLACE), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1, unit="person", per_unit=2), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1), DatasetTerms.of(epsilon=9, unit="person")),
        *(
            (claim_of(epsilon=1, unit=claimed), DatasetTerms.of(epsilon=9, unit=unit))
            for claimed, unit in permutations(UNITS, 2)
            if (claimed, unit) != ("record", "person")
        ),
        (
            claim_of(epsilon=1, relation=REPLACE),
            DatasetTerms.of(epsilon=9, unit="person", max_per_unit=2, relation=REPLACE),
        ),
        (claim_of(rho=1), DatasetTerms.of(epsilon=9)),
        (claim_of(rho=1), DatasetTerms.of(epsilon=9, delta=1e-6)),
        (claim_of(epsilon=1, delta=1e-9), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1, delta=1e-9), DatasetTerms.of(rho=9)),
        (claim_of(epsilon=1, mechanism="discrete gaussian"), DatasetTerms.of(epsilon=9)),
        (claim_of(rho=1, mechanism="discrete laplace"), DatasetTerms.of(rho=9)),
        (claim_of(epsilon=1, mechanism="magic"), DatasetTerms.of(epsilon=9)),
        (claim_of(epsilon=1, secure=False), DatasetTerms.of(epsilon=9)),
    ],
)
def test_what_is_not_proven_is_refused(claim: object, terms: DatasetTerms) -> None:
    with pytest.raises(ClaimError):
        charge_for(claim, terms)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["adjacency row", "edge", "directed edge"])
def test_units_of_graphs(unit: str) -> None:
    terms = DatasetTerms.of(epsilon=9, unit=unit)
    assert charge_for(claim_of(epsilon=0.5, unit=unit, per_unit=3), terms).epsilon == Fraction(1, 2)
    replaced = DatasetTerms.of(epsilon=9, unit=unit, relation=REPLACE)
    assert charge_for(claim_of(epsilon=0.5, unit=unit), replaced).epsilon == 1
    with pytest.raises(UsageError, match="max_per_unit"):
        DatasetTerms.of(epsilon=9, unit=unit, max_per_unit=3)
    with pytest.raises(ClaimError, match="not offered"):
        DatasetTerms.of(epsilon=9, unit="node")
    if unit != "adjacency row":
        with pytest.raises(UsageError, match="two parts"):
            DatasetTerms.of(epsilon=9, unit=unit, partition=("north", "south"))
