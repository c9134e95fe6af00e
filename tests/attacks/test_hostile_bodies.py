"""Bodies that are long, deep or full of empty lists: refused early, parsed beside the event loop."""

from __future__ import annotations

import asyncio
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

import hushsum as hs
from hushsum.errors import DataRefused
from hushsum.service import queries as answering
from hushsum.service.http import ComputePool
from hushsum.service.queries import BYTES_AROUND, dense_points, largest_json, set_points
from tests.forked import fork_server_pid
from tests.in_process_service import Town

Served = tuple[Town, str, str]
JSON = {"content-type": "application/json"}
SIZE = 3 << 20

HOSTILE: dict[str, bytes] = {
    "empty lists": b'{"points":[' + b"[]," * (SIZE // 3) + b"[]]}",
    "one endless row": b'{"points":[[' + b"0," * (SIZE // 2) + b"0]]}",
    "spaces": b'{"points":[' + b" " * SIZE,
    "brackets": b'{"points":' + b"[" * (SIZE // 2) + b"]" * (SIZE // 2) + b"}",
    "commas": b'{"points":[' + b"," * SIZE + b"]}",
    "objects": b'{"points":[' + b"{}," * (SIZE // 3) + b"{}]}",
    "one text": b'{"points":["' + b"x" * SIZE + b'"]}',
    "digits": b'{"points":[[' + b"9" * SIZE + b",0]]}",
    "other keys": b"{" + b'"a":1,' * (SIZE // 6) + b'"points":[[0,0]]}',
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A town with a function of two columns and one of sets."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        town = Town(folder, max_points=60_000)
        dataset = town.dataset()
        dense = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=20, width=20).add(np.zeros((50, 2)))
        sets = hs.race(hs.JaccardKernel(), rows=20, width=20).add([[1, 2, 3]] * 50)
        return (
            town,
            town.publish(dataset, "dense", dense.release(epsilon=1.0)),
            town.publish(dataset, "sets", sets.release(epsilon=1.0)),
        )


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_and_nothing_is_built(served: Served, name: str) -> None:
    town, dense, sets = served
    body = HOSTILE[name]
    parsers: list[Callable[[], Any]] = [lambda: dense_points(body, dim=2, most=10**5)]
    functions = [dense]
    # A set may have that many members, and the same one many times.
    if name != "one endless row":
        parsers.append(lambda: set_points(body, most=10**5))
        functions.append(sets)
    for function in functions:
        town.refused("olga", "POST", f"/functions/{function}/query", 422, content=body, headers=JSON)
    tracemalloc.start()
    try:
        for parse in parsers:
            with pytest.raises(DataRefused):
                parse()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A list for each pair of brackets would take 20 bytes for each byte of the body.
    assert peak < 6 * SIZE


def test_a_body_is_bounded_by_what_the_function_can_need(served: Served) -> None:
    """Before a byte of it is read if it declares its length, and at the limit if it does not."""
    town, dense, _ = served
    limit = largest_json(2, 60_000)
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        for _ in range(10 * limit >> 16):
            read += 1 << 16
            yield b" " * (1 << 16)

    path = f"/functions/{dense}/query"
    reported = town.refused("olga", "POST", path, 413, content=pieces(), headers=JSON)
    assert str(limit) in reported["detail"]
    assert limit < read <= limit + (1 << 17)
    read = 0
    declared = {**JSON, "content-length": str(limit + 1)}
    town.refused("olga", "POST", path, 413, content=pieces(), headers=declared)
    assert read == 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"x","epsilon":[' + b"[]," * 300_000 + b"[]]}",
        b'{"name":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"{" + b",".join(b'"%d":1' % i for i in range(3000)) + b"}",
        b"{" + b'"a":' * 3000 + b"1}",
    ],
    ids=["empty lists", "brackets", "fields", "colons"],
)
def test_other_bodies_are_parsed_by_the_framework_only_if_they_are_short(served: Served, body: bytes) -> None:
    """It parses them on the event loop, so they are refused before it sees them: 413, and not 422."""
    town, _, _ = served
    reported = town.refused("olga", "POST", "/datasets", 413, content=body, headers=JSON)
    assert reported["type"].endswith("too-large")


def test_the_longest_points_fit_into_the_bound(served: Served) -> None:
    town, dense, _ = served
    row = [-1.2345678901234567e-300, -1.2345678901234567e-300]
    body = json.dumps({"points": [row] * 60_000}, indent=1).encode()
    assert len(body) <= largest_json(2, 60_000)
    reported = town.ok("olga", "POST", f"/functions/{dense}/query?only=value", content=body, headers=JSON)
    assert len(reported["value"]) == 60_000


def test_other_requests_are_answered_while_a_body_is_parsed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that parses is stopped here until another request was answered, which it never is if the
    loop or this process waits for it.
    """
    town, dense, _ = served
    path = f"/functions/{dense}/query"
    town.ok("olga", "POST", path, json={"points": [[0.5, 0.5]] * 20_000})
    parsing = psutil.Process(fork_server_pid()).children()

    def parse(*given: Any, **options: Any) -> Any:
        raise AssertionError("a long body was parsed in the process of the event loop")

    monkeypatch.setattr(answering, "dense_points", parse)
    body = json.dumps({"points": [[0.5, 0.5]] * 20_000}).encode()

    async def both() -> list[int]:
        transport = httpx.ASGITransport(town.app, raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {town.tokens['olga']}", **JSON}
        async with httpx.AsyncClient(transport=transport, base_url="http://town") as client:
            for each in parsing:
                each.suspend()
            try:
                query = asyncio.create_task(client.post(path, content=body, headers=headers))
                while not town.app.state.context.large_queries.running:
                    await asyncio.sleep(0.01)
                health = await client.get("/healthz")
                assert not query.done()
            finally:
                for each in parsing:
                    each.resume()
            return [health.status_code, (await query).status_code]

    assert asyncio.run(both()) == [200, 200]


def test_large_queries_of_one_account_wait_for_each_other(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many bodies an account sends at once, one is in memory; and all are answered."""
    town, dense, _ = served
    at_once, most = 0, 0
    calculate = ComputePool.calculate

    async def counted(*given: Any, **options: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return await calculate(*given, **options)
        finally:
            at_once -= 1

    monkeypatch.setattr(ComputePool, "calculate", counted)
    body = json.dumps({"points": [[0.5, 0.5]] * 9_000}).encode()

    async def flood() -> set[int]:
        transport = httpx.ASGITransport(town.app, raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {town.tokens['olga']}", **JSON}
        async with httpx.AsyncClient(transport=transport, base_url="http://town") as client:
            path = f"/functions/{dense}/query?only=value"
            sent = [client.post(path, content=body, headers=headers) for _ in range(12)]
            return {answer.status_code for answer in await asyncio.gather(*sent)}

    assert asyncio.run(flood()) == {200}
    assert most == 1


@pytest.mark.parametrize("number", [1500, pytest.param(200_000, marks=pytest.mark.slow)])
def test_the_parser_agrees_with_a_slow_one(number: int) -> None:
    """Valid bodies with a few wrong bytes: whatever is accepted means what ``json`` says, and conversely."""
    chance = random.Random(number)
    accepted = 0
    for _ in range(number):
        rows = [[_some_number(chance) for _ in range(2)] for _ in range(chance.randrange(0, 5))]
        text = bytearray(json.dumps({"points": rows}, indent=chance.choice([None, None, 0, 2])).encode())
        for _ in range(chance.choice([0, 0, 1, 1, 2, 4])):
            at = chance.randrange(len(text))
            text[at : at + chance.randrange(2)] = chance.choice(
                [b"", b",", b"[", b"]", b" ", b"0", b"-", b"e", b".", b"}", b'"', b"1", b"N", b"\n", b"\xff"]
            )
        body = bytes(text)
        expected = _slowly(body)
        try:
            found = dense_points(body, dim=2, most=4)
        except DataRefused:
            assert expected is None, body
        else:
            assert expected is not None, body
            assert np.array_equal(found, np.array(expected, float).reshape(-1, 2)), body
            accepted += 1
    assert 0.2 * number < accepted < 0.9 * number


def test_long_rows() -> None:
    chance = np.random.default_rng(0)
    points = chance.normal(size=(3, 30_000))
    body = json.dumps({"points": points.tolist()}).encode()
    assert np.array_equal(dense_points(body, dim=30_000, most=3), points)
    for wrong in (29_999, 30_001):
        with pytest.raises(DataRefused, match="numbers"):
            dense_points(body, dim=wrong, most=3)
    sets = [list(range(50_000)), [], [7], list(range(-20_000, 0))]
    assert set_points(json.dumps({"points": sets}).encode(), most=4).column("set").to_pylist() == sets
    assert len(body) < BYTES_AROUND + 3 * 32 * 30_000


def _some_number(chance: random.Random) -> float | int:
    return chance.choice(
        [chance.random(), chance.randrange(-9, 9), chance.gauss(0, 1) * 10.0 ** chance.randrange(-300, 300)]
    )


def _slowly(body: bytes) -> list[list[float]] | None:
    """The points by the rules, from all objects of the body."""

    def refuse(_: str) -> None:
        raise ValueError

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) != 1:
            raise ValueError
        return dict(pairs)

    try:
        reported = json.loads(body, parse_constant=refuse, object_pairs_hook=once)
        points = reported["points"]
        if not isinstance(points, list) or len(points) > 4:
            return None
        for row in points:
            if len(row) != 2 or not all(type(each) in (int, float) and abs(each) < np.inf for each in row):
                return None
        return [[float(each) for each in row] for row in points]
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


@pytest.mark.slow
def test_the_body_of_the_attack(served: Served) -> None:
    """69 MB of empty lists, much as an analyst has sent it; and as many as a body may have."""
    town, dense, sets = served
    body = b'{"points":[' + b"[]," * 23_000_000 + b"[]]}"
    town.refused("olga", "POST", f"/functions/{dense}/query", 413, content=body, headers=JSON)
    town.refused("olga", "POST", f"/functions/{sets}/query", 413, content=body, headers=JSON)
    fits = b'{"points":[' + b"[]," * 23_000_000 + b"[]]}"
    fits = fits[: (64 << 20) - 4] + b"[]]}"
    town.refused("olga", "POST", f"/functions/{sets}/query", 422, content=fits, headers=JSON)
