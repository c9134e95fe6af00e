"""Verification of an ID token: OpenID Connect Core 1.0, section 3.1.3.7."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import Any, Final

import jwt

from hushsum.service.http.oidc.provider import Provider
from hushsum.service.http.oidc.provider_keys import KIND_OF
from hushsum.service.http.oidc.provider_settings import ProviderSettings, comparable
from hushsum.service.http.oidc.sign_in_errors import not_proven

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
