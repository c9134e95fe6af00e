"""What is declared of a sign-in: the settings of a provider, the cookie of a browser, and its refusals."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from hushsum.errors import UsageError
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.settings import PREFIX, Settings

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_LONGEST_URL: Final = 500
_SHORTEST_SECRET: Final = 16
_CLAIM: Final = re.compile(r"[A-Za-z][A-Za-z0-9_:./-]{0,79}")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The trusted provider, and the service's client registration there."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    claim: str
    public_url: str

    @classmethod
    def of(cls, settings: Settings) -> ProviderSettings:
        """The provider of these settings.

        Raises
        ------
        UsageError
            if a setting is missing, or an address is neither HTTPS nor on this machine.
        """
        for name in ("client_id", "public_url", "name", "account_claim"):
            if not getattr(settings, f"oidc_{name}"):
                raise UsageError(
                    f"{PREFIX}OIDC_{name.upper()} must be set with {PREFIX}OIDC_ISSUER", remedy="set it"
                )
        if not is_safe(settings.oidc_issuer, local=True) or urlsplit(settings.oidc_issuer).query:
            raise UsageError(
                (f"{PREFIX}OIDC_ISSUER must be an https address (http on this machine only) without a query"),
                remedy="copy it from the provider's /.well-known/openid-configuration",
            )
        public = settings.oidc_public_url.removesuffix("/")
        parts = urlsplit(public)
        if not is_safe(public, local=True) or parts.path != settings.root_path or parts.query:
            raise UsageError(
                (
                    f"{PREFIX}OIDC_PUBLIC_URL must be the service's own https address (http on this "
                    f"machine only), with the path of {PREFIX}ROOT_PATH and no other"
                ),
                remedy="give what people type into their browsers",
            )
        if not _CLAIM.fullmatch(settings.oidc_account_claim):
            raise UsageError(
                f"{PREFIX}OIDC_ACCOUNT_CLAIM must be the name of a claim", remedy="try email or sub"
            )
        return cls(
            issuer=settings.oidc_issuer,
            client_id=settings.oidc_client_id,
            client_secret=_secret(settings),
            name=settings.oidc_name,
            claim=settings.oidc_account_claim,
            public_url=public,
        )

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to: configured, and never read from a request."""
        return f"{self.public_url}/oidc/callback"

    @property
    def origin(self) -> str:
        """The public address without its path, as browsers name it."""
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.public_url))

    @property
    def secure(self) -> bool:
        """Whether browsers reach the service by HTTPS."""
        return self.public_url.startswith("https://")

    @property
    def local(self) -> bool:
        """Whether the provider is on this machine and uses plain HTTP, as in tests."""
        return self.issuer.startswith("http://")


def is_safe(url: object, *, local: bool) -> bool:
    """Whether a URL is HTTPS; with ``local``, plain HTTP to this machine is accepted."""
    if not isinstance(url, str) or len(url) > _LONGEST_URL or not url.isascii() or not url.isprintable():
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.fragment or "@" in parts.netloc or " " in url or "\\" in url:
        return False
    return parts.scheme == "https" or (local and parts.scheme == "http" and host in LOOPBACK)


def comparable(claim: str, subject: str) -> str:
    """How a subject is compared: addresses without regard to capitals, everything else as it is."""
    return subject.lower() if claim == "email" else subject


def _secret(settings: Settings) -> str:
    given = settings.oidc_client_secret
    if len(given) < _SHORTEST_SECRET:
        raise UsageError(
            f"{PREFIX}OIDC_CLIENT_SECRET must have at least {_SHORTEST_SECRET} characters",
            remedy=(
                "let the provider make one, and give it there "
                f"or in the file of {PREFIX}OIDC_CLIENT_SECRET_FILE"
            ),
        )
    return given


def stale() -> Refusal:
    """The callback does not belong to a sign-in that this browser has begun lately."""
    return Refusal(
        400,
        "sign-in-stale",
        "this sign-in was not begun in this browser, is already finished, or took too long; begin again",
    )


def not_proven(reason: str) -> Refusal:
    """The provider did not prove who somebody is; ``reason`` names the rule, never a value."""
    return Refusal(
        403,
        "sign-in-refused",
        f"the sign-in provider did not prove who you are: {reason}; try again or contact the administrator",
    )


def unavailable(reason: str) -> Refusal:
    """The provider cannot be reached, or its response is invalid."""
    return Refusal(503, "provider-unavailable", f"the sign-in provider {reason}; try again later")


_NOT_ADMITTED = {
    "unknown-identity": "no account is linked to your identity; ask an administrator to link your account",
    "identity-changed": "your account is linked to another person of that name at the provider; "
    "ask an administrator to link it again",
    "account-closed": "your account is closed; ask an administrator for another one",
}


def not_admitted(kind: str) -> Refusal:
    """The provider has authenticated the person, and that person has no open account."""
    if kind not in _NOT_ADMITTED:
        return stale()
    return Refusal(403, kind, _NOT_ADMITTED[kind])


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
