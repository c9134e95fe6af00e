"""Fresh noise that is the same in every run: its key comes from the name of the test or fixture that draws.

A test that releases without a seed and then compares values would fail now and then, in a run that cannot be
repeated. Here `NoiseSource.fresh` still returns a secure source with a key of its own for every call, but the
keys follow from what is tested, so such a test always passes or always fails. ``HUSHSUM_TEST_NOISE`` selects
other keys: any text, to repeat tests with other noise, or ``fresh`` for those of the operating system.
Processes that a test starts, and tests marked ``fresh_noise``, always draw from the operating system.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hushsum._native import StreamKey
from hushsum.privacy.noise import NoiseSource

VARIANT = os.environ.get("HUSHSUM_TEST_NOISE", "")


class ReproducibleNoise:
    """Keys by place, which is a test or a fixture, and by the number of keys that the place has taken."""

    def __init__(self, variant: str) -> None:
        self._variant = variant
        self._process = os.getpid()
        self._places: list[str] = []
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, name: str, *, fresh: bool = False) -> Iterator[None]:
        """Keys follow from ``name`` inside, from the first one on."""
        self._taken[name] = 0
        self._places.append("" if fresh else name)
        try:
            yield
        finally:
            self._places.pop()

    def key(self) -> StreamKey:
        """The next key of this place; the operating system's in another process and outside of all tests."""
        # A forked child would repeat its parent's keys.
        if not self._places or not self._places[-1] or os.getpid() != self._process:
            return StreamKey()
        place = self._places[-1]
        self._taken[place] += 1
        text = f"tests of hushsum\0{self._variant}\0{place}\0{self._taken[place]}"
        return StreamKey(hashlib.sha256(text.encode()).digest())


_NOISE = ReproducibleNoise(VARIANT)


def pytest_configure() -> None:
    if VARIANT != "fresh":
        setattr(NoiseSource, "fresh", lambda: NoiseSource(_NOISE.key(), secure=True))  # noqa: B010


def _of(item: pytest.Item, phase: str) -> Any:
    return _NOISE.place(f"{item.nodeid}\0{phase}", fresh=item.get_closest_marker("fresh_noise") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _of(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _of(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with _of(item, "teardown"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[Any]:
    """A shared fixture draws the same, whichever test is the first to need it."""
    shared = fixturedef.scope != "function"
    where = fixturedef.baseid if shared else request.node.nodeid
    parameter = getattr(request, "param_index", 0)
    with _NOISE.place(f"{where}\0{fixturedef.argname}\0{parameter}"):
        return (yield)
