"""The best of many releases: shares, claims, books, and that nothing but the winner gets out."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushsum as hs
import hushsum.methods._private_choice as choose_release_module
from hushsum.errors import BudgetExhausted, ClaimError, UsageError
from hushsum.privacy import ReleaseRequest
from hushsum.releases import PublicFacts, ReleasedFunction
from tests.memory_budget import MemoryBudget

POINTS = np.random.default_rng(0).normal(size=(500, 1))
WIDTHS = [0.1, 1.0, 10.0]


def run(width: float, epsilon: float) -> ReleasedFunction:
    return hs.race(hs.EuclideanKernel(1, width), rows=20, width=50).add(POINTS).release(epsilon=epsilon)


def widest(function: ReleasedFunction) -> float:
    return float(function.kernel.parameters()["bandwidth"])


@pytest.mark.parametrize(("stopping", "cost"), [("geometric", 3), ("logarithmic", 2)])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.7, 1 / 3])
def test_every_run_gets_its_share_and_no_more(stopping: str, cost: int, epsilon: float) -> None:
    seen: list[Fraction] = []

    def listening(width: float, share: float) -> ReleasedFunction:
        seen.append(Fraction(repr(share)))
        return run(width, share)

    chosen = hs.methods.choose(WIDTHS, listening, widest, epsilon=epsilon, stopping=stopping, runs=5)
    whole = Fraction(repr(epsilon))
    assert chosen.claim.promise.epsilon == whole
    assert max(seen) * cost <= whole
    assert min(seen) * cost > whole * (1 - Fraction(1, 10**15))


def test_the_best_of_those_run_wins() -> None:
    for seed in range(10):
        ran: list[float] = []

        def listening(width: float, share: float, ran: list[float] = ran) -> ReleasedFunction:
            ran.append(width)
            return run(width, share)

        chosen = hs.methods.choose(WIDTHS, listening, widest, epsilon=1.0, insecure_noise_seed=seed)
        assert chosen.candidate == max(ran) == widest(chosen.function)
        assert WIDTHS[chosen.index] == chosen.candidate


def test_scores_that_are_no_numbers_lose() -> None:
    def score(function: ReleasedFunction) -> float:
        return math.nan if widest(function) > 0.5 else -1e300

    for seed in range(5):
        chosen = hs.methods.choose(WIDTHS, run, score, epsilon=1.0, runs=30, insecure_noise_seed=seed)
        assert chosen.candidate == 0.1


def test_the_function_carries_the_claim_of_the_whole_choice_into_its_file() -> None:
    chosen = hs.methods.choose(WIDTHS, run, widest, epsilon=0.9, runs=3)
    stream = io.BytesIO()
    chosen.function.save(stream)
    stream.seek(0)
    claim = hs.load(stream).claim
    assert claim == chosen.claim
    assert (claim.epsilon, str(claim.mechanism), claim.secure) == (0.9, "random stopping", True)


def test_only_the_winner_is_staged_and_a_retry_gets_it_back() -> None:
    book = MemoryBudget(Fraction(1))
    options: dict[str, Any] = {"epsilon": 0.75, "runs": 10, "budget": book, "idempotency_key": "k"}
    first = hs.methods.choose(WIDTHS, run, widest, **options)
    entry = book.entries["k"]
    assert entry.steps == ["debited", "drawn", "staged", "published"]
    assert entry.claim == first.claim
    assert entry.staged is not None
    staged = json.loads(entry.staged)
    assert sorted(staged) == ["claim", "result", "subject"]
    assert sorted(staged["result"]) == ["candidate", "function"]
    assert entry.subject["stopping"] == "geometric"

    def never(width: float, share: float) -> ReleasedFunction:
        raise AssertionError

    again = hs.methods.choose(WIDTHS, never, widest, **options)
    assert (again.index, again.claim) == (first.index, first.claim)
    assert np.array_equal(again.function([[0.0]]), first.function([[0.0]]))
    with pytest.raises(BudgetExhausted):
        hs.methods.choose(WIDTHS, never, widest, **{**options, "idempotency_key": "other"})


def test_the_book_is_debited_before_the_first_run() -> None:
    book = MemoryBudget(Fraction(1))

    def failing(width: float, share: float) -> ReleasedFunction:
        assert book.entries["k"].steps == ["debited", "drawn"]
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        hs.methods.choose(WIDTHS, failing, widest, epsilon=1.0, budget=book, idempotency_key="k")
    assert book.spent == 1
    assert book.entries["k"].staged is None


def releasing(**options: Any) -> Callable[[float, float], ReleasedFunction]:
    def made(width: float, share: float) -> ReleasedFunction:
        tally = hs.race(hs.EuclideanKernel(1, width), rows=20, width=50).add(POINTS)
        return tally.release(**{"epsilon": share, **options})

    return made


def of_persons(width: float, share: float) -> ReleasedFunction:
    tally = hs.race(hs.EuclideanKernel(1, width), rows=20, width=50, max_per_unit=2)
    return tally.add(POINTS, units=np.arange(500)).release(epsilon=share)


@pytest.mark.parametrize(
    "bad",
    [
        releasing(epsilon=0.34),
        releasing(delta=1e-6),
        releasing(epsilon=None, rho=0.001),
        releasing(relation="replace"),
        releasing(insecure_noise_seed=1),
        of_persons,
    ],
)
def test_runs_that_claim_something_else_are_refused(bad: Callable[[float, float], ReleasedFunction]) -> None:
    with pytest.raises(ClaimError):
        hs.methods.choose(WIDTHS, bad, widest, epsilon=1.0)


def test_runs_for_persons_make_a_choice_for_persons() -> None:
    chosen = hs.methods.choose(WIDTHS, of_persons, widest, epsilon=1.0, max_per_unit=2)
    assert (chosen.claim.unit, chosen.claim.records_per_unit) == ("person", 2)


def _real(width: float, epsilon: float) -> ReleasedFunction:
    function: Any = run(width, epsilon)
    real: ReleasedFunction = replace(
        function, facts=PublicFacts(replace(function.claim, arithmetic="real arithmetic"))
    )
    return real


def test_a_run_in_real_arithmetic_makes_no_choice_in_exact_integers() -> None:
    """The claim of the choice said "exact integers" whatever its runs did."""
    assert _real(1.0, 1.0).claim.arithmetic == "real arithmetic"
    with pytest.raises(ClaimError, match="real arithmetic"):
        hs.methods.choose(WIDTHS, _real, widest, epsilon=1.0)
    chosen = hs.methods.choose(WIDTHS, _real, widest, epsilon=1.0, arithmetic="real arithmetic")
    assert chosen.claim.arithmetic == "real arithmetic"
    # One candidate in real arithmetic is enough, and which ones ran is secret.
    assert hs.methods.choose(
        WIDTHS, run, widest, epsilon=1.0, arithmetic="real arithmetic"
    ).claim.arithmetic != ("exact integers")


def test_the_assumptions_of_runs_are_declared_and_claimed() -> None:
    assumed = "the sample is public"

    def assuming(width: float, epsilon: float) -> ReleasedFunction:
        tally = hs.race(hs.EuclideanKernel(1, width), rows=20, width=50).add(POINTS)
        return tally.prepare(ReleaseRequest(epsilon=epsilon), assumptions=[assumed]).spend()

    with pytest.raises(ClaimError, match="assum"):
        hs.methods.choose(WIDTHS, assuming, widest, epsilon=1.0)
    chosen = hs.methods.choose(WIDTHS, assuming, widest, epsilon=1.0, assumptions=[assumed])
    assert chosen.claim.assumptions == (assumed,)
    for bad in (assumed, [1]):
        with pytest.raises(UsageError, match="assumptions"):
            hs.methods.choose(WIDTHS, run, widest, epsilon=1.0, assumptions=bad)  # type: ignore[arg-type]


def test_runs_of_several_parties_or_with_a_public_sample_are_refused() -> None:
    def merged(width: float, epsilon: float) -> ReleasedFunction:
        tally = hs.race(hs.EuclideanKernel(1, width), rows=20, width=50).add(POINTS)
        sites = (tally.release(epsilon=epsilon, rows=20) for _ in range(2))
        return hs.merge(*sites, disjoint_units=True)

    def combined(width: float, epsilon: float) -> ReleasedFunction:
        kernel = hs.GaussianKernel(dim=1, bandwidth=width)
        public = np.random.default_rng(1).normal(size=(200, 1))
        return hs.release(POINTS, kernel=kernel, bounds=(-3, 3), epsilon=epsilon, public=public)

    assumed = list(merged(1.0, 1.0).claim.assumptions)
    with pytest.raises(ClaimError, match="one party"):
        hs.methods.choose([1.0], merged, widest, epsilon=1.0, assumptions=assumed)
    with pytest.raises(UsageError, match="public sample"):
        hs.methods.choose([0.5], combined, widest, epsilon=1.0)


def test_a_run_must_release_something() -> None:
    def nothing(width: float, share: float) -> Any:
        return width

    with pytest.raises(UsageError):
        hs.methods.choose(WIDTHS, nothing, widest, epsilon=1.0)


@pytest.mark.parametrize(
    "options", [{"epsilon": -1.0}, {"stopping": "poisson"}, {"runs": 0}, {"idempotency_key": "k"}], ids=str
)
def test_parameters_are_checked_before_anything_runs(options: dict[str, Any]) -> None:
    def never(width: float, share: float) -> ReleasedFunction:
        raise AssertionError

    with pytest.raises(UsageError):
        hs.methods.choose(WIDTHS, never, widest, **{"epsilon": 1.0, **options})


def test_there_must_be_a_candidate() -> None:
    with pytest.raises(UsageError):
        hs.methods.choose([], run, widest, epsilon=1.0)


@pytest.mark.parametrize("share", [Fraction(1, 3), Fraction(1, 30), Fraction(7, 30), Fraction(1, 7)])
def test_a_share_is_rounded_down_as_releases_read_it(share: Fraction) -> None:
    value = choose_release_module._at_most(share)
    assert Fraction(repr(value)) <= share < Fraction(repr(math.nextafter(math.nextafter(value, 1), 1)))
