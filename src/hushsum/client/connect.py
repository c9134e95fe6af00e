"""Connect to a service."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from hushsum.errors import Argument, UsageError
from hushsum.version import PRODUCER

if TYPE_CHECKING:
    import httpx

    from hushsum.client.service import Service

_LOCAL = ("localhost", "127.0.0.1", "::1")


def connect(url: str, token: str, *, timeout: float = 60.0, allow_plain_http: bool = False) -> Service:
    """A service that was started with ``hushsum serve``, as somebody with a token sees it.

    Parameters
    ----------
    url : str
        Where it listens, such as ``https://sums.example.org``.
    token : str
        From an administrator of the service. It is kept in memory and sent in a header.
    timeout : float
        Seconds to wait for an answer.
    allow_plain_http : bool
        Send the token without encryption to another machine. Only for networks that nobody else can read.

    Raises
    ------
    UsageError
        if the address is no such one, or ``hushsum[service]`` is not installed.
    ServiceRefused
        if the service cannot be reached, or does not know the token.
    """
    from hushsum.client.http_client import Connection
    from hushsum.client.service import Service

    if not token.isascii() or not token.isprintable() or not token:
        raise UsageError(
            parameter="token", rule="must be the text that an administrator gave", remedy="copy it whole"
        )
    client, address = open_client(url, timeout=timeout, token=token, allow_plain_http=allow_plain_http)
    return Service(Connection(client, address))


def open_client(
    url: str, *, timeout: float, token: str | None, allow_plain_http: bool
) -> tuple[httpx.Client, str]:
    """An HTTP client for a service, with a token or without, and its address.

    Raises
    ------
    UsageError
        if the address is no such one, or ``hushsum[service]`` is not installed.
    """
    if find_spec("httpx") is None:
        raise UsageError(rule="the client needs another package", remedy="install hushsum[service]")
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError(
            parameter="url",
            rule="must be an address such as https://sums.example.org",
            remedy="give the service's",
        )
    if parsed.scheme == "http" and parsed.host not in _LOCAL and not allow_plain_http:
        raise UsageError(
            parameter="url",
            rule="must begin with https://, because a token must not travel unencrypted to another machine",
            got="http://",
            remedy=("use https://, or ", Argument("allow_plain_http", True), " on a network of your own"),
        )
    authorization = {} if token is None else {"authorization": f"Bearer {token}"}
    client = httpx.Client(
        base_url=parsed,
        timeout=timeout,
        headers={**authorization, "user-agent": PRODUCER},
        # A service never redirects; a token must not follow somebody who does.
        follow_redirects=False,
    )
    return client, str(parsed)
