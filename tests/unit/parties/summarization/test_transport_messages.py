"""Messages of the transport: read back as they were, and refused whenever a byte is not as it must be."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hushsum.errors import FileRefused
from hushsum.files import pack, unpack
from hushsum.parties import _runtime as control_messages
from hushsum.parties.summarization import Answer, Broadcast, Opening
from tests.unit.parties.summarization.parties import identities, opening_for, terms_for

ANSWER = Answer("run-1", 1, "owner", np.ones((2, 3)), np.zeros((2, 1)))
BROADCAST = Broadcast("run-1", 1, 1, "send", np.arange(40), quota=3)


def test_an_opening_is_read_back(tmp_path: Path) -> None:
    opening = opening_for(terms_for(*identities(tmp_path, "a", "b")))
    read = Opening.from_bytes(opening.to_bytes())
    assert (read.terms, read.compared, read.carried) == (opening.terms, ("a", "b"), ("c",))
    assert read.to_bytes() == opening.to_bytes()


@pytest.mark.parametrize(
    "changed",
    [
        {"compared": []},
        {"compared": ["a", "a"]},
        {"compared": ["a"], "carried": ["a"]},
        {"compared": "ab"},
        {"compared": [1]},
        {"compared": [""]},
        {"compared": ["a"] * 5000},
        {"carried": None},
        {"secret_check": "0f" * 32},
        {"secret_check": None},
    ],
)
def test_an_opening_with_wrong_columns_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    terms = terms_for(*identities(tmp_path, "a")).to_bytes()
    names = {"compared": ["a", "b"], "carried": ["c"], "secret_check": ""}
    good = pack("opening", names, {"terms": np.frombuffer(terms, np.int8)})
    assert Opening.from_bytes(good).compared == ("a", "b")
    bad = pack("opening", {**names, **changed}, {"terms": np.frombuffer(terms, np.int8)})
    with pytest.raises(FileRefused):
        Opening.from_bytes(bad)


def test_a_message_of_another_kind_is_refused() -> None:
    assert (
        control_messages.control_in(control_messages.control("ready", run="r"), "ready", "refusal")[0]
        == "ready"
    )
    assert (
        control_messages.control_in(control_messages.control("ending", run="r"), "ready", "refusal")[0] == ""
    )


def test_a_reason_cannot_paint_the_terminal() -> None:
    _, values = control_messages.control_in(
        control_messages.control("refusal", reason="no\x1b[31m\nhushsum: all is well" + "x" * 1000), "refusal"
    )
    reason = control_messages.reason_in(values)
    assert "\x1b" not in reason
    assert "\n" not in reason
    assert len(reason) <= 400
    assert control_messages.reason_in({"reason": 3}) == "it gave no reason"


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_and_nothing_else_happens(data: bytes) -> None:
    for read in (Opening.from_bytes, Broadcast.from_bytes, Answer.from_bytes):
        with pytest.raises(FileRefused):
            read(data)
    with pytest.raises(FileRefused):
        unpack(data, "ready", "refusal", "answer", "broadcast", "ending")


@settings(max_examples=300)
@given(st.data())
def test_any_changed_byte_is_refused(data: st.DataObject) -> None:
    whole = data.draw(
        st.sampled_from(
            [ANSWER.to_bytes(), BROADCAST.to_bytes(), control_messages.control("ready", run="run-1")]
        )
    )
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(1, 255))
    broken = whole[:place] + bytes([whole[place] ^ byte]) + whole[place + 1 :]
    with pytest.raises(FileRefused):
        unpack(broken, "answer", "broadcast", "ready")
    with pytest.raises(FileRefused):
        unpack(whole[:place], "answer", "broadcast", "ready")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    assert Answer.from_bytes(ANSWER.to_bytes()).points.shape == (2, 3)
    for name in ("points", "extra"):
        array = getattr(ANSWER, name).copy()
        array[0, 0] = value
        with pytest.raises(FileRefused):
            Answer.from_bytes(dataclasses.replace(ANSWER, **{name: array}).to_bytes())


@pytest.mark.parametrize(
    "arrays",
    [
        {"points": np.ones(3), "extra": np.zeros((2, 1))},
        {"points": np.ones((2, 3), np.int64), "extra": np.zeros((2, 1))},
        {"points": np.ones((2, 3)), "extra": np.zeros((1, 1))},
        {"points": np.ones((2, 3))},
    ],
)
def test_arrays_of_another_shape_or_type_are_refused(arrays: dict[str, NDArray[Any]]) -> None:
    values = {"run": "r", "step": 1, "owner": "o", "bid": None}
    with pytest.raises(FileRefused):
        Answer.from_bytes(pack("answer", values, arrays))


def test_the_longest_answer_follows_from_the_terms(tmp_path: Path) -> None:
    (owner,) = identities(tmp_path, "a")
    capped = terms_for(owner, cap=7)
    answer = Answer("run-1", 1, owner.fingerprint, np.ones((7, 2)), np.ones((7, 1)))
    assert len(answer.to_bytes()) <= capped.most_answer < 10_000
    assert terms_for(owner).most_answer > capped.most_answer
