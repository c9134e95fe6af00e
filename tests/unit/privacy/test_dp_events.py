"""Claims as events of dp_accounting, composed by its accountants."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from hushsum.errors import ClaimError
from hushsum.privacy import Claim, Mechanism, Promise, Relation
from hushsum.privacy.accounting import zcdp_epsilon

dp_accounting = pytest.importorskip("dp_accounting")
pld = pytest.importorskip("dp_accounting.pld")
rdp = pytest.importorskip("dp_accounting.rdp")

RELATIONS = {
    Relation.ADD_REMOVE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    Relation.REPLACE: dp_accounting.NeighboringRelation.REPLACE_ONE,
}


def claim(promise: Promise, relation: Relation = Relation.ADD_REMOVE) -> Claim:
    return Claim(promise, "record", 1, relation, Mechanism.of("discrete laplace"), "integers", True)


def accountant(relation: Relation) -> Any:
    return pld.PLDAccountant(RELATIONS[relation], value_discretization_interval=1e-3)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 7.5])
def test_one_pure_claim_keeps_its_epsilon(relation: Relation, epsilon: float) -> None:
    event = claim(Promise.of(epsilon=epsilon), relation).as_dp_event()
    spent = accountant(relation).compose(event).get_epsilon(0.0)
    assert epsilon * (1 - 1e-9) <= spent <= epsilon + 2e-3


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_delta_is_that_of_the_hardest_mechanism(relation: Relation, epsilon: float) -> None:
    """Total variation of randomized response: no mechanism with this epsilon has more."""
    event = claim(Promise.of(epsilon=epsilon), relation).as_dp_event()
    delta = accountant(relation).compose(event).get_delta(0.0)
    assert math.tanh(epsilon / 2) <= delta * (1 + 1e-9) <= math.tanh(epsilon / 2) + 2e-3


@pytest.mark.parametrize("relation", Relation)
def test_several_claims_cost_no_more_than_their_sum(relation: Relation) -> None:
    events = [claim(Promise.of(epsilon=each), relation).as_dp_event() for each in (0.1, 0.2, 0.05)]
    together = dp_accounting.dp_event.ComposedDpEvent(events * 10)
    assert accountant(relation).compose(together).get_epsilon(1e-6) < 3.5


def test_rho_composes_by_its_sum() -> None:
    composed = rdp.RdpAccountant().compose(claim(Promise.of(rho=0.01)).as_dp_event(), 5)
    assert composed.get_epsilon(1e-6) == pytest.approx(zcdp_epsilon(0.05, 1e-6), rel=0.02)


def test_numbers_are_rounded_to_the_side_that_claims_less() -> None:
    third = Fraction(1, 3)
    assert Fraction(claim(Promise.of(epsilon=third)).as_dp_event().noise_parameter) >= third
    assert Fraction(claim(Promise.of(rho=third)).as_dp_event().rho) >= third
    answer = claim(Promise.of(epsilon=third), Relation.REPLACE).as_dp_event()
    assert (2 - answer.noise_parameter) / answer.noise_parameter >= math.exp(1 / 3)


def test_a_seeded_release_is_no_private_event() -> None:
    seeded = replace(claim(Promise.of(epsilon=1)), secure=False).as_dp_event()
    assert seeded == dp_accounting.dp_event.NonPrivateDpEvent()
    assert pld.PLDAccountant().compose(seeded).get_epsilon(1e-6) == math.inf


def test_epsilon_and_delta_have_no_event() -> None:
    with pytest.raises(ClaimError, match="pure epsilon or in rho"):
        claim(Promise.of(epsilon=1, delta=1e-6)).as_dp_event()
