"""Messages: one spelling, and every changed byte refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsum.errors import FileRefused, UsageError
from hushsum.parties.summarization import RULES, Answer, Broadcast, NoisyTarget, RunTerms
from tests.unit.parties.summarization.neighbouring_runs import parties, terms_of

BROADCAST = Broadcast("run", 1, 1, "send", np.arange(4), threshold=-3, chance=7)
ANSWER = Answer("run", 1, "a", np.ones((2, 3)), np.zeros((2, 1)), bid=5)


@pytest.mark.parametrize("rule", RULES)
def test_terms_come_back(rule: str) -> None:
    terms = terms_of(rule)
    assert RunTerms.from_bytes(terms.to_bytes()) == terms


def test_messages_come_back() -> None:
    assert Broadcast.from_bytes(BROADCAST.to_bytes()).to_bytes() == BROADCAST.to_bytes()
    assert Answer.from_bytes(ANSWER.to_bytes()).to_bytes() == ANSWER.to_bytes()
    target = parties(terms_of())[0].target
    assert NoisyTarget.from_bytes(target.to_bytes()).to_bytes() == target.to_bytes()


@given(st.data())
def test_a_changed_byte_is_refused(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([BROADCAST.to_bytes(), ANSWER.to_bytes()]))
    place = data.draw(st.integers(0, len(whole) - 1))
    bit = data.draw(st.integers(0, 7))
    broken = bytearray(whole)
    broken[place] ^= 1 << bit
    for kind in (Broadcast, Answer):
        with pytest.raises(FileRefused):
            kind.from_bytes(bytes(broken))


@given(st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    for kind in (Broadcast, Answer, RunTerms, NoisyTarget):
        with pytest.raises(FileRefused):
            kind.from_bytes(data)


def test_oversized_and_infinite_answers_are_refused() -> None:
    with pytest.raises(FileRefused, match="at most"):
        Answer.from_bytes(ANSWER.to_bytes(), most=10)
    endless = Answer("run", 1, "a", np.full((1, 1), np.inf), np.zeros((1, 0)))
    with pytest.raises(FileRefused):
        Answer.from_bytes(endless.to_bytes())


def test_an_answer_shows_no_value() -> None:
    assert "1." not in repr(ANSWER)


@pytest.mark.parametrize("change", [{"rule": "other"}, {"size": 0}, {"rounds": 0}, {"cap": 0}])
def test_impossible_terms_are_refused(change: dict[str, object]) -> None:
    terms = terms_of()
    with pytest.raises(UsageError):
        RunTerms(**{**{name: getattr(terms, name) for name in terms.__slots__}, **change})
