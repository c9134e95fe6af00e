"""Private choices: a kernel by the vote of disjoint blocks, and the best of many releases."""

from __future__ import annotations

import base64
import dataclasses
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypedDict, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from hushsum._types import is_number
from hushsum.declaration import shows_keywords
from hushsum.errors import Argument, ClaimError, Parameter, UsageError, Words, shown
from hushsum.kernels import Batch, Kernel, check_cap, kernel_as_json, one_of, positive_integer
from hushsum.privacy import (
    EXACT_INTEGERS,
    PERMUTE_AND_FLIP,
    RANDOM_STOPPING,
    REAL_ARITHMETIC,
    Booking,
    Budget,
    Claim,
    Promise,
    Question,
    Relation,
    Stopping,
    choice_claim,
    choose_positions,
    draw_candidates,
    random_places,
    spend_json,
)
from hushsum.records import identify
from hushsum.releases import ReleasedFunction, file_bytes, load_function

__all__ = ["VOTE_SENSITIVITY", "Choice", "choose", "choose_kernel", "count_votes"]

C = TypeVar("C")
Judge = Callable[[Batch], int]

MOST_BLOCKS = 1 << 16
VOTE_SENSITIVITY = 1
# A judge compares this many records of a block pairwise, the first ones: more would take more time.
_RECORDS_A_BLOCK = 128


class ChoiceKeywords(TypedDict, total=False):
    """The keyword arguments that every private choice takes, as for ``Tally.release``."""

    relation: str | Relation
    max_per_unit: int | None
    budget: Budget | None
    idempotency_key: str | None
    insecure_noise_seed: int | None


@dataclass(frozen=True, slots=True)
class ChoiceRequest:
    """A pure-ε choice: its claim, known before anything is drawn, and where it is debited."""

    epsilon: Fraction
    claim: Claim
    booking: Booking | None
    insecure_noise_seed: int | None

    @classmethod
    def of(
        cls,
        mechanism: str,
        epsilon: float,
        *,
        arithmetic: str = EXACT_INTEGERS,
        assumptions: Sequence[str] = (),
        **keywords: Unpack[ChoiceKeywords],
    ) -> ChoiceRequest:
        """Check what is requested; raises UsageError or ClaimError."""
        promise, seed = Promise.of(epsilon=epsilon), keywords.get("insecure_noise_seed")
        assert promise.epsilon is not None
        claim = choice_claim(
            promise,
            mechanism,
            relation=keywords.get("relation", Relation.ADD_REMOVE),
            max_per_unit=keywords.get("max_per_unit"),
            insecure_noise_seed=seed,
            arithmetic=arithmetic,
            assumptions=assumptions,
        )
        booking = Booking.of(keywords.get("budget"), keywords.get("idempotency_key"))
        return cls(promise.epsilon, claim, booking, seed)

    def positions(self, questions: Sequence[Question]) -> list[int]:
        """The position that is chosen for each question."""
        return choose_positions(questions, insecure_noise_seed=self.insecure_noise_seed)

    def spend(self, subject: Mapping[str, object], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Debit the claim and make the result; a retry returns the staged one."""
        return spend_json(self.booking, self.claim, subject, make)


@dataclass(frozen=True, slots=True)
class Choice(Generic[C]):
    """What was chosen, and what the choice promises; public."""

    candidate: C
    index: int
    claim: Claim


@shows_keywords(ChoiceKeywords, relation=Relation.ADD_REMOVE)
def choose_kernel(
    X: object,
    candidates: Sequence[Kernel],
    *,
    epsilon: float,
    density: float = 0.05,
    blocks: int | None = None,
    units: object = None,
    **keywords: Unpack[ChoiceKeywords],
) -> Choice[Kernel]:
    """Choose the kernel whose mean value between two records is nearest to ``density``. Spends ``epsilon``.

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
    units : array, optional
        Who each record is of; with ``max_per_unit`` this protects persons: all of a person's records are in
        one block, however many they are.
    **keywords
        ``max_per_unit``, ``relation``, ``budget``, ``idempotency_key`` and ``insecure_noise_seed`` as for
        ``Tally.release``.

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
    >>> hs.methods.choose_kernel(X, kernels, epsilon=1.0, density=0.05).candidate.bandwidth
    0.1
    """
    _check_candidates(candidates)
    if not is_number(density) or not 0.0 < density < 1.0:
        raise UsageError("density", "must be above 0 and below 1", got=shown(density), remedy="try 0.05")
    check_cap(units, keywords.get("max_per_unit"))
    request = ChoiceRequest.of(PERMUTE_AND_FLIP, epsilon, **keywords)
    number = _blocks(blocks, request.epsilon, len(candidates))
    batch = candidates[0].prepare(X)
    if len(batch.arrays) != 1:
        raise UsageError(
            "a vote needs rows of numbers or codes", got="sets", remedy="choose the kernel by the subject"
        )
    unit = _units(units, len(batch))

    def judge(block: Batch) -> int:
        return _nearest(block, candidates, math.log(density))

    def make() -> dict[str, object]:
        seed = request.insecure_noise_seed
        places = random_places(int(unit.max()) + 1, number, insecure_noise_seed=seed)
        votes = count_votes(batch, places[unit], number, judge, len(candidates))
        return {"candidate": request.positions([Question(votes, request.epsilon, VOTE_SENSITIVITY)])[0]}

    subject: dict[str, object] = {
        "choice": "kernel",
        "candidates": [kernel_as_json(each) for each in candidates],
        "density": density,
        "blocks": number,
    }
    index = int(request.spend(subject, make)["candidate"])
    return Choice(candidates[index], index, request.claim)


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
    return np.arange(records) if units is None else identify(units, records).person


def _blocks(blocks: int | None, epsilon: Fraction, candidates: int) -> int:
    if blocks is None:
        return min(max(math.ceil(8.0 * math.log(20.0 * candidates) / float(epsilon)), 16), MOST_BLOCKS)
    return positive_integer("blocks", blocks, at_most=MOST_BLOCKS)


def _check_candidates(candidates: Sequence[Kernel]) -> None:
    if not candidates:
        raise UsageError(
            "candidates", "must name at least one kernel", got="none", remedy="list what may be chosen"
        )
    first = candidates[0]
    for each in candidates:
        if type(each) is not type(first) or each.dim != first.dim:
            rule = "must be one kernel with several bandwidths or powers"
            remedy = "choose the kernel by the subject"
            raise UsageError("candidates", rule, got="different kernels", remedy=remedy)


@dataclasses.dataclass(frozen=True, slots=True)
class ChosenRelease(Generic[C]):
    """The candidate that won and the function released with it, whose claim is that of the whole choice."""

    candidate: C
    index: int
    function: ReleasedFunction

    @property
    def claim(self) -> Claim:
        """What the choice and its function promise together."""
        return self.function.claim


@shows_keywords(ChoiceKeywords, relation=Relation.ADD_REMOVE)
def choose(
    candidates: Sequence[C],
    run: Callable[[C, float], ReleasedFunction],
    score: Callable[[ReleasedFunction], float],
    *,
    epsilon: float,
    runs: float | None = None,
    stopping: str = "geometric",
    arithmetic: str = EXACT_INTEGERS,
    assumptions: Sequence[str] = (),
    **keywords: Unpack[ChoiceKeywords],
) -> ChosenRelease[C]:
    """Release candidates taken at random, a random number of times, and keep the best. Spends ``epsilon``.

    For bandwidths, rows, kernels, powers, bounds, or anything else that a release has. Useful if a public
    validation set can distinguish good releases from bad ones; each run has only a half or a third of
    ``epsilon``.

    Parameters
    ----------
    candidates : sequence
        Public, declared before the data are seen.
    run : callable
        ``run(candidate, epsilon)`` makes one release, pure ε with the ``epsilon`` it is given. Its claim is
        checked. It must not debit a ledger: the choice pays for all runs.
    score : callable
        ``score(function)``, higher is better, NaN is worst. It must look at nothing private but the function
        it is given: public queries, a public validation set. A score against the private records, such as the
        error against exact sums, breaks the claim.
    epsilon : float
        What the whole choice and its function cost.
    runs : float, optional
        The mean number of runs; default four for each candidate.
    stopping : {"geometric", "logarithmic"}
        Geometric: each run gets ε/3. Logarithmic: ε/2, but one run or two are more likely than under
        geometric.
    arithmetic : {"exact integers", "real arithmetic"}
        Of the runs. One run in real arithmetic makes the whole choice one, whether it wins or not: declare it
        where a candidate may be released so (``claim.arithmetic``).
    assumptions : sequence of str
        All that the claims of runs assume (``claim.assumptions``), such as that a sample is public. The claim
        of the choice assumes it too, whichever candidate wins.
    **keywords
        ``relation`` and ``max_per_unit``: whom the runs protect; every run's claim must have the same.
        ``budget`` and ``idempotency_key`` as for ``Tally.release``; debited before the first run. A retry
        with the same key returns the staged winner. ``insecure_noise_seed`` repeats the order of the runs,
        for tests; the claim is marked.

    Raises
    ------
    ClaimError
        if a run claims more than its share, another unit or relation, or makes assumptions that were not
        declared; what was drawn stays secret, and is not refunded.
    BudgetExhausted
        if the budget has too little left; nothing is run.

    Privacy
    -------
    Pure ε for the winner's name and function together, 3 or 2 times the ε of a run (Liu & Talwar 2019;
    Papernot & Steinke 2022); proof in ``privacy.noise``. The proof uses the claim of every
    candidate, so what any of them assumes, the whole does; which of them ran is secret, so it is declared
    beforehand. It holds only while the
    number of runs and the losers stay secret. The time a choice takes reveals the number: show it to the
    owner only.

    Examples
    --------
    >>> import hushsum as hs
    >>> X, public = [[0.1], [0.2], [7.0]] * 500, [[0.0], [7.0], [99.0]]
    >>> def run(bandwidth, epsilon):
    ...     tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=bandwidth), rows=50)
    ...     return tally.add(X).release(epsilon=epsilon)
    >>> def score(f):
    ...     return float(f(public)[:2].sum() - f(public)[2])
    >>> best = hs.methods.choose([0.01, 1.0, 1000.0], run, score, epsilon=3.0, runs=10)
    >>> best.claim.epsilon, best.claim.mechanism
    (3.0, 'random stopping')
    """
    if not candidates:
        raise UsageError("candidates", "must name at least one", got="none", remedy="list what may be chosen")
    one_of("arithmetic", arithmetic, [EXACT_INTEGERS, REAL_ARITHMETIC])
    if isinstance(assumptions, str) or not all(isinstance(each, str) for each in assumptions):
        raise UsageError("assumptions", "must be a list of texts", got="something else")
    rule = Stopping.with_mean(stopping, 4.0 * len(candidates) if runs is None else runs)
    request = ChoiceRequest.of(
        RANDOM_STOPPING, epsilon, arithmetic=arithmetic, assumptions=assumptions, **keywords
    )
    share, claim, seed = request.epsilon / rule.cost, request.claim, request.insecure_noise_seed

    def make() -> dict[str, Any]:
        best: tuple[float, int, ReleasedFunction] | None = None
        for index in draw_candidates(rule, len(candidates), insecure_noise_seed=seed):
            function = run(candidates[index], _at_most(share))
            _check_run(function, share, claim)
            value = float(score(function))
            value = -math.inf if math.isnan(value) else value
            if best is None or value > best[0]:
                best = value, index, function
        assert best is not None
        return {"candidate": best[1], "function": _encoded(best[2], claim)}

    subject: dict[str, object] = {
        "choice": "best of many releases",
        "candidates": [str(each) for each in candidates],
        "stopping": rule.name,
        "gamma": str(rule.gamma),
    }
    result = request.spend(subject, make)
    index = int(result["candidate"])
    function = load_function(io.BytesIO(base64.b64decode(result["function"])))
    return ChosenRelease(candidates[index], index, function)


def _at_most(share: Fraction) -> float:
    """The largest float whose shortest spelling, which is how a release reads it, is not above the share."""
    value = float(share)
    while Fraction(repr(value)) > share:
        value = math.nextafter(value, 0.0)
    return value


def _check_run(function: object, share: Fraction, whole: Claim) -> None:
    if not isinstance(function, ReleasedFunction):
        raise UsageError(
            "run", "must return a released function", got=type(function).__name__, remedy="release a tally"
        )
    if not any(field.name == "facts" for field in dataclasses.fields(cast(Any, function))):
        rule = "must return what one release made"
        remedy = "combine the chosen function with the sample afterwards"
        raise UsageError("run", rule, got="a function combined with a public sample", remedy=remedy)
    claim = function.claim

    def must(rule: str, *, got: str, remedy: Words) -> ClaimError:
        return ClaimError(f"a run must {rule}", got=got, remedy=remedy)

    if not claim.promise.pure or claim.promise.epsilon is None or claim.promise.epsilon > share:
        rule = f"claim pure epsilon of at most {float(share):g}"
        raise must(rule, got=f"{claim!r}", remedy="release with the epsilon that run is given")
    if claim.relation is not whole.relation:
        rule = f"have the choice's relation, {str(whole.relation)!r}"
        raise must(rule, got=f"{str(claim.relation)!r}", remedy="give both the same")
    if (claim.unit, claim.records_per_unit) != (whole.unit, whole.records_per_unit):
        rule = f"protect a {whole.unit} with up to {whole.records_per_unit} records, as the choice does"
        got = f"a {claim.unit} with up to {claim.records_per_unit}"
        raise must(rule, got=got, remedy=("give both the same ", Parameter("max_per_unit")))
    if claim.arithmetic not in (EXACT_INTEGERS, whole.arithmetic):
        declare = ("declare it: give ", Argument("arithmetic", REAL_ARITHMETIC))
        raise must(f"be released in {whole.arithmetic}", got=claim.arithmetic, remedy=declare)
    if not set(claim.assumptions) <= set(whole.assumptions):
        rule, listed = "assume nothing but what the choice declares", Parameter("assumptions")
        raise must(rule, got="further assumptions", remedy=("give those of its claim in ", listed))
    if claim.trust is not None:
        got, remedy = f"one made by {claim.trust.model}", "choose the parameters before the sites release"
        raise must("be released by one party", got=got, remedy=remedy)
    if whole.secure and not claim.secure:
        raise must("draw its noise from the operating system", got="a seed", remedy="leave the seed out")


def _encoded(function: ReleasedFunction, claim: Claim) -> str:
    """The function's file, with the claim of the whole choice in place of its own run's."""
    released: Any = function
    whole = dataclasses.replace(released, facts=dataclasses.replace(released.facts, claim=claim))
    return base64.b64encode(file_bytes(whole)).decode("ascii")
