"""Private choices among candidates by scores of the private data: their calibration and their claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import ClaimError, shown
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.noise import NoiseSource
from hushsum.privacy.noise.choice_sampler import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    exponential_choice,
    permute_and_flip,
)
from hushsum.privacy.noise.coin_sampler import log_odds_coins
from hushsum.privacy.noise.random_stopping import Stopping, draw_runs
from hushsum.privacy.noise.source import independent_places

__all__ = [
    "EXPONENTIAL",
    "PERMUTE_AND_FLIP",
    "RANDOM_STOPPING",
    "Question",
    "Stopping",
    "choice_claim",
    "choice_promise",
    "choose_positions",
    "draw_candidates",
    "flip_coins",
    "random_places",
]

RANDOM_STOPPING = "random stopping"
_MECHANISMS: dict[str, Callable[[Sequence[int], Fraction, NoiseSource], int]] = {
    PERMUTE_AND_FLIP: permute_and_flip,
    EXPONENTIAL: exponential_choice,
}


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """Integer scores of the candidates, how far one unit moves them, and the ε of this choice; secret.

    ``sensitivity`` bounds the move of any one score. ``monotone`` states that a unit moves no two scores in
    opposite directions, which halves the noise: proven by the caller, as for counts under add/remove.
    """

    scores: Sequence[int]
    epsilon: Fraction
    sensitivity: int
    monotone: bool = False

    @property
    def rate(self) -> Fraction:
        """ε over the largest rise minus the smallest: Δ where scores move one way, 2Δ otherwise."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def __repr__(self) -> str:
        return f"<Question CONFIDENTIAL candidates={len(self.scores)}>"


def choose_positions(
    questions: Sequence[Question],
    *,
    mechanism: str = PERMUTE_AND_FLIP,
    insecure_noise_seed: int | None = None,
) -> list[int]:
    """The position chosen for each question, all from one fresh key; their ε add up."""
    choose = _MECHANISMS[mechanism]
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return [choose(question.scores, question.rate, source) for question in questions]


def draw_candidates(rule: Stopping, candidates: int, *, insecure_noise_seed: int | None) -> list[int]:
    """Which candidate each run takes, for a secret random number of runs."""
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return draw_runs(rule, candidates, source)


def random_places(size: int, places: int, *, insecure_noise_seed: int | None) -> NDArray[np.int64]:
    """A secret random place for each of ``size`` units, independent of the data and of each other."""
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return independent_places(size, places, source)


def flip_coins(against: Sequence[Fraction], *, insecure_noise_seed: int | None) -> list[bool]:
    """Independent coins, each true with probability 1/(1 + e^against), exactly: log-odds that move by r cost
    r²/8 of ρ, or r of pure ε.
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return log_odds_coins(against, source)


def choice_promise(epsilon: float | Fraction) -> Promise:
    """The promise of a choice, which is always pure."""
    return Promise.of(epsilon=epsilon)


def choice_claim(
    promise: Promise,
    mechanism: str,
    *,
    relation: str | Relation,
    max_per_unit: int | None,
    insecure_noise_seed: int | None,
    arithmetic: str = "exact integers",
    assumptions: Sequence[str] = (),
) -> Claim:
    """What a choice claims; known before anything is drawn."""
    if max_per_unit is not None and (type(max_per_unit) is not int or max_per_unit < 1):
        raise ClaimError(
            parameter="max_per_unit",
            rule="must be an integer of at least 1",
            got=shown(max_per_unit),
            remedy="give a cap",
        )
    return Claim(
        promise=promise,
        unit="record" if max_per_unit is None else "person",
        records_per_unit=max_per_unit or 1,
        relation=Relation.of(relation),
        mechanism=Mechanism.of(mechanism),
        arithmetic=arithmetic,
        secure=insecure_noise_seed is None,
        assumptions=tuple(assumptions),
    )
