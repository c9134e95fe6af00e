"""Who gets in, and who is put out."""

from __future__ import annotations

import httpx
from playwright.sync_api import expect

import hushsum as hs
from tests.browser.populated_service import World
from tests.browser.visitor import Visiting


def test_sign_in_and_out(visit: Visiting, world: World) -> None:
    here = visit(None)
    page = here.page
    page.goto(here.url)
    expect(page.get_by_role("heading", level=1)).to_contain_text("query it any number of times")
    here.picture("sign-in")
    here.sign_in(world.tokens["anna"])
    page.get_by_role("link", name="Your account: anna, analyst").click()
    expect(page.get_by_role("heading", name="Your account")).to_be_focused()
    expect(page.get_by_text("in use here")).to_be_visible()
    assert page.evaluate("document.cookie + localStorage.length") == "0"
    assert world.tokens["anna"] not in page.content()
    page.reload()
    expect(page.get_by_role("heading", name="Your account")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_label("Your token")).to_be_visible()


def test_a_wrong_token_is_refused_in_words(visit: Visiting) -> None:
    here = visit(None, refusals=(401,))
    page = here.page
    page.goto(here.url)
    page.get_by_label("Your token").fill("hs_not-a-token")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("not a valid token of this service")
    expect(page.get_by_label("Your token")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0
    here.picture("wrong-token")


def test_a_token_revoked_meanwhile_ends_the_visit(visit: Visiting, world: World) -> None:
    admin = hs.connect(world.url, world.tokens["admin"])
    world.tokens["rita"] = admin.create_account("rita", "analyst")
    here = visit("rita", refusals=(401,))
    page = here.page
    expect(page.get_by_role("heading", name="No function yet")).to_be_visible()
    mine = world.ask("rita", "GET", "/tokens")
    world.ask("admin", "DELETE", f"/tokens/{mine[0]['id']}")
    page.get_by_role("link", name="Your account").click()
    expect(page.get_by_role("alert")).to_contain_text("revoked or has expired")
    expect(page.get_by_label("Your token")).to_be_visible()
    expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
    assert page.evaluate("sessionStorage.length") == 0


def test_nobody_is_shown_a_place_that_is_not_theirs(visit: Visiting) -> None:
    here = visit("anna")
    for path in ("/people", "/log", "/datasets", "/nowhere"):
        expect(here.go(path).get_by_role("heading", name="Functions", exact=True)).to_be_visible()
    names = here.page.get_by_role("navigation", name="Main").get_by_role("link").all_inner_texts()
    assert names == ["Functions"]


def test_without_a_script_the_page_says_so(visit: Visiting, world: World) -> None:
    here = visit(None, java_script_enabled=False)
    here.page.goto(here.url)
    expect(here.page.get_by_text("JavaScript is off or did not load")).to_be_visible()
    assert "<html" in httpx.get(world.url, timeout=60).text
