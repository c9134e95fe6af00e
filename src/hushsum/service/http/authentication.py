"""Who may call: roles and scopes, the account a token belongs to, and the scopes that routes declare."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from fastapi import Request

from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import FairThreads
from hushsum.service.store import Accounts, Actor

V = TypeVar("V")
ADMINISTRATOR: Final = "administrator"
OWNER: Final = "owner"
ANALYST: Final = "analyst"
SCOPES: Final[dict[str, tuple[str, ...]]] = {
    ADMINISTRATOR: ("admin",),
    OWNER: ("upload", "release", "query"),
    ANALYST: ("query",),
}
"""The scopes that tokens of a role may have. An administrator sees neither datasets nor answers."""

_ONCE_VALID_SECONDS: Final = 3600.0
_KNOWN_AT_ONCE: Final = 8
_UNKNOWN_AT_ONCE: Final = 4
"""Threads that look up tokens which were valid here before, and such which never were."""

E = TypeVar("E", bound=Callable[..., Any])


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
        """Store a value that was read in this generation, and return it."""
        with self._lock:
            if generation == self.generation:
                self._entries[key] = (time.monotonic() + self._seconds, value)
                while len(self._entries) > self._size:
                    self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        """Remove every entry, and those that are being read."""
        with self._lock:
            self.generation += 1
            self._entries.clear()


@dataclass(frozen=True, slots=True)
class Caller:
    """The account that sent a request, and the scopes of its token."""

    account: str
    name: str
    role: str
    scopes: frozenset[str]
    token: str
    expires: str
    signed_in: bool = False


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
        scopes = frozenset(stored.scopes) & frozenset(SCOPES.get(account.role, ()))
        caller = Caller(
            account.id, account.name, account.role, scopes, stored.id, stored.expires, stored.signed_in
        )
        self._once_valid.put(token, True, generation=self._once_valid.generation)
        return self._known.put(token, caller, generation=generation)

    def clear_cache(self) -> None:
        """Look every token up again, because one was revoked or an account was closed."""
        self._known.clear()


# The dependencies are coroutines only because FastAPI runs others in a thread, which costs more than they do.
async def caller_of(request: Request) -> Caller:
    """The caller; the middleware has authenticated the request."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def actor_of(request: Request) -> Actor:
    """The caller and request as the audit log records them."""
    return Actor((await caller_of(request)).account, request.scope["state"]["request"])


@dataclass(frozen=True, slots=True)
class Needed:
    """A dependency: the caller, whose token must have one of the scopes."""

    scopes: tuple[str, ...]

    async def __call__(self, request: Request) -> Caller:
        """The caller, or a 403."""
        caller = await caller_of(request)
        if caller.scopes.isdisjoint(self.scopes):
            needed = " or ".join(map(repr, self.scopes))
            raise Refusal(
                403, "forbidden", f"this needs a token with the scope {needed}; get one from an administrator"
            )
        return caller


def needs(*scopes: str) -> Needed:
    """The dependency on one of these scopes; the OpenAPI description is made from it."""
    return Needed(scopes)


async def only_known_parameters(request: Request) -> None:
    """A dependency: a query parameter that the route does not declare is refused, like an unknown field.

    Routes that read their parameters themselves check them themselves. Public routes accept anything, since
    other sites may add parameters to links.
    """
    route = request.scope["route"]
    if not request.scope["query_string"] or "caller" not in request.scope["state"]:
        return
    if "parameters" not in (route.openapi_extra or {}):
        known = {each.alias for each in route.dependant.query_params}
        if not known.issuperset(request.query_params):
            raise Refusal(
                422, "parameter-refused", "the address has unknown query parameters; leave them out"
            )


def nothing_here() -> Refusal:
    """The same response for what does not exist and for what belongs to another account."""
    return Refusal(
        404, "not-found", "there is nothing here, or nothing that you may access; check the address"
    )


def checked_by(needed: Needed) -> Callable[[E], E]:
    """Marks a route that calls ``needed`` itself, so that the OpenAPI description shows it."""

    def mark(endpoint: E) -> E:
        endpoint.needed = needed  # type: ignore[attr-defined]
        return endpoint

    return mark
