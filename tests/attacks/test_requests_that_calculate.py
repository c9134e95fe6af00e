"""Requests that take long to calculate: they stop nobody else, and end when their client leaves.

What takes long is planted: a pipe in place of a file, so that whoever reads it waits for as long as the test
wants. Nothing depends on the speed of the machine.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from hushsum.service.compute import fork_server
from hushsum.service.http import (
    LONGEST_QUEUE_SECONDS,
    ComputePool,
    Context,
    CostEstimates,
    RateLimit,
    Refusal,
    compute_pool,
)
from tests.attacks.test_streams_and_connections import client, connected, eventually
from tests.forked import fork_server_pid
from tests.in_process_service import START_FORK_SERVER, Town

FoundTown = Callable[..., Town]
ATTACK = 60
POINT = {"points": [[1.0, -2.0]]}


class Pipe:
    """A pipe in the place of a file: who reads it waits until `release`."""

    def __init__(self, path: Path) -> None:
        path.unlink()
        os.mkfifo(path)
        self._path = path
        self._writer: int | None = None

    def is_read(self) -> bool:
        """Whether somebody reads it, who then waits for what is written."""
        if self._writer is None:
            try:
                self._writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return False
        try:
            os.write(self._writer, b"\n")
        except BrokenPipeError:
            os.close(self._writer)
            self._writer = None
            return False
        return True

    def release(self) -> None:
        """Let all that read it, and will, find nothing in it."""
        os.replace(_empty(self._path.with_suffix(".empty")), self._path)
        if self._writer is not None:
            os.close(self._writer)


def _empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def context_of(town: Town) -> Context:
    context: Context = town.app.state.context
    return context


def endless_plan(town: Town, who: str = "olga") -> tuple[str, dict[str, Any], Pipe]:
    """A plan from public rows that never end."""
    dataset = town.dataset(who, f"of {who}")
    upload = town.upload(dataset, who=who)
    pipe = Pipe(town.settings.path("uploads", f"{upload}.csv"))
    body = {"records": 1000, "kernel": "gaussian", "bandwidth": 1.0, "epsilon": [1.0], "public": upload}
    return f"/datasets/{dataset}/plans", body, pipe


@contextmanager
def many(link: httpx.Client, number: int, path: str, body: Any) -> Iterator[list[Future[httpx.Response]]]:
    """So many requests at once."""
    with ThreadPoolExecutor(number) as pool:
        yield [pool.submit(link.post, path, json=body, timeout=120) for _ in range(number)]


def test_others_are_answered_while_one_owner_calculates(found_town: FoundTown) -> None:
    town = found_town()
    theirs = town.dataset("otto", "theirs")
    path = f"/functions/{town.function(theirs, 'otto')}/query"
    plan, body, pipe = endless_plan(town)
    with connected(town) as port, client(town, "olga", port) as olga, client(town, "otto", port) as otto:
        with many(olga, ATTACK, plan, body) as sent:
            eventually(pipe.is_read)
            eventually(lambda: context_of(town).calculations.running == 1)
            for _ in range(5):
                assert otto.post(path, json=POINT).status_code == 200
                assert otto.post(path, json={"points": [[1.0, -2.0]] * 2000}).status_code == 200
                assert otto.get("/datasets").status_code == 200
                assert otto.get("/readyz").status_code == 200
            own = {name: value for name, value in body.items() if name != "public"} | {"dim": 2}
            assert otto.post(f"/datasets/{theirs}/plans", json=own).status_code == 200
            # The attacker's own queries go on as well.
            assert olga.get("/datasets").status_code == 200
            assert context_of(town).calculations.running == 1, "of one account one is calculated at a time"
            assert not any(each.done() and each.result().status_code != 429 for each in sent)
            pipe.release()
        assert {each.result().status_code for each in sent} <= {422, 429}


def test_who_leaves_ends_the_calculation(found_town: FoundTown) -> None:
    town = found_town()
    plan, body, pipe = endless_plan(town)
    pool = context_of(town).calculations
    with connected(town) as port, client(town, "olga", port) as olga:
        for _ in range(2):
            # The first is calculated, the others wait; then all of them leave.
            with pytest.raises(httpx.ReadTimeout):
                _post_and_leave(town, port, plan, body, once=pipe.is_read)
            eventually(lambda: pool.running == 0)
            # The process that has read the pipe exists no more, and none that waited has begun.
            eventually(lambda: not pipe.is_read())
        assert olga.get("/datasets").status_code == 200


def _post_and_leave(town: Town, port: int, path: str, body: Any, *, once: Callable[[], bool]) -> None:
    """Five requests, whose clients leave all at once when it is so."""

    async def leave() -> None:
        headers = {"authorization": f"Bearer {town.tokens['olga']}"}
        base = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=120) as link:
            sent = [asyncio.create_task(link.post(path, json=body)) for _ in range(5)]
            while not once():
                await asyncio.sleep(0.02)
            for each in sent:
                each.cancel()
            await asyncio.gather(*sent, return_exceptions=True)
        raise httpx.ReadTimeout("left")

    asyncio.run(leave())


def test_a_slow_function_delays_its_own_queries_only(found_town: FoundTown) -> None:
    """Also its first query, for which it is loaded."""
    town = found_town()
    slow, quick = (town.function(town.dataset(who, f"of {who}"), who) for who in ("olga", "otto"))
    pipe = Pipe(town.settings.path("functions", f"{slow}.hush"))
    with connected(town) as port, client(town, "olga", port) as olga, client(town, "otto", port) as otto:
        with many(olga, 30, f"/functions/{slow}/query", POINT) as sent:
            eventually(pipe.is_read)
            for _ in range(3):
                assert otto.post(f"/functions/{quick}/query", json=POINT).status_code == 200
                large = {"points": [[1.0, -2.0]] * 20_000}
                assert otto.post(f"/functions/{quick}/query", json=large).status_code == 200
            assert not any(each.done() for each in sent)
            pipe.release()
        assert {each.result().status_code for each in sent} == {503}, "the file is damaged now"


@pytest.mark.parametrize("points", [450, 4000], ids=["five kilobytes", "sixty kilobytes"])
def test_queries_beyond_a_few_points_wait_for_their_turn(found_town: FoundTown, points: int) -> None:
    town = found_town()
    function = town.function(town.dataset())
    path = f"/functions/{function}/query"
    account = town.ids["olga"]
    town.ok("olga", "PUT", f"/functions/{function}/grants/anna", json={"download": False})
    large = json.dumps({"points": [[1.0, -2.0]] * points}, separators=(",", ":")).encode()
    assert 4096 < len(large) < 1 << 16

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(town.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://town") as link:

            async def post(who: str, content: bytes) -> int:
                headers = {"authorization": f"Bearer {town.tokens[who]}", "content-type": "application/json"}
                return (await link.post(path, content=content, headers=headers)).status_code

            small = json.dumps(POINT).encode()
            assert await post("olga", small) == 200
            async with context_of(town).large_queries.place(account, "another query"):
                waiting = asyncio.create_task(post("olga", large))
                heard = [await post("anna", large), await post("olga", small)]
                assert not waiting.done()
            return [*heard, await waiting]

    assert asyncio.run(ask()) == [200, 200, 200]


def test_an_account_has_a_share_of_the_event_loop(
    found_town: FoundTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small queries that take some milliseconds are answered at once, but of each account a few only."""
    town = found_town()
    function = town.function(town.dataset())
    path = f"/functions/{function}/query"
    town.ok("olga", "PUT", f"/functions/{function}/grants/anna", json={"download": False})
    town.ok("olga", "POST", path, json=POINT)
    context_of(town).answered_at_once = RateLimit(1e-9, 20.0)
    monkeypatch.setattr(CostEstimates, "seconds", lambda *given: 0.004)
    calculated: list[str] = []
    calculate = ComputePool.calculate

    async def counted(self: ComputePool, calculation: str, *given: Any, **options: Any) -> Any:
        calculated.append(calculation)
        return await calculate(self, calculation, *given, **options)

    monkeypatch.setattr(ComputePool, "calculate", counted)
    for _ in range(9):
        town.ok("olga", "POST", path, json=POINT)
    assert calculated == ["query"] * 4
    for _ in range(5):
        town.ok("anna", "POST", path, json=POINT)
    assert calculated == ["query"] * 4


def test_a_query_that_is_expected_to_take_long_waits_however_short_it_is(found_town: FoundTown) -> None:
    town = found_town()
    function = town.function(town.dataset())
    path = f"/functions/{function}/query"
    town.ok("olga", "POST", path, json=POINT)
    pool = context_of(town).large_queries
    pool.costs.learn(function, 3.0)
    pool.close()
    assert town.refused("olga", "POST", path, 503, json=POINT)["type"].endswith("busy")


def test_an_account_has_a_limited_time_of_calculations_waiting() -> None:
    pool = ComputePool(most=2, niceness=0, memory=1 << 30, seconds=60.0)
    pool.costs.learn("long", 0.7 * LONGEST_QUEUE_SECONDS)

    async def enter() -> None:
        async with pool.place("olga", "long"):
            with pytest.raises(Refusal) as refused:
                async with pool.place("olga", "long"):
                    raise AssertionError
            assert refused.value.status_code == 429
            assert int((refused.value.headers or {})["retry-after"]) >= 0.7 * LONGEST_QUEUE_SECONDS
            async with pool.place("otto", "long"):
                pass
        async with pool.place("olga", "long"):
            pass

    asyncio.run(enter())


def test_a_calculation_has_a_limited_time(found_town: FoundTown) -> None:
    town = found_town(calculation_seconds=0.5)
    plan, body, pipe = endless_plan(town)
    assert town.refused("olga", "POST", plan, 422, json=body)["type"].endswith("time-limit")
    eventually(lambda: not pipe.is_read())
    assert context_of(town).calculations.running == 0


def test_a_process_that_dies_is_replaced(found_town: FoundTown) -> None:
    town = found_town()
    plan, body, pipe = endless_plan(town)
    with connected(town) as port, client(town, "olga", port) as olga:
        with many(olga, 1, plan, body) as sent:
            eventually(pipe.is_read)
            for child in psutil.Process(fork_server_pid()).children():
                child.kill()
            assert sent[0].result().status_code == 503
        pipe.release()
        for _ in range(2):
            # The file is empty, which was calculated.
            eventually(lambda: olga.post(plan, json=body).status_code == 422)
            # One that dies while it waits for work is nobody's loss.
            for child in psutil.Process(fork_server_pid()).children():
                # It may just have ended by itself.
                with suppress(psutil.NoSuchProcess):
                    child.kill()
                    child.wait()


def test_a_calculation_has_limited_memory(found_town: FoundTown) -> None:
    town = found_town(calculation_memory_bytes=1 << 20)
    path = f"/functions/{town.function(town.dataset())}/query"
    body = {"points": [[1.0, -2.0]] * 90_000}
    assert town.refused("olga", "POST", path, 503, json=body)["type"].endswith("out-of-memory")


def test_the_processes_that_calculate_get_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server of forks, which is imported anew: it answers, and ends with its last connection."""
    monkeypatch.setattr(compute_pool, "start_fork_server", START_FORK_SERVER)
    monkeypatch.setenv("HUSHSUM_ADMIN_TOKEN", "not for processes that calculate")
    server = compute_pool.ForkServer()
    link = server.fork(5, 1 << 30)
    process: Any = server._process
    assert [name for name in psutil.Process(process.pid).environ() if name.startswith("HUSHSUM_")] == []
    with link:
        link.setblocking(True)
        for piece in fork_server.encoded({"calculation": "list_models", "about": {}, "extensions": []}, b""):
            link.sendall(piece)
        with link.makefile("rb") as answers:
            assert answers.read(len(fork_server.READY)) == fork_server.READY
            length, _ = fork_server.FRAME.unpack(answers.read(fork_server.FRAME.size))
            assert json.loads(answers.read(length))["result"]["models"]
    assert server._control is not None
    server._control.close()
    assert process.wait(120) == 0


def test_an_owner_has_some_threads_and_not_all(
    found_town: FoundTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty requests wait for the database here; the tokens and requests of others do not wait with them."""
    town = found_town()
    path = f"/functions/{town.function(town.dataset('otto', 'theirs'), 'otto')}/query"
    waiting, go = threading.Semaphore(0), threading.Event()

    def of(account: str) -> list[Any]:
        waiting.release()
        assert go.wait(120)
        return []

    monkeypatch.setattr(type(context_of(town).store.datasets), "of", lambda self, account: of(account))
    with connected(town) as port, client(town, "olga", port) as olga, client(town, "otto", port) as otto:
        with ThreadPoolExecutor(ATTACK) as pool:
            sent = [pool.submit(olga.get, "/datasets", timeout=120) for _ in range(ATTACK)]
            assert waiting.acquire(timeout=60)
            # Long enough for a token to be looked up again.
            time.sleep(0.01)
            assert otto.post(path, json=POINT).status_code == 200
            assert otto.get("/functions").status_code == 200
            assert otto.get("/readyz").status_code == 200
            assert not any(each.done() for each in sent)
            go.set()
        assert {each.result().status_code for each in sent} == {200}


def test_not_ready_while_queries_wait(found_town: FoundTown, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a process lives says nothing about that: `/healthz` stays 200."""
    town = found_town(ready_seconds=0.2)
    go = threading.Event()

    def authenticate(self: Any, token: str) -> None:
        assert go.wait(120)

    with monkeypatch.context() as patch:
        patch.setattr(type(context_of(town).store.accounts), "authenticate", authenticate)
        for path in ("/readyz", "/readyz?only=queries"):
            answer = town.ask(None, "GET", path)
            assert answer.status_code == 503
            assert "overloaded" in answer.json()["reasons"][0]
        assert town.ask(None, "GET", "/healthz").status_code == 200
        go.set()
    context_of(town).settings = replace(town.settings, ready_seconds=120.0)
    assert town.ask(None, "GET", "/readyz").json() == {"status": "ok", "reasons": []}


def test_ready_for_queries_without_what_owners_need(found_town: FoundTown) -> None:
    """Released functions are answered, also while nothing can be released."""
    town = found_town(workers=1)
    assert town.ask(None, "GET", "/readyz").status_code == 503, "its workers were not started"
    assert town.ask(None, "GET", "/readyz?only=queries").status_code == 200


def test_the_description_is_encoded_once(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    first = town.ask(None, "GET", "/openapi.json")
    assert first.json() == json.loads(json.dumps(town.app.openapi()))

    def encode(*given: Any, **options: Any) -> str:
        raise AssertionError("it was encoded again")

    monkeypatch.setattr(json, "dumps", encode)
    again = town.ask(None, "GET", "/openapi.json")
    assert (again.status_code, again.content) == (200, first.content)
