"""Which claims may be booked: of one mechanism, and of several that one release runs."""

from __future__ import annotations

import pytest
from tests.ledger_fixtures import claim_of

from hushsum.errors import ClaimError
from hushsum.privacy import Claim, Mechanism, check_mechanism


def both(*names: str) -> str:
    return " + ".join(dict.fromkeys(names))


LAPLACE, GAUSSIAN, CHOICE = "discrete laplace", "discrete gaussian", "permute and flip"


@pytest.mark.parametrize(
    "claim",
    [
        claim_of(epsilon=1.0, mechanism=both(LAPLACE, CHOICE)),
        claim_of(epsilon=1.0, delta=1e-6, mechanism=both(GAUSSIAN, CHOICE)),
        claim_of(epsilon=1.0, delta=1e-6, mechanism=both(GAUSSIAN, GAUSSIAN)),
        claim_of(rho=0.1, mechanism=both(GAUSSIAN, GAUSSIAN)),
        claim_of(epsilon=1.0, mechanism=f"{LAPLACE} or {CHOICE} + {LAPLACE}"),
    ],
    ids=str,
)
def test_steps_that_prove_the_claim_together_may_be_booked(claim: Claim) -> None:
    check_mechanism(claim)


@pytest.mark.parametrize(
    "claim",
    [
        claim_of(epsilon=1.0, mechanism=both(GAUSSIAN, CHOICE)),
        claim_of(epsilon=1.0, delta=1e-6, mechanism=both(LAPLACE, CHOICE)),
        claim_of(rho=0.1, mechanism=both(GAUSSIAN, CHOICE)),
        claim_of(epsilon=1.0, mechanism=both(LAPLACE, "hope")),
        claim_of(epsilon=1.0, mechanism=f"{LAPLACE} or hope"),
        claim_of(epsilon=1.0, mechanism=f"{GAUSSIAN} or {LAPLACE}"),
    ],
    ids=str,
)
def test_anything_else_may_not(claim: Claim) -> None:
    with pytest.raises(ClaimError):
        check_mechanism(claim)


def test_mechanisms_compose() -> None:
    laplace, gamma, choice = (Mechanism.of(each) for each in (LAPLACE, "gamma radius", CHOICE))
    either = laplace | gamma
    assert choice + either == (choice + laplace) | (choice + gamma)
    assert str(choice + either) == f"{CHOICE} + {LAPLACE} or {CHOICE} + gamma radius"
    assert laplace in either
    assert either not in laplace
    assert laplace + laplace == laplace
    assert Mechanism.from_text(str(choice + either)) == choice + either


@pytest.mark.parametrize("text", ["", f"{LAPLACE} + {LAPLACE}", f"{LAPLACE} or {GAUSSIAN}", f"{LAPLACE} + "])
def test_a_text_that_no_mechanism_has_is_refused(text: str) -> None:
    if text in ("", f"{LAPLACE} + "):
        with pytest.raises(KeyError):
            _ = Mechanism.from_text(text).kinds
        return
    with pytest.raises(ValueError, match="mechanism"):
        Mechanism.from_text(text)
