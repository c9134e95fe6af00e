"""Releases of declared parts: no unit loses more than the ledger's total, however it changes.

Every mechanism here is as bad as its claim allows, so the true loss of a list of releases can be computed
exactly for every pair of neighbouring datasets and compared with the account.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import pytest

from hushsum.errors import BudgetExhausted, ClaimError
from hushsum.ledger import Account, Charge, DatasetTerms, Ledger, charge_for
from hushsum.privacy import Relation
from tests.ledger_fixtures import claim_of, sqlite, state

__all__ = ["sqlite", "state"]

PARTS = ("north", "south")
RECORDS = [(part, value) for part in PARTS for value in (-1, 1)]
"""What one record can be: a part, and a value that enters the part's sum."""

Dataset = tuple[tuple[str, int], ...]
Release = tuple[str | None, float]
"""The part that is read, and the ε, δ or ρ of its claim."""

LISTS: list[list[Release]] = [
    [("north", 1.0)],
    [("north", 1.0), ("south", 1.0)],
    [("north", 0.75), ("south", 0.25)],
    [(None, 0.5), ("north", 0.25), (None, 0.125), ("south", 0.75), ("north", 0.5)],
]


def neighbours(relation: Relation, records: int = 1) -> Iterator[tuple[Dataset, Dataset]]:
    """Pairs of datasets that differ in one unit of up to ``records`` records, spread over the parts."""
    held = [each for size in range(records + 1) for each in combinations_with_replacement(RECORDS, size)]
    common: Dataset = (("north", 1), ("south", -1))
    for left, right in product(held, held):
        if relation is Relation.ADD_REMOVE and left and right:
            continue
        if relation is Relation.REPLACE and records == 1 and len(left) != len(right):
            continue
        yield common + left, common + right


def moves(pair: tuple[Dataset, Dataset], releases: list[Release]) -> list[int]:
    """How many add/remove steps apart each release's own records are, at worst over what the rest holds."""
    found = []
    for part, _ in releases:
        sums = [sum(value for home, value in data if part in (None, home)) for data in pair]
        found.append(abs(sums[0] - sums[1]))
    return found


def spent(terms: DatasetTerms, releases: list[Release], kind: str) -> Charge:
    account = Account.opened(terms)
    for part, amount in releases:
        if kind == "epsilon and delta":
            claim = claim_of(epsilon=amount, delta=1e-3)
        else:
            claim = claim_of(epsilon=amount) if kind == "epsilon" else claim_of(rho=amount)
        account = account.charged(charge_for(claim, terms, part=part), part=part)
    return account.spent


def terms_of(kind: str, relation: Relation, records: int) -> DatasetTerms:
    budget = {"rho": {"rho": 100}, "epsilon": {"epsilon": 100}}.get(kind, {"epsilon": 100, "delta": 0.9})
    person = {"unit": "person", "max_per_unit": records} if records > 1 else {}
    return DatasetTerms.of(**budget, **person, relation=relation, partition=PARTS)  # type: ignore[arg-type]


def stepwise(epsilon: float, delta: float, step: int) -> float:
    """The probability of one answer, (ε, δ)-private from step to step and no better over several of them."""
    return delta * sum(math.exp(epsilon * i) for i in range(step))


def hockey_stick(epsilon: float, pairs: list[tuple[float, float]]) -> float:
    """δ(ε) of independent binary answers with these probabilities in both worlds."""
    total = 0.0
    for answers in product((False, True), repeat=len(pairs)):
        p, q = (
            math.prod(
                pair[world] if answer else 1 - pair[world]
                for answer, pair in zip(answers, pairs, strict=True)
            )
            for world in (0, 1)
        )
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("releases", LISTS)
@pytest.mark.parametrize("records", [1, 2])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
class TestNoUnitLosesMore:
    def test_epsilon(self, relation: Relation, records: int, releases: list[Release]) -> None:
        """A sum with Laplace noise of scale 1/ε, moved by k, has log ratios of k·ε."""
        total = spent(terms_of("epsilon", relation, records), releases, "epsilon").epsilon
        losses = [
            sum(step * amount for step, (_, amount) in zip(moves(pair, releases), releases, strict=True))
            for pair in neighbours(relation, records)
        ]
        assert max(losses) <= total
        if len(releases) == 1:
            assert max(losses) == total, "the price of one release is reached"

    def test_rho(self, relation: Relation, records: int, releases: list[Release]) -> None:
        """A sum with Gaussian noise, moved by k, is exactly k²·ρ."""
        total = spent(terms_of("rho", relation, records), releases, "rho").rho
        losses = [
            sum(step**2 * amount for step, (_, amount) in zip(moves(pair, releases), releases, strict=True))
            for pair in neighbours(relation, records)
        ]
        assert max(losses) <= total
        if len(releases) == 1:
            assert max(losses) == total

    def test_epsilon_and_delta(self, relation: Relation, records: int, releases: list[Release]) -> None:
        """One answer that is never given, then with δ, δ(1 + e^ε), …: step by step as bad as claimed."""
        charge = spent(terms_of("both", relation, records), releases, "epsilon and delta")
        worst = 0.0
        for pair in neighbours(relation, records):
            laws = [
                (stepwise(amount, 1e-3, step), 0.0)
                for step, (_, amount) in zip(moves(pair, releases), releases, strict=True)
            ]
            worst = max(worst, hockey_stick(float(charge.epsilon), laws))
        assert worst <= float(charge.delta) * (1 + 1e-12)
        if len(releases) == 1:
            assert worst == pytest.approx(float(charge.delta))


@pytest.mark.parametrize("kind", ["epsilon", "both", "rho"])
def test_a_claim_that_assumes_fixed_sizes_is_refused_for_a_part(kind: str) -> None:
    """Replace keeps the size of what it reads; a unit that moves changes the sizes of two parts."""
    claim = {
        "epsilon": claim_of(epsilon=1, relation=Relation.REPLACE),
        "both": claim_of(epsilon=1, delta=1e-9, relation=Relation.REPLACE),
        "rho": claim_of(rho=1, relation=Relation.REPLACE),
    }[kind]
    for relation in Relation:
        with pytest.raises(ClaimError, match="add/remove"):
            charge_for(claim, terms_of(kind, relation, 1), part="north")


def test_a_ledger_refuses_what_a_replaced_record_would_lose(sqlite: str) -> None:
    ledger = Ledger.create(sqlite)
    ledger.create_dataset("sites", DatasetTerms.of(epsilon=1, relation="replace", partition=PARTS))

    def release(epsilon: float, part: str | None) -> None:
        budget = ledger.dataset("sites", part=part)
        budget.debit(claim_of(epsilon=epsilon), subject={}, idempotency_key=f"{part} {epsilon}")

    with pytest.raises(BudgetExhausted, match="ε 2"):
        release(1, "north")
    release(0.5, "north")
    release(0.5, "south")
    for part in (*PARTS, None):
        with pytest.raises(BudgetExhausted):
            release(0.1, part)
    ledger.verify()
