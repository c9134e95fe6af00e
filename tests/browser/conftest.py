"""The page in a real browser. Without Playwright nothing is collected; without a browser all is skipped."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import system_browser
from tests.e2e.service_process import ServiceProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.populated_service import World
    from tests.browser.visitor import Visit

collect_ignore_glob = [] if importlib.util.find_spec("playwright") else ["test_*.py"]


@pytest.fixture(scope="session")
def chromium() -> str:
    path = system_browser()
    if path is None:
        pytest.skip("no Chromium is installed: the page is not tested (apt-get install chromium)")
    return path


@pytest.fixture(scope="session")
def world(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One service for all tests; what a test makes, it makes under a name of its own."""
    from tests.browser.populated_service import World

    place = ServiceProcess(tmp_path_factory.mktemp("page"), {"HUSHSUM_LEASE_SECONDS": "10"})
    place.start()
    try:
        yield World(place)
    finally:
        place.stop()


# No longer than a module: while Playwright runs, its event loop does, and other tests start theirs.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    # Machines that test are busy; what never comes is still found out.
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Browser, world: World) -> Iterator[Callable[..., Visit]]:
    """Open the page as somebody: ``visit("olga", dark=True)``; nobody is signed in as None."""
    from tests.browser.visitor import Visit

    begun: list[Visit] = []

    def begin(who: str | None, *, dark: bool = False, **options: Any) -> Visit:
        made = Visit(browser, world.url, color_scheme="dark" if dark else "light", **options)
        begun.append(made)
        if who is not None:
            made.sign_in(world.tokens[who])
        return made

    yield begin
    for each in begun:
        each.end()
