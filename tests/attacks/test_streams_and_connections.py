"""Somebody who opens event streams, requests and connections and keeps them: the others go on working."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import cast

import httpx
import pytest
import uvicorn

from hushsum.service.http import LONGEST_HEAD, GuardedConnections
from hushsum.service.trusted_proxies import TrustedProxies
from tests.in_process_service import SMALL, Town

FoundTown = Callable[..., Town]


@contextmanager
def connected(town: Town, guard: GuardedConnections | None = None) -> Iterator[int]:
    """The service on a port of its own, with the connections that ``hushsum serve`` has."""
    guard = guard or GuardedConnections()
    protocol = cast("type[asyncio.Protocol]", guard)
    app = guard.counting(town.app)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, http=protocol, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()


def client(town: Town, who: str, port: int) -> httpx.Client:
    headers = {"authorization": f"Bearer {town.tokens[who]}"}
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30)


def eventually(check: Callable[[], bool]) -> None:
    for _ in range(1000):
        if check():
            return
        time.sleep(0.02)
    raise AssertionError("it never came true")


def silent(port: int, data: bytes = b"", host: str = "127.0.0.1") -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(host, 0))
    link.sendall(data)
    return link


def is_closed(link: socket.socket) -> bool:
    link.settimeout(0.05)
    try:
        return link.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def waiting_job(town: Town, who: str) -> str:
    """A job that no worker takes up."""
    dataset = town.dataset(who, name=f"of {who}")
    requested = {"upload": town.upload(dataset, who=who), **SMALL}
    headers = {"idempotency-key": "k"}
    return str(
        town.ok(who, "POST", f"/datasets/{dataset}/tallies", 202, json=requested, headers=headers)["id"]
    )


@pytest.mark.parametrize("number", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_event_streams_of_one_owner_leave_room_for_others(found_town: FoundTown, number: int) -> None:
    town = found_town(streams_at_once=3)
    mine, theirs = waiting_job(town, "olga"), waiting_job(town, "otto")
    # A stream whose reader is forgotten is closed.
    readers = []
    with connected(town) as port, client(town, "olga", port) as olga, client(town, "otto", port) as otto:
        with ExitStack() as open_streams:
            for _ in range(3):
                answer = open_streams.enter_context(olga.stream("GET", f"/jobs/{mine}/events"))
                assert answer.status_code == 200
                readers.append(answer.iter_bytes())
                assert next(readers[-1]).startswith(b"event: job")
            for _ in range(number - 3):
                refused = olga.get(f"/jobs/{mine}/events")
                assert refused.status_code == 429
                assert int(refused.headers["retry-after"]) >= 1
            assert olga.get(f"/jobs/{mine}").status_code == 200, "looking at the job once is no stream"
            with otto.stream("GET", f"/jobs/{theirs}/events") as answer:
                assert answer.status_code == 200
                assert next(answer.iter_bytes()).startswith(b"event: job")

        def one_more() -> bool:
            with olga.stream("GET", f"/jobs/{mine}/events") as answer:
                return answer.status_code == 200

        # Those who have left are not counted for ever.
        eventually(one_more)


def test_an_event_stream_ends_with_its_token(found_town: FoundTown) -> None:
    town = found_town()
    job = waiting_job(town, "olga")
    other = town.ok("olga", "POST", "/tokens", 201, json={})
    town.tokens["other"] = other["secret"]
    with connected(town) as port, client(town, "other", port) as opened:
        with opened.stream("GET", f"/jobs/{job}/events") as answer:
            pieces = answer.iter_bytes()
            assert next(pieces).startswith(b"event: job")
            town.ok("olga", "DELETE", f"/tokens/{other['id']}", 204)
            # Else this would time out: nothing happens to the job.
            assert list(pieces) == []
        assert opened.get(f"/jobs/{job}").status_code == 401


def test_slow_bodies_of_one_account_leave_room_for_others(found_town: FoundTown) -> None:
    town = found_town(requests_at_once=4)
    start = (
        "POST /tokens HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
        f"Authorization: Bearer {town.tokens['olga']}\r\n\r\n{{"
    ).encode()
    with connected(town) as port, client(town, "olga", port) as olga, client(town, "otto", port) as otto:
        links = [silent(port, start) for _ in range(4)]
        eventually(lambda: olga.get("/me").status_code == 429)
        assert otto.get("/me").status_code == 200
        assert olga.get("/healthz").status_code == 200
        for link in links:
            link.close()
        eventually(lambda: olga.get("/me").status_code == 200)


@pytest.mark.parametrize(
    "number", [30, pytest.param(905, marks=pytest.mark.slow)], ids=["thirty", "nine hundred"]
)
@pytest.mark.parametrize("start", [b"", b"GET /me HT"], ids=["nothing", "half a head"])
def test_idle_connections_give_way(found_town: FoundTown, start: bytes, number: int) -> None:
    """Also if everybody has the same address, as behind a router."""
    town = found_town()
    limits = GuardedConnections(most=number - 10, per_address=number - 10)
    with connected(town, limits) as port, client(town, "otto", port) as otto:
        assert otto.get("/me").status_code == 200
        links = [silent(port, start) for _ in range(number)]
        # The connection that has been used stays; new ones find room.
        assert otto.get("/me").status_code == 200
        for _ in range(12):
            assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).status_code == 200
        eventually(lambda: sum(map(is_closed, links)) >= 10)
        for link in links:
            link.close()


def test_the_address_with_most_connections_gives_way(found_town: FoundTown) -> None:
    town = found_town()
    with connected(town, GuardedConnections(most=20, per_address=100)) as port:
        mine = [silent(port) for _ in range(3)]
        others = [silent(port, host="127.0.0.2") for _ in range(30)]
        eventually(lambda: sum(map(is_closed, others)) >= 13)
        assert not any(map(is_closed, mine))
        for link in mine + others:
            link.close()


def test_a_share_of_each_address_unless_it_is_a_proxy(found_town: FoundTown) -> None:
    town = found_town()
    limits = GuardedConnections(most=100, per_address=5, proxies=TrustedProxies.of("127.0.0.3"))
    with connected(town, limits) as port:
        proxy = [silent(port, host="127.0.0.3") for _ in range(20)]
        one = [silent(port, host="127.0.0.2") for _ in range(20)]
        eventually(lambda: sum(map(is_closed, one)) == 15)
        assert not any(map(is_closed, proxy))
        for link in proxy + one:
            link.close()


def test_connections_at_work_are_not_closed(found_town: FoundTown) -> None:
    town = found_town()
    job = waiting_job(town, "olga")
    with connected(town, GuardedConnections(most=2, per_address=10)) as port, ExitStack() as streams:
        for _ in range(2):
            mine = streams.enter_context(client(town, "olga", port))
            streams.enter_context(mine.stream("GET", f"/jobs/{job}/events"))
        answer = httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60)
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_headers_of_70_kilobytes(found_town: FoundTown, pieces: int) -> None:
    """However they are cut into pieces, and with the end of the head in the last one."""
    town = found_town()
    line = b"X-Filler: " + b"a" * 6990 + b"\r\n"
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + line * 10 + b"\r\n"
    with connected(town) as port:
        with silent(port) as link:
            step = -(-len(head) // pieces)
            for at in range(0, len(head), step):
                link.sendall(head[at : at + step])
                time.sleep(0.02)
            assert link.recv(1 << 16).startswith(b"HTTP/1.1 431 ")
        with silent(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + line * 9 + b"\r\n") as link:
            assert len(line) * 9 < LONGEST_HEAD
            assert link.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        with silent(port, b"GET /" + b"a" * (LONGEST_HEAD + 1) + b" HTTP/1.1\r\n\r\n") as link:
            assert link.recv(1 << 16).startswith(b"HTTP/1.1 431 ")


def test_many_requests_on_one_connection_are_not_one_long_head(found_town: FoundTown) -> None:
    town = found_town()
    with connected(town) as port, client(town, "olga", port) as olga:
        for _ in range(15):
            assert olga.get("/healthz", headers={"x": "a" * 6000}).status_code == 200
