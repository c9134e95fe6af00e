"""The configuration of a sign-in provider, checked before the service starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from hushsum.errors import UsageError
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
                    rule=f"{PREFIX}OIDC_{name.upper()} must be set with {PREFIX}OIDC_ISSUER", remedy="set it"
                )
        if not is_safe(settings.oidc_issuer, local=True) or urlsplit(settings.oidc_issuer).query:
            raise UsageError(
                rule=(
                    f"{PREFIX}OIDC_ISSUER must be an https address (http on this machine only) "
                    "without a query"
                ),
                remedy="copy it from the provider's /.well-known/openid-configuration",
            )
        public = settings.oidc_public_url.removesuffix("/")
        parts = urlsplit(public)
        if not is_safe(public, local=True) or parts.path != settings.root_path or parts.query:
            raise UsageError(
                rule=(
                    f"{PREFIX}OIDC_PUBLIC_URL must be the service's own https address (http on this "
                    f"machine only), with the path of {PREFIX}ROOT_PATH and no other"
                ),
                remedy="give what people type into their browsers",
            )
        if not _CLAIM.fullmatch(settings.oidc_account_claim):
            raise UsageError(
                rule=f"{PREFIX}OIDC_ACCOUNT_CLAIM must be the name of a claim", remedy="try email or sub"
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
            rule=f"{PREFIX}OIDC_CLIENT_SECRET must have at least {_SHORTEST_SECRET} characters",
            remedy=(
                "let the provider make one, and give it there "
                f"or in the file of {PREFIX}OIDC_CLIENT_SECRET_FILE"
            ),
        )
    return given
