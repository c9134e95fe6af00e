"""Small runs, and two neighbouring worlds under the same broadcasts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.parties.summarization import (
    FRESH,
    SEND,
    THRESHOLD,
    Broadcast,
    CuratorState,
    OwnerState,
    RunTerms,
    SummaryFeatures,
    count_step,
    plan_terms,
    release_target,
)

FEATURES = SummaryFeatures(dim=2, bandwidth=1.0, features=20, seed=3)


def terms_of(rule: str = FRESH, *, features: SummaryFeatures = FEATURES, **changes: object) -> RunTerms:
    settings: dict[str, object] = {"size": 12, "rounds": 4, "rule": rule}
    settings.update(changes)
    if rule == "auction":
        settings.setdefault("rate", Fraction(1, 10))
    return plan_terms(features, ("a", "b"), rho=Fraction(1), **settings)  # type: ignore[arg-type]


def records(seed: int, count: int = 30) -> Floats:
    result: Floats = np.random.default_rng(seed).normal(size=(count, 2))
    return result


def parties(terms: RunTerms, *, seed: int = 1) -> tuple[CuratorState, dict[str, OwnerState]]:
    target = release_target(terms.features, records(9), 1.0, insecure_noise_seed=seed)
    curator = CuratorState(terms, target, insecure_noise_seed=seed)
    own = terms.features if terms.hashed else None
    owners = {
        name: OwnerState(name, records(i), terms, insecure_noise_seed=seed + i, features=own)
        for i, name in enumerate(terms.owners)
    }
    return curator, owners


def play(curator: CuratorState, owners: dict[str, OwnerState]) -> None:
    while not curator.done:
        curator.advance()
        for name, broadcast in curator.outgoing().items():
            curator.take(owners[name].answer(broadcast))


def sums_under(
    terms: RunTerms, data: dict[str, Floats], directions: list[Integers], thresholds: list[int]
) -> list[Integers]:
    """The exact sums (features and count) after each round of given broadcasts, through the real states."""
    target = release_target(terms.features, data["a"], 1.0, insecure_noise_seed=1)
    curator = CuratorState(terms, target, insecure_noise_seed=1)
    owners = {name: OwnerState(name, data[name], terms) for name in terms.owners}
    total: Integers = np.zeros(terms.features.width + 1, np.int64)
    sums = []
    for number, (direction, threshold) in enumerate(zip(directions, thresholds, strict=True), start=1):
        bar = threshold if terms.rule == THRESHOLD else None
        quota = 0 if terms.rule == THRESHOLD else terms.batch
        broadcast = Broadcast(terms.run, number, number, SEND, direction, bar, quota=quota)
        curator._current, curator._step, curator._awaited = broadcast, number, set(terms.owners)
        for owner in owners.values():
            curator.take(owner.answer(broadcast))
        total = total + curator.collected.increment(count_step(terms.features))
        sums.append(total)
    return sums
