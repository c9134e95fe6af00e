"""Authentication: roles and scopes, the account of a token, the function behind a shared link."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hushsum.service.settings import Settings
from hushsum.service.store import Accounts, SharedFunction, Shares

from .problem_responses import Refusal
from .request_limits import FairThreads, RateLimit

V = TypeVar("V")
ADMINISTRATOR: Final = "administrator"
OWNER: Final = "owner"
ANALYST: Final = "analyst"
# The scopes that tokens of a role may have. An administrator sees neither datasets nor answers.
SCOPES: Final[dict[str, tuple[str, ...]]] = {
    ADMINISTRATOR: ("admin",),
    OWNER: ("upload", "release", "query"),
    ANALYST: ("query",),
}

_ONCE_VALID_SECONDS: Final = 3600.0
_KNOWN_AT_ONCE: Final = 8
# Threads that look up tokens which were valid here before, and such which never were.
_UNKNOWN_AT_ONCE: Final = 4


class TtlCache(Generic[V]):
    """Values that expire after ``seconds``; beyond ``size`` entries, the oldest is evicted.

    A value that was read before the cache was cleared may be outdated: whoever reads it takes the
    ``generation`` first, and `put` then stores it only if the cache was not cleared meanwhile.
    """

    def __init__(self, seconds: float, size: int = 4096) -> None:
        self._seconds = seconds
        self._size = size
        self._entries: OrderedDict[str, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()
        self.generation = 0

    def get(self, key: str) -> V | None:
        """The value, unless it has expired."""
        found = self._entries.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def put(self, key: str, value: V, *, generation: int) -> V:
        """Store a value and return it. A value that was read before the last `clear` is not stored."""
        with self._lock:
            if generation == self.generation:
                self._entries[key] = (time.monotonic() + self._seconds, value)
                while len(self._entries) > self._size:
                    self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        """Remove every entry. Values that are being read now will not be stored either."""
        with self._lock:
            self.generation += 1
            self._entries.clear()


@dataclass(frozen=True, slots=True)
class Caller:
    """The account that sent a request, and the scopes of its token."""

    account: str
    name: str
    role: str
    scopes: tuple[str, ...]
    token: str
    expires: str
    signed_in: bool


class TokenAuthenticator:
    """Finds the account that a token belongs to.

    Every token is looked up: a valid one is never refused because of other callers' failures. Tokens that
    were valid before do not wait behind unknown ones, and unknown ones of one address wait for each other,
    so a flood of wrong tokens delays only its own address.
    """

    def __init__(self, accounts: Accounts, seconds: float) -> None:
        self._accounts = accounts
        self._known: TtlCache[Caller] = TtlCache(seconds)
        self._once_valid: TtlCache[bool] = TtlCache(_ONCE_VALID_SECONDS)
        # Threads of their own, so that no other request delays a look-up.
        self._once_known = FairThreads(each=1, most=_KNOWN_AT_ONCE)
        self._unknown = FairThreads(each=1, most=_UNKNOWN_AT_ONCE)

    async def find(self, token: str, address: str) -> Caller | None:
        """The caller, from the cache or from the database."""
        known = self._known.get(token)
        if known is not None:
            return known
        if self._once_valid.get(token):
            return await self._once_known.run(token, self._look_up, token)
        return await self._unknown.run(address, self._look_up, token)

    async def check(self) -> None:
        """Look up a token that nobody has, as the requests of others do."""
        await self._once_known.run("", self._look_up, "")

    def _look_up(self, token: str) -> Caller | None:
        """The caller, from the database, unless another request of the same token was faster."""
        known = self._known.get(token)
        if known is not None:
            return known
        generation = self._known.generation
        found = self._accounts.authenticate(token)
        if found is None:
            return None
        account, stored = found
        scopes = tuple(sorted(set(stored.scopes) & set(SCOPES.get(account.role, ()))))
        caller = Caller(
            account.id, account.name, account.role, scopes, stored.id, stored.expires, stored.signed_in
        )
        self._once_valid.put(token, True, generation=self._once_valid.generation)
        return self._known.put(token, caller, generation=generation)

    def clear_cache(self) -> None:
        """Look every token up again, because one was revoked or an account was closed."""
        self._known.clear()


def nothing_here() -> Refusal:
    """The same response for what does not exist and for what belongs to another account."""
    return Refusal(
        404, "not-found", "there is nothing here, or nothing that you may access; check the address"
    )


def existing(found: V | None) -> V:
    """What was found; 404 for nothing."""
    if not found:
        raise nothing_here()
    return found


SHARED_PREFIX: Final = "/shared/"
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_BURST_SECONDS: Final = 10.0


class SharedLinks:
    """Finds what a key leads to, and limits requests of each address and each link.

    An unknown key, a revoked one and one of a closed account are answered alike. A key has 256 random bits,
    so there is nothing to guess; attempts are limited like wrong tokens all the same.
    """

    def __init__(self, shares: Shares, settings: Settings) -> None:
        self._shares = shares
        self._on = settings.sharing_is_on
        self._known: TtlCache[SharedFunction] = TtlCache(settings.cache_seconds)
        addresses, links = settings.shared_requests_per_second, settings.link_requests_per_second
        self._addresses = RateLimit(addresses, _BURST_SECONDS * addresses)
        self._links = RateLimit(links, _BURST_SECONDS * links)
        self._failures = RateLimit(settings.failures_per_minute / 60.0, settings.failures_per_minute)
        self._lookups = FairThreads(each=1, most=_UNKNOWN_AT_ONCE)

    async def find(self, key: str, address: str) -> SharedFunction:
        """The function that a key leads to.

        Raises
        ------
        Refusal
            404 if there is nothing; 429 if the address or the link is used too often.
        """
        self._addresses.spend(address)
        existing(self._on)
        found = self._known.get(key)
        if found is None:
            generation = self._known.generation
            if _KEY.fullmatch(key):
                found = await self._lookups.run(address, self._shares.open, key)
            if found is None:
                self._failures.spend(address)
                raise nothing_here()
            self._known.put(key, found, generation=generation)
        existing(found.works)
        self._links.spend(found.share)
        return found

    def clear_cache(self) -> None:
        """Look every key up again, because a link was revoked or an account was closed."""
        self._known.clear()
