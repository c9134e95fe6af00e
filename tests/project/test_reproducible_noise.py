"""Fresh noise repeats from run to run in tests, and nowhere else; texts are searched for whole numbers."""

from __future__ import annotations

import os

import numpy as np
import pytest

import hushsum as hs
from hushsum._native import StreamKey
from tests.reproducible_noise import ReproducibleNoise
from tests.shown_numbers import shows_number


def stream(key: StreamKey) -> bytes:
    return bytes(key.keystream(0, 0, 0, 0, 1))


def keys(noise: ReproducibleNoise, place: str, number: int = 3) -> list[bytes]:
    with noise.place(place):
        return [stream(noise.key()) for _ in range(number)]


def test_a_place_repeats_its_keys_and_shares_them_with_no_other() -> None:
    first = keys(ReproducibleNoise(""), "a")
    assert keys(ReproducibleNoise(""), "a") == first
    others = [keys(ReproducibleNoise(""), "b"), keys(ReproducibleNoise("other"), "a")]
    assert len({*first, *others[0], *others[1]}) == 9


def test_a_fixture_inside_of_a_test_does_not_move_the_keys_of_the_test() -> None:
    noise = ReproducibleNoise("")
    with noise.place("test"):
        before = stream(noise.key())
        keys(noise, "fixture")
        after = stream(noise.key())
    assert [before, after] == keys(noise, "test", 2)


@pytest.mark.parametrize("fresh", [True, False])
def test_outside_of_tests_and_by_mark_keys_come_from_the_operating_system(fresh: bool) -> None:
    noise = ReproducibleNoise("")
    if not fresh:
        assert stream(noise.key()) != stream(noise.key())
        return
    drawn = set()
    for _ in range(2):
        with noise.place("test", fresh=True):
            drawn.add(stream(noise.key()))
    assert len(drawn) == 2


def test_a_forked_child_does_not_repeat_its_parent() -> None:
    noise = ReproducibleNoise("")
    with noise.place("test"):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, stream(noise.key()))
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 64) != stream(noise.key())


def test_a_release_without_a_seed_is_secure_and_differs_from_the_next() -> None:
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=20, width=50).add(np.zeros((9, 1)))
    first, second = tally.release(epsilon=1.0), tally.release(epsilon=1.0)
    assert first.claim.secure
    assert first([[0.0]])[0] != second([[0.0]])[0]


@pytest.mark.parametrize("text", ["2357 records", "shape (2357, 2)", "N=2,357", "2357.0", "got 2_357"])
def test_a_number_on_its_own_is_found(text: str) -> None:
    assert shows_number(text, 2357)


@pytest.mark.parametrize("text", ["0x7f2357a0", "0.2357", "12357", "2357.25", "of/x2357b", "/aB+2357/"])
def test_digits_of_something_else_are_not(text: str) -> None:
    assert not shows_number(text, 2357)
