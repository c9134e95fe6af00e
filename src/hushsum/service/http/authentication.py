"""Authentication: roles, the scopes of each, and the caller that a bearer token belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool

from hushsum.service.http.request_limits import FairQueue
from hushsum.service.http.ttl_cache import TtlCache
from hushsum.service.store import Accounts

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
_UNKNOWN_AT_ONCE: Final = 4
"""Threads that look up tokens which were never valid here."""


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
        self._unknown = FairQueue(each=1, most=_UNKNOWN_AT_ONCE)

    async def find(self, token: str, address: str) -> Caller | None:
        """The caller, from the cache or from the database."""
        known = self._known.get(token)
        if known is not None:
            return known
        if self._once_valid.get(token):
            return await run_in_threadpool(self.look_up, token)
        async with self._unknown.place(address), self._unknown.turn():
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

    def clear_cache(self) -> None:
        """Look every token up again, because one was revoked or an account was closed."""
        self._known.clear()
