"""A provider of identities: its settings, its public keys, and the identity that an ID token states."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote_plus

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWKError
from jwt.exceptions import InvalidKeyError

from hushsum.service.http.oidc._terms import ProviderSettings, comparable, is_safe, not_proven, unavailable

KIND_OF: Final = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
"""The accepted algorithms. All are asymmetric: a public key never serves as a shared secret."""

_CURVES: Final = {"RSA": None, "EC": "P-256", "OKP": "Ed25519"}
_PUBLIC: Final = ("kty", "n", "e", "crv", "x", "y")
_SHORTEST_RSA: Final = 2048
_MOST_KEYS: Final = 100


@dataclass(frozen=True, slots=True)
class VerifyingKeys:
    """The keys of a JWK set. Keys for other algorithms are ignored (RFC 7517, 5)."""

    keys: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, document: dict[str, Any]) -> VerifyingKeys:
        """The usable keys of a JWK set."""
        listed = document.get("keys")
        return cls(tuple(filter(_is_usable, listed[:_MOST_KEYS])) if isinstance(listed, list) else ())

    def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The one key that a header points at; None if there is none, or if it might be several."""
        fitting = [
            each
            for each in self.keys
            if each["kty"] == KIND_OF[algorithm]
            and each.get("alg") in (None, algorithm)
            and (kid is None or each.get("kid") == kid)
        ]
        if len(fitting) != 1:
            return None
        public: dict[str, Any] = {name: fitting[0][name] for name in _PUBLIC if name in fitting[0]}
        try:
            key = PyJWK(public, algorithm)
        except (PyJWKError, InvalidKeyError):
            return None
        short = isinstance(key.key, RSAPublicKey) and key.key.key_size < _SHORTEST_RSA
        return None if short else key


def _is_usable(key: Any) -> bool:
    return (
        isinstance(key, dict)
        and key.get("kty") in _CURVES
        and key.get("crv") == _CURVES[key["kty"]]
        and key.get("use", "sig") == "sig"
    )


_SILENCE_SECONDS: Final = 5.0
_DEADLINE_SECONDS: Final = 10.0
_MOST_BYTES: Final = 256 * 1024


def fetch(
    method: str, url: str, *, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object of a provider's response.

    Redirects are not followed: the addresses are those that the issuer publishes, and another host would
    receive the client's secret. Compressed responses are refused, since a small one may expand without limit.

    Raises
    ------
    Refusal
        503 if there is no response in time, or it is too long, redirected, or not a JSON object.
    """
    sent_headers = {"accept": "application/json", "accept-encoding": "identity", **(headers or {})}
    deadline = time.monotonic() + _DEADLINE_SECONDS
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=_SILENCE_SECONDS, follow_redirects=False) as client,
            client.stream(method, url, data=form, headers=sent_headers) as answer,
        ):
            if answer.is_redirect:
                raise unavailable("answered with a redirect")
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise unavailable("answered compressed")
            for piece in answer.iter_raw():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise unavailable("answered with too much")
                if time.monotonic() > deadline:
                    raise unavailable("answered too slowly")
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        raise unavailable("cannot be reached") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise unavailable("answered with something that is not JSON") from None
    if not isinstance(found, dict):
        raise unavailable("answered with something that is not an object")
    return answer.status_code, found


SKEW_SECONDS: Final = 60.0
_SIGNED: Final = jwt.PyJWS(algorithms=list(KIND_OF))
_LAST_TIME: Final = 253_402_300_800
_LONGEST_SUBJECT: Final = 255


@dataclass(frozen=True, slots=True)
class Identity:
    """A person at the provider: ``subject`` is the claim that accounts are linked by."""

    issuer: str
    claim: str
    subject: str
    sub: str


def identify(
    token: str, *, provider: Provider, terms: ProviderSettings, nonce: str, started: float, now: float
) -> Identity:
    """Who an ID token is about.

    Parameters
    ----------
    token
        as the provider's token endpoint sent it.
    nonce
        of the sign-in it must belong to.
    started, now
        when that sign-in began, and the time now, in seconds since 1970.

    Raises
    ------
    Refusal
        403 for any rule that the token breaks.
    """
    claims = _signed(token, provider)
    _check_parties(claims, terms)
    _check_times(claims, started, now)
    if not hmac.compare_digest(_text(claims, "nonce").encode(), nonce.encode()):
        raise not_proven("the nonce is another sign-in's")
    sub = _text(claims, "sub")
    return Identity(terms.issuer, terms.claim, _subject(claims, terms.claim), sub)


def _signed(token: str, provider: Provider) -> dict[str, Any]:
    """The claims, once the signature is right."""
    try:
        header = _SIGNED.get_unverified_header(token)
    except jwt.PyJWTError:
        raise not_proven("its token cannot be read") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in KIND_OF:
        raise not_proven("its token is signed with an algorithm that is not accepted")
    if "crit" in header or "b64" in header:
        raise not_proven("its token has a header that is not understood")
    key = provider.keys().find(kid, algorithm) or provider.newer_keys().find(kid, algorithm)
    if key is None:
        raise not_proven("its token is signed with a key that it does not publish")
    try:
        claims = json.loads(_SIGNED.decode(token, key, algorithms=[algorithm]))
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise not_proven("the signature of its token is wrong") from None
    if not isinstance(claims, dict):
        raise not_proven("its token holds no claims")
    return claims


def _check_parties(claims: dict[str, Any], terms: ProviderSettings) -> None:
    if claims.get("iss") != terms.issuer:
        raise not_proven("its token was issued by somebody else")
    audience = claims.get("aud")
    listed = audience if isinstance(audience, list) else [audience]
    if terms.client_id not in listed:
        raise not_proven("its token is for another service")
    # A token for several services is ours only if it was issued to us.
    if (len(listed) > 1 or "azp" in claims) and claims.get("azp") != terms.client_id:
        raise not_proven("its token was issued to another service")


def _check_times(claims: dict[str, Any], started: float, now: float) -> None:
    if not _time(claims, "exp") > now - SKEW_SECONDS:
        raise not_proven("its token has expired")
    if not started - SKEW_SECONDS <= _time(claims, "iat") <= now + SKEW_SECONDS:
        raise not_proven("its token was not issued for this sign-in")
    if "nbf" in claims and not _time(claims, "nbf") <= now + SKEW_SECONDS:
        raise not_proven("its token is not valid yet")


def _time(claims: dict[str, Any], name: str) -> float:
    found = claims.get(name)
    # Seconds up to the year 9999: JSON also allows Infinity, NaN and integers of any length.
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < _LAST_TIME:
        raise not_proven(f"its token has no usable {name}")
    return found


def _text(claims: dict[str, Any], name: str) -> str:
    found = claims.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= _LONGEST_SUBJECT or not found.isprintable():
        raise not_proven(f"its token has no usable {name}")
    return found


def _subject(claims: dict[str, Any], claim: str) -> str:
    found = _text(claims, claim)
    if claim == "email":
        # Whoever may type an address into a profile is not yet its owner.
        if claims.get("email_verified") is not True:
            raise not_proven("it has not verified the email address")
        if not found.isascii():
            raise not_proven("the email address must be ASCII")
    return comparable(claim, found)


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
