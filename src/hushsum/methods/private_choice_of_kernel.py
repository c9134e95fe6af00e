"""A kernel chosen by a private vote of disjoint blocks of the records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import is_number
from hushsum.errors import DataRefused, UsageError, shown
from hushsum.kernels.base import Batch, Kernel
from hushsum.kernels.parameters import check_cap, positive_integer
from hushsum.kernels.registry import kernel_as_json
from hushsum.privacy.budget import Budget
from hushsum.privacy.claim import Claim, Relation
from hushsum.privacy.private_choice import (
    PERMUTE_AND_FLIP,
    Question,
    choice_claim,
    choice_promise,
    choose_positions,
    random_places,
)
from hushsum.privacy.spending import Booking, spend_json
from hushsum.records.unit_ids import identify

C = TypeVar("C")
Judge = Callable[[Batch], int]

MOST_BLOCKS = 1 << 16
VOTE_SENSITIVITY = 1
_RECORDS_A_BLOCK = 128
"""A judge compares this many records of a block pairwise, the first ones: more would take more time."""


@dataclass(frozen=True, slots=True)
class Choice(Generic[C]):
    """What was chosen, and what the choice promises; public."""

    candidate: C
    index: int
    claim: Claim


def choose_kernel(
    X: object,
    candidates: Sequence[Kernel],
    *,
    epsilon: float,
    density: float = 0.05,
    blocks: int | None = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    units: object = None,
    max_per_unit: int | None = None,
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
) -> Choice[Kernel]:
    """The kernel under which two records are alike by ``density`` on average. Spends ``epsilon``.

    A bandwidth chosen so keeps kernel sums clear of the noise, whose size relative to the mean kernel value
    ``hs.plan(density=...)`` predicts, without blurring everything into one. It does not know what the kernel
    sums are for: if domain knowledge gives a bandwidth, use that instead, at no cost.

    Works well with a few hundred records per block. With candidates between which the blocks are split, any
    of them may be chosen.

    Parameters
    ----------
    X : records as the kernels take them
        Private; rows of numbers or codes.
    candidates : list of Kernel
        One kernel with several bandwidths or powers, declared before the data are seen.
    density : float
        The desired mean kernel value, above 0 and below 1.
    blocks : int, optional
        How many votes there are; default ``8·ln(20·candidates)/epsilon``, enough for a majority of a half to
        win with high probability.
    units, max_per_unit
        Give both to protect persons: all of a person's records are in one block, however many they are.
    relation, budget, idempotency_key, insecure_noise_seed
        As for ``Tally.release``.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule.
    BudgetExhausted
        if the budget has too little left; nothing is released.

    Privacy
    -------
    Pure ε. Every unit, a record or a person with all its records, goes into a block of its own random choice.
    Give the other units the same blocks in both of two neighbours, and a replaced unit its predecessor's:
    then only one block differs, which has one vote. The vote may leave one candidate for another, so no score
    moves by more than Δ = 1, under add/remove and replace, whatever the judge of a block computes; the choice
    given the blocks is pure ε, and so is its average over the blocks (sample and aggregate: Nissim,
    Raskhodnikova & Smith 2007). One candidate is taken by permute-and-flip.

    Examples
    --------
    >>> import hushsum as hs
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> kernels = [hs.EuclideanKernel(dim=2, bandwidth=h) for h in (0.01, 0.1, 1.0, 10.0)]
    >>> hs.choose_kernel(X, kernels, epsilon=1.0, density=0.05).candidate.bandwidth
    0.1
    """
    _check_candidates(candidates)
    if not is_number(density) or not 0.0 < density < 1.0:
        raise UsageError(
            parameter="density", rule="must be above 0 and below 1", got=shown(density), remedy="try 0.05"
        )
    check_cap(units, max_per_unit)
    promise = choice_promise(epsilon)
    assert promise.epsilon is not None
    number = _blocks(blocks, promise.epsilon, len(candidates))
    claim = choice_claim(
        promise,
        PERMUTE_AND_FLIP,
        relation=relation,
        max_per_unit=max_per_unit,
        insecure_noise_seed=insecure_noise_seed,
    )
    batch = candidates[0].prepare(X)
    if len(batch.arrays) != 1:
        raise UsageError(
            rule="a vote needs rows of numbers or codes",
            got="sets",
            remedy="choose the kernel by the subject",
        )
    unit = _units(units, len(batch))

    def judge(block: Batch) -> int:
        return _nearest(block, candidates, math.log(density))

    def make() -> dict[str, object]:
        places = random_places(int(unit.max()) + 1, number, insecure_noise_seed=insecure_noise_seed)
        votes = count_votes(batch, places[unit], number, judge, len(candidates))
        question = Question(votes, claim.promise.epsilon or Fraction(0), VOTE_SENSITIVITY)
        return {"candidate": choose_positions([question], insecure_noise_seed=insecure_noise_seed)[0]}

    subject: dict[str, object] = {
        "choice": "kernel",
        "candidates": [kernel_as_json(each) for each in candidates],
        "density": density,
        "blocks": number,
    }
    index = int(spend_json(Booking.of(budget, idempotency_key), claim, subject, make)["candidate"])
    return Choice(candidates[index], index, claim)


def count_votes(
    batch: Batch, place: NDArray[np.int64], blocks: int, judge: Judge, candidates: int
) -> list[int]:
    """How many blocks vote for each candidate; secret. A block with fewer than two records has no vote."""
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=blocks))
    votes = [0] * candidates
    start = 0
    for end in ends.tolist():
        members = order[start : min(end, start + _RECORDS_A_BLOCK)]
        start = end
        if len(members) > 1:
            votes[judge(Batch((batch.arrays[0][members],), len(members)))] += 1
    return votes


def _nearest(block: Batch, candidates: Sequence[Kernel], target: float) -> int:
    """The candidate whose mean kernel value over pairs of different records is nearest, on a log scale."""
    pairs = len(block) * (len(block) - 1)
    distances = []
    for kernel in candidates:
        values = kernel._pairwise(block, block)
        mean = (float(values.sum()) - float(np.trace(values))) / pairs
        distances.append(abs(math.log(mean) - target) if mean > 0.0 else math.inf)
    return distances.index(min(distances))


def _units(units: object, records: int) -> NDArray[np.intp]:
    """The number of each record's unit: its own, or its person's."""
    if units is None:
        return np.arange(records)
    person = identify(units).person
    if len(person) != records:
        raise DataRefused(
            parameter="units",
            rule="must have one id for each record",
            got="another number",
            remedy="align them",
        )
    return person


def _blocks(blocks: int | None, epsilon: Fraction, candidates: int) -> int:
    if blocks is None:
        return min(max(math.ceil(8.0 * math.log(20.0 * candidates) / float(epsilon)), 16), MOST_BLOCKS)
    return positive_integer("blocks", blocks, at_most=MOST_BLOCKS)


def _check_candidates(candidates: Sequence[Kernel]) -> None:
    if not candidates:
        raise UsageError(
            parameter="candidates",
            rule="must name at least one kernel",
            got="none",
            remedy="list what may be chosen",
        )
    first = candidates[0]
    for each in candidates:
        if type(each) is not type(first) or each.dim != first.dim:
            raise UsageError(
                parameter="candidates",
                rule="must be one kernel with several bandwidths or powers",
                got="different kernels",
                remedy="choose the kernel by the subject",
            )
