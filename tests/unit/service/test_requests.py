"""What holds for every request: problems, headers, limits, logs, metrics; and thousands of malformed ones."""

from __future__ import annotations

import json
import logging
import random
import string
from collections.abc import Callable
from typing import Any

import pytest

from hushsum.errors import UsageError
from hushsum.service import logs
from hushsum.service.settings import Settings
from tests.in_process_service import SECRET, Town


def test_every_answer_has_the_headers(town: Town) -> None:
    for who, path in ((None, "/"), (None, "/me"), ("olga", "/me"), ("olga", "/nowhere")):
        headers = town.ask(who, "GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert headers["cache-control"] == "no-store"


def test_no_origin_is_allowed(town: Town) -> None:
    requested = {"origin": "https://elsewhere.example", "access-control-request-method": "POST"}
    answer = town.ask("olga", "OPTIONS", "/datasets", headers=requested)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_problems_of_the_framework_are_problems(town: Town) -> None:
    assert town.refused("olga", "GET", "/nowhere", 404)["type"].endswith("not-found")
    town.refused("olga", "GET", "/datasets/", 404)
    assert town.refused("olga", "PATCH", "/datasets", 405)["type"].endswith("method-not-allowed")
    reported = town.refused("olga", "POST", "/datasets", 422, json={"name": SECRET, "epsilon": "1", "x": 2})
    assert {each["at"] for each in reported["faults"]} == {"body/epsilon", "body/x"}
    town.refused("olga", "POST", "/datasets", 422, content=b"{", headers={"content-type": "application/json"})
    town.refused("olga", "POST", "/datasets", 413, content=b"x" * (1 << 20) + b"x")


def test_an_unexpected_error_tells_its_class_alone(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("hushsum.service.store.Datasets.of", broken)
    caplog.set_level(logging.INFO, logs.LOGGER.name)
    reported = town.refused("olga", "GET", "/datasets", 500)
    assert "RuntimeError" in reported["detail"]
    lines = [logs.JsonLines().format(record) for record in caplog.records]
    failed = [json.loads(line) for line in lines if '"failed"' in line]
    assert failed[0]["error"] == "RuntimeError"
    assert failed[0]["request"] == reported["request"]
    assert SECRET not in "".join(lines)


def test_logs_have_ids_and_patterns_and_nothing_that_was_sent(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger(logs.LOGGER.name).setLevel(logging.INFO)
    caplog.set_level(logging.INFO, logs.LOGGER.name)
    reported = town.ask("olga", "GET", f"/datasets/{SECRET}", headers={"x-request-id": "my-request-1"}).json()
    town.ask("olga", "GET", f"/{SECRET}?{SECRET}", headers={"x-request-id": "bad id " + SECRET})
    lines = [json.loads(logs.JsonLines().format(record)) for record in caplog.records]
    answered = [line for line in lines if line["event"] == "answered"]
    assert answered[0]["request"] == reported["request"] != "my-request-1", "ids are the server's own"
    assert answered[0]["client"] == "127.0.0.1"
    assert answered[0]["route"] == "/datasets/{dataset}"
    assert answered[0]["account"] == town.ids["olga"]
    assert answered[1]["route"] == "unmatched"
    assert SECRET not in json.dumps(lines)


def test_metrics_have_no_label_that_depends_on_data(town: Town) -> None:
    function = town.function(town.dataset())
    town.ok("olga", "POST", f"/functions/{function}/query", json={"points": [[0, 0], [1, 1]]})
    text = town.ask(None, "GET", "/metrics").text
    assert "hushsum_points_total 2.0" in text
    assert "hushsum_jobs_waiting 0.0" in text
    # How long an owner's request takes may depend on records.
    assert not [line for line in text.splitlines() if "_seconds" in line and "/datasets" in line]
    assert function not in text
    assert "olga" not in text
    labels = {part.split("=")[0] for line in text.splitlines() for part in _labels(line)}
    assert labels <= {"method", "route", "status", "le"}


def test_not_ready_without_its_database(town: Town) -> None:
    assert town.ok(None, "GET", "/readyz") == {"status": "ok", "reasons": []}
    database = town.settings.path("", "service.db")
    database.rename(database.with_suffix(".away"))
    database.write_bytes(b"no database")
    assert town.ask(None, "GET", "/readyz").status_code == 503
    assert town.ask(None, "GET", "/healthz").status_code == 200
    town.refused("olga", "GET", "/datasets", 503)
    database.unlink()
    database.with_suffix(".away").rename(database)
    town.ok("olga", "GET", "/datasets")


@pytest.mark.parametrize(
    "wrong",
    [
        {"HUSHSUM_PORT": "x"},
        {"HUSHSUM_MAX_POINTS": "-1"},
        {"HUSHSUM_ADMIN_TOKEN": "short"},
        {"HUSHSUM_ADMIN_TOKEN": "with spaces " * 5},
        {"HUSHSUM_LOG_LEVEL": "LOUD"},
        {"HUSHSUM_LEASE_SECONDS": "nan"},
    ],
)
def test_wrong_settings_are_refused_without_showing_secrets(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        Settings.from_environment(wrong)
    name, value = next(iter(wrong.items()))
    assert name in str(refused.value)
    assert value not in str(refused.value) or "TOKEN" not in name


def test_given_settings_win_over_the_environment() -> None:
    settings = Settings.from_environment({"HUSHSUM_PORT": "1", "HUSHSUM_WORKERS": "3"}, port=2, host=None)
    assert (settings.port, settings.workers, settings.host) == (2, 3, "127.0.0.1")


@pytest.mark.parametrize("number", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_malformed_requests_are_refused_and_nothing_leaks(
    found_town: Callable[..., Town], number: int
) -> None:
    town = found_town(requests_per_second=1e6, queries_per_second=1e6)
    dataset = town.dataset()
    function = town.function(dataset)
    described = town.app.openapi()["paths"]
    chance = random.Random(7)
    routes = [(method.upper(), path) for path, item in described.items() for method in item]
    seen = set()
    for _ in range(number):
        method, path = chance.choice(routes)
        if (method, path) == ("DELETE", "/datasets/{dataset}"):
            # Well-formed, and the dataset is needed until the end.
            continue
        for name in ("dataset", "function", "account", "token", "job", "upload"):
            known = {"dataset": dataset, "function": function}.get(name, "x")
            path = path.replace(f"{{{name}}}", known if chance.random() < 0.7 else _path(chance))
        if path.endswith("events"):
            continue
        answer = town.ask("olga", method, path + _query(chance), **_body(chance))
        seen.add(answer.status_code)
        assert answer.status_code not in (500, 501, 502), (method, path, answer.text)
        assert SECRET not in answer.text
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
    assert {404, 422} <= seen
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "1/2"


def _labels(line: str) -> list[str]:
    return line[line.index("{") + 1 : line.index("}")].replace(', "', "").split(",") if "{" in line else []


def _path(chance: random.Random) -> str:
    return chance.choice(["..", "%00", "%ff", "x" * 300, "'; DROP", "ds_0", "%2e%2e%2f", "\u00e9"])


def _query(chance: random.Random) -> str:
    return chance.choice(
        ["", "?format=csv", "?format=", "?after=-1", "?limit=x", "?%00", "?of=sum&of=x", "?a=" + "b" * 500]
    )


def _body(chance: random.Random) -> dict[str, Any]:
    kind = chance.random()
    headers = {"idempotency-key": chance.choice(["k", "", "x" * 65, "\u00e4", "a b"])}
    if chance.random() < 0.3:
        headers = {}
    headers = {name: value for name, value in headers.items() if value.isascii()}
    if kind < 0.2:
        return {"headers": headers}
    if kind < 0.5:
        junk = bytes(chance.getrandbits(8) for _ in range(chance.randrange(60)))
        return {"content": junk, "headers": {**headers, "content-type": "application/json"}}
    names = ["name", "epsilon", "rho", "tally", "upload", "columns", "bounds", "points", "rows", "bandwidth"]
    values: list[Any] = [None, -1, 1e308, 10**400, "x", [], [[]], {}, True, 0.5, ["a"] * 3, [[1, 0]], "\x00"]
    body = {chance.choice([*names, string.ascii_letters]): chance.choice(values) for _ in range(4)}
    return {"json": body, "headers": headers}
