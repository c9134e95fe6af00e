"""Public links and widgets, second tabs, comparisons, exports and the sample, in a browser."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import hushsum as hs
from hushsum.errors import ServiceRefused
from tests.browser.populated_service import World
from tests.browser.test_accessibility import FAULTS, violations
from tests.browser.visitor import PHONE, Visiting


class QuietSite(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def site(folder: Path) -> Iterator[int]:
    """Another site, by its port; browsers know it by two names."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietSite, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


def test_a_link_is_made_followed_framed_and_revoked(visit: Visiting, world: World, tmp_path: Path) -> None:
    with site(tmp_path) as port:
        declared, other = f"http://localhost:{port}", f"http://127.0.0.1:{port}"
        owner = visit("olga", refusals=(422,))
        page = owner.open_function("height and weight")
        expect(page.get_by_role("heading", name="Not shared")).to_be_visible()
        page.get_by_label("Sites that may embed it").fill("http://www.example.org")
        page.get_by_role("button", name="Make a public link").click()
        expect(page.get_by_label("Sites that may embed it")).to_be_focused()
        expect(page.get_by_role("alert")).to_contain_text("Must be a site such as https://www.example.org")
        page.get_by_label("Sites that may embed it").fill(declared)
        page.get_by_label("Label", exact=True).fill("für die Zeitung")
        page.get_by_role("button", name="Make a public link").click()
        shown = page.get_by_role("group", name="The new link")
        expect(shown).to_be_focused()
        link = shown.get_by_label("The link", exact=True).inner_text()
        frame = shown.get_by_label("To embed it").inner_text()
        owner.picture("share", of=page.get_by_role("region", name="Public links"))

        guest = visit(None, viewport=PHONE, refusals=(404,))
        guest.page.goto(link)
        guest.drawn()
        expect(guest.page.get_by_role("heading", name="height and weight")).to_be_visible()
        expect(guest.page.get_by_text("at most 2.72 times as likely", exact=True)).to_be_visible()
        assert guest.too_wide() == 0
        # An origin of its own: no storage, and no way to a tab that is signed in.
        assert guest.page.evaluate("origin") == "null"
        assert (
            guest.page.evaluate(
                "(() => { try { return sessionStorage.length } catch (error) { return error.name } })()"
            )
            == "SecurityError"
        )
        found = [each for each in guest.page.evaluate(FAULTS) if each != "not one header"]
        assert found + violations(guest) == []
        guest.page.set_viewport_size({"width": 1100, "height": 800})
        guest.drawn()
        guest.picture("shared")

        (tmp_path / "index.html").write_text(f"<!doctype html><title>x</title>{frame}")
        guest.page.goto(declared)
        widget = guest.page.frame_locator("iframe")
        expect(widget.locator(".plot image")).to_have_count(1)
        expect(widget.get_by_role("heading", name="height and weight")).to_be_visible()
        guest.page.goto(other)
        guest.page.wait_for_timeout(500)
        assert [each.url for each in guest.page.frames][1] == "chrome-error://chromewebdata/"
        guest.faults[:] = [each for each in guest.faults if "frame-ancestors" not in each]

        shared = hs.client.open_link(link)
        assert (
            shared.query([[170.0, 65.0]]).value
            == world.olga.function("height and weight").query([[170.0, 65.0]]).value
        )
        guest.page.goto(link)
        guest.drawn()
        page.get_by_role("button", name="Revoke the link für die Zeitung").click()
        page.get_by_role("button", name="Revoke it").click()
        expect(page.get_by_role("row", name="für die Zeitung")).to_contain_text("revoked")
        ended = "This link was revoked, has expired, or is incomplete"
        # In a page that is open, where the service would answer the next query; and in one that is opened.
        guest.page.get_by_role("spinbutton").first.fill("181")
        guest.page.keyboard.press("Enter")
        expect(guest.page.get_by_text(ended)).to_be_visible()
        guest.page.goto(link)
        expect(guest.page.get_by_role("heading", level=1)).to_be_visible()
        expect(guest.page.get_by_text(ended)).to_be_visible()
        with pytest.raises(ServiceRefused, match="nothing here"):
            shared.query([[170.0, 65.0]])


def test_a_second_tab_is_signed_in_and_signing_out_ends_both(visit: Visiting, world: World) -> None:
    # A request that is under way when the other tab signs out is refused.
    here = visit("anna", refusals=(401,))
    second = here.page.context.new_page()
    second.goto(here.url)
    expect(second.get_by_role("heading", name="Functions")).to_be_visible()
    assert second.evaluate("document.cookie + localStorage.length") == "0"
    second.get_by_role("button", name="Sign out").click()
    expect(here.page.get_by_label("Your token")).to_be_visible()
    assert here.page.evaluate("sessionStorage.length") == 0
    third = here.page.context.new_page()
    third.goto(here.url)
    expect(third.get_by_label("Your token")).to_be_visible()


def test_compared_exported_and_copied(visit: Visiting, world: World, tmp_path: Path) -> None:
    here = visit("olga")
    page = here.open_function("heights")
    here.drawn()
    page.get_by_label("Compare with").select_option("heights once more")
    expect(page.locator(".plot .curve")).to_have_count(2)
    page.get_by_text("Difference", exact=True).click()
    expect(page.locator(".plot .curve")).to_have_count(1)
    expect(page.locator(".plot .axis-name").last).to_have_text("difference in records near here")
    here.picture("difference")

    def saved(button: str) -> Path:
        with page.expect_download() as download:
            page.get_by_role("button", name=button, exact=True).click()
        target = tmp_path / download.value.suggested_filename
        download.value.save_as(target)
        return target

    table = saved("CSV")
    assert table.name == "heights and heights once more.csv"
    lines = table.read_text().splitlines()
    names = lines[0].split(",")
    rows = np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])
    column = {name: rows[:, at] for at, name in enumerate(names)}
    one, other = (
        world.olga.function(name).query(column["height_cm"][:, None], of="sum")
        for name in ("heights", "heights once more")
    )
    np.testing.assert_allclose(column["difference: value"], one.value - other.value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(column["difference: stderr"], np.hypot(one.stderr, other.stderr), rtol=1e-9)
    inside = (column["difference: lower"] < column["difference: value"]) & (
        column["difference: value"] < column["difference: upper"]
    )
    assert inside.all()
    drawing = saved("SVG").read_text()
    assert drawing.startswith("<svg")
    assert "heights and heights once more" in drawing
    assert "var(" not in drawing
    assert "<script" not in drawing
    with Image.open(saved("PNG")) as picture:
        assert picture.size[0] > 1000
        colours = picture.convert("RGB").getcolors(1 << 20)
        assert colours is not None
        assert len(colours) > 5
    page.get_by_role("button", name="Copy as curl").click()
    copied = page.locator("textarea.copied")
    if copied.count():
        text = copied.input_value()
        assert "$HUSHSUM_TOKEN" in text
        assert world.tokens["olga"] not in text


def test_the_sample_leads_to_a_function(visit: Visiting, world: World) -> None:
    admin = hs.connect(world.url, world.tokens["admin"])
    world.tokens["nora"] = admin.create_account("Nora Ødegård", "owner")
    here = visit("nora", viewport=PHONE)
    page = here.page
    page.get_by_role("button", name="Try it with sample records").click()
    page.get_by_role("button", name="Create the sample").click()
    expect(page.get_by_label("Predicted error").locator(".big-number")).to_contain_text("records")
    expect(page.get_by_label("ε to spend")).to_have_value("0.25")
    assert page.evaluate(FAULTS) + violations(here) == []
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="What it means for one person")).to_be_visible()
    assert page.evaluate(FAULTS) + violations(here) == []
    assert here.too_wide() == 0
    page.get_by_role("button", name="Release, and spend ε 0.25").click()
    here.drawn()
    here.go("/functions")
    expect(page.locator(".thumb canvas")).to_have_count(1)
    expect(page.locator(".card-function")).to_contain_text("Sample commuters")
