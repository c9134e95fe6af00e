"""The shortcut of queries: the same answers as by the router, behind the same guard."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from hushsum.service.http import QUERY, QueryFastPath, queried_function
from tests.in_process_service import Town


def test_only_queries_are_taken() -> None:
    assert queried_function("/functions/fn_1/query") == "fn_1"
    for path in ("/functions/query", "/functions//query", "/functions/a/b/query", "/functions/a/query/", "/"):
        assert queried_function(path) is None


def test_the_route_that_it_stands_for_is_described(town: Town) -> None:
    assert QUERY in town.app.openapi()["paths"]


def test_answers_and_refusals_are_those_of_the_router(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    function = town.function(town.dataset())
    path = f"/functions/{function}/query"
    requests: list[tuple[str | None, str, dict[str, Any]]] = [
        ("olga", path, {"json": {"points": [[1.0, -2.0]]}}),
        ("olga", path + "?of=sum&level=0.5", {"json": {"points": [[1, 2]] * 2000}}),
        ("olga", path + "?x=1", {"json": {"points": [[1.0, -2.0]]}}),
        ("olga", path, {"json": {"points": [[1.0]]}}),
        ("olga", path, {"content": b"x", "headers": {"content-type": "text/csv"}}),
        ("olga", "/functions/fn_0/query", {"json": {"points": [[1.0, -2.0]]}}),
        ("anna", path, {"json": {"points": [[1.0, -2.0]]}}),
        ("admin", path, {"json": {"points": [[1.0, -2.0]]}}),
        (None, path, {"json": {"points": [[1.0, -2.0]]}}),
    ]

    def ask_all() -> list[tuple[int, Any, dict[str, str]]]:
        heard = []
        for who, where, options in requests:
            answer = town.ask(who, "POST", where, **dict(options))
            own = ("date", "x-request-id")
            known = {name: value for name, value in answer.headers.items() if name not in own}
            reported = {name: value for name, value in answer.json().items() if name != "request"}
            heard.append((answer.status_code, reported, known))
        return heard

    short = ask_all()

    async def through_the_router(self: QueryFastPath, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    monkeypatch.setattr(QueryFastPath, "__call__", through_the_router)
    assert ask_all() == short
    assert [status for status, *_ in short] == [200, 200, 422, 422, 415, 404, 404, 403, 401]
    counted = town.ask(None, "GET", "/metrics").text
    assert f'route="{QUERY}",status="200"}} 4.0' in counted, "both ways are counted under one pattern"


def test_a_client_that_leaves_is_no_failure(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    function = town.function(town.dataset())
    path = f"/functions/{function}/query"
    heard: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        heard.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {town.tokens['olga']}".encode())],
        "client": ("127.0.0.1", 1),
    }
    asyncio.run(town.app(scope, receive, send))
    assert heard[0]["status"] == 400
    assert not [record for record in caplog.records if record.levelno > logging.INFO]
