"""Who may do what: every route, every role."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from hushsum.service.http import PUBLIC
from hushsum.service.store import Store
from tests.in_process_service import ADMIN, SMALL, Town

PEOPLE = (None, "admin", "olga", "otto", "anna", "axel")
CONFIRM = "0" * 64

# What each of PEOPLE is answered: nobody, an administrator, the owner, another owner, an analyst with a
# grant, another analyst. 422 and 409 stand for "let in, but the request itself is not right".
MODEL = {
    "upload": "up_0000000000000000",
    "name": "x",
    "model": "density",
    "columns": ["a"],
    "bounds": [[0, 1]],
    "epsilon": 0.1,
}
MATRIX: list[tuple[str, str, object, tuple[int, ...]]] = [
    ("GET", "/me", None, (401, 200, 200, 200, 200, 200)),
    ("GET", "/tokens", None, (401, 200, 200, 200, 200, 200)),
    ("GET", "/accounts", None, (401, 200, 403, 403, 403, 403)),
    ("POST", "/accounts", {"name": "olga", "role": "owner"}, (401, 422, 403, 403, 403, 403)),
    ("DELETE", "/accounts/acc_none", None, (401, 404, 403, 403, 403, 403)),
    ("GET", "/accounts/{olga}/identity", None, (401, 404, 403, 403, 403, 403)),
    ("POST", "/accounts/{olga}/identity", {"subject": "x"}, (401, 409, 403, 403, 403, 403)),
    ("DELETE", "/accounts/{olga}/identity", None, (401, 404, 403, 403, 403, 403)),
    # Nobody needs a token to sign in; this service has no provider.
    ("GET", "/oidc/start", None, (404, 404, 404, 404, 404, 404)),
    ("GET", "/oidc/callback", None, (404, 404, 404, 404, 404, 404)),
    ("POST", "/oidc/finish", None, (404, 404, 404, 404, 404, 404)),
    ("GET", "/accounts/{olga}/tokens", None, (401, 200, 403, 403, 403, 403)),
    ("POST", "/accounts/{olga}/tokens", {"scopes": ["admin"]}, (401, 403, 403, 403, 403, 403)),
    ("POST", "/tokens", {"days": 3650}, (401, 422, 422, 422, 422, 422)),
    ("DELETE", "/tokens/tok_none", None, (401, 404, 404, 404, 404, 404)),
    ("GET", "/usage", None, (401, 200, 200, 200, 200, 200)),
    ("GET", "/ledger", None, (401, 200, 403, 403, 403, 403)),
    ("POST", "/ledger/restores", {"reason": "x"}, (401, 422, 403, 403, 403, 403)),
    ("GET", "/log", None, (401, 200, 403, 403, 403, 403)),
    ("GET", "/datasets", None, (401, 403, 200, 200, 403, 403)),
    ("POST", "/datasets", {"name": "x"}, (401, 403, 422, 422, 403, 403)),
    ("POST", "/datasets/samples", None, (401, 403, 201, 201, 403, 403)),
    ("GET", "/datasets/{dataset}", None, (401, 403, 200, 404, 403, 403)),
    ("DELETE", "/datasets/ds_none", None, (401, 403, 404, 404, 403, 403)),
    ("POST", "/datasets/{dataset}/write-offs", {"reason": "x"}, (401, 403, 422, 404, 403, 403)),
    ("GET", "/datasets/{dataset}/ledger", None, (401, 403, 200, 404, 403, 403)),
    ("GET", "/datasets/{dataset}/uploads", None, (401, 403, 200, 404, 403, 403)),
    ("POST", "/datasets/{dataset}/uploads?format=tally", b"x", (401, 403, 422, 404, 403, 403)),
    ("DELETE", "/datasets/{dataset}/uploads/up_none", None, (401, 403, 404, 404, 403, 403)),
    ("GET", "/datasets/{dataset}/tallies", None, (401, 403, 200, 404, 403, 403)),
    (
        "POST",
        "/datasets/{dataset}/tallies",
        {"upload": "up_0000000000000000", **SMALL},
        (401, 403, 422, 404, 403, 403),
    ),
    ("DELETE", "/datasets/{dataset}/tallies/ta_none", None, (401, 403, 404, 404, 403, 403)),
    (
        "POST",
        "/datasets/{dataset}/plans",
        {"records": 1000, "dim": 1, "epsilon": [1.0], "bandwidth": 1.0, "method": "race"},
        (401, 403, 200, 404, 403, 403),
    ),
    (
        "POST",
        "/datasets/{dataset}/claims",
        {"tally": "{tally}", "name": "x", "epsilon": 0.1},
        (401, 403, 200, 404, 403, 403),
    ),
    (
        "POST",
        "/datasets/{dataset}/releases",
        {"tally": "{tally}", "name": "x", "epsilon": 0.1, "confirm": CONFIRM},
        (401, 403, 409, 404, 403, 403),
    ),
    ("GET", "/models", None, (401, 403, 200, 200, 403, 403)),
    ("GET", "/kernels", None, (401, 403, 200, 200, 403, 403)),
    ("POST", "/datasets/{dataset}/models/claims", MODEL, (401, 403, 422, 404, 403, 403)),
    ("POST", "/datasets/{dataset}/models", {**MODEL, "confirm": CONFIRM}, (401, 403, 409, 404, 403, 403)),
    ("GET", "/datasets/{dataset}/streams", None, (401, 403, 200, 404, 403, 403)),
    ("POST", "/datasets/{dataset}/streams/claims", {"name": "x"}, (401, 403, 422, 422, 403, 403)),
    ("POST", "/datasets/{dataset}/streams", {"name": "x"}, (401, 403, 422, 422, 403, 403)),
    ("POST", "/datasets/{dataset}/streams/st_none/steps", {"upload": 1}, (401, 403, 422, 422, 403, 403)),
    ("GET", "/datasets/{dataset}/jobs", None, (401, 403, 200, 404, 403, 403)),
    ("GET", "/jobs/{job}", None, (401, 403, 200, 404, 403, 403)),
    ("DELETE", "/jobs/{job}", None, (401, 403, 409, 404, 403, 403)),
    ("GET", "/jobs/{job}/events", None, (401, 403, 200, 404, 403, 403)),
    ("GET", "/functions", None, (401, 403, 200, 200, 200, 200)),
    ("GET", "/functions/{function}", None, (401, 403, 200, 404, 200, 404)),
    ("GET", "/functions/{function}/file", None, (401, 403, 200, 404, 403, 404)),
    ("DELETE", "/functions/{function}", None, (401, 403, 409, 404, 403, 403)),
    ("GET", "/functions/{function}/grants", None, (401, 403, 200, 404, 403, 403)),
    ("PUT", "/functions/{function}/grants/nobody", {}, (401, 403, 404, 404, 403, 403)),
    ("DELETE", "/functions/{function}/grants/nobody", None, (401, 403, 404, 404, 403, 403)),
    ("GET", "/functions/{function}/shares", None, (401, 403, 200, 404, 403, 403)),
    ("POST", "/functions/{function}/shares", {"days": 0}, (401, 403, 422, 422, 403, 403)),
    ("DELETE", "/shares/sh_none", None, (401, 404, 404, 404, 403, 403)),
    # Whoever has a key needs no token, and a token is no key.
    ("GET", "/shared/none", None, (404, 404, 404, 404, 404, 404)),
    ("GET", "/shared/none/embed", None, (404, 404, 404, 404, 404, 404)),
    ("GET", "/shared/none/function", None, (404, 404, 404, 404, 404, 404)),
    ("GET", "/shared/none/file", None, (404, 404, 404, 404, 404, 404)),
    ("POST", "/shared/none/query", {"points": [[0.0, 0.0]]}, (404, 404, 404, 404, 404, 404)),
    ("POST", "/functions/{function}/query", {"points": [[0.0, 0.0]]}, (401, 403, 200, 404, 200, 404)),
]


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Town, dict[str, str]]:
    """A town with one dataset of Olga's and one function, granted to Anna, not to download."""
    folder = tmp_path_factory.mktemp("settled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        town = Town(folder)
        dataset = town.dataset()
        function = town.function(dataset)
        town.ok("olga", "PUT", f"/functions/{function}/grants/anna", json={})
        things = {
            "dataset": dataset,
            "function": function,
            "tally": town.ok("olga", "GET", f"/datasets/{dataset}/tallies")[0]["id"],
            "job": town.ok("olga", "GET", f"/datasets/{dataset}/jobs")[0]["id"],
            **town.ids,
        }
        return town, things


@pytest.mark.parametrize(("method", "path", "body", "expected"), MATRIX, ids=lambda each: str(each)[:40])
def test_the_matrix(
    settled: tuple[Town, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: object,
    expected: tuple[int, ...],
) -> None:
    town, things = settled
    monkeypatch.setenv("HUSHSUM_STATE", str(town.settings.folder).removesuffix("service") + "state")
    options: dict[str, object] = {"headers": {"idempotency-key": "matrix"}}
    if isinstance(body, bytes):
        options["content"] = body
    elif isinstance(body, dict):
        filled = {k: v.format(**things) if isinstance(v, str) else v for k, v in body.items()}
        options["json"] = filled
    for who, status in zip(PEOPLE, expected, strict=True):
        if status >= 400:
            town.refused(who, method, path.format(**things), status, **dict(options))
        else:
            assert town.ask(who, method, path.format(**things), **dict(options)).status_code == status


def test_every_route_is_in_the_matrix(town: Town) -> None:
    described = {
        (method.upper(), path)
        for path, item in town.app.openapi()["paths"].items()
        for method in item
        if path not in PUBLIC
    }
    assert len(described) == len({(method, path.partition("?")[0]) for method, path, _, _ in MATRIX})


def test_public_routes_need_no_token(town: Town) -> None:
    for path in PUBLIC:
        assert town.ask(None, "GET", path).status_code == 200, path


def test_a_revoked_token_ends_at_once(town: Town) -> None:
    token = town.ok("olga", "GET", "/me")["token"]
    town.ok("olga", "DELETE", f"/tokens/{token}", 204)
    town.refused("olga", "GET", "/me", 401)
    town.refused("admin", "DELETE", f"/tokens/{token}", 404)


def test_a_disabled_account_ends_at_once(town: Town) -> None:
    town.ok("admin", "DELETE", f"/accounts/{town.ids['olga']}", 204)
    town.refused("olga", "GET", "/me", 401)
    town.refused("admin", "POST", f"/accounts/{town.ids['olga']}/tokens", 404, json={})
    me = town.ok("admin", "GET", "/me")
    town.refused("admin", "DELETE", f"/accounts/{me['account']}", 409)


@pytest.mark.parametrize("twice", ["authorization", "host"])
def test_a_header_that_decides_who_asks_whom_is_sent_once(town: Town, twice: str) -> None:
    """A proxy may read the first of two, and this service the last."""
    own = {"authorization": f"Bearer {town.tokens['olga']}", "host": "testserver"}
    once = list(own.items())
    assert town.ask(None, "GET", "/me", headers=once).status_code == 200
    for other in (own[twice], "Bearer x"):
        answer = town.ask(None, "GET", "/me", headers=[(twice, other), *once])
        assert answer.status_code == 400
        assert answer.json()["type"].endswith("bad-request")


def test_an_expired_token_is_none(town: Town) -> None:
    store = Store.open(town.settings.place)
    with store.database.writing() as connection:
        connection.execute(sa.text("UPDATE hushsum_tokens SET expires = '2020-01-01T00:00:00.000000+00:00'"))
    for who in ("admin", "olga"):
        town.refused(who, "GET", "/me", 401)


def test_a_token_has_no_more_scopes_than_the_one_that_made_it(town: Town) -> None:
    narrow = town.ok("olga", "POST", "/tokens", 201, json={"scopes": ["query"], "days": 1})
    assert narrow["scopes"] == ["query"]
    town.refused(narrow["secret"], "POST", "/tokens", 403, json={"scopes": ["release"]})
    town.refused(narrow["secret"], "GET", "/datasets", 403)
    town.ok(narrow["secret"], "GET", "/functions")


def test_tokens_are_stored_as_hashes_only(town: Town) -> None:
    stored = b"".join(path.read_bytes() for path in town.settings.path("").rglob("*") if path.is_file())
    for secret in (ADMIN, town.tokens["olga"]):
        assert secret.encode() not in stored


def test_the_log_tells_who_did_what_and_cannot_be_changed(town: Town) -> None:
    town.dataset()
    lines = town.ok("admin", "GET", "/log?limit=1000")
    assert lines[-1]["action"] == "dataset created"
    assert lines[-1]["account"] == town.ids["olga"]
    store = Store.open(town.settings.place)
    for change in ("UPDATE hushsum_log SET account = ''", "DELETE FROM hushsum_log"):
        with pytest.raises(Exception, match="append-only"), store.database.writing() as connection:
            connection.execute(sa.text(change))


def test_rates(found_town: Callable[..., Town]) -> None:
    town = found_town(requests_per_second=0.1, failures_per_minute=3)
    town.ok("olga", "GET", "/me")
    reported = town.refused("olga", "GET", "/me", 429)
    assert reported["type"].endswith("too-often")
    town.ok("otto", "GET", "/me")
    statuses = [town.ask(f"wrong-{i}", "GET", "/me").status_code for i in range(5)]
    assert statuses == [401, 401, 401, 429, 429]


def test_the_first_start_tells_a_token_once(
    found_town: Callable[..., Town], tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from hushsum.service.http import create_app

    settings = replace(found_town().settings, admin_token="", folder=f"{tmp_path}/fresh")
    create_app(settings)
    first = capsys.readouterr().err
    create_app(settings)
    assert "hs_" in first
    assert capsys.readouterr().err == ""
