"""Frames over TLS: whole or refused, and never more memory than was allowed."""

from __future__ import annotations

import gc
import socket
import struct
import threading
import tracemalloc
from pathlib import Path

import pytest

from hushsum.errors import PeerLost, PeerRefused
from hushsum.parties import _tls as frames
from hushsum.parties import connect, incoming
from hushsum.parties._tls import TlsConnection, secured
from tests.unit.parties.summarization.parties import identities, linked


def raw(link: TlsConnection, data: bytes) -> None:
    """Bytes past the framing, as a broken peer sends them."""
    link._socket.sendall(data)


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_messages_arrive_whole_and_in_order(tmp_path: Path, size: int) -> None:
    with linked(tmp_path) as (near, far):
        payload = bytes(range(256)) * (size // 256 + 1)

        def send_both() -> None:
            near.send(payload[:size])
            near.send(b"next")

        sender = threading.Thread(target=send_both)
        sender.start()
        assert far.receive(most=size, wait=10) == payload[:size]
        assert far.receive(most=4, wait=10) == b"next"
        sender.join()


def test_a_long_message_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with linked(tmp_path) as (near, far):
        raw(near, struct.pack(">4sHHI", frames.MAGIC, frames.VERSION, 0, (1 << 32) - 1))
        tracemalloc.start()
        try:
            with pytest.raises(PeerRefused, match="at most 1000000 bytes"):
                far.receive(most=1_000_000, wait=10)
            assert tracemalloc.get_traced_memory()[1] < 200_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (struct.pack(">4sHHI", b"GET ", 1, 0, 5), "not a message of this protocol"),
        (struct.pack(">4sHHI", frames.MAGIC, 2, 0, 5), "version 2"),
        (struct.pack(">4sHHI", frames.MAGIC, 1, 7, 5), "not a message of this protocol"),
    ],
)
def test_another_protocol_is_refused(tmp_path: Path, head: bytes, said: str) -> None:
    with linked(tmp_path) as (near, far):
        raw(near, head + b"hello")
        with pytest.raises(PeerRefused, match=said):
            far.receive(most=100, wait=10)


def test_a_peer_that_trickles_is_given_up(tmp_path: Path) -> None:
    with linked(tmp_path, transfer=0.2) as (near, far):
        raw(near, struct.pack(">4sHHI", frames.MAGIC, frames.VERSION, 0, 5) + b"ab")
        with pytest.raises(PeerLost, match="in time"):
            far.receive(most=100, wait=10)


def test_silence_and_an_end_are_told_apart_from_a_message(tmp_path: Path) -> None:
    with linked(tmp_path) as (near, far):
        with pytest.raises(PeerLost, match="in time"):
            far.receive(most=100, wait=0.05)
        near.close()
        with pytest.raises(PeerLost, match="ended"):
            far.receive(most=100, wait=10)


def test_a_peer_that_takes_nothing_is_given_up(tmp_path: Path) -> None:
    """Nobody reads at the other end: the system's buffers are all that is used."""
    with linked(tmp_path, transfer=0.3) as (near, _), pytest.raises(PeerLost, match="did not take"):
        near.send(bytes(1 << 26))


def test_strangers_are_refused_and_silent_ones_do_not_hold_the_door(tmp_path: Path) -> None:
    owner, curator = identities(tmp_path, "owner", "curator")
    context = owner.server_context([curator.fingerprint])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
        for greeting in (b"", b"GET / HTTP/1.1\r\n\r\n"):
            stranger = socket.create_connection(place)
            stranger.sendall(greeting)
            with pytest.raises(PeerRefused, match="pinned"):
                secured(incoming(listener, wait=10), context, handshake=0.2, transfer=1)
            stranger.close()
        with pytest.raises(TimeoutError):
            incoming(listener, wait=0.05)


def test_nobody_there_and_somebody_else_there_are_different(tmp_path: Path) -> None:
    owner, curator, other = identities(tmp_path, "owner", "curator", "other")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        context = other.server_context([curator.fingerprint])
        served: list[BaseException] = []

        def serve() -> None:
            try:
                secured(incoming(listener, wait=10), context, handshake=10, transfer=1)
            except PeerRefused as refused:
                served.append(refused)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(PeerRefused, match="does not hold the pinned key"):
            connect(curator, host, port, owner.fingerprint, timeout=10, transfer=1)
        thread.join()
        assert served
    with pytest.raises(PeerLost, match="nobody answers"):
        connect(curator, host, port, owner.fingerprint, timeout=10, transfer=1)


def test_a_peer_that_is_gone_before_the_handshake_leaves_no_socket_open(tmp_path: Path) -> None:
    server, client = identities(tmp_path, "server", "client")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = socket.create_connection(listener.getsockname())
        plain = incoming(listener, wait=10)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        with pytest.raises(PeerRefused, match="does not hold a pinned key"):
            secured(plain, server.server_context([client.fingerprint]), handshake=10.0, transfer=10.0)
    # A socket that was left open would warn, and warnings are errors.
    gc.collect()
