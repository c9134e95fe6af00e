"""Who may do what: roles, scopes, and a short memory of who a token belongs to."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from hushsum.service.limits import Turns
from hushsum.service.problems import Refusal
from hushsum.service.store import Accounts, Actor

ADMINISTRATOR: Final = "administrator"
OWNER: Final = "owner"
ANALYST: Final = "analyst"

SCOPES: Final[dict[str, tuple[str, ...]]] = {
    ADMINISTRATOR: ("admin",),
    OWNER: ("upload", "release", "query"),
    ANALYST: ("query",),
}
"""What the tokens of a role may be good for. An administrator sees neither datasets nor answers."""

_ONCE_VALID_SECONDS: Final = 3600.0
_STRANGERS: Final = 4
"""Threads that look up tokens which were never valid here."""

V = TypeVar("V")
E = TypeVar("E", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and what the token is good for."""

    account: str
    name: str
    role: str
    scopes: frozenset[str]
    token: str
    expires: str
    signed_in: bool = False


class ShortMemory(Generic[V]):
    """Values that are believed for some seconds, the least used forgotten first."""

    def __init__(self, seconds: float, size: int = 4096) -> None:
        self._seconds = seconds
        self._size = size
        self._known: OrderedDict[str, tuple[float, V]] = OrderedDict()

    def get(self, key: str) -> V | None:
        """The value, if it is still believed."""
        found = self._known.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def put(self, key: str, value: V) -> V:
        """Remember a value."""
        self._known[key] = (time.monotonic() + self._seconds, value)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


class Door:
    """Finds out who a token belongs to.

    Every token is looked up, whoever else has failed: a valid one is never refused for the failures of
    others. Tokens that were valid before do not wait behind unknown ones, and unknown ones of one address
    wait for each other, so a flood of wrong tokens delays its own address at most.
    """

    def __init__(self, accounts: Accounts, seconds: float) -> None:
        self._accounts = accounts
        self._known: ShortMemory[Caller] = ShortMemory(seconds)
        self._once_valid: ShortMemory[bool] = ShortMemory(_ONCE_VALID_SECONDS)
        self._strangers = Turns(each=1, most=_STRANGERS)

    async def find(self, token: str, address: str) -> Caller | None:
        """The caller, from memory or from the database."""
        known = self._known.get(token)
        if known is not None:
            return known
        if self._once_valid.get(token):
            return await run_in_threadpool(self.look_up, token)
        async with self._strangers.place(address), self._strangers.turn():
            return await run_in_threadpool(self.look_up, token)

    def look_up(self, token: str) -> Caller | None:
        """The caller, from the database."""
        found = self._accounts.authenticate(token)
        if found is None:
            return None
        account, stored = found
        scopes = frozenset(stored.scopes) & frozenset(SCOPES.get(account.role, ()))
        caller = Caller(
            account.id, account.name, account.role, scopes, stored.id, stored.expires, stored.signed_in
        )
        self._once_valid.put(token, True)
        return self._known.put(token, caller)

    def forget(self) -> None:
        """Look every token up again: one was revoked, or an account closed."""
        self._known.clear()


# The dependencies are coroutines only because FastAPI runs others in a thread, which costs more than they do.
async def caller_of(request: Request) -> Caller:
    """Who sent this request; the guard has seen to it that there is somebody."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def actor_of(request: Request) -> Actor:
    """The same for the log."""
    return Actor((await caller_of(request)).account, request.scope["state"]["request"])


@dataclass(frozen=True, slots=True)
class Needed:
    """A dependency: the caller, whose token must have one of the scopes."""

    scopes: tuple[str, ...]

    async def __call__(self, request: Request) -> Caller:
        """The caller, or a refusal."""
        caller = await caller_of(request)
        if caller.scopes.isdisjoint(self.scopes):
            wanted = " or ".join(map(repr, self.scopes))
            raise Refusal(
                403, "forbidden", f"this needs a token with the scope {wanted}; ask for one, or leave it"
            )
        return caller


def needs(*scopes: str) -> Needed:
    """The dependency on one of these scopes; the description of the service is made from it."""
    return Needed(scopes)


async def only_known_parameters(request: Request) -> None:
    """A dependency: a parameter of the address that the route does not know is refused, like a field.

    A route that reads its parameters itself, and describes them by hand, knows better; and to one that is
    public, other sites may send people with parameters of their own.
    """
    route = request.scope["route"]
    if not request.scope["query_string"] or "caller" not in request.scope["state"]:
        return
    if "parameters" not in (route.openapi_extra or {}):
        known = {each.alias for each in route.dependant.query_params}
        if not known.issuperset(request.query_params):
            raise Refusal(
                422, "parameter-refused", "the address has parameters that it does not take; leave them out"
            )


def nothing_here() -> Refusal:
    """The same answer for what does not exist and for what somebody else owns."""
    return Refusal(404, "not-found", "there is nothing here, or nothing that you may see; check the address")


def checked_by(needed: Needed) -> Callable[[E], E]:
    """Marks a route that calls ``needed`` itself, so that the description of the service shows it."""

    def mark(endpoint: E) -> E:
        endpoint.needed = needed  # type: ignore[attr-defined]
        return endpoint

    return mark
