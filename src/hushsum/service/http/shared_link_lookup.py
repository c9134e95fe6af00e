"""Requests by a shared link: what is behind its key, and how often anybody may ask."""

from __future__ import annotations

import re
from typing import Final

from hushsum.service.http.authentication import TtlCache, nothing_here
from hushsum.service.http.request_limits import FairThreads, RateLimit, too_often
from hushsum.service.settings import Settings
from hushsum.service.store import SharedFunction, Shares

SHARED_PREFIX: Final = "/shared/"
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_BURST_SECONDS: Final = 10.0
_UNKNOWN_AT_ONCE: Final = 4


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
        """What is behind a key.

        Raises
        ------
        Refusal
            404 if there is nothing; 429 if the address or the link is used too often.
        """
        if not self._addresses.take(address):
            raise too_often()
        if not self._on:
            raise nothing_here()
        found = self._known.get(key)
        if found is None:
            generation = self._known.generation
            if _KEY.fullmatch(key):
                found = await self._lookups.run(address, self._shares.open, key)
            if found is None:
                if not self._failures.take(address):
                    raise too_often()
                raise nothing_here()
            self._known.put(key, found, generation=generation)
        if not found.works:
            raise nothing_here()
        if not self._links.take(found.share):
            raise too_often()
        return found

    def clear_cache(self) -> None:
        """Look every key up again, because a link was revoked or an account was closed."""
        self._known.clear()
