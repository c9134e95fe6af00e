"""Where peers listen, and how long one waits for them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

from hushsum.errors import UsageError

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a peer listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: until a message begins, for one to pass, and for a peer to come back before it is given up."""

    wait: float = 600.0
    transfer: float = 60.0
    lost: float = 60.0


def parse_address(text: str, parameter: str) -> tuple[str, int]:
    """``HOST:PORT``; an IPv6 address stands in brackets.

    >>> parse_address("[::1]:7000", "listen")
    ('::1', 7000)
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            parameter=parameter,
            rule="must be HOST:PORT",
            got=f"{text!r:.60}",
            remedy="such as 127.0.0.1:7000",
        )
    return host, int(port)


def listener(host: str, port: int, *, backlog: int = 4) -> socket.socket:
    """A socket that listens there.

    Raises
    ------
    UsageError
        if the address is taken, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as error:
        raise UsageError(
            rule=f"cannot listen on {host}:{port} ({(error.strerror or 'refused').lower()})",
            remedy="choose another",
        ) from None


def short(fingerprint: str) -> str:
    """A fingerprint as people read it."""
    return f"{fingerprint[:12]}…"
