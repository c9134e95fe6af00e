"""Claims: exact rationals inside, plain words outside."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushsum.errors import ClaimError
from hushsum.privacy import Claim, Mechanism, Promise, Relation, best_guess, exact, in_plain_words


def claim(promise: Promise, **changes: Any) -> Claim:
    fields: dict[str, Any] = {
        "unit": "record",
        "records_per_unit": 1,
        "relation": Relation.ADD_REMOVE,
        "mechanism": Mechanism.of("discrete laplace"),
        "arithmetic": "exact integers",
        "secure": True,
    }
    return Claim(promise, **{**fields, **changes})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1e-6, Fraction(1, 10**6)),
        (3, Fraction(3)),
        (np.float32(0.5), Fraction(1, 2)),
        (Fraction(2, 7), Fraction(2, 7)),
        (0.30000000000000004, Fraction("0.30000000000000004")),
    ],
)
def test_numbers_are_what_a_person_means(given: Any, meant: Fraction) -> None:
    assert exact("epsilon", given) == meant


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "x", "1/3", "1", True, None, [1.0]])
def test_what_is_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(ClaimError, match="epsilon must be"):
        exact("epsilon", bad)


def test_kinds_of_promises() -> None:
    assert Promise.of(epsilon=1).pure
    assert Promise.of(epsilon=1, delta=0).pure
    assert not Promise.of(epsilon=1, delta=1e-9).pure
    assert not Promise.of(rho=1).pure


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "neither"),
        ({"epsilon": 1, "rho": 1}, "both"),
        ({"rho": 1, "delta": 1e-6}, "delta must not be given with rho"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 1, "delta": 1}, "delta must be at least 0 and below 1"),
        ({"rho": -1}, "rho must be above 0"),
    ],
    ids=str,
)
def test_promises_that_make_no_sense(given: dict[str, float], words: str) -> None:
    with pytest.raises(ClaimError, match=words):
        Promise.of(**given)


SENTENCES = [
    (
        claim(Promise.of(epsilon=0.5)),
        "Whatever anyone knows or computes, no answer is more than e^0.5 times as likely or unlikely "
        "because one record is in the data or is not: at most 1.65 times as likely. A guess which of the two "
        "it is, by somebody who knows everything else, is right at most 63 times in 100.",
    ),
    (
        claim(Promise.of(epsilon=1, delta=1e-6), relation=Relation.REPLACE),
        "Whatever anyone knows or computes, the probability of any set of answers changes to at most "
        "e^1 times itself plus 1e-06 because one record is this one or another: at most 2.72 times as "
        "likely. A guess which of the two it is, by somebody who knows everything else, is right at most 74 "
        "times in 100.",
    ),
    (
        claim(Promise.of(rho=0.25), unit="person", records_per_unit=3),
        "0.25-zero-concentrated differential privacy: it hides whether one person (with up to 3 records) "
        "is in the data or is not. A guess which of the two it is, by somebody who knows everything else, is "
        "right at most 68 times in 100.",
    ),
    (
        claim(Promise.of(epsilon=1), secure=False),
        "No protection: the noise came from a seed, for tests only.",
    ),
]


@pytest.mark.parametrize(("made", "sentence"), SENTENCES, ids=["pure", "delta", "rho", "insecure"])
def test_sentences(made: Claim, sentence: str) -> None:
    assert made.sentence() == sentence


@pytest.mark.parametrize("made", [made for made, _ in SENTENCES], ids=["pure", "delta", "rho", "insecure"])
def test_claims_survive_a_file_exactly(made: Claim) -> None:
    assert Claim.from_json(json.loads(json.dumps(made.as_json()))) == made


@pytest.mark.parametrize(
    "promise",
    [*(Promise.of(epsilon=e, delta=d) for e in (0.01, 0.3, 1, 2.5, 6) for d in (None, 1e-6, 0.1))]
    + [Promise.of(rho=rho) for rho in (0.001, 0.1, 1, 5)],
    ids=str,
)
def test_no_test_between_neighbours_guesses_better(promise: Promise) -> None:
    """Randomised response with δ, and two normal distributions, are the hardest cases of a promise."""
    bound = best_guess(promise)
    if promise.rho is not None:
        # Of deviation 1 and means √(2ρ) apart.
        attained = 0.5 * (1.0 + math.erf(math.sqrt(float(promise.rho)) / 2.0))
    else:
        assert promise.epsilon is not None
        odds = math.exp(float(promise.epsilon))
        attained = float(promise.delta) + (1.0 - float(promise.delta)) * odds / (1.0 + odds)
    assert 0.5 < attained <= bound + 1e-12
    assert bound == pytest.approx(attained, rel=0.13 if promise.rho is not None else 1e-12)
    shown = float(in_plain_words(promise).rpartition("at most ")[2].partition(" times")[0]) / 100
    assert bound - 1e-9 <= shown < bound + 0.01


def test_a_factor_is_never_rounded_down() -> None:
    for epsilon in np.geomspace(1e-3, 13.0, 200):
        words = in_plain_words(Promise.of(epsilon=float(epsilon)))
        shown = float(words.partition("at most ")[2].partition(" times as likely")[0].replace(",", ""))
        assert math.exp(epsilon) * (1 - 1e-9) <= shown <= math.exp(epsilon) * 1.011


def test_rationals_are_stored_exactly() -> None:
    stored = claim(Promise.of(epsilon=Fraction(1, 3), delta=1e-6)).as_json()
    assert (stored["epsilon"], stored["delta"]) == ("1/3", "1/1000000")


def test_repr_names_what_matters() -> None:
    text = repr(claim(Promise.of(rho=0.5), unit="person", records_per_unit=4, secure=False))
    assert text == (
        "Claim(rho=0.5, unit='person', records_per_unit=4, relation='add/remove', "
        "mechanism='discrete laplace', arithmetic='exact integers', secure=False)"
    )


def test_relations() -> None:
    assert Relation.of("replace") is Relation.REPLACE
    with pytest.raises(ClaimError, match="relation must be 'add/remove' or 'replace'"):
        Relation.of("swap")


def test_what_a_claim_assumes_is_stored_and_said_and_none_leaves_no_trace() -> None:
    plain = claim(Promise.of(epsilon=1.0))
    assert "assumptions" not in plain.as_json()
    assert "assum" not in plain.sentence() + repr(plain)
    assumed = replace(plain, assumptions=("the list of classes is public",))
    assert assumed != plain
    assert Claim.from_json(assumed.as_json()) == assumed
    assert assumed.sentence().endswith("This assumes that the list of classes is public.")
    for nonsense in ("public", [1], None):
        with pytest.raises(TypeError):
            Claim.from_json({**plain.as_json(), "assumptions": nonsense})
