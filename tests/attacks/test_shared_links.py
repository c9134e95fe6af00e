"""Links by which anybody may query a function: what they must not give away, and how they end."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import hushsum as hs
from hushsum.service import logs
from hushsum.service.http import create_app
from hushsum.service.store import SharedFunction, Shares, Store
from tests.in_process_service import SECRET, Town

SITE = "https://www.example.org"
POINT = {"points": [[1.0, -2.0]]}


@pytest.fixture
def shared(town: Town) -> tuple[Town, str, str]:
    """A town, a function of Olga's, and the key of a link to it."""
    function = released(town)
    return town, function, share(town, function)


def released(town: Town, dataset: str = "payroll") -> str:
    """A small function of Olga's, made here and not by a worker, which takes longer."""
    records = np.random.default_rng(0).normal([1.0, -2.0], 0.5, (200, 2))
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=20, width=50)
    return town.publish(town.dataset(name=dataset), "pay", tally.add(records).release(epsilon=0.5))


def share(town: Town, function: str, **request: Any) -> str:
    made = town.ok("olga", "POST", f"/functions/{function}/shares", 201, json=request)
    assert made["path"].startswith("/shared/")
    return str(made["path"].removeprefix("/shared/"))


def test_nothing_is_shared_until_its_owner_decides(town: Town) -> None:
    function = released(town)
    assert town.ok("olga", "GET", f"/functions/{function}/shares") == []
    for key in (function, "0" * 43, secrets.token_urlsafe(32)):
        town.refused(None, "GET", f"/shared/{key}/function", 404)
    for who in ("otto", "anna", "admin"):
        status = 403 if who in ("anna", "admin") else 404
        town.refused(who, "POST", f"/functions/{function}/shares", status, json={})
    actions = [line["action"] for line in town.ok("admin", "GET", "/log?limit=1000")]
    assert "function shared" not in actions


def test_a_link_gives_the_public_function_and_nothing_else(shared: tuple[Town, str, str]) -> None:
    town, function, key = shared
    own = town.ok("olga", "GET", f"/functions/{function}")
    found = town.ok(None, "GET", f"/shared/{key}/function")
    assert set(found) == {"name", "sha256", "download", "signed", "facts"}
    assert found["facts"] == {name: value for name, value in own["facts"].items() if name != "source"}
    answer = town.ask(None, "GET", f"/shared/{key}/function").text
    for hidden in (function, own["dataset"], "olga", "payroll", SECRET, town.ids["olga"]):
        assert hidden not in answer
    path = f"/functions/{function}/query"
    assert town.ok(None, "POST", f"/shared/{key}/query", json=POINT) == town.ok(
        "olga", "POST", path, json=POINT
    )
    # Reading is all that it is good for, whatever else is tried with it.
    town.refused(None, "GET", f"/shared/{key}/file", 403)
    for method, path in (("DELETE", ""), ("PUT", "/function"), ("POST", "/function"), ("GET", "/grants")):
        assert town.ask(None, method, f"/shared/{key}{path}").status_code in (404, 405)
    for path in ("/functions", f"/functions/{function}", "/datasets", "/me"):
        assert town.ask(key, "GET", path).status_code == 401, "a key is not a token"
    spent = town.ok("olga", "GET", f"/datasets/{own['dataset']}")["budget"]["spent"]["epsilon"]
    assert spent == "0", "queries by a link spend nothing"


def test_a_token_is_no_key_and_one_key_opens_one_function(shared: tuple[Town, str, str]) -> None:
    town, function, key = shared
    other = released(town, "another")
    for guess in (town.tokens["olga"], other, function, key[:-1], key + "A", key.swapcase(), f"{key}%00"):
        answer = town.ask(None, "GET", f"/shared/{guess}/function")
        assert answer.status_code == 404, guess
        assert answer.json()["detail"].startswith("there is nothing here")
    # The id of another function beside the key changes nothing.
    assert town.ask(None, "GET", f"/shared/{key}/{other}/function").status_code == 404
    assert town.ask(None, "POST", f"/shared/{key}/query?function={other}", json=POINT).status_code == 422


def test_revoked_at_once_and_like_one_that_never_was(shared: tuple[Town, str, str]) -> None:
    town, function, key = shared
    town.ok(None, "GET", f"/shared/{key}/function")
    [link] = town.ok("olga", "GET", f"/functions/{function}/shares")
    assert key not in str(link)
    for who, status in (("otto", 404), ("anna", 403), (None, 401)):
        town.refused(who, "DELETE", f"/shares/{link['id']}", status)
    town.ok("olga", "DELETE", f"/shares/{link['id']}", 204)
    for path in ("", "/function", "/file", "/embed"):
        revoked = town.refused(None, "GET", f"/shared/{key}{path}", 404)
        unknown = town.refused(None, "GET", f"/shared/{secrets.token_urlsafe(32)}{path}", 404)
        assert revoked | {"request": ""} == unknown | {"request": ""}
    town.refused(None, "POST", f"/shared/{key}/query", 404, json=POINT)
    town.refused("olga", "DELETE", f"/shares/{link['id']}", 404)
    [link] = town.ok("olga", "GET", f"/functions/{function}/shares")
    assert link["revoked"]
    assert not link["works"]
    lines = town.ok("admin", "GET", "/log?order=newest&limit=3&action=link")
    assert [(line["action"], line["account_name"]) for line in lines] == [("link revoked", "olga")]


def test_what_is_cached_ends_with_the_link(
    found_town: Callable[..., Town], monkeypatch: pytest.MonkeyPatch
) -> None:
    town = found_town(cache_seconds=1000.0)
    function = released(town)
    path = f"/functions/{function}/shares"
    known = share(town, function)
    town.ok(None, "GET", f"/shared/{known}/function")
    town.ok("olga", "DELETE", f"/shares/{town.ok('olga', 'GET', path)[0]['id']}", 204)
    town.refused(None, "GET", f"/shared/{known}/function", 404)

    # Revoked after a request has read that the link works, and before it remembers so.
    raced = share(town, function)
    [link] = [each for each in town.ok("olga", "GET", path) if each["works"]]
    read = Shares.open

    def read_and_revoke(self: Shares, key: str) -> SharedFunction | None:
        found = read(self, key)
        town.ok("olga", "DELETE", f"/shares/{link['id']}", 204)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Shares, "open", read_and_revoke)
        town.ok(None, "GET", f"/shared/{raced}/function")
    town.refused(None, "GET", f"/shared/{raced}/function", 404)


def test_people_see_a_page_where_a_link_has_ended(shared: tuple[Town, str, str]) -> None:
    town, function, key = shared
    [link] = town.ok("olga", "GET", f"/functions/{function}/shares")
    town.ok("olga", "DELETE", f"/shares/{link['id']}", 204)
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    ended, unknown = (
        town.ask(None, "GET", f"/shared/{each}", headers=browser) for each in (key, secrets.token_urlsafe(32))
    )
    assert ended.status_code == unknown.status_code == 404
    assert ended.headers["content-type"] == "text/html; charset=utf-8"
    assert ended.content == unknown.content
    assert "frame-ancestors 'none'" in ended.headers["content-security-policy"]
    # A widget is not such a page: its script would show the function in a frame of any site.
    refused = town.ask(None, "GET", f"/shared/{share(town, function)}/embed", headers=browser)
    assert (refused.status_code, refused.headers["x-frame-options"]) == (404, "DENY")
    assert refused.headers["content-type"] == "application/problem+json"


def test_a_page_in_its_own_origin_reads_why_it_was_refused(found_town: Callable[..., Town]) -> None:
    town = found_town(link_requests_per_second=0.1)
    function = released(town)
    key = share(town, function)
    statuses = set()
    for path in (f"/shared/{key}/file", f"/shared/{'0' * 43}/function", f"/shared/{key}/function"):
        answer = town.ask(None, "GET", path, headers={"origin": "null"})
        statuses.add(answer.status_code)
        assert answer.headers.get_list("access-control-allow-origin") == ["*"]
        assert answer.headers.get_list("cross-origin-resource-policy") == ["cross-origin"]
    assert statuses == {403, 404, 429}
    refused = town.ask(None, "GET", f"/functions/{function}", headers={"origin": "null"})
    assert "access-control-allow-origin" not in refused.headers


def test_an_administrator_ends_any_link_and_a_closed_account_has_none(town: Town) -> None:
    function = released(town)
    first, second = share(town, function, label="first"), share(town, function)
    by_label = {each["label"]: each["id"] for each in town.ok("olga", "GET", f"/functions/{function}/shares")}
    town.ok("admin", "DELETE", f"/shares/{by_label['first']}", 204)
    town.refused(None, "GET", f"/shared/{first}/function", 404)
    town.ok(None, "GET", f"/shared/{second}/function")
    town.ok("admin", "DELETE", f"/accounts/{town.ids['olga']}", 204)
    town.refused(None, "GET", f"/shared/{second}/function", 404)


def test_functions_of_a_closed_account_answer_nobody(town: Town) -> None:
    """As its links do, although analysts had been granted them."""
    function = released(town)
    town.ok("olga", "PUT", f"/functions/{function}/grants/anna", json={"download": True})
    point = f"/functions/{function}/query"
    town.ok("anna", "POST", point, json=POINT)
    assert town.ask("anna", "GET", f"/functions/{function}/file").status_code == 200
    town.ok("admin", "DELETE", f"/accounts/{town.ids['olga']}", 204)
    town.refused("anna", "POST", point, 404, json=POINT)
    town.refused("anna", "GET", f"/functions/{function}", 404)
    town.refused("anna", "GET", f"/functions/{function}/file", 404)
    assert town.ok("anna", "GET", "/functions") == []


@pytest.mark.parametrize(("port", "status"), [(65_535, 201), (65_536, 422), (99_999, 422)])
def test_the_port_of_an_origin_exists(shared: tuple[Town, str, str], port: int, status: int) -> None:
    town, function, _ = shared
    answer = town.ask(
        "olga", "POST", f"/functions/{function}/shares", json={"origins": [f"https://example.org:{port}"]}
    )
    assert answer.status_code == status


def test_a_link_expires(shared: tuple[Town, str, str]) -> None:
    town, function, _ = shared
    key = share(town, function, days=1)
    town.ok(None, "GET", f"/shared/{key}/function")
    with Store.open(town.settings.place).database.writing() as connection:
        connection.execute(sa.text("UPDATE hushsum_shares SET expires = '2020-01-01' WHERE expires <> ''"))
    town.app.state.context.shared_links.clear_cache()
    town.refused(None, "GET", f"/shared/{key}/function", 404)


def test_the_key_is_stored_and_logged_nowhere(
    shared: tuple[Town, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    town, _, key = shared
    town.ok(None, "POST", f"/shared/{key}/query", json=POINT)
    town.ask(None, "GET", f"/shared/{key}")
    stored = b"".join(each.read_bytes() for each in Path(town.settings.folder).rglob("*") if each.is_file())
    assert key.encode() not in stored
    own = [record for record in caplog.records if record.name.startswith("hushsum")]
    assert len(own) >= 2
    assert key not in "".join(logs.JsonLines().format(record) for record in own)
    assert key not in town.ask(None, "GET", "/metrics").text
    assert key not in str(town.ok("admin", "GET", "/log?limit=1000"))


def test_headers_of_pages_and_answers(shared: tuple[Town, str, str]) -> None:
    town, function, key = shared
    page = town.ask(None, "GET", f"/shared/{key}")
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "sandbox allow-scripts allow-downloads;" in policy, "no allow-same-origin: no storage, no channel"
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["x-robots-tag"] == "noindex"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "<script>" not in page.text
    assert key not in page.text
    for path in ("", "/function"):
        assert town.ask(None, "GET", f"/shared/{key}{path}").headers["cache-control"] == "no-store"
    answer = town.ask(None, "POST", f"/shared/{key}/query", json=POINT)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    # Another origin may not read anything that needs a token.
    for path in (f"/functions/{function}", f"/functions/{function}/shares", "/me"):
        headers = town.ask("olga", "GET", path, headers={"origin": SITE}).headers
        assert "access-control-allow-origin" not in headers


def test_only_declared_sites_may_frame_it(shared: tuple[Town, str, str]) -> None:
    town, function, key = shared
    town.refused(None, "GET", f"/shared/{key}/embed", 404)
    framed = share(town, function, origins=[SITE, "https://blog.example.org:8443", SITE])
    widget = town.ask(None, "GET", f"/shared/{framed}/embed")
    policy = widget.headers["content-security-policy"]
    assert policy.endswith(f"frame-ancestors {SITE} https://blog.example.org:8443")
    assert "x-frame-options" not in widget.headers
    assert "'none'" in town.ask(None, "GET", f"/shared/{framed}").headers["content-security-policy"]


NOT_ORIGINS = (
    "*",
    "https://*",
    "https://*.example.org",
    "http://www.example.org",
    "https://www.example.org/",
    "https://www.example.org; script-src *",
    "https://a.example\r\nx: y",
    "https://a.example https://b.example",
    "https://user@a.example",
    "javascript:alert(1)",
    "'self'",
    "data:",
    "null",
    "",
    "https://münchen.example",
)


def test_an_origin_is_one_site_and_never_a_header(shared: tuple[Town, str, str]) -> None:
    town, function, _ = shared
    for origin in NOT_ORIGINS:
        request = {"origins": [origin]}
        reported = town.refused("olga", "POST", f"/functions/{function}/shares", 422, json=request)
        assert reported["faults"][0]["at"] == "body/origins/0", origin


def test_no_other_site_can_make_a_link(shared: tuple[Town, str, str]) -> None:
    """A browser that another site directs brings no token, since there is no cookie; and asks first."""
    town, function, _ = shared
    path = f"/functions/{function}/shares"
    evil = {"origin": "https://evil.example", "cookie": f"token={town.tokens['olga']}"}
    for content_type in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        town.refused(None, "POST", path, 401, content=b"{}", headers={**evil, "content-type": content_type})
    asked = {
        **evil,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
    }
    before = town.ask(None, "OPTIONS", path, headers=asked)
    assert before.status_code == 401
    assert not [name for name in before.headers if name.startswith("access-control")]
    assert len(town.ok("olga", "GET", path)) == 1


def test_guesses_and_floods_are_limited(found_town: Callable[..., Town]) -> None:
    town = found_town(failures_per_minute=5.0, shared_requests_per_second=4.0, link_requests_per_second=1.0)
    function = released(town)
    key = share(town, function)
    statuses = [
        town.ask(None, "GET", f"/shared/{secrets.token_urlsafe(32)}/function").status_code for _ in range(8)
    ]
    assert statuses[:5] == [404] * 5
    assert 429 in statuses
    # Bursts of ten seconds: 10 for the link, 40 for the address.
    statuses = [town.ask(None, "POST", f"/shared/{key}/query", json=POINT).status_code for _ in range(14)]
    assert statuses[:10] == [200] * 10
    assert statuses[-1] == 429
    assert town.ask("olga", "GET", "/me").status_code == 200, "accounts are not affected"


def test_a_query_by_a_link_is_small(found_town: Callable[..., Town]) -> None:
    town = found_town(shared_max_points=100)
    key = share(town, released(town))
    town.ok(None, "POST", f"/shared/{key}/query", json={"points": [[0.0, 0.0]] * 100})
    town.refused(None, "POST", f"/shared/{key}/query", 422, json={"points": [[0.0, 0.0]] * 101})
    town.refused(None, "POST", f"/shared/{key}/query", 413, content=b" " * (1 << 16))


def test_sharing_is_switched_off_for_the_whole_service(found_town: Callable[..., Town]) -> None:
    town = found_town(sharing="off")
    function = released(town)
    reported = town.refused("olga", "POST", f"/functions/{function}/shares", 409, json={})
    assert reported["type"].endswith("sharing-is-off")
    on = found_town_on_same_folder(town)
    key = share(on, function)
    on.ok(None, "GET", f"/shared/{key}/function")
    town.refused(None, "GET", f"/shared/{key}/function", 404)


def found_town_on_same_folder(town: Town) -> Town:
    """The same service, started with sharing on."""
    other = object.__new__(Town)
    other.settings = replace(town.settings, sharing="owners")
    other.app = create_app(other.settings)
    other.tokens, other.ids = town.tokens, town.ids
    return other


def test_a_model_in_exact_mode_is_never_shared(town: Town) -> None:
    function = released(town)
    with Store.open(town.settings.place).database.writing() as connection:
        facts = connection.execute(sa.text("SELECT facts FROM hushsum_functions")).scalar_one()
        changed = facts[:-1] + ', "model": {"mode": "exact"}}'
        connection.execute(sa.text("UPDATE hushsum_functions SET facts = :facts"), {"facts": changed})
    reported = town.refused("olga", "POST", f"/functions/{function}/shares", 409, json={})
    assert reported["type"].endswith("never-a-file")


def test_a_function_has_few_links(found_town: Callable[..., Town]) -> None:
    town = found_town(max_links=2)
    function = released(town)
    share(town, function)
    share(town, function)
    path = f"/functions/{function}/shares"
    assert town.refused("olga", "POST", path, 409, json={})["type"].endswith("quota-exceeded")
    town.ok("olga", "DELETE", f"/shares/{town.ok('olga', 'GET', path)[0]['id']}", 204)
    share(town, function)
