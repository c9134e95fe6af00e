"""Coins of finitely many bits: an outcome less likely than their last bit would never be drawn.

An attacker who sees such an outcome knows which of two neighbours it came from, whatever ε or ρ was claimed.
Here the random bits are chosen by the test, so that both outcomes of every coin must be reachable.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hushsum.parties.summarization import AUCTION, CuratorState, SummaryFeatures, plan_terms, release_target
from hushsum.privacy import _calibration as draws
from hushsum.privacy import release_noise
from hushsum.privacy.noise import NoiseSource, flip, flip_log_odds, independent_places, log_odds_coins
from tests.source_trees import source_trees

WORD = 1 << 64


class ChosenKey:
    """A key whose stream is one byte, over and over."""

    def __init__(self, byte: int) -> None:
        self.byte = byte

    def keystream(self, *_: int, counter: int, blocks: int) -> bytes:
        return bytes([self.byte]) * (64 * blocks)


class ChosenStream:
    draw = 0

    def __init__(self, byte: int) -> None:
        self.key = ChosenKey(byte)

    def more_bits(self, index: int, *, acceptance: bool = False) -> Callable[[int], int]:
        return lambda i: int.from_bytes(bytes([self.key.byte]) * 8, "little")


class ChosenSource:
    """Random bits that the attacker hopes for: all zero, or all one."""

    def __init__(self, byte: int) -> None:
        self.byte = byte

    def stream(self) -> ChosenStream:
        return ChosenStream(self.byte)

    @contextlib.contextmanager
    def for_release(self, seed: int | None) -> Iterator[ChosenSource]:
        yield self


def auction(owners: int, rate: Fraction) -> CuratorState:
    names = tuple(f"owner {i:02}" for i in range(owners))
    features = SummaryFeatures(dim=2, bandwidth=1.0, features=4, seed=1)
    terms = plan_terms(features, names, 10, Fraction(10**6), rule=AUCTION, rounds=2, rate=rate)
    points = np.random.default_rng(1).normal(size=(5, 2))
    curator = CuratorState(terms, release_target(features, points, 1.0, insecure_noise_seed=1))
    curator._bids = {name: -place for place, name in enumerate(names)}
    return curator


@pytest.mark.parametrize(("byte", "requested"), [(0x00, 12), (0xFF, 0)])
def test_every_answer_of_an_auction_is_possible(
    byte: int, requested: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a rate of 7 the ranks from 1 to 12 are requested with probabilities from 1 − 2⁻⁴⁵ to 2⁻⁶⁵."""
    curator = auction(12, Fraction(7))
    monkeypatch.setattr(draws, "NoiseSource", ChosenSource(byte))
    curator._ask()
    assert len(curator._requested) == requested


def test_the_auction_asks_with_the_claimed_log_odds() -> None:
    """Of 4,000 rounds each rank is requested as often as 1/(1 + e^(rate·(rank − middle))); 5 deviations."""
    curator = auction(8, Fraction(1, 2))
    hits = np.zeros(8)
    names = list(curator._bids)
    for _ in range(4000):
        curator._ask()
        hits += [name in curator._requested for name in names]
    chances = 1.0 / (1.0 + np.exp(0.5 * (np.arange(1, 9) - float(curator._middle))))
    assert (np.abs(hits - 4000 * chances) < 5 * np.sqrt(4000 * chances * (1 - chances))).all()


@pytest.mark.parametrize(
    "against",
    [Fraction(x) for x in (0, 1, 3)]
    + [Fraction(1, 3), Fraction(25), Fraction(43), Fraction(100), Fraction(7, 10**9)],
)
def test_a_coin_is_decided_where_its_probability_ends(against: Fraction) -> None:
    """The last uniform number below the probability gives true, the next one false, at 256 bits."""
    with mpmath.workprec(400):
        x = mpmath.mpf(against.numerator) / against.denominator
        coins: list[tuple[mpmath.mpf, Callable[[Callable[[int], int]], bool]]] = [
            (1 / (1 + mpmath.exp(x)), lambda more: flip_log_odds(against, more)),
            (1 / (1 + mpmath.exp(-x)), lambda more: flip_log_odds(-against, more)),
            (mpmath.exp(-x), lambda more: flip(against, more)),
        ]
        for chance, coin in coins:
            last = int(mpmath.floor(chance * mpmath.mpf(2) ** 256))
            if last == chance * mpmath.mpf(2) ** 256:
                continue  # one half, or one: nothing lies on the boundary
            for shift, expected in ((-1, True), (1, False)):
                digits = last + shift
                words = [(digits >> (192 - 64 * i)) % WORD for i in range(4)]
                assert coin(words.__getitem__) is expected


def test_coins_are_independent_of_their_neighbours() -> None:
    """A coin takes bits of its own: what the others' log-odds are does not move it."""
    one = log_odds_coins([Fraction(1)] * 40, NoiseSource.insecure(3))
    other = log_odds_coins([Fraction(1), Fraction(-50)] * 20, NoiseSource.insecure(3))
    assert one[::2] == other[::2]


def test_the_coin_of_the_posterior_s_rejection_step_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    with release_noise(insecure_noise_seed=1) as noise:
        monkeypatch.setattr(noise, "_source", ChosenSource(0), raising=True)
        assert noise.coin(80.0), "e^−80 is below the last bit of any float near 1"
        assert noise.coin(1e-20)
        monkeypatch.setattr(noise, "_source", ChosenSource(0xFF), raising=True)
        assert not noise.coin(1e-17), "1 − 1e−17 is no float"
        assert noise.coin(0.0)


def test_places_are_exactly_uniform() -> None:
    """A word beyond the last whole multiple of the number of places is drawn again."""
    words = [WORD - 1, 5, 7]

    class Key:
        def keystream(self, *_: int, counter: int, blocks: int) -> bytes:
            return b"".join(words[counter + i].to_bytes(8, "little") * 8 for i in range(blocks))

    class Stream(ChosenStream):
        def __init__(self) -> None:
            self.key = Key()  # type: ignore[assignment]

    class Source(ChosenSource):
        def stream(self) -> ChosenStream:
            return Stream()

    assert independent_places(8, 10, Source(0)).tolist() == [5] * 8  # type: ignore[arg-type]
    assert independent_places(8, 16, Source(0)).tolist() == [15] * 8  # type: ignore[arg-type]


OTHER_RANDOMNESS = {
    "auditing": "attacks and simulations",
    "operations": "synthetic and public data",
    "cli/demo.py": "a synthetic payroll",
    "planning": "simulated queries",
    "models": "post-processing of released functions",
    "analysis": "post-processing of released functions",
    "methods/_linear_models.py": "post-processing",
    "tables/_base.py": "products of a reading's coefficients, for covariances of answers",
    "tables/_fourier_features.py": "a public seed: where the search for points in a released table begins",
    "tables/_grid.py": "places of records and queries at which the error of a reading is bounded",
    "methods/_grid.py": "predictions: simulated queries",
    "baselines/_real_functions.py": "public seeds: which candidates are listed, where the points lie",
    "methods/_landmarks.py": "a public seed: points drawn from the released tree",
    "releases/_tables.py": "simulated noise, for the width of simultaneous intervals",
    "records/_declared_columns.py": "synthetic values, drawn from labels that were released",
    "service/http/routes/datasets.py": "made-up records, public by construction",
}


def test_no_other_generator_stands_behind_a_claim() -> None:
    """Generators of floats occur only where they bear on no claim; a new place must be argued here."""
    for place, tree in source_trees().items():
        if any(place.startswith(each) for each in OTHER_RANDOMNESS):
            continue
        for node in ast.walk(tree):
            named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "module", None)
            imported = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert named != "random", place
            assert "random" not in imported, place


def test_probabilities_beyond_a_float_s_last_bit_are_kept() -> None:
    """The logistic law of the coins, against high precision, at odds of e^±700."""
    assert math.exp(-700.0) > 0
    assert not flip_log_odds(Fraction(700), lambda i: 1 if i == 0 else 0)
    assert flip_log_odds(Fraction(-700), lambda i: WORD - 1 if i < 15 else 0)
