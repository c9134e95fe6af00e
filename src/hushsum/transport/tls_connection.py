"""Frames over TLS: a length, checked before anything of that size is allocated, and the bytes of one message.

``magic (4) | version (u16) | zero (u16) | length (u32) | payload``, big-endian. What a payload means is
defined by the protocol that sends it. A message must be whole within a time that starts with its first byte,
so a peer that trickles cannot hold the other side; one message is under way in each direction at most, so
neither side ever buffers more than one.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from contextlib import suppress
from types import TracebackType
from typing import Final

from hushsum.errors import PeerLost, PeerRefused
from hushsum.transport.peer_identity import Identity, peer_of

VERSION: Final = 1
MAGIC: Final = b"HSPR"
_HEAD: Final = struct.Struct(">4sHHI")
_STEP: Final = 1 << 20
_LARGEST: Final = (1 << 32) - 1
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class TlsConnection:
    """One connection to a peer whose key was verified; ``peer`` is its fingerprint."""

    __slots__ = ("_socket", "_transfer", "peer")

    def __init__(self, connection: ssl.SSLSocket, *, transfer: float) -> None:
        self._socket = connection
        self._transfer = transfer
        self.peer = peer_of(connection)

    def send(self, payload: bytes) -> None:
        """Send one message.

        Raises
        ------
        PeerLost
            if the peer went away, or did not take it in time.
        """
        if len(payload) > _LARGEST:
            raise PeerRefused(rule=f"a message must be at most {_LARGEST} bytes", got=len(payload))
        deadline = time.monotonic() + self._transfer
        whole = memoryview(_HEAD.pack(MAGIC, VERSION, 0, len(payload)) + payload)
        try:
            while whole:
                self._socket.settimeout(_left(deadline))
                whole = whole[self._socket.send(whole[:_STEP]) :]
        except OSError:
            raise PeerLost(rule="the peer went away, or did not take a message in time") from None

    def receive(self, *, most: int, wait: float) -> bytes:
        """The next message, of at most ``most`` bytes; ``wait`` seconds until it begins.

        Raises
        ------
        PeerRefused
            if it is not a frame of this version, or too long; nothing of its size was allocated.
        PeerLost
            if none came in time, it did not end in time, or the connection ended.
        """
        begun = time.monotonic()
        first = self._take(1, begun + wait)
        deadline = time.monotonic() + self._transfer
        magic, version, zero, length = _HEAD.unpack(first + self._take(_HEAD.size - 1, deadline))
        if magic != MAGIC or zero:
            raise PeerRefused(rule="the peer sent something that is not a message of this protocol")
        if version != VERSION:
            raise PeerRefused(
                rule=f"the peer uses version {version} of the protocol, this side {VERSION}",
                remedy="install the same Hushsum on both",
            )
        if length > most:
            raise PeerRefused(rule=f"a message must be at most {most} bytes here", got=f"one of {length}")
        return bytes(self._take(length, deadline))

    def close(self) -> None:
        """End the connection; what was sent has left or is lost."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> TlsConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, size: int, deadline: float) -> bytearray:
        """Exactly ``size`` bytes, grown as they come."""
        data = bytearray()
        while len(data) < size:
            try:
                self._socket.settimeout(_left(deadline))
                piece = self._socket.recv(min(_STEP, size - len(data)))
            except TimeoutError:
                raise PeerLost(rule="the peer did not send a message in time") from None
            except ssl.SSLError as error:
                if "ALERT" in (error.reason or ""):
                    raise PeerRefused(
                        rule="the peer does not accept this side's key", remedy="have it pinned"
                    ) from None
                piece = b""
            except OSError:
                piece = b""
            if not piece:
                raise PeerLost(rule="the connection to the peer ended")
            data += piece
        return data


def connect(
    identity: Identity, host: str, port: int, fingerprint: str, *, timeout: float, transfer: float
) -> TlsConnection:
    """Connect to the peer with this fingerprint.

    Raises
    ------
    PeerLost
        if no peer answers.
    PeerRefused
        if the peer that answers does not hold that key, or who does not accept ours.
    """
    try:
        plain = socket.create_connection((host, port), timeout)
    except OSError:
        raise PeerLost(rule=f"nobody answers at {host}:{port}") from None
    try:
        _prepare(plain)
        made = TlsConnection(identity.client_context(fingerprint).wrap_socket(plain), transfer=transfer)
    except ssl.SSLCertVerificationError:
        plain.close()
        raise PeerRefused(
            rule=f"who answers at {host}:{port} does not hold the pinned key",
            remedy="check address and fingerprint",
        ) from None
    except (OSError, ValueError):
        plain.close()
        raise PeerLost(rule=f"the connection to {host}:{port} ended before both keys were proven") from None
    try:
        # With TLS 1.3 the side that connects learns only by this greeting whether its own key was accepted.
        made.receive(most=0, wait=timeout)
    except BaseException:
        made.close()
        raise
    return made


def accept(
    listener: socket.socket, context: ssl.SSLContext, *, wait: float | None, handshake: float, transfer: float
) -> TlsConnection:
    """The next peer that proves a pinned key.

    Raises
    ------
    TimeoutError
        if no peer connected within ``wait`` seconds.
    PeerRefused
        if a peer connected that proved none.
    """
    return secured(incoming(listener, wait=wait), context, handshake=handshake, transfer=transfer)


def incoming(listener: socket.socket, *, wait: float | None) -> socket.socket:
    """The next connection, of which nothing is known yet; TimeoutError after ``wait`` seconds."""
    listener.settimeout(wait)
    plain, _ = listener.accept()
    return plain


def secured(
    plain: socket.socket, context: ssl.SSLContext, *, handshake: float, transfer: float
) -> TlsConnection:
    """The peer of a connection, once it has proven a pinned key; it has ``handshake`` seconds for that.

    Raises
    ------
    PeerRefused
        if it did not.
    """
    try:
        plain.settimeout(handshake)
        _prepare(plain)
        made = TlsConnection(context.wrap_socket(plain, server_side=True), transfer=transfer)
    except (OSError, ValueError):
        plain.close()
        raise PeerRefused(rule="somebody connected who does not hold a pinned key") from None
    try:
        made.send(b"")
    except PeerLost:
        made.close()
        raise PeerRefused(rule="somebody with a pinned key went away at once") from None
    return made


def _prepare(connection: socket.socket) -> None:
    """Small messages at once; and a peer whose machine died is noticed, so that it can come back."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        # Not every system has all of them; its own, slower defaults hold then.
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
