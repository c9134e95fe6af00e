"""Releases through a budget book: booked before noise exists, staged before a byte is seen, never twice."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import BudgetExhausted, ClaimError, HushsumError, UsageError
from hushsum.privacy.calibration import IntegerNoise
from hushsum.privacy.noise import NoiseSource
from hushsum.releases import TableFunction
from hushsum.tally import Tally
from tests.budget_book import Book


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
    book = Book()
    f = tally.release(epsilon=1.0, ledger=book, dataset="skin", key="k")
    assert book.steps == ["debited", "drawn", "staged", "published"]
    assert book.entries["k"].staged == file_bytes(f)
    assert book.left == 9.0
    assert drawn


def test_the_book_is_asked_for_exactly_the_claim_that_is_released(tally: Tally) -> None:
    book = Book()
    f = tally.release(epsilon=0.5, delta=1e-6, relation="replace", ledger=book, dataset="skin")
    assert book.asked == [("skin", f.claim, {"fingerprint": tally.fingerprint})]


def test_nothing_is_drawn_without_a_debit(tally: Tally, drawn: list[int]) -> None:
    book = Book(left=0.5)
    with pytest.raises(BudgetExhausted):
        tally.release(epsilon=1.0, ledger=book, dataset="skin")
    assert not drawn
    assert book.left == 0.5
    assert not book.steps


def test_a_crash_before_drawing_draws_nothing(tally: Tally, drawn: list[int]) -> None:
    with pytest.raises(OSError, match="crash at drawn"):
        tally.release(epsilon=1.0, ledger=Book(fail_at="drawn"), dataset="skin")
    assert not drawn


def test_a_retry_after_staging_gives_the_staged_bytes_and_draws_no_noise(
    tally: Tally, drawn: list[int]
) -> None:
    book = Book(fail_at="published")
    with pytest.raises(OSError, match="crash at published"):
        tally.release(epsilon=1.0, ledger=book, dataset="skin", key="k")
    staged, before = book.entries["k"].staged, len(drawn)
    book.fail_at = ""
    f = tally.release(epsilon=1.0, ledger=book, dataset="skin", key="k")
    assert file_bytes(f) == staged
    assert len(drawn) == before
    assert book.left == 9.0
    assert book.steps == ["debited", "drawn", "staged", "published"]


def test_staged_bytes_of_another_claim_are_refused(tally: Tally) -> None:
    """A book that mixes up its keys must not deliver another release."""
    book = Book(fail_at="published")
    with pytest.raises(OSError, match="crash at published"):
        tally.release(epsilon=1.0, ledger=book, dataset="skin", key="k")
    book.fail_at = ""
    with pytest.raises(UsageError, match="another claim"):
        tally.release(epsilon=0.5, ledger=book, dataset="skin", key="k")


def test_a_retry_before_staging_spends_once(tally: Tally) -> None:
    book = Book(fail_at="staged")
    with pytest.raises(OSError, match="crash at staged"):
        tally.release(epsilon=1.0, ledger=book, dataset="skin", key="k")
    book.fail_at = ""
    assert isinstance(tally.release(epsilon=1.0, ledger=book, dataset="skin", key="k"), TableFunction)
    assert book.left == 9.0


def test_without_a_key_every_release_spends(tally: Tally) -> None:
    book = Book()
    for _ in range(3):
        tally.release(epsilon=1.0, ledger=book, dataset="skin")
    assert book.left == 7.0
    assert len(book.entries) == 3


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
        ({"dataset": None}, UsageError),
    ],
    ids=str,
)
def test_what_cannot_be_released_costs_nothing(
    tally: Tally, drawn: list[int], options: dict[str, Any], error: type[Exception]
) -> None:
    book = Book()
    with pytest.raises(error):
        tally.release(**{"epsilon": 1.0, "ledger": book, "dataset": "skin", **options})
    assert not book.asked
    assert not drawn


def test_a_dataset_or_a_key_without_a_book_is_a_mistake(tally: Tally) -> None:
    for given in ({"dataset": "skin"}, {"key": "k"}):
        with pytest.raises(UsageError, match="got no ledger"):
            tally.release(epsilon=1.0, **given)  # type: ignore[arg-type]
