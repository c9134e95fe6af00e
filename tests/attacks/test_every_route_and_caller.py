"""Every described route with every kind of caller: who is let in follows from the declared scopes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from docs.hooks.reference import service
from fastapi import APIRouter

from hushsum.service.http import ROUTERS, SCOPES, SIGN_IN, describe, is_public
from hushsum.service.store import Store
from tests.in_process_service import ADMIN, Town

DESCRIBED = service().openapi()["paths"]
ROUTES = [(method.upper(), path) for path, item in DESCRIBED.items() for method in item]
NOBODY = frozenset({"", "wrong", "revoked", "expired", "closed"})
"""Callers who are nobody: without a token, or with one that was never valid, or is no more."""


@dataclass(frozen=True)
class Callers:
    """A town, the scopes of each caller's token, and things of Olga's."""

    town: Town
    scopes: dict[str, frozenset[str]]
    things: dict[str, str]


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callers]:
    folder = tmp_path_factory.mktemp("callers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        town = Town(folder, requests_per_second=1e6, failures_per_minute=1e9)
        dataset = town.dataset()
        function = town.function(dataset)
        town.ok("olga", "PUT", f"/functions/{function}/grants/anna", json={"download": True})
        role = {
            "admin": "administrator",
            "olga": "owner",
            "otto": "owner",
            "anna": "analyst",
            "axel": "analyst",
        }
        scopes = {who: frozenset(SCOPES[each]) for who, each in role.items()}
        # A token with each scope of Olga's alone, and tokens that no longer work.
        for scope in SCOPES["owner"]:
            made = town.ok("olga", "POST", "/tokens", 201, json={"scopes": [scope]})
            town.tokens[f"olga to {scope}"] = made["secret"]
            scopes[f"olga to {scope}"] = frozenset({scope})
        revoked = town.ok("olga", "POST", "/tokens", 201, json={})
        town.tokens["revoked"] = revoked["secret"]
        town.ok("olga", "DELETE", f"/tokens/{revoked['id']}", 204)
        town.create_account("closed", "owner")
        town.ok("admin", "DELETE", f"/accounts/{town.ids['closed']}", 204)
        expired = town.ok("olga", "POST", "/tokens", 201, json={})
        town.tokens["expired"] = expired["secret"]
        with Store.open(town.settings.place).database.writing() as connection:
            ended = {"then": "2020-01-01T00:00:00.000000+00:00", "id": expired["id"]}
            connection.execute(sa.text("UPDATE hushsum_tokens SET expires = :then WHERE id = :id"), ended)
        things = {
            "dataset": dataset,
            "function": function,
            "tally": town.ok("olga", "GET", f"/datasets/{dataset}/tallies")[0]["id"],
            "job": town.ok("olga", "GET", f"/datasets/{dataset}/jobs")[0]["id"],
            "account": town.ids["anna"],
        }
        yield Callers(town, scopes, things)


def path_of(path: str, things: dict[str, str]) -> str:
    """A path with ids in it; for what is not there, an id that nothing has."""
    return re.sub(r"\{(\w+)\}", lambda found: things.get(found[1], f"{found[1]}_none"), path)


def sent(caller: str) -> str | None:
    return None if caller == "" else caller


def ask(town: Town, caller: str, method: str, path: str) -> Any:
    """A request that changes nothing, whoever sends it: its body is that of no route."""
    options: dict[str, Any] = {"headers": {"idempotency-key": "matrix"}}
    if method in ("POST", "PUT"):
        options["json"] = {"no such field": 1}
    return town.ask(sent(caller), method, path, **options)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_access_is_what_the_route_declares(callers: Callers, method: str, path: str) -> None:
    town, things = callers.town, callers.things
    declared = DESCRIBED[path][method.lower()]["security"]
    # What would delete something is requested of things that are not there.
    requested = path_of(path, {} if method == "DELETE" else things)
    if not declared:
        assert is_public(path)
        assert ask(town, "", method, requested).status_code not in (401, 403) or path in SIGN_IN
        return
    for caller in sorted(NOBODY):
        answer = ask(town, caller, method, requested)
        assert answer.status_code == 401, (caller, answer.text)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    for caller, scopes in callers.scopes.items():
        allowed = any(scopes.issuperset(each["token"]) for each in declared)
        answer = ask(town, caller, method, requested)
        if allowed:
            assert answer.status_code not in (401, 403), (caller, answer.status_code, answer.text)
        else:
            assert answer.status_code == 403, (caller, answer.status_code, answer.text)


@pytest.mark.parametrize(
    ("method", "path"),
    [(m, p) for m, p in ROUTES if {"dataset", "function", "job"} & set(re.findall(r"\{(\w+)\}", p))],
)
def test_what_others_own_is_answered_as_if_it_did_not_exist(callers: Callers, method: str, path: str) -> None:
    """The same status and the same words for Olga's things and for none, for everybody who may ask at all."""
    town, things = callers.town, callers.things
    for caller in ("otto", "axel"):
        theirs = ask(town, caller, method, path_of(path, things))
        none = ask(town, caller, method, path_of(path, {}))
        assert theirs.status_code == none.status_code
        assert theirs.status_code in (403, 404, 422)
        first, second = theirs.json(), none.json()
        assert first | {"request": ""} == second | {"request": ""}


def test_a_route_that_declares_nothing_is_no_route() -> None:
    app = service()
    router = APIRouter()

    @router.get("/undeclared")
    def undeclared() -> dict[str, str]:
        return {}

    app.include_router(router)
    known = list(ROUTERS)
    describe(service(), known)
    with pytest.raises(AssertionError, match="/undeclared"):
        describe(app, [*known, router])


def test_there_are_callers_of_every_kind(callers: Callers) -> None:
    assert callers.town.tokens["admin"] == ADMIN
    declared = {scope for scopes in SCOPES.values() for scope in scopes}
    assert declared == frozenset().union(*callers.scopes.values())
    assert len(callers.scopes) + len(NOBODY) == 13
