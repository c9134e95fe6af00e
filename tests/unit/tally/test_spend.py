"""Releases through a budget budget: booked before noise exists, staged before a byte is seen, never twice."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import BudgetExhausted, ClaimError, HushsumError, UsageError
from hushsum.privacy import IntegerNoise
from hushsum.privacy.noise import NoiseSource
from hushsum.releases import TableFunction
from hushsum.tally import Tally
from tests.recording_budget import RecordingBudget


@pytest.fixture
def tally() -> Tally:
    return hs.race(hs.EuclideanKernel(1, 1.0), rows=20, width=10, seed=1).add([[1.0], [2.0]] * 50)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many numbers each draw of noise gave."""
    sizes: list[int] = []
    real = IntegerNoise.draw

    def spy(noise: IntegerNoise, size: int, source: NoiseSource, *, threads: int = 1) -> NDArray[np.int64]:
        sizes.append(size)
        return real(noise, size, source, threads=threads)

    monkeypatch.setattr(IntegerNoise, "draw", spy)
    return sizes


def file_bytes(f: hs.ReleasedFunction) -> bytes:
    stream = io.BytesIO()
    f.save(stream)
    return stream.getvalue()


def test_the_four_steps_in_their_order(tally: Tally, drawn: list[int]) -> None:
    budget = RecordingBudget()
    f = tally.release(epsilon=1.0, budget=budget, idempotency_key="k")
    assert budget.steps == ["debited", "drawn", "staged", "published"]
    assert budget.entries["k"].staged == file_bytes(f)
    assert budget.left == 9.0
    assert drawn


def test_exactly_the_claim_that_is_released_is_debited(tally: Tally) -> None:
    budget = RecordingBudget()
    f = tally.release(epsilon=0.5, delta=1e-6, relation="replace", budget=budget)
    options = {"rows": "auto", "count_share": "1/50", "rounded": False}
    ((claim, subject),) = budget.requested
    assert claim == f.claim
    assert "± " in str(subject.pop("error"))
    assert subject == {"fingerprint": tally.fingerprint, **options}


def test_nothing_is_drawn_without_a_debit(tally: Tally, drawn: list[int]) -> None:
    budget = RecordingBudget(left=0.5)
    with pytest.raises(BudgetExhausted):
        tally.release(epsilon=1.0, budget=budget)
    assert not drawn
    assert budget.left == 0.5
    assert not budget.steps


def test_a_crash_before_drawing_draws_nothing(tally: Tally, drawn: list[int]) -> None:
    with pytest.raises(OSError, match="crash at drawn"):
        tally.release(epsilon=1.0, budget=RecordingBudget(fail_at="drawn"))
    assert not drawn


def test_a_retry_after_staging_gives_the_staged_bytes_and_draws_no_noise(
    tally: Tally, drawn: list[int]
) -> None:
    budget = RecordingBudget(fail_at="published")
    with pytest.raises(OSError, match="crash at published"):
        tally.release(epsilon=1.0, budget=budget, idempotency_key="k")
    staged, before = budget.entries["k"].staged, len(drawn)
    budget.fail_at = ""
    f = tally.release(epsilon=1.0, budget=budget, idempotency_key="k")
    assert file_bytes(f) == staged
    assert len(drawn) == before
    assert budget.left == 9.0
    assert budget.steps == ["debited", "drawn", "staged", "published"]


def test_staged_bytes_of_another_claim_are_refused(tally: Tally) -> None:
    """A budget that mixes up its keys must not deliver another release."""
    budget = RecordingBudget(fail_at="published")
    with pytest.raises(OSError, match="crash at published"):
        tally.release(epsilon=1.0, budget=budget, idempotency_key="k")
    budget.fail_at = ""
    with pytest.raises(UsageError, match="belongs to another release"):
        tally.release(epsilon=0.5, budget=budget, idempotency_key="k")


def test_a_retry_before_staging_spends_once(tally: Tally) -> None:
    budget = RecordingBudget(fail_at="staged")
    with pytest.raises(OSError, match="crash at staged"):
        tally.release(epsilon=1.0, budget=budget, idempotency_key="k")
    budget.fail_at = ""
    assert isinstance(tally.release(epsilon=1.0, budget=budget, idempotency_key="k"), TableFunction)
    assert budget.left == 9.0


def test_without_a_key_every_release_spends(tally: Tally) -> None:
    budget = RecordingBudget()
    for _ in range(3):
        tally.release(epsilon=1.0, budget=budget)
    assert budget.left == 7.0
    assert len(budget.entries) == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rows": 21}, UsageError),
        ({"rows": "all"}, UsageError),
        ({"count_share": 1.5}, ClaimError),
        ({"relation": "swap"}, ClaimError),
        ({"delta": 1e-300}, ClaimError),
        ({"epsilon": 1e-13}, HushsumError),
        ({"epsilon": 1e-13, "relation": "replace"}, HushsumError),
        ({"epsilon": None, "rho": 1e-40}, HushsumError),
        ({"threads": 0}, UsageError),
        ({"budget": "ledger.db"}, UsageError),
    ],
    ids=str,
)
def test_what_cannot_be_released_costs_nothing(
    tally: Tally, drawn: list[int], options: dict[str, Any], error: type[Exception]
) -> None:
    budget = RecordingBudget()
    with pytest.raises(error):
        tally.release(**{"epsilon": 1.0, "budget": budget, **options})
    assert not budget.requested
    assert not drawn


def test_a_key_without_a_budget_is_a_mistake(tally: Tally) -> None:
    with pytest.raises(UsageError, match="got no budget"):
        tally.release(epsilon=1.0, idempotency_key="k")
