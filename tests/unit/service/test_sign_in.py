"""Signing in with a provider: the way it goes, and who is let in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.service.http import create_app
from hushsum.service.http.oidc import ProviderSettings, flow_of, is_safe, new_cookie
from hushsum.service.settings import Settings
from hushsum.service.store import Store
from tests.in_process_service import ADMIN, Town, listening
from tests.oidc_provider import SECRET, Browser, Person, SigningKey, TestProvider, query_of
from tests.unit.service.oidc_service import ADDRESS, SignInTown, provider, settings_for, signing

__all__ = ["provider", "signing"]


def test_the_whole_way(signing: SignInTown) -> None:
    town = signing.town
    assert town.ok(None, "GET", "/sign-in") == {"oidc": {"name": "Example"}}
    token = signing.browser().sign_in()
    me = town.ok(token, "GET", "/me")
    assert (me["account"], me["role"]) == (town.ids["olga"], "owner")
    assert me["scopes"] == ["query", "release", "upload"]
    left = datetime.fromisoformat(me["expires"]) - datetime.now(UTC)
    assert timedelta(hours=7, minutes=59) < left <= timedelta(hours=8)
    assert signing.actions()[-3:] == ["identity proven", "signed in", "token issued"]
    town.ok("admin", "DELETE", f"/tokens/{me['token']}", 204)
    town.refused(token, "GET", "/me", 401)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
def test_every_believed_algorithm(signing: SignInTown, algorithm: str) -> None:
    signing.provider.key = SigningKey("k", algorithm)
    signing.provider.published = [signing.provider.key.jwk]
    signing.browser().sign_in()


def test_without_a_provider_there_is_nothing_here(town: Town) -> None:
    assert town.ok(None, "GET", "/sign-in") == {"oidc": None}
    for method, path in (("GET", "/oidc/start"), ("GET", "/oidc/callback"), ("POST", "/oidc/finish")):
        town.refused(None, method, path, 404)
    path = f"/accounts/{town.ids['olga']}/identity"
    assert town.refused("admin", "POST", path, 409, json={"subject": "x"})["type"].endswith("no-provider")


def test_the_request_to_the_provider(signing: SignInTown) -> None:
    started = signing.browser().ask("GET", "/oidc/start", headers={"host": "evil.example"})
    requested = query_of(started.headers["location"])
    assert started.headers["location"].startswith(f"{signing.provider.url}/authorize?")
    assert requested["redirect_uri"] == f"{ADDRESS}/oidc/callback"
    assert len({requested["state"], requested["nonce"], requested["code_challenge"]}) == 3
    assert all(len(requested[name]) == 43 for name in ("state", "nonce", "code_challenge"))
    assert SECRET not in started.headers["location"]
    assert signing.browser().ask("GET", "/oidc/start").headers["location"] != started.headers["location"]


def test_the_cookies(signing: SignInTown) -> None:
    browser = signing.browser()
    began = browser.ask("GET", "/oidc/start").headers["set-cookie"].lower()
    assert began.startswith("__host-hushsum-sign-in=")
    for part in ("httponly", "samesite=lax", "secure", "path=/", "max-age=600"):
        assert part in began.split("; ")
    came = browser.come_back(browser.begin()).headers.get_list("set-cookie")
    ticket = next(each.lower() for each in came if "signed-in" in each)
    for part in ("httponly", "samesite=strict", "secure", "path=/", "max-age=120"):
        assert part in ticket.split("; ")
    assert any("hushsum-sign-in=" in each and "Max-Age=0" in each for each in came)
    assert not browser.cookies.get("__Host-hushsum-sign-in")


def test_plain_http_on_this_machine(found_town: Callable[..., Town], provider: TestProvider) -> None:
    town = found_town(**settings_for(provider, oidc_public_url="http://localhost:8000/"))
    browser = Browser(town.app, "http://localhost:8000")
    began = browser.ask("GET", "/oidc/start").headers["set-cookie"].lower()
    assert began.startswith("hushsum-sign-in=")
    assert "secure" not in began
    SignInTown(town, provider).link("anna", "olga@example.org")
    assert town.ok(browser.sign_in(), "GET", "/me")["name"] == "anna"


def test_the_secret_may_be_sent_in_the_form(found_town: Callable[..., Town], provider: TestProvider) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    made = SignInTown(found_town(**settings_for(provider)), provider)
    made.link("olga", "olga@example.org")
    made.browser().sign_in()


def test_links_by_sub(found_town: Callable[..., Town], provider: TestProvider) -> None:
    made = SignInTown(found_town(**settings_for(provider, oidc_account_claim="sub")), provider)
    made.link("axel", provider.person.sub)
    provider.person.claims = {}
    assert made.town.ok(made.browser().sign_in(), "GET", "/me")["role"] == "analyst"


def test_links_by_the_client(signing: SignInTown) -> None:
    with listening(signing.town.app) as url, hs.connect(url, ADMIN) as admin:
        admin.link("otto", "otto@example.org")
        with pytest.raises(UsageError, match="name"):
            admin.link("nobody", "x")
    path = f"/accounts/{signing.town.ids['otto']}/identity"
    assert signing.town.ok("admin", "GET", path)["subject"] == "otto@example.org"


def refused(signing: SignInTown, status: int, kind: str) -> httpx.Response:
    """A whole way that ends at the callback; nothing is left that could be finished."""
    browser = signing.browser()
    answer = browser.come_back(browser.begin())
    assert answer.status_code == status, answer.text
    assert answer.json()["type"] == f"urn:hushsum:problem:{kind}"
    assert "set-cookie" not in answer.headers
    assert browser.finish().status_code == 401
    return answer


def test_an_unknown_identity_is_refused(signing: SignInTown) -> None:
    signing.provider.person = Person("other", {"email": "otto@example.org", "email_verified": True})
    reported = refused(signing, 403, "unknown-identity")
    assert "otto@example.org" not in reported.text
    assert signing.actions()[-1] == "sign-in refused: unknown-identity"
    assert len(signing.town.ok("admin", "GET", "/accounts")) == 5


def test_nobody_becomes_an_administrator_by_saying_so(signing: SignInTown) -> None:
    signing.provider.person.claims |= {"role": "administrator", "groups": ["admin"], "scope": "admin"}
    token = signing.browser().sign_in()
    signing.town.refused(token, "GET", "/accounts", 403)


@pytest.mark.parametrize("verified", [None, False, "true", 1])
def test_an_unverified_address_proves_nothing(signing: SignInTown, verified: object) -> None:
    signing.provider.changes = {"email_verified": verified}
    refused(signing, 403, "sign-in-refused")


def test_an_address_that_passed_to_somebody_else_is_refused(signing: SignInTown) -> None:
    signing.browser().sign_in()
    signing.provider.person.sub = "somebody-else"
    refused(signing, 403, "identity-changed")
    signing.link("olga", "olga@example.org")
    signing.browser().sign_in()


def test_a_closed_account_stays_closed(signing: SignInTown) -> None:
    signing.town.ok("admin", "DELETE", f"/accounts/{signing.town.ids['olga']}", 204)
    refused(signing, 403, "account-closed")


def test_an_account_closed_between_callback_and_finish(signing: SignInTown) -> None:
    browser = signing.browser()
    browser.come_back(browser.begin())
    signing.town.ok("admin", "DELETE", f"/accounts/{signing.town.ids['olga']}", 204)
    assert browser.finish().status_code == 401


def test_unlinking_ends_the_tokens_of_sign_ins_and_no_others(signing: SignInTown) -> None:
    town, path = signing.town, f"/accounts/{signing.town.ids['olga']}/identity"
    token = signing.browser().sign_in()
    waiting = signing.browser()
    waiting.come_back(waiting.begin())
    assert town.ok("admin", "GET", path)["subject"] == "olga@example.org"
    town.ok("admin", "DELETE", path, 204)
    town.refused(token, "GET", "/me", 401)
    town.ok("olga", "GET", "/me")
    assert waiting.finish().status_code == 401
    town.refused("admin", "GET", path, 404)
    town.refused("admin", "DELETE", path, 404)
    refused(signing, 403, "unknown-identity")


def test_one_person_has_one_account(signing: SignInTown) -> None:
    town = signing.town
    other = f"/accounts/{town.ids['otto']}/identity"
    town.refused("admin", "POST", other, 422, json={"subject": "OLGA@example.org"})
    town.refused("admin", "POST", "/accounts/acc_none/identity", 404, json={"subject": "x"})
    for subject in ("", " x", "x\n", "ä@example.org", "x" * 256):
        town.refused("admin", "POST", other, 422, json={"subject": subject})


def test_a_token_of_a_sign_in_makes_none_that_outlives_it(signing: SignInTown) -> None:
    town = signing.town
    token = signing.browser().sign_in()
    mine = town.ok(token, "GET", "/me")
    child = town.ok(token, "POST", "/tokens", 201, json={"scopes": ["query"]})
    assert child["expires"] == mine["expires"]
    assert child["signed_in"]
    longer = town.ok(token, "POST", "/tokens", 201, json={"days": 1})
    assert longer["expires"] == mine["expires"]
    grandchild = town.ok(child["secret"], "POST", "/tokens", 201, json={})
    assert grandchild["expires"] == mine["expires"]
    assert not town.ok("olga", "POST", "/tokens", 201, json={})["signed_in"]


def test_a_ticket_is_good_for_two_minutes(signing: SignInTown) -> None:
    browser = signing.browser()
    browser.come_back(browser.begin())
    with Store.open(signing.town.settings.place).database.writing() as connection:
        connection.execute(sa.text("UPDATE hushsum_sign_ins SET expires = '2020-01-01T00:00:00+00:00'"))
    assert browser.finish().status_code == 401


def test_refusals_are_logged_by_their_kind(signing: SignInTown, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="hushsum.service"):
        signing.browser().come_back("/oidc/callback?state=secret-state&code=secret-code")
    reported = [record for record in caplog.records if record.getMessage() == "sign-in refused"]
    assert [record.__dict__["facts"]["kind"] for record in reported] == ["sign-in-stale"]
    assert "secret-" not in "".join(
        str(record.__dict__) for record in caplog.records if record.name != "httpx"
    )


def test_people_are_refused_on_a_page_with_the_same_status(signing: SignInTown) -> None:
    answer = signing.browser().come_back("/oidc/callback?state=%3Cscript%3E", accept="text/html,*/*")
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")
    assert "<script" not in answer.text
    assert "begin again" in answer.text


def test_no_secret_is_stored_or_given_to_workers(signing: SignInTown) -> None:
    browser = signing.browser()
    browser.come_back(browser.begin())
    ticket = browser.cookies["__Host-hushsum-signed-in"]
    settings = signing.town.settings
    stored = b"".join(path.read_bytes() for path in settings.path("").rglob("*") if path.is_file())
    assert ticket.encode() not in stored
    assert SECRET not in settings.for_worker()
    assert SECRET not in repr(settings)
    assert SECRET not in repr(ProviderSettings.of(settings))


GOOD = {
    "oidc_issuer": "https://id.example/realms/x",
    "oidc_client_id": "hushsum",
    "oidc_client_secret": "0123456789abcdef",
    "oidc_public_url": "https://hush.example",
}


def test_good_settings() -> None:
    terms = ProviderSettings.of(Settings(**GOOD))  # type: ignore[arg-type]
    assert terms.redirect_uri == "https://hush.example/oidc/callback"
    assert (terms.account_claim, terms.secure, terms.local) == ("email", True, False)


def test_a_sign_in_takes_ten_minutes_at_most() -> None:
    terms = ProviderSettings.of(Settings(**GOOD))  # type: ignore[arg-type]
    cookie = new_cookie(1.8e9)
    begun = flow_of(cookie, terms, 1.8e9)
    assert begun is not None
    assert flow_of(cookie, terms, 1.8e9 + 600.0) == begun
    for wrong in (1.8e9 + 601.0, 1.8e9 - 1.0):
        assert flow_of(cookie, terms, wrong) is None
    assert len({begun.id, begun.state, begun.nonce, begun.verifier, begun.challenge}) == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("issuer", "http://id.example"),
        ("issuer", "https://id.example?x=1"),
        ("issuer", "ftp://id.example"),
        ("client_id", ""),
        ("client_secret", ""),
        ("client_secret", "short"),
        ("public_url", ""),
        ("public_url", "http://hush.example"),
        ("public_url", "https://hush.example/path"),
        ("account_claim", "a b"),
    ],
)
def test_wrong_settings_stop_the_start(name: str, value: str, tmp_path: Any) -> None:
    given: dict[str, Any] = {**GOOD, f"oidc_{name}": value}
    with pytest.raises(UsageError, match="HUSHSUM_OIDC_") as reported:
        create_app(Settings(folder=str(tmp_path / "s"), **given))
    assert GOOD["oidc_client_secret"] not in str(reported.value)
    assert not (tmp_path / "s").exists()


def test_a_service_without_the_extra_says_what_to_install(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    monkeypatch.delitem(sys.modules, "hushsum.service.http.oidc", raising=False)
    given: dict[str, Any] = GOOD
    with pytest.raises(UsageError, match=r"hushsum\[oidc\]"):
        create_app(Settings(folder=str(tmp_path / "s"), **given))


def test_the_secret_in_a_file(tmp_path: Path) -> None:
    given = {f"HUSHSUM_{name.upper()}": value for name, value in GOOD.items()}
    del given["HUSHSUM_OIDC_CLIENT_SECRET"]
    path = tmp_path / "secret"
    given["HUSHSUM_OIDC_CLIENT_SECRET_FILE"] = str(path)
    with pytest.raises(UsageError, match="CLIENT_SECRET_FILE"):
        Settings.from_environment(given)
    path.write_text("0123456789abcdef\n")
    assert ProviderSettings.of(Settings.from_environment(given)).client_secret == "0123456789abcdef"
    given["HUSHSUM_OIDC_CLIENT_SECRET"] = "fedcba9876543210"
    with pytest.raises(UsageError, match="not both"):
        Settings.from_environment(given)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "https://",
        "https://user@host",
        "https://a#b",
        "//a",
        "https://a b",
        "https://[::1",
        "https://a\\@b",
        "http://localhost.evil.example",
        "https://a:999999",
        "https://ä.example",
    ],
)
def test_unsafe_addresses(url: object) -> None:
    assert not is_safe(url, local=True)


def test_safe_addresses() -> None:
    assert is_safe("https://a.example/x?y=z", local=False)
    assert is_safe("http://[::1]:80/x", local=True)
    assert not is_safe("http://localhost", local=False)
