"""Signing in with a provider: from the button, through the provider's own page, and back."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import hushsum as hs
from tests.browser.visitor import Visit
from tests.e2e.service_process import ADMIN, ServiceProcess
from tests.e2e.test_sign_in import mock_provider

pytestmark = pytest.mark.skipif(find_spec("oidc_provider_mock") is None, reason="needs oidc-provider-mock")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ServiceProcess]:
    with mock_provider() as issuer:
        found = ServiceProcess(tmp_path)
        found.settings = {
            "HUSHSUM_OIDC_ISSUER": issuer,
            "HUSHSUM_OIDC_CLIENT_ID": "hushsum",
            "HUSHSUM_OIDC_CLIENT_SECRET": "0123456789abcdef",
            "HUSHSUM_OIDC_PUBLIC_URL": f"http://localhost:{found.port}",
            "HUSHSUM_OIDC_NAME": "the institute",
        }
        found.start()
        try:
            yield found
        finally:
            found.stop()


def test_an_administrator_links_somebody_who_then_signs_in(place: ServiceProcess, browser: Browser) -> None:
    url = place.settings["HUSHSUM_OIDC_PUBLIC_URL"]
    hs.connect(place.url, ADMIN).create_account("anna", "analyst")
    admin = Visit(browser, url, refusals=(404,))
    page = admin.sign_in(ADMIN)
    page.get_by_role("button", name="Tokens of anna").click()
    card = page.get_by_label("Signing in with the institute")
    card.get_by_label("The person's identity at the provider").fill("anna@example.org")
    card.get_by_role("button", name="Link", exact=True).click()
    expect(card).to_contain_text("anna@example.org may sign in, and has not done so yet.")
    admin.end()

    here = Visit(browser, url)
    page = here.page
    page.goto(url)
    page.get_by_role("link", name="Sign in with the institute").click()
    page.locator("[name=sub]").first.fill("u-1")
    page.locator("form").first.locator("button, input[type=submit]").first.click()
    expect(page.get_by_role("link", name="Your account: anna, analyst")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    here.end()
