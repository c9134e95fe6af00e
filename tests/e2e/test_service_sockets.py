"""Bytes that are no HTTP, or nearly: a service that answers them, forgets them, and goes on serving."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator

import httpx
import psutil
import pytest
from tests.e2e.service_process import ADMIN, ServiceProcess

from hushsum.service.http import LONGEST_HEAD

CANARY = b"canary-27182818"
TOKEN = f"Authorization: Bearer {ADMIN}".encode()

POST = b"POST /tokens HTTP/1.1\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BROKEN: dict[str, bytes] = {
    "nothing": b"\r\n\r\n\r\n",
    "noise": bytes(range(256)) * 4,
    "no version": b"GET /me\r\n\r\n",
    "another version": b"GET /me HTTP/3.7\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "an unknown method": CANARY + b" /me HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header without a colon": b"GET /me HTTP/1.1\r\n" + CANARY + b"\r\n\r\n",
    "a header with a zero": b"GET /me HTTP/1.1\r\nX: " + CANARY + b"\x00\r\n\r\n",
    "a folded header": b"GET /me HTTP/1.1\r\nX: a\r\n  " + CANARY + b"\r\n\r\n",
    "a path with a zero": b"GET /" + CANARY + b"%00 HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\n\r\n",
    "a path that is no text": b"GET /" + CANARY + b"\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "an address with another host": b"GET http://" + CANARY + b"/me HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length that is no number": POST + b"Content-Length: " + CANARY + b"\r\n\r\n{}",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n{}",
    "a gigantic length": POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n{}",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a length and chunks": POST + b"Content-Length: 2\r\n" + CHUNKED + b"\r\n{}",
    "a chunk that is no number": POST + TOKEN + b"\r\n" + CHUNKED + b"\r\nzz\r\n{}\r\n",
    "a chunk of any length": POST + TOKEN + b"\r\n" + CHUNKED + b"\r\nffffffffffffffffff\r\n{}",
    "an unknown encoding": POST + b"Transfer-Encoding: " + CANARY + b"\r\n\r\n{}",
    "an upgrade": b"GET /me HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n" + CANARY,
    "a request in a body": b"GET /me HTTP/1.1\r\nContent-Length: 60\r\n\r\nGET / HTTP/1.1\r\nX: " + CANARY,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    found = ServiceProcess(tmp_path_factory.mktemp("sockets"))
    found.start()
    yield found
    assert found.process is not None
    found.process.kill()
    found.process.wait()


def send(place: ServiceProcess, data: bytes, *, wait: float = 2.0) -> bytes:
    """Send, say that nothing more comes, and hear what is answered."""
    heard = b""
    with socket.create_connection(("127.0.0.1", place.port), timeout=wait) as link:
        try:
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            while piece := link.recv(1 << 16):
                heard += piece
        except OSError:
            # It hung up before all was sent, which is an answer too.
            pass
    return heard


def check(place: ServiceProcess, heard: bytes) -> None:
    """What was answered, if anything, is a refusal that repeats nothing."""
    assert CANARY not in heard
    for answer in heard.split(b"HTTP/1.1 ")[1:]:
        status = int(answer[:3])
        assert status < 500, answer
        if status >= 400:
            assert b"content-type: application/problem+json" in answer.lower()
    assert httpx.get(f"{place.url}/healthz", timeout=60).status_code == 200


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_hardly_http(place: ServiceProcess, name: str) -> None:
    heard = send(place, BROKEN[name])
    check(place, heard)


@pytest.mark.parametrize("data", [b"GET /openapi.json\r\n\r\n", b"GET /openapi.json HTTP/0.9\r\n\r\n"])
def test_a_request_without_headers_is_refused(place: ServiceProcess, data: bytes) -> None:
    heard = send(place, data)
    assert b"hushsum" not in heard.replace(b"urn:hushsum:problem", b"")
    check(place, heard)


@pytest.mark.parametrize("number", [200, pytest.param(5000, marks=pytest.mark.slow)])
def test_requests_with_a_few_wrong_bytes(place: ServiceProcess, number: int) -> None:
    chance = random.Random(number)
    body = b'{"label": "' + CANARY + b'"}'
    whole = (
        b"POST /tokens HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\n"
        b"X-Request-Id: some-request\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    for _ in range(number):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            if chance.random() < 0.5:
                data[at] = chance.randrange(256)
            else:
                del data[at : at + chance.randrange(1, 9)]
        heard = send(place, bytes(data))
        assert CANARY not in heard
        assert b"HTTP/1.1 5" not in heard
    assert httpx.get(f"{place.url}/healthz", timeout=60).status_code == 200


def test_a_head_without_end_does_not_fill_the_memory(place: ServiceProcess) -> None:
    assert place.process is not None
    before = psutil.Process(place.process.pid).memory_info().rss
    for start in (b"GET /me HTTP/1.1\r\nX: ", b"GET /", b"GET /me HTTP/1.1\r\n"):
        filler = b"x: y\r\n" if start.endswith(b"\n") else b"a"
        sent = 0
        with socket.create_connection(("127.0.0.1", place.port), timeout=20) as link:
            link.sendall(start)
            try:
                while sent < 64 << 20:
                    sent += link.send(filler * ((1 << 16) // len(filler)))
            except OSError:
                pass
        assert sent < 64 << 20, "it must hang up"
    after = psutil.Process(place.process.pid).memory_info().rss
    assert after - before < 32 << 20
    heard = send(place, b"GET /me HTTP/1.1\r\nX: " + b"a" * (LONGEST_HEAD + 1))
    assert not heard or b"HTTP/1.1 431" in heard


def test_whoever_leaves_in_the_middle_is_no_failure(place: ServiceProcess) -> None:
    """Bodies that end before their end; of a query too, whose handler reads its body itself."""
    for path in (b"/tokens", b"/functions/fn_0/query", b"/datasets/ds_0/uploads?format=csv"):
        with socket.create_connection(("127.0.0.1", place.port), timeout=20) as link:
            link.sendall(b"POST " + path + b" HTTP/1.1\r\n" + TOKEN + b"\r\nContent-Length: 1000\r\n\r\n{")
            time.sleep(0.3)
    time.sleep(0.3)
    assert 'status="500"' not in httpx.get(f"{place.url}/metrics", timeout=60).text


def test_many_silent_connections_keep_nobody_out(place: ServiceProcess) -> None:
    """Heads and bodies that never end, on a hundred connections at once."""
    starts = [
        b"",
        b"GET /me HT",
        b"POST /tokens HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
        b"POST /tokens HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\nContent-Length: 1000\r\n\r\n{",
    ]
    links = []
    try:
        for i in range(100):
            link = socket.create_connection(("127.0.0.1", place.port), timeout=60)
            link.sendall(starts[i % len(starts)])
            links.append(link)
        assert httpx.get(f"{place.url}/healthz", timeout=60).status_code == 200
    finally:
        for link in links:
            link.close()


@pytest.mark.slow
def test_silence_is_ended(place: ServiceProcess) -> None:
    """Whoever does not finish a head, or a body that was refused, loses the connection within a minute."""
    for start in (b"", b"GET /me HT", b"POST /tokens HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", place.port), timeout=60) as link:
            link.sendall(start)
            while link.recv(1 << 16):
                pass
    with socket.create_connection(("127.0.0.1", place.port), timeout=90) as link:
        link.sendall(b"POST /tokens HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\nContent-Length: 1000\r\n\r\n{")
        assert b"HTTP/1.1 408" in link.recv(1 << 16)


def test_nothing_that_was_sent_is_in_the_log(place: ServiceProcess) -> None:
    """Last, over all of the above."""
    send(
        place, b"GET /" + CANARY + b"?x=" + CANARY + b" HTTP/1.1\r\nHost: x\r\nX-Odd: " + CANARY + b"\r\n\r\n"
    )
    time.sleep(0.2)
    text = place.log
    assert ADMIN not in text
    assert "Traceback" not in text
    assert CANARY.decode() not in text
    assert {each["level"] for each in place.events()} <= {"INFO", "WARNING"}
