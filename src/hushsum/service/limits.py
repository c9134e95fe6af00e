"""How much, and how often."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict

from starlette.types import Message, Receive

from hushsum.service.problems import Refusal

_MOST_NAMES = 10_000
_PATIENCE_SECONDS = 60.0
_SLOWEST = 1024.0
"""Bytes a second that a body must bring on average, after the first minute."""


class Rate:
    """A token bucket for every name: ``per_second`` on average, ``burst`` at once."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate = per_second
        self._burst = max(burst, 1.0)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, name: str) -> float:
        """How many are left now."""
        tokens, at = self._buckets.get(name, (self._burst, time.monotonic()))
        return min(self._burst, tokens + (time.monotonic() - at) * self._rate)

    def take(self, name: str) -> bool:
        """Take one, if one is left."""
        left = self.left(name)
        self._buckets[name] = (max(left - 1.0, 0.0), time.monotonic())
        self._buckets.move_to_end(name)
        while len(self._buckets) > _MOST_NAMES:
            self._buckets.popitem(last=False)
        return left >= 1.0


def too_often() -> Refusal:
    """Too many requests."""
    return Refusal(429, "too-often", "too many requests; wait a moment", {"retry-after": "1"})


def too_large(limit: int) -> Refusal:
    """A body beyond its limit."""
    return Refusal(413, "too-large", f"the body must have at most {limit} bytes; send less")


def too_slow() -> Refusal:
    """A body that does not come."""
    return Refusal(408, "too-slow", "the body came too slowly; send it again", {"connection": "close"})


def bounded(receive: Receive, limit: int) -> Receive:
    """The same stream, which ends with a refusal when it grows beyond the limit, or hardly at all."""
    start = time.monotonic()
    seen = 0
    ended = False

    async def take() -> Message:
        nonlocal seen, ended
        if ended:
            return await receive()
        left = start + _PATIENCE_SECONDS + seen / _SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(left):
                message = await receive()
        except TimeoutError:
            raise too_slow() from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            if seen > limit:
                raise too_large(limit)
        return message

    return take
