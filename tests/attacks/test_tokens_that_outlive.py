"""A token must not make one that outlives it, or that works on after it was revoked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

import hushsum as hs
from hushsum.service.http import create_app
from hushsum.service.store import Accounts, Function, Functions, Store, later
from tests.in_process_service import Town


def minted(town: Town, who: str, path: str = "/tokens", **requested: Any) -> Any:
    """A token made by ``who``, which may be used under its own id from here on."""
    made = town.ok(who, "POST", path, 201, json=requested)
    town.tokens[made["id"]] = made["secret"]
    return made


def works(town: Town, who: str) -> bool:
    return bool(town.ask(who, "GET", "/me").status_code == 200)


def test_no_child_outlives_its_parent(town: Town) -> None:
    parent = minted(town, "olga", days=1)
    child = minted(town, parent["id"], days=30)
    assert child["expires"] <= parent["expires"]
    assert child["parent"] == parent["id"]
    assert minted(town, child["id"])["expires"] <= parent["expires"]


def test_revoking_a_token_ends_everything_it_made(town: Town) -> None:
    first = minted(town, "olga")
    second = minted(town, first["id"])
    third = minted(town, second["id"], scopes=["query"])
    other = minted(town, "olga")
    town.ok(third["id"], "DELETE", f"/tokens/{first['id']}", 204)
    assert [works(town, each["id"]) for each in (first, second, third, other)] == [False, False, False, True]
    assert works(town, "olga")


def test_an_administrator_is_bound_too(town: Town) -> None:
    town.create_account("adam", "administrator")
    stolen = minted(town, "admin", days=1)
    own = minted(town, stolen["id"], f"/accounts/{town.ok('admin', 'GET', '/me')['account']}/tokens", days=90)
    another = minted(town, stolen["id"], f"/accounts/{town.ids['adam']}/tokens", days=90)
    assert max(own["expires"], another["expires"]) <= stolen["expires"]
    # A token for somebody else's work is that person's, and stays.
    owner = minted(town, stolen["id"], f"/accounts/{town.ids['olga']}/tokens")
    town.ok("admin", "DELETE", f"/tokens/{stolen['id']}", 204)
    assert not works(town, own["id"])
    assert not works(town, another["id"])
    assert works(town, owner["id"])


def test_a_token_that_another_process_still_believes_makes_none(found_town: Callable[..., Town]) -> None:
    town = found_town(cache_seconds=60.0)
    token = minted(town, "olga")
    assert works(town, token["id"])
    here, town.app = town.app, create_app(town.settings)
    town.ok("olga", "DELETE", f"/tokens/{token['id']}", 204)
    town.app = here
    assert works(town, token["id"]), "for so long as the setting says"
    town.refused(token["id"], "POST", "/tokens", 401, json={})


def test_the_number_of_tokens_is_bounded(found_town: Callable[..., Town]) -> None:
    town = found_town(max_tokens=4)
    made = [minted(town, "olga") for _ in range(3)]
    assert town.refused("olga", "POST", "/tokens", 409, json={})["type"].endswith("quota-exceeded")
    town.refused("admin", "POST", f"/accounts/{town.ids['olga']}/tokens", 409, json={})
    assert town.ok("olga", "GET", "/usage")["tokens"] == {"used": 4, "most": 4}
    town.ok("olga", "DELETE", f"/tokens/{made[0]['id']}", 204)
    minted(town, "olga")


def test_signing_out_revokes(town: Town) -> None:
    session = minted(town, "anna")
    child = minted(town, session["id"])
    # What the page and the client do.
    town.ok(session["id"], "DELETE", f"/tokens/{session['id']}", 204)
    assert not works(town, session["id"])
    assert not works(town, child["id"])
    assert works(town, "anna")


@pytest.mark.parametrize("what", ["expired", "revoked"])
def test_an_administrators_token_that_no_longer_works_is_reported(
    town: Town, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create_app(town.settings)
    assert capsys.readouterr().err == ""
    with Store.open(town.settings.place).database.writing() as connection:
        change = "expires" if what == "expired" else "revoked"
        connection.execute(
            sa.text(f"UPDATE hushsum_tokens SET {change} = :at WHERE label = 'environment'"),
            {"at": later(days=-1)},
        )
    create_app(town.settings)
    reported = capsys.readouterr().err
    assert "HUSHSUM_ADMIN_TOKEN" in reported
    assert what in reported
    assert town.tokens["admin"] not in reported


def test_a_closed_account_leaves_no_work_behind(town: Town) -> None:
    dataset = town.dataset()
    requested = town.confirmed(dataset, town.tally(dataset))
    path, headers = f"/datasets/{dataset}/releases", {"idempotency-key": "k"}
    job = town.ok("olga", "POST", path, 202, json=requested, headers=headers)["id"]
    town.ok("admin", "DELETE", f"/accounts/{town.ids['olga']}", 204)
    assert town.work() == 0
    with Store.open(town.settings.place).database.reading() as connection:
        query = sa.text("SELECT state, problem FROM hushsum_jobs WHERE id = :id")
        state, problem = connection.execute(query, {"id": job}).one()
        spent = connection.execute(sa.text("SELECT count(*) FROM hushsum_events WHERE kind = 'debited'"))
        assert (state, spent.scalar()) == ("cancelled", 0)
        assert "account-closed" in problem


def test_what_is_cached_ends_with_the_token_and_the_grant(
    found_town: Callable[..., Town], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Revoked after a request has read that it may pass, and before it remembers so."""
    town = found_town(cache_seconds=1000.0)
    token = minted(town, "olga")
    read = Accounts.authenticate

    def read_and_revoke(self: Accounts, secret: str) -> Any:
        found = read(self, secret)
        if secret == token["secret"]:
            town.ok("olga", "DELETE", f"/tokens/{token['id']}", 204)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Accounts, "authenticate", read_and_revoke)
        assert works(town, token["id"])
    assert not works(town, token["id"])

    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=5, width=20)
    function = town.publish(town.dataset(), "pay", tally.release(epsilon=0.5))
    grant = f"/functions/{function}/grants/anna"
    town.ok("olga", "PUT", grant, json={"download": False})
    find = Functions.find

    def find_and_withdraw(self: Functions, id: str, *, account: str) -> Function | None:
        found = find(self, id, account=account)
        if account == town.ids["anna"]:
            town.ok("olga", "DELETE", grant, 204)
        return found

    query = {"points": [[0.0, 0.0]]}
    with monkeypatch.context() as patch:
        patch.setattr(Functions, "find", find_and_withdraw)
        town.ok("anna", "POST", f"/functions/{function}/query", json=query)
    town.refused("anna", "POST", f"/functions/{function}/query", 404, json=query)
