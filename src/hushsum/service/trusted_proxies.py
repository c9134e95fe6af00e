"""The address of a client: the peer's, or the one that a trusted proxy forwards."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hushsum.errors import UsageError

X_FORWARDED_FOR: Final = "x-forwarded-for"
FORWARDED: Final = "forwarded"
# The headers that proxies set; a service trusts one of them, since a proxy that sets one passes on whatever a
# client sent in the other.
HEADERS: Final = (X_FORWARDED_FOR, FORWARDED)

_MOST_HOPS: Final = 20
_PORT: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[0-9.]+):[0-9]{1,5}")
_PAIR: Final = re.compile(r'\s*(?P<name>[A-Za-z]+)\s*=\s*(?:"(?P<quoted>[^"\\]*)"|(?P<plain>[^",;\s]*))\s*')

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The proxies in front of a service, and the header that they write.

    Parameters
    ----------
    networks : tuple of networks
        The trusted networks. None by default.
    header : str
        ``x-forwarded-for`` or ``forwarded``.

    Examples
    --------
    >>> proxies = TrustedProxies.of("10.0.0.0/8, 127.0.0.1")
    >>> proxies.client("10.0.0.7", [(b"x-forwarded-for", b"6.6.6.6, 203.0.113.9, 10.0.0.9")])
    '203.0.113.9'
    >>> proxies.client("203.0.113.9", [(b"x-forwarded-for", b"6.6.6.6")])
    '203.0.113.9'
    """

    networks: tuple[Network, ...] = ()
    header: str = X_FORWARDED_FOR

    @classmethod
    def of(cls, text: str, header: str = X_FORWARDED_FOR) -> TrustedProxies:
        """The proxies that a setting lists: addresses and networks, with commas between them.

        Raises
        ------
        UsageError
            if one of them is neither, or the header is another one.
        """
        if header not in HEADERS:
            raise UsageError(f"HUSHSUM_FORWARDED_HEADER must be {' or '.join(HEADERS)}")
        try:
            networks = tuple(ipaddress.ip_network(each) for each in re.split(r"[,\s]+", text.strip()) if each)
        except ValueError:
            raise UsageError(
                "HUSHSUM_TRUSTED_PROXIES must be addresses or networks with commas between "
                "them, such as 10.0.0.0/8,127.0.0.1"
            ) from None
        return cls(networks, header)

    def trusts(self, address: str) -> bool:
        """Whether this is the address of one of the proxies."""
        parsed = _address(address)
        return parsed is not None and self._trusts(parsed)

    def client(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The address of the caller.

        Read from the right: each proxy appends whom it heard, so the first address that is not a proxy's is
        the caller's, and whatever stands to the left of it the caller may have made up. An entry that is no
        address ends the search at the proxy that wrote it.
        """
        if not self.trusts(peer):
            return peer
        found = peer
        for hop in self._hops(headers):
            if hop is None:
                break
            found = str(hop)
            if not self._trusts(hop):
                break
        return found

    def scheme(self, peer: str, headers: Iterable[tuple[bytes, bytes]], own: str) -> str:
        """``https`` if a trusted proxy forwards a request that came by HTTPS."""
        if not self.trusts(peer):
            return own
        values = [value for name, value in headers if name == b"x-forwarded-proto"]
        last = values[-1].rpartition(b",")[2].strip().lower() if values else b""
        return last.decode() if last in (b"http", b"https") else own

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self.networks)

    def _hops(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Address | None]:
        """The hops from the nearest on; None for one that is not an address."""
        header = self.header.encode()
        lines = [value.decode("latin-1") for name, value in headers if name == header]
        entries = [entry for line in lines for entry in line.split(",")]
        for entry in entries[: -_MOST_HOPS - 1 : -1]:
            text = entry.strip() if self.header == X_FORWARDED_FOR else _forwarded_for(entry)
            yield _address(text)


def _forwarded_for(element: str) -> str:
    """The ``for`` of one element of RFC 7239, or nothing; nothing also where a comma stands in quotes."""
    for part in element.split(";"):
        pair = _PAIR.fullmatch(part)
        if pair is None:
            return ""
        if pair["name"].lower() == "for":
            return pair["quoted"] if pair["quoted"] is not None else pair["plain"]
    return ""


def _address(text: str) -> Address | None:
    """An address, perhaps with a port, perhaps in brackets; an IPv4 address in IPv6 form as what it is."""
    with_port = _PORT.fullmatch(text)
    if with_port is not None:
        text = with_port["host"]
    text = text.removeprefix("[").removesuffix("]") if text.startswith("[") else text
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.scope_id is not None:
            return None
        return parsed.ipv4_mapped or parsed
    return parsed
