"""How limits are kept, per account or address: request rates, concurrent requests, and the size of bodies.

The numbers are settings (`hushsum.service.settings`); the middleware applies them to the routes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.types import Message, Receive

from .problem_responses import Refusal

V = TypeVar("V")
_MOST_NAMES = 10_000
_PATIENCE_SECONDS = 60.0
# Bytes a second that a body must bring on average, after the first minute.
_SLOWEST = 1024.0


MOST_VALUES = 30_000
# Limits of a JSON body that is not a query: 4,096 columns with bounds are 20,000 values and 20 fields.
MOST_FIELDS = 2_000


class RateLimit:
    """A token bucket for every name: ``per_second`` on average, ``burst`` at once."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate = per_second
        self._burst = max(burst, 1.0)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, name: str) -> float:
        """How many are left now."""
        tokens, at = self._buckets.get(name, (self._burst, time.monotonic()))
        return min(self._burst, tokens + (time.monotonic() - at) * self._rate)

    def take(self, name: str, amount: float = 1.0) -> bool:
        """Take an amount from a name's allowance. Returns whether that much was left."""
        left = self.left(name)
        self._buckets[name] = (max(left - amount, 0.0), time.monotonic())
        self._buckets.move_to_end(name)
        while len(self._buckets) > _MOST_NAMES:
            self._buckets.popitem(last=False)
        return left >= amount

    def spend(self, name: str) -> None:
        """The same for one; 429 if none was left."""
        if not self.take(name):
            raise too_often()


class ConcurrencyLimit:
    """Counts the running requests of each name, and refuses more than ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many are running, of all names together."""
        return self._under_way.total()

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """One, for as long as the block lasts.

        Raises
        ------
        Refusal
            429, if the name is at its limit.
        """
        if self._under_way[name] >= self._most:
            detail = f"an account may have {self._most} of these at once; wait until one has finished"
            raise Refusal(429, "too-often", detail, {"retry-after": "2"})
        self._under_way[name] += 1
        try:
            yield
        finally:
            self._under_way[name] -= 1
            if self._under_way[name] <= 0:
                del self._under_way[name]


class FairQueue:
    """Runs at most ``most`` at once, and at most ``each`` of one name; the others wait.

    A name waits for its own requests first, so it has at most ``each`` places in the common queue.
    """

    def __init__(self, *, each: int, most: int) -> None:
        self._each = each
        # The common places; hold one while a thread or a process works.
        self.turn = asyncio.Semaphore(most)
        self._names: dict[str, tuple[asyncio.Semaphore, list[None]]] = {}

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[None]:
        """One of the name's places; hold it while the request's memory is in use."""
        own, users = self._names.setdefault(name, (asyncio.Semaphore(self._each), []))
        users.append(None)
        try:
            async with own:
                yield
        finally:
            users.pop()
            if not users:
                self._names.pop(name, None)


class FairThreads(FairQueue):
    """Threads of one purpose, at most ``most``, of which each name has at most ``each`` at a time.

    For short work that waits, mostly for the database. What calculates is for `ComputePool`.
    """

    async def run(self, name: str, call: Callable[..., V], /, *given: Any, **options: Any) -> V:
        """The result of a call that runs in a thread; it runs to its end if the caller is cancelled."""
        async with self.place(name), self.turn:
            # A limiter of its own: the common one counts the threads of all purposes.
            return await to_thread.run_sync(
                partial(call, *given, **options), abandon_on_cancel=True, limiter=CapacityLimiter(1)
            )


def address_group(address: str) -> str:
    """The group that limits per address apply to: one IPv4 address, or one IPv6 network of 64 bits.

    >>> address_group("203.0.113.9"), address_group("2001:db8:1:2:3::4"), address_group("::ffff:192.0.2.1")
    ('203.0.113.9', '2001:db8:1:2::', '192.0.2.1')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)


def too_often() -> Refusal:
    """Too many requests."""
    return Refusal(429, "too-often", "too many requests; wait a moment", {"retry-after": "1"})


def too_large(limit: int) -> Refusal:
    """A body beyond its limit."""
    return Refusal(413, "too-large", f"the body must have at most {limit} bytes; send less")


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The largest size of a body, and whether its values are counted too.

    They are counted where the framework parses the body on the event loop: a megabyte of brackets would
    block that for half a second.
    """

    bytes: int
    counted: bool = False


def bounded(receive: Receive, limit: BodyLimit) -> Receive:
    """The same stream, which raises when it exceeds the limit or arrives too slowly."""
    start = time.monotonic()
    seen = values = fields = 0
    ended = False

    async def take() -> Message:
        nonlocal seen, values, fields, ended
        if ended:
            return await receive()
        left = start + _PATIENCE_SECONDS + seen / _SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(left):
                message = await receive()
        except TimeoutError:
            detail = "the body arrived too slowly; send it again"
            raise Refusal(408, "too-slow", detail, {"connection": "close"}) from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            if seen > limit.bytes:
                raise too_large(limit.bytes)
            if limit.counted:
                piece = message.get("body", b"")
                values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
                fields += piece.count(b":")
                if values > MOST_VALUES or fields > MOST_FIELDS:
                    detail = f"a body may have {MOST_VALUES} values and {MOST_FIELDS} fields; send fewer"
                    raise Refusal(413, "too-large", detail)
        return message

    return take


async def read_body(request: Request, limit: int) -> bytearray:
    """The body, read no further than ``limit``.

    Raises
    ------
    Refusal
        413, as soon as it is longer.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise too_large(limit)
    return body
