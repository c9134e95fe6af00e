"""The sensitivity behind the claims of summarization, on ladders that one record shifts; and their noise.

A ladder: at every round the extra record takes a place, and everyone behind it moves by one, so that the
streams of neighbours differ in every round. Deterministic, except the noise audits, whose false-alarm rate is
that of `hushsum.auditing`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.auditing import audit_gaussian
from hushsum.summarize import SummaryFeatures, Terms
from hushsum.summarize.calibration import record_squared, sum_squared, sum_variance
from hushsum.summarize.features import Integers
from hushsum.summarize.messages import FRESH, THRESHOLD
from hushsum.summarize.running_sums import FactoredSums, FreshSums
from tests.unit.summarize.worlds import sums_under, terms_of

CIRCLE = SummaryFeatures(dim=1, bandwidth=1.0, features=1, seed=3)
"""One pair of features: points on a circle, where two may be opposite."""

LESS = 0.8


def directions_of(rng: np.random.Generator, rounds: int) -> list[Integers]:
    """Directions that turn: whoever was pushed out in one round is the best of the next, and pushes on."""
    angles = rng.uniform(0, 2 * np.pi) + rng.uniform(0.2, 1.2) * np.arange(rounds)
    return [np.rint(1e6 * np.array([np.cos(a), np.sin(a)])).astype(np.int64) for a in angles]


def furthest(terms: Terms, *, worlds: int, crowd: int, weigh: Callable[[list[Integers]], float]) -> float:
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


def factored(terms: Terms) -> Callable[[list[Integers]], float]:
    """How far all outputs of the factorised mechanism move together."""
    c = FactoredSums.coefficients(terms.rounds - 1).astype(float)

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
        terms = Terms(**{name: getattr(terms, name) for name in terms.__slots__} | {"cap": None})
    declared = sum_squared(terms)
    found = furthest(terms, worlds=400, crowd=12, weigh=factored(terms))
    assert found <= declared
    if cap is None:
        assert found > LESS**2 * declared
    else:
        assert found > declared / 4, "a copy that forgets the displaced point would pass"


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


def noise_of(sums: FreshSums | FactoredSums) -> Callable[[int], NDArray[np.int64]]:
    def draw(size: int) -> NDArray[np.int64]:
        variance = sums.variance
        new = FreshSums(size, variance) if isinstance(sums, FreshSums) else FactoredSums(size, 4, variance)
        return new.release(np.zeros(size, np.int64), insecure_noise_seed=7)

    return draw


@pytest.mark.parametrize("sums", [FreshSums(1, Fraction(4)), FactoredSums(1, 4, Fraction(4))])
def test_the_noise_keeps_its_curve_and_a_fifth_less_is_caught(sums: FreshSums | FactoredSums) -> None:
    assert audit_gaussian(noise_of(sums), 4, shift=2).holds
    sums.variance = Fraction(4) * Fraction(64, 100)
    assert not audit_gaussian(noise_of(sums), 4, shift=2).holds


def test_the_variance_is_that_of_the_declared_sensitivity() -> None:
    for terms in (terms_of(FRESH), terms_of(THRESHOLD)):
        assert terms.rho is not None
        assert sum_variance(terms) == Fraction(sum_squared(terms)) / (2 * terms.rho)
    terms = terms_of(THRESHOLD)
    assert sum_squared(terms) == 4 * record_squared(terms.features) * FactoredSums.column_squared(3)
