"""Somebody with a browser: signs in, goes places, and notices what a person might not."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Response, ViewportSize

Visiting = Callable[..., "Visit"]

PICTURES: Final = Path(__file__).parents[2] / "docs" / "screenshots"
WANTED: Final = "HUSHSUM_SCREENSHOTS"
"""Set to anything, the tests write the pictures of the documentation."""

LARGEST: Final = 150_000
WIDE: Final[ViewportSize] = {"width": 1280, "height": 860}
PHONE: Final[ViewportSize] = {"width": 375, "height": 780}


class Visit:
    """One tab in a context of its own.

    ``refusals`` are the statuses that the service may answer with; any other one of 400 or more, any error in
    the console (which is where a breach of the content security policy stands) and any exception fail the
    test when the visit ends.
    """

    def __init__(self, browser: Browser, url: str, *, refusals: tuple[int, ...] = (), **options: Any) -> None:
        self.url = url
        options.setdefault("viewport", WIDE)
        self._context = browser.new_context(reduced_motion="reduce", timezone_id="UTC", **options)
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(60_000)
        self._refusals = refusals
        self.faults: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        self.page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        # A refused request is reported by the response itself, with its status.
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.faults.append(f"console: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self._refusals:
            self.faults.append(f"{response.status} {response.request.method} {response.url}")

    def end(self) -> None:
        self._context.close()
        assert self.faults == []

    def sign_in(self, token: str) -> Page:
        self.page.goto(self.url)
        self.page.get_by_label("Your token").fill(token)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.get_by_role("button", name="Sign out").wait_for()
        return self.page

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.url}/#{path}")
        return self.page

    def open_function(self, name: str) -> Page:
        """A function from the list, once its picture is there."""
        self.go("/functions").get_by_role("link", name=name, exact=True).click()
        self.page.get_by_role("heading", name=name, level=1).wait_for()
        return self.page

    def settled(self) -> None:
        """Wait until the view has everything it requested."""
        self.page.wait_for_function("() => !document.querySelector('main[aria-busy], .plot[aria-busy]')")

    def drawn(self) -> None:
        """Wait until the picture shows what was requested last."""
        self.page.wait_for_function(
            "() => document.querySelector('.plot:not([aria-busy])')?.querySelector('path, image')"
        )

    def too_wide(self) -> int:
        """By how many pixels the page could be scrolled sideways."""
        return int(
            self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        )

    def picture(self, name: str, *, full: bool = False, of: Locator | None = None) -> None:
        """Write a picture of the page or a part for the documentation, if requested; small, since it is kept
        for ever.
        """
        if not os.environ.get(WANTED):
            return
        from PIL import Image

        self.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        shot = self.page.screenshot(full_page=full) if of is None else of.screenshot()
        taken = Image.open(io.BytesIO(shot)).convert("RGB")
        PICTURES.mkdir(exist_ok=True)
        path = PICTURES / f"{name}.png"
        # Four levels of a colour in one: nobody sees it, and smooth areas take half the bytes.
        taken.point(lambda level: min(255, (level + 2) // 4 * 4)).save(path, optimize=True)
        assert path.stat().st_size < LARGEST, f"{name} is too large a picture"


def number_in(text: str) -> float:
    """The first number in a text that people read."""
    found = re.search(r"[−-]?\d[\d,]*\.?\d*", text)
    assert found, text
    return float(found[0].replace("−", "-").replace(",", ""))
