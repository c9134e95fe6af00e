"""Signing in with a provider: the redirect, the answer of the browser, and what it may be refused for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final
from urllib.parse import urlencode, urlsplit

from hushsum.service.http.oidc._provider import Identity, Provider, identify
from hushsum.service.http.oidc._terms import (
    Flow,
    ProviderSettings,
    flow_of,
    new_cookie,
    not_proven,
    same,
    stale,
)
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import RateLimit, address_group, too_often

_AT_ONCE: Final = 8
_STRAINED: Final = 2
_LONGEST_CODE: Final = 2048
_SCOPES: Final = {"sub": "openid", "email": "openid email"}
"""The OAuth scopes that put a claim into the ID token, and no more."""


class SignIn:
    """Sends browsers to the provider, and identifies the person who returns."""

    def __init__(
        self, terms: ProviderSettings, failures_per_minute: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.terms = terms
        self.provider = Provider(terms)
        self._clock = clock
        self._failures = RateLimit(failures_per_minute / 60.0, failures_per_minute)
        # A slow provider occupies a thread per request, and the other routes need threads too.
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        self._strained = threading.BoundedSemaphore(_STRAINED)

    def begin(self) -> tuple[str, str]:
        """The provider's address for a new sign-in, and the cookie that this browser must bring back."""
        with self._place():
            endpoint = self.provider.metadata().authorization_endpoint
        now = self._clock()
        cookie = new_cookie(now)
        flow = flow_of(cookie, self.terms, now)
        assert flow is not None
        parameters = {
            "response_type": "code",
            "client_id": self.terms.client_id,
            "redirect_uri": self.terms.redirect_uri,
            "scope": _SCOPES.get(self.terms.claim, "openid profile email"),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if urlsplit(endpoint).query else "?"
        return f"{endpoint}{joint}{urlencode(parameters)}", cookie

    def resume(self, cookie: str, response: Mapping[str, str], address: str) -> tuple[Flow, Identity]:
        """Who came back from the provider, with which sign-in.

        Parameters
        ----------
        cookie
            of the browser that began the sign-in.
        response
            the query parameters that the provider has sent the browser back with.
        address
            of the caller, whose failures are counted.

        Raises
        ------
        Refusal
            if anything is not as it must be.
        """
        with self.watching(address):
            strained = self._failures.left(address_group(address)) < 1.0
            return self._resume(cookie, response, strained=strained)

    @contextmanager
    def watching(self, address: str) -> Iterator[None]:
        """Count the refusals in the block; an address with too many gets 429 instead.

        The block always runs: what is valid is not refused for the failures of others at the same address.
        """
        try:
            yield
        except Refusal as refusal:
            if refusal.status_code < 500 and not self._failures.take(address_group(address)):
                raise too_often() from None
            raise

    def _resume(self, cookie: str, response: Mapping[str, str], *, strained: bool) -> tuple[Flow, Identity]:
        now = self._clock()
        flow = flow_of(cookie, self.terms, now)
        if flow is None or not same(response.get("state", ""), flow.state):
            raise stale()
        with self._place(strained=strained):
            names_issuer = self.provider.metadata().names_issuer
            # RFC 9207: a response of another provider must not be accepted.
            if response.get("iss", "" if names_issuer else self.terms.issuer) != self.terms.issuer:
                raise not_proven("the response is another provider's")
            if "error" in response:
                raise not_proven("the sign-in was cancelled there")
            code = response.get("code", "")
            if not 0 < len(code) <= _LONGEST_CODE:
                raise not_proven("it gave no code")
            token = self.provider.exchange(code, flow.verifier)
            identity = identify(
                token,
                provider=self.provider,
                terms=self.terms,
                nonce=flow.nonce,
                started=flow.started,
                now=now,
            )
        return flow, identity

    @contextmanager
    def _place(self, *, strained: bool = False) -> Iterator[None]:
        """One of a few places; without a free one the request is refused instead of waiting.

        Addresses with many failures share two of them, and leave the others to everybody else.
        """
        with ExitStack() as held:
            for places in (self._strained, self._places) if strained else (self._places,):
                if not places.acquire(blocking=False):
                    raise too_often()
                held.callback(places.release)
            yield
