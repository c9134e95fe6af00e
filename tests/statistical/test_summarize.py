"""The sensitivity behind the claims of summarization, on ladders that one record shifts; and their noise.

A ladder: at every round the extra record takes a place, and everyone behind it moves by one, so that the
streams of neighbours differ in every round. Deterministic, except the noise audits, whose false-alarm rate is
that of `hushsum.auditing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum._types import Integers
from hushsum.auditing import audit_gaussian
from hushsum.parties.summarization import (
    AUCTION,
    BID,
    DELIVER,
    FRESH,
    THRESHOLD,
    Broadcast,
    NoisySums,
    OwnerState,
    RunTerms,
    SummaryFeatures,
    count_step,
    factored_coefficients,
    plan_terms,
    record_squared,
    release_target,
    sum_squared,
    sum_variance,
)
from tests.unit.parties.summarization.neighbouring_runs import sums_under, terms_of

CIRCLE = SummaryFeatures(dim=1, bandwidth=1.0, features=1, seed=3)
"""One pair of features: points on a circle, where two may be opposite."""

LESS = 0.8


def directions_of(rng: np.random.Generator, rounds: int) -> list[Integers]:
    """Directions that turn: whoever was pushed out in one round is the best of the next, and pushes on."""
    angles = rng.uniform(0, 2 * np.pi) + rng.uniform(0.2, 1.2) * np.arange(rounds)
    return [np.rint(1e6 * np.array([np.cos(a), np.sin(a)])).astype(np.int64) for a in angles]


def furthest(terms: RunTerms, *, worlds: int, crowd: int, weigh: Callable[[list[Integers]], float]) -> float:
    """The largest weight of a difference between the sums of neighbours, over many ladders."""
    rng = np.random.default_rng(11)
    most = 0.0
    for _ in range(worlds):
        data = {name: rng.uniform(-2000, 2000, (crowd, 1)) for name in terms.owners}
        more = {**data, "a": np.insert(data["a"], rng.integers(crowd), rng.uniform(-2000, 2000), axis=0)}
        directions = directions_of(rng, terms.rounds)
        bars = [int(rng.uniform(0.3, 0.99) * 1e9) for _ in directions]
        left, right = (sums_under(terms, each, directions, bars) for each in (data, more))
        most = max(most, weigh([b - a for a, b in zip(left, right, strict=True)]))
    return most


def one_release(moves: list[Integers]) -> float:
    return max(float((move[:-1].astype(float) ** 2).sum()) for move in moves)


def factored(terms: RunTerms) -> Callable[[list[Integers]], float]:
    """How far all outputs of the factorised mechanism move together."""
    c = factored_coefficients(terms.rounds - 1).astype(float)

    def weigh(moves: list[Integers]) -> float:
        increments = np.diff(np.array([np.zeros_like(moves[0]), *moves[:-1]]), axis=0).astype(float)
        outputs = np.array([c[: t + 1][::-1] @ increments[: t + 1] for t in range(len(increments))])
        return float((outputs**2).sum())

    return weigh


def test_fresh_sums_of_neighbours_differ_by_one_point_for_another_on_shifted_ladders() -> None:
    terms = terms_of(FRESH, features=CIRCLE, size=8, rounds=8)
    declared = sum_squared(terms) / (terms.rounds - 1)
    found = furthest(terms, worlds=400, crowd=8, weigh=one_release)
    assert found <= declared
    assert found > LESS**2 * declared, "a copy that declares a fifth less would pass"
    assert found > declared / 4, "a copy that forgets the factor 2 would pass"


@pytest.mark.parametrize("cap", [None, 6])
def test_threshold_streams_differ_in_one_increment_or_two_with_a_cap(cap: int | None) -> None:
    terms = terms_of(THRESHOLD, features=CIRCLE, size=12, rounds=6, cap=cap or 10**6)
    if cap is None:
        terms = RunTerms(**{name: getattr(terms, name) for name in terms.__slots__} | {"cap": None})
    declared = sum_squared(terms)
    found = furthest(terms, worlds=400, crowd=12, weigh=factored(terms))
    assert found <= declared
    if cap is None:
        assert found > LESS**2 * declared
    else:
        assert found > declared / 4, "a copy that forgets the displaced point would pass"


def test_auction_sums_differ_by_one_point_for_another_and_ranks_by_one() -> None:
    """Under coins coupled as in the proof: the requested owner's own sums, and the ranks of all others."""
    names = tuple("abcd")
    terms = plan_terms(CIRCLE, names, 20, Fraction(1), rule=AUCTION, rounds=20, rate=Fraction(1, 100))
    rng = np.random.default_rng(4)
    declared = sum_squared(terms) / (terms.rounds - 1)
    furthest_sum, furthest_rank = 0.0, 0
    for _ in range(60):
        data = {name: rng.uniform(-2000, 2000, (8, 1)) for name in names}
        more = {**data, "a": np.insert(data["a"], 3, rng.uniform(-2000, 2000), axis=0)}
        worlds = [{name: OwnerState(name, each[name], terms) for name in names} for each in (data, more)]
        sums: list[Integers] = [np.zeros(CIRCLE.width, np.int64)] * 2
        for number, direction in enumerate(directions_of(rng, terms.rounds), start=1):
            bid = Broadcast(terms.run, 2 * number - 1, number, BID, direction)
            ranks = []
            for world in worlds:
                bids = {name: owner.answer(bid).bid for name, owner in world.items()}
                made = {name: each for name, each in bids.items() if each is not None}
                ranks.append(sorted(made, key=lambda name: (-made[name], name)))
            without, with_it = ({name: i for i, name in enumerate(each)} for each in ranks)
            moved = [abs(with_it[name] - without[name]) for name in names[1:] if name in without]
            furthest_rank = max([furthest_rank, *moved])
            assert with_it.get("a", 9) <= without.get("a", 9), "one record more never bids less"
            coins = {name: rng.random() < 0.5 for name in names}
            requested = [{**coins}, {**coins, "a": coins["a"] or rng.random() < 0.2 * (ranks[0] != ranks[1])}]
            for i, world in enumerate(worlds):
                for name, owner in world.items():
                    ask = replace(bid, step=2 * number, phase=DELIVER, requested=requested[i][name])
                    points = owner.answer(ask).points
                    if len(points):
                        sums[i] = sums[i] + CIRCLE.hashes(points).sum(axis=0, dtype=np.int64)
            furthest_sum = max(furthest_sum, float(((sums[1] - sums[0]).astype(float) ** 2).sum()))
    assert furthest_rank == 1
    assert LESS**2 * declared < furthest_sum <= declared


@pytest.mark.parametrize("rate", [0.01, 0.3, 2.0])
def test_a_coin_whose_odds_move_by_the_rate_keeps_an_eighth_of_its_square(rate: float) -> None:
    """Rényi divergences of both answers, in both directions, at every rank."""
    orders = np.array([1.0001, 1.5, 2.0, 8.0, 64.0])[:, None, None]
    odds = np.linspace(-30.0, 30.0, 401)[None, :, None]
    both = [np.stack([-np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)], axis=-1) for x in (odds, odds + rate)]
    worst = 0.0
    for p, q in (both, both[::-1]):
        mixed = orders * p[..., 0, :] + (1.0 - orders) * q[..., 0, :]
        divergence = np.logaddexp.reduce(mixed, axis=-1) / (orders[..., 0] - 1.0)
        worst = max(worst, float((divergence / orders[..., 0]).max()))
    assert worst <= rate**2 / 8 * (1 + 1e-6)
    assert worst > 0.7 * rate**2 / 8


def swaps(quota: int, batch: int, *, worlds: int, owners: int = 4, points: int = 24, rounds: int = 5) -> int:
    """How many points two neighbouring summaries differ by at most, with a pool of which ``batch`` are taken.

    Points are numbers, and every round ranks them all anew: what adversarial broadcasts can do.
    """
    rng = np.random.default_rng(5)
    most = 0
    for _ in range(worlds):
        owner = rng.integers(0, owners, points)
        ranks = [rng.permutation(points) for _ in range(rounds)]
        summaries = []
        for present in (range(points - 1), range(points)):
            unsent, pool, summary = set(present), set[int](), set[int]()
            for rank in ranks:
                sent: set[int] = set()
                for each in range(owners):
                    mine = sorted((i for i in unsent if owner[i] == each), key=rank.__getitem__)
                    sent.update(mine[:quota])
                unsent -= sent
                pool |= sent
                taken = sorted(pool, key=rank.__getitem__)[:batch]
                pool -= set(taken)
                summary |= set(taken)
            summaries.append(summary)
        most = max(most, len(summaries[1] - summaries[0]))
    return most


def test_a_pool_is_sound_only_where_every_owner_sends_as_much_as_a_round_takes() -> None:
    assert swaps(quota=2, batch=2, worlds=2000) == 1
    assert swaps(quota=1, batch=2, worlds=3000, owners=3, rounds=12, points=40) > 2


def noise_of(sums: NoisySums) -> Callable[[int], NDArray[np.int64]]:
    def draw(size: int) -> NDArray[np.int64]:
        new = NoisySums(size, sums.coefficients, sums.variance)
        return new.release(np.zeros(size, np.int64), insecure_noise_seed=7)

    return draw


@pytest.mark.parametrize(
    "sums", [NoisySums(1, c, Fraction(4)) for c in (np.ones(4, np.int64), factored_coefficients(4))]
)
def test_the_noise_keeps_its_curve_and_a_fifth_less_is_caught(sums: NoisySums) -> None:
    assert audit_gaussian(noise_of(sums), 4, shift=2).holds
    sums.variance = Fraction(4) * Fraction(64, 100)
    assert not audit_gaussian(noise_of(sums), 4, shift=2).holds


def test_the_validation_release_keeps_its_curve_and_a_fifth_less_is_caught() -> None:
    features = SummaryFeatures(dim=1, bandwidth=1.0, features=2048, seed=3)
    records = np.zeros((1, 1))
    exact = np.append(features.hashes(records)[0].astype(np.int64), count_step(features))

    def draws(variance: Fraction) -> Callable[[int], NDArray[np.int64]]:
        rho = Fraction(record_squared(features)) / (2 * variance)

        def draw(size: int) -> NDArray[np.int64]:
            parts = [
                release_target(features, records, rho, insecure_noise_seed=seed).cells - exact
                for seed in range(-(-size // exact.size))
            ]
            return np.concatenate(parts)[:size]

        return draw

    assert audit_gaussian(draws(Fraction(4)), 4, shift=2).holds
    assert not audit_gaussian(draws(Fraction(4) * Fraction(64, 100)), 4, shift=2).holds


def test_the_variance_is_that_of_the_declared_sensitivity() -> None:
    for terms in (terms_of(FRESH), terms_of(THRESHOLD)):
        assert terms.rho is not None
        assert sum_variance(terms) == Fraction(sum_squared(terms)) / (2 * terms.rho)
    terms = terms_of(THRESHOLD)
    assert sum_squared(terms) == 4 * record_squared(terms.features) * int(
        (factored_coefficients(3) ** 2).sum()
    )
