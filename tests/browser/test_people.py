"""An administrator lets people in, puts them out, and reads the log."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

import hushsum as hs
from hushsum.errors import ServiceRefused
from tests.browser.populated_service import World
from tests.browser.visitor import Visiting


def test_let_in_issue_revoke_and_close(visit: Visiting, world: World) -> None:
    here = visit("admin", refusals=(422,))
    page = here.page
    expect(page.get_by_role("heading", name="People")).to_be_visible()
    page.get_by_label("Name").fill("berta")
    page.get_by_label("Role").select_option("owner")
    page.get_by_role("button", name="Create account").click()
    reported = page.get_by_role("group", name="The token of berta")
    expect(reported).to_be_focused()
    secret = reported.get_by_label("The token").inner_text()
    here.picture("people")
    assert hs.connect(world.url, secret).me["role"] == "owner"
    reported.get_by_role("button", name="I have saved it").click()
    assert secret not in page.content()

    page.get_by_role("button", name="Tokens of berta").click()
    expect(page.get_by_role("heading", name="Tokens of berta")).to_be_focused()
    page.get_by_role("button", name="Issue a token").click()
    second = page.get_by_label("The token").inner_text()
    page.get_by_role("button", name="Revoke the token first").click()
    requested = page.get_by_role("dialog", name="Revoke this token?")
    expect(requested.get_by_role("button", name="Cancel")).to_be_focused()
    requested.get_by_role("button", name="Revoke it").click()
    expect(page.locator(".tag-bad")).to_contain_text("revoked")
    assert _refused(world, secret)
    assert not _refused(world, second)

    page.get_by_role("button", name="Close the account of berta").click()
    page.keyboard.press("Escape")
    assert not _refused(world, second)
    page.get_by_role("button", name="Close the account of berta").click()
    page.get_by_role("button", name="Close permanently").click()
    expect(page.get_by_role("row", name="berta").get_by_text("closed")).to_be_visible()
    assert _refused(world, second)

    page.get_by_label("Name").fill("berta")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("alert")).to_contain_text("must be new")


def test_tokens_are_shown_until_they_are_saved(visit: Visiting, world: World) -> None:
    here = visit("admin", refusals=(422,))
    page = here.page
    for name in ("cora", "dora", "cora"):
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Create account").click()
        if name != "cora" or page.get_by_role("group", name="The token of dora").count() == 0:
            expect(page.get_by_role("group", name=f"The token of {name}")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("must be new")
    secrets = page.get_by_label("The token", exact=True)
    expect(secrets).to_have_count(2)
    for secret in secrets.all_inner_texts():
        assert not _refused(world, secret)
    page.get_by_role("group", name="The token of cora").get_by_role("button", name="I have saved it").click()
    expect(secrets).to_have_count(1)


def test_the_log_has_names_filters_and_a_file(visit: Visiting, world: World) -> None:
    here = visit("admin")
    page = here.page
    world.ask("olga", "POST", "/tokens", {"label": "for the log"})
    page.get_by_role("link", name="Log").click()
    newest = page.locator("tbody tr").first
    expect(newest).to_contain_text("olga")
    expect(newest).to_contain_text("token issued")
    expect(newest).to_contain_text("for the log (olga)")
    expect(page.locator("tbody tr")).to_have_count(25)
    here.picture("log")
    expect(page.get_by_role("button", name="Newer")).to_be_disabled()
    first = page.locator("caption").inner_text()
    page.get_by_role("button", name="Older").click()
    expect(page.locator("caption")).not_to_have_text(first)
    page.get_by_role("button", name="Newer").click()
    expect(page.locator("caption")).to_have_text(first)

    page.get_by_label("About", exact=True).select_option("functions")
    expect(page.locator("tbody tr").first).to_contain_text("function")
    page.get_by_label("Account", exact=True).select_option("olga")
    expect(page.locator("tbody")).to_contain_text("height and weight")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export CSV").click()
    rows = Path(saved.value.path()).read_text().splitlines()
    assert rows[0] == "sequence,at,account,account_name,action,object,object_name,request"
    assert len(rows) > 5
    assert all(",olga,function" in row for row in rows[1:])
    page.get_by_label("To", exact=True).fill("2020-01-01")
    expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()


def test_a_further_token_for_a_program(visit: Visiting, world: World) -> None:
    here = visit("olga")
    page = here.go("/account")
    page.get_by_text("Another token, for a program").click()
    page.get_by_label("Label").fill("nightly job")
    page.get_by_label("Days").fill("7")
    page.get_by_label("release", exact=True).uncheck()
    page.get_by_role("button", name="Issue it").click()
    secret = page.get_by_label("The token").inner_text()
    assert hs.connect(world.url, secret).me["scopes"] == ["query", "upload"]
    expect(page.get_by_role("row", name="nightly job")).to_be_visible()


def _refused(world: World, token: str) -> bool:
    try:
        hs.connect(world.url, token)
    except ServiceRefused:
        return True
    return False
