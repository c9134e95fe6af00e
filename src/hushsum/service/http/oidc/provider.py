"""What a provider publishes about itself, and the exchange of a code for an ID token."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote_plus

from hushsum.service.http.oidc.provider_keys import VerifyingKeys
from hushsum.service.http.oidc.provider_requests import fetch
from hushsum.service.http.oidc.provider_settings import ProviderSettings, is_safe
from hushsum.service.http.oidc.sign_in_errors import not_proven, unavailable

_CACHE_SECONDS: Final = 3600.0
_PAUSE_SECONDS: Final = 30.0
_LONGEST_ID_TOKEN: Final = 32 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The part of a discovery document that is used."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    basic: bool
    names_issuer: bool


class CachedDocument(Generic[T]):
    """A document that is fetched when it is needed and cached for an hour.

    Unauthenticated requests can cause a fetch, so after a failure the next one waits for some time.
    """

    def __init__(self, read: Callable[[], T], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._value: T | None = None
        self._tried = float("-inf")
        self._until = float("-inf")

    def get(self) -> T:
        """The document; raises a `Refusal` if it is not cached and cannot be fetched."""
        with self._lock:
            if self._value is None or self._clock() >= self._until:
                self._fetch()
            assert self._value is not None
            return self._value

    def refreshed(self) -> T:
        """A new copy, or the cached one if it was fetched a moment ago."""
        with self._lock:
            if self._value is None or self._clock() >= self._tried + _PAUSE_SECONDS:
                self._fetch()
            assert self._value is not None
            return self._value

    def _fetch(self) -> None:
        if self._clock() < self._tried + _PAUSE_SECONDS:
            raise unavailable("did not respond a moment ago")
        self._tried = self._clock()
        self._value = self._read()
        self._until = self._tried + _CACHE_SECONDS


class Provider:
    """The configured issuer, as it describes itself."""

    def __init__(self, terms: ProviderSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._terms = terms
        self._metadata = CachedDocument(self._read_metadata, clock)
        self._keys = CachedDocument(self._read_keys, clock)

    def metadata(self) -> Metadata:
        """Its addresses."""
        return self._metadata.get()

    def keys(self) -> VerifyingKeys:
        """The keys it signs with."""
        return self._keys.get()

    def newer_keys(self) -> VerifyingKeys:
        """The keys, fetched again: the provider may have made a new one."""
        return self._keys.refreshed()

    def exchange(self, code: str, verifier: str) -> str:
        """The ID token for a code, as it was sent; the access token is not kept.

        Raises
        ------
        Refusal
            403 if the provider does not accept the code, 503 if it cannot be reached.
        """
        known = self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._terms.redirect_uri,
            "code_verifier": verifier,
        }
        headers: dict[str, str] = {}
        if known.basic:
            headers["authorization"] = _basic(self._terms.client_id, self._terms.client_secret)
        else:
            form |= {"client_id": self._terms.client_id, "client_secret": self._terms.client_secret}
        status, response = fetch("POST", known.token_endpoint, form=form, headers=headers)
        if status >= 500:
            raise unavailable("failed")
        token = response.get("id_token")
        if status != 200 or not isinstance(token, str) or len(token) > _LONGEST_ID_TOKEN:
            raise not_proven("it gave no ID token for the code")
        return token

    def _read_metadata(self) -> Metadata:
        status, response = fetch("GET", f"{self._terms.issuer.rstrip('/')}/.well-known/openid-configuration")
        # The issuer in the document must be the configured one, or its tokens are another issuer's.
        if status != 200 or response.get("issuer") != self._terms.issuer:
            raise unavailable("does not describe itself as the configured issuer")
        addresses = [response.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        if not all(is_safe(each, local=self._terms.local) for each in addresses):
            raise unavailable("publishes an address that is not https")
        if "S256" not in _listed(response.get("code_challenge_methods_supported"), "S256"):
            raise unavailable("does not offer PKCE with S256")
        authorization, token, jwks = map(str, addresses)
        return Metadata(
            authorization_endpoint=authorization,
            token_endpoint=token,
            jwks_uri=jwks,
            basic="client_secret_basic"
            in _listed(response.get("token_endpoint_auth_methods_supported"), "client_secret_basic"),
            names_issuer=response.get("authorization_response_iss_parameter_supported") is True,
        )

    def _read_keys(self) -> VerifyingKeys:
        status, response = fetch("GET", self.metadata().jwks_uri)
        if status != 200:
            raise unavailable("does not publish its keys")
        return VerifyingKeys.of(response)


def _listed(found: Any, default: str) -> list[Any]:
    return found if isinstance(found, list) else [default]


def _basic(name: str, secret: str) -> str:
    """RFC 6749, 2.3.1: both parts are form-encoded before they are joined."""
    pair = f"{quote_plus(name)}:{quote_plus(secret)}"
    return "Basic " + base64.b64encode(pair.encode()).decode()
