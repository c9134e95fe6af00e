"""Which claims may be booked: of one mechanism, and of several that one release runs."""

from __future__ import annotations

import pytest
from tests.ledger_fixtures import claim_of

from hushsum.errors import ClaimError
from hushsum.privacy.accounting.mechanisms import check_mechanism, together
from hushsum.privacy.claim import Claim

LAPLACE, GAUSSIAN, CHOICE = "discrete laplace", "discrete gaussian", "permute and flip"


@pytest.mark.parametrize(
    "claim",
    [
        claim_of(epsilon=1.0, mechanism=together(LAPLACE, CHOICE)),
        claim_of(epsilon=1.0, delta=1e-6, mechanism=together(GAUSSIAN, CHOICE)),
        claim_of(epsilon=1.0, delta=1e-6, mechanism=together(GAUSSIAN, GAUSSIAN)),
        claim_of(rho=0.1, mechanism=together(GAUSSIAN, GAUSSIAN)),
    ],
    ids=str,
)
def test_steps_that_prove_the_claim_together_may_be_booked(claim: Claim) -> None:
    check_mechanism(claim)


@pytest.mark.parametrize(
    "claim",
    [
        claim_of(epsilon=1.0, mechanism=together(GAUSSIAN, CHOICE)),
        claim_of(epsilon=1.0, delta=1e-6, mechanism=together(LAPLACE, CHOICE)),
        claim_of(rho=0.1, mechanism=together(GAUSSIAN, CHOICE)),
        claim_of(epsilon=1.0, mechanism=together(LAPLACE, "hope")),
        claim_of(epsilon=1.0, mechanism=f"{LAPLACE} +  {CHOICE}"),
    ],
    ids=str,
)
def test_anything_else_may_not(claim: Claim) -> None:
    with pytest.raises(ClaimError):
        check_mechanism(claim)
