"""The best of many private releases, for two or three times the privacy loss of one."""

from __future__ import annotations

import base64
import dataclasses
import io
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

from hushsum.errors import Argument, ClaimError, Parameter, UsageError
from hushsum.kernels.parameters import one_of
from hushsum.privacy.budget import Budget
from hushsum.privacy.claim import Claim, Relation
from hushsum.privacy.private_choice import (
    RANDOM_STOPPING,
    Stopping,
    choice_claim,
    choice_promise,
    draw_candidates,
)
from hushsum.privacy.release_noise import EXACT_INTEGERS, REAL_ARITHMETIC
from hushsum.privacy.spending import Booking, spend_json
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function

C = TypeVar("C")


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


def choose(
    candidates: Sequence[C],
    run: Callable[[C, float], ReleasedFunction],
    score: Callable[[ReleasedFunction], float],
    *,
    epsilon: float,
    runs: float | None = None,
    stopping: str = "geometric",
    relation: str | Relation = Relation.ADD_REMOVE,
    max_per_unit: int | None = None,
    arithmetic: str = EXACT_INTEGERS,
    assumptions: Sequence[str] = (),
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
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
    relation, max_per_unit
        Whom the runs protect; every run's claim must have the same.
    arithmetic : {"exact integers", "real arithmetic"}
        Of the runs. One run in real arithmetic makes the whole choice one, whether it wins or not: declare it
        where a candidate may be released so (``claim.arithmetic``).
    assumptions : sequence of str
        All that the claims of runs assume (``claim.assumptions``), such as that a sample is public. The claim
        of the choice assumes it too, whichever candidate wins.
    budget, idempotency_key
        As for ``Tally.release``; debited before the first run. A retry with the same key returns the staged
        winner.
    insecure_noise_seed : int, optional
        Repeats the order of the runs, for tests; the claim is marked.

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
    Papernot & Steinke 2022); proof in ``privacy.noise.random_stopping``. The proof uses the claim of every
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
    >>> best = hs.choose([0.01, 1.0, 1000.0], run, score, epsilon=3.0, runs=10)
    >>> best.claim.epsilon, best.claim.mechanism
    (3.0, 'random stopping')
    """
    if not candidates:
        raise UsageError(
            parameter="candidates",
            rule="must name at least one",
            got="none",
            remedy="list what may be chosen",
        )
    one_of("arithmetic", arithmetic, [EXACT_INTEGERS, REAL_ARITHMETIC])
    if isinstance(assumptions, str) or not all(isinstance(each, str) for each in assumptions):
        raise UsageError(parameter="assumptions", rule="must be a list of texts", got="something else")
    rule = Stopping.with_mean(stopping, 4.0 * len(candidates) if runs is None else runs)
    promise = choice_promise(epsilon)
    assert promise.epsilon is not None
    share = promise.epsilon / rule.cost
    claim = choice_claim(
        promise,
        RANDOM_STOPPING,
        relation=relation,
        max_per_unit=max_per_unit,
        insecure_noise_seed=insecure_noise_seed,
        arithmetic=arithmetic,
        assumptions=assumptions,
    )

    def make() -> dict[str, Any]:
        best: tuple[float, int, ReleasedFunction] | None = None
        for index in draw_candidates(rule, len(candidates), insecure_noise_seed=insecure_noise_seed):
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
    result = spend_json(Booking.of(budget, idempotency_key), claim, subject, make)
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
            parameter="run",
            rule="must return a released function",
            got=type(function).__name__,
            remedy="release a tally",
        )
    if not any(field.name == "claim" for field in dataclasses.fields(cast(Any, function))):
        raise UsageError(
            parameter="run",
            rule="must return what one release made",
            got="a function combined with a public sample",
            remedy="combine the chosen function with the sample afterwards",
        )
    claim = function.claim
    if not claim.promise.pure or claim.promise.epsilon is None or claim.promise.epsilon > share:
        raise ClaimError(
            rule=f"a run must claim pure epsilon of at most {float(share):g}",
            got=f"{claim!r}",
            remedy="release with the epsilon that run is given",
        )
    if claim.relation is not whole.relation:
        raise ClaimError(
            rule=f"a run must have the choice's relation, {str(whole.relation)!r}",
            got=f"{str(claim.relation)!r}",
            remedy="give both the same",
        )
    if (claim.unit, claim.records_per_unit) != (whole.unit, whole.records_per_unit):
        raise ClaimError(
            rule=(
                f"a run must protect a {whole.unit} with up to {whole.records_per_unit} "
                "records, as the choice does"
            ),
            got=f"a {claim.unit} with up to {claim.records_per_unit}",
            remedy=("give both the same ", Parameter("max_per_unit")),
        )
    if claim.arithmetic not in (EXACT_INTEGERS, whole.arithmetic):
        raise ClaimError(
            rule=f"a run must be released in {whole.arithmetic}",
            got=f"{claim.arithmetic}",
            remedy=("declare it: give ", Argument("arithmetic", REAL_ARITHMETIC)),
        )
    if not set(claim.assumptions) <= set(whole.assumptions):
        raise ClaimError(
            rule="a run must assume nothing but what the choice declares",
            got="further assumptions",
            remedy=("give those of its claim in ", Parameter("assumptions")),
        )
    if claim.trust is not None:
        raise ClaimError(
            rule="a run must be released by one party",
            got=f"one made by {claim.trust.model}",
            remedy="choose the parameters before the sites release",
        )
    if whole.secure and not claim.secure:
        raise ClaimError(
            rule="a run must draw its noise from the operating system",
            got="a seed",
            remedy="leave the seed out",
        )


def _encoded(function: ReleasedFunction, claim: Claim) -> str:
    """The function's file, with the claim of the whole choice in place of its own run's."""
    released: Any = function
    whole = dataclasses.replace(released, claim=claim)
    buffer = io.BytesIO()
    whole.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
