"""One sign-in in one browser: everything that binds its parts is derived from one secret in a cookie.

Nothing is stored before the provider has authenticated the person, so strangers cannot fill the database.
Only the browser that began has the secret; state, nonce and verifier are one-way functions of it, of the
provider and of the time, so that none of them can be derived from another.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

from hushsum.service.http.oidc.provider_settings import ProviderSettings

FLOW_SECONDS: Final = 600
_COOKIE: Final = re.compile(r"([0-9]{10})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Flow:
    """What a sign-in sends, and what it expects in return."""

    started: int
    id: str
    state: str
    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        """The code challenge that is sent first (RFC 7636, S256)."""
        return _unpadded(hashlib.sha256(self.verifier.encode()).digest())


def new_cookie(now: float) -> str:
    """The secret of a new sign-in, with the time."""
    return f"{int(now):010d}.{secrets.token_urlsafe(32)}"


def flow_of(cookie: str, terms: ProviderSettings, now: float) -> Flow | None:
    """The sign-in that a cookie belongs to; None if it is invalid or too old."""
    found = _COOKIE.fullmatch(cookie)
    if found is None or not 0 <= now - int(found[1]) <= FLOW_SECONDS:
        return None

    def derived(purpose: str) -> str:
        derived_from = "\0".join((purpose, found[1], terms.issuer, terms.client_id, terms.public_url))
        return _unpadded(hmac.digest(found[2].encode(), derived_from.encode(), "sha256"))

    return Flow(int(found[1]), derived("id"), derived("state"), derived("nonce"), derived("verifier"))


def same(received: str, expected: str) -> bool:
    """Whether two texts are equal, in constant time."""
    return hmac.compare_digest(received.encode("utf-8", "surrogatepass"), expected.encode())


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
