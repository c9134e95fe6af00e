"""Narrow screens, dark colours, the keyboard alone, and those who listen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.visits import PHONE, Visit, Visiting
from tests.browser.world import World

FAULTS = (Path(__file__).parent / "accessible.js").read_text()
PLACES = {"olga": ("/functions", "/datasets", "/account"), "admin": ("/people", "/log", "/account")}


def everywhere(here: Visit, world: World, who: str) -> list[str]:
    """Every view that somebody has, as paths."""
    paths = list(PLACES[who])
    if who == "olga":
        reported = {each["name"]: each for each in world.ask("olga", "GET", "/functions")}
        names = ("heights", "height and weight", "colours", "who earns more")
        paths += [f"/functions/{reported[name]['id']}" for name in names]
        dataset = reported["heights"]["dataset"]
        paths += [f"/datasets/{dataset}", f"/datasets/{dataset}/release"]
    return paths


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("who", ["olga", "admin"])
def test_every_view_fits_a_phone_and_can_be_read(
    visit: Visiting, world: World, who: str, *, dark: bool
) -> None:
    here = visit(who, dark=dark, viewport=PHONE)
    faults = {}
    for path in everywhere(here, world, who):
        page = here.go(path)
        expect(page.locator("main h1")).to_be_visible()
        here.settled()
        found = page.evaluate(FAULTS)
        if here.too_wide() > 0:
            found.append(f"{here.too_wide()} pixels too wide")
        if found:
            faults[path] = found
        if not dark and page.locator("main h1").inner_text() == "height and weight":
            here.picture("phone")
    assert faults == {}


def test_the_door_can_be_read_too(visit: Visiting) -> None:
    here = visit(None, viewport=PHONE)
    here.page.goto(here.url)
    expect(here.page.get_by_label("Your token")).to_be_visible()
    assert here.page.evaluate(FAULTS) == []
    assert here.too_wide() == 0


def test_dark_as_the_system_has_it_or_as_chosen(visit: Visiting) -> None:
    here = visit("olga", dark=True)
    page = here.open_function("height and weight")
    here.drawn()
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    assert dark == "rgb(16, 19, 24)"
    here.picture("dark")
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate(ground) != dark
    page.reload()
    expect(page.get_by_role("button", name="Use dark colours")).to_be_visible()
    assert page.evaluate(ground) != dark


def test_the_keyboard_alone_suffices(visit: Visiting, world: World) -> None:
    here = visit(None)
    page = here.page
    page.goto(here.url)
    keyboard = page.keyboard
    keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for _ in range(3):
        keyboard.press("Tab")
    expect(page.get_by_label("Your token")).to_be_focused()
    keyboard.type(world.tokens["anna"])
    keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Functions")).to_be_focused()
    keyboard.press("Tab")
    link = page.locator(":focus")
    assert link.get_attribute("href", timeout=5000).startswith("#/functions/fn_")  # type: ignore[union-attr]
    name = link.inner_text()
    keyboard.press("Enter")
    expect(page.get_by_role("heading", name=name, level=1)).to_be_focused()
    here.drawn()
    for _ in range(6):
        keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "svg":
            break
    plot = page.get_by_role("application")
    expect(plot).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    first = page.get_by_label("One point").get_by_role("spinbutton").first
    before = float(first.input_value())
    keyboard.press("ArrowRight")
    keyboard.press("Shift+ArrowRight")
    low, high = 120, 220
    assert abs(float(first.input_value()) - before - 11 * (high - low) / 100) < 1e-6
    live = page.get_by_label("One point").get_by_role("status")
    expect(live).to_have_attribute("aria-live", "polite")
    expect(live).to_contain_text("±")


def test_nothing_jumps_while_a_view_loads(visit: Visiting) -> None:
    here = visit("olga")
    page = here.open_function("height and weight")
    here.drawn()
    here.settled()
    moved = page.evaluate(
        """() => new Promise((tell) => {
          let sum = 0;
          new PerformanceObserver((list) => {
            for (const each of list.getEntries()) if (!each.hadRecentInput) sum += each.value;
          }).observe({ type: "layout-shift", buffered: true });
          setTimeout(() => tell(sum), 200);
        })"""
    )
    assert moved < 0.1
