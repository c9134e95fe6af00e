"""Narrow screens, dark colours, the keyboard alone, and those who listen."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.populated_service import World
from tests.browser.visitor import PHONE, Visit, Visiting

FAULTS = (Path(__file__).parent / "accessible.js").read_text()
AXE = find_spec("axe_playwright_python")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Without preload: it would fetch style sheets from addresses that do not exist.
RULES: dict[str, object] = {"preload": False, "runOnly": {"type": "tag", "values": TAGS}}
PLACES = {"olga": ("/functions", "/datasets", "/account"), "admin": ("/people", "/log", "/account")}


COLOURS: dict[str, object] = {
    "preload": False,
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}


def violations(here: Visit, rules: dict[str, object] = RULES) -> list[str]:
    """What axe-core finds in what is shown now; nothing without the package that carries it."""
    if AXE is None or AXE.origin is None:
        return []
    page = here.page
    if not page.evaluate("'axe' in window"):
        page.evaluate((Path(AXE.origin).parent / "axe.min.js").read_text())
    found = page.evaluate("async (rules) => (await axe.run(document, rules)).violations", rules)
    # It tries inline styles of its own, which the page's policy refuses.
    here.faults[:] = [each for each in here.faults if "Applying inline style" not in each]
    return [f"axe {each['id']}: {each['nodes'][0]['html'][:120]}" for each in found]


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


@pytest.mark.parametrize("who", ["olga", "admin"])
def test_every_view_fits_a_phone_and_can_be_read(visit: Visiting, world: World, who: str) -> None:
    """In light and in dark, which differ in colours alone."""
    here = visit(who, viewport=PHONE)
    ground = "getComputedStyle(document.body).backgroundColor"
    faults = {}
    for path in everywhere(here, world, who):
        page = here.go(path)
        expect(page.locator("main h1")).to_be_visible()
        here.settled()
        found = page.evaluate(FAULTS) + violations(here)
        if here.too_wide() > 0:
            found.append(f"{here.too_wide()} pixels too wide")
        if page.locator("main h1").inner_text() == "height and weight":
            here.picture("phone")
        light = page.evaluate(ground)
        page.emulate_media(color_scheme="dark")
        here.settled()
        assert page.evaluate(ground) != light
        found += [f"dark: {each}" for each in page.evaluate(FAULTS) + violations(here, COLOURS)]
        page.emulate_media(color_scheme="light")
        if found:
            faults[path] = found
    assert faults == {}


def test_the_door_can_be_read_too(visit: Visiting) -> None:
    here = visit(None, viewport=PHONE)
    here.page.goto(here.url)
    expect(here.page.get_by_label("Your token")).to_be_visible()
    assert here.page.evaluate(FAULTS) + violations(here) == []
    assert here.too_wide() == 0


def test_axe_finds_a_planted_fault(visit: Visiting) -> None:
    pytest.importorskip("axe_playwright_python")
    here = visit(None)
    here.page.goto(here.url)
    expect(here.page.get_by_label("Your token")).to_be_visible()
    here.page.evaluate("document.querySelector('main').append(document.createElement('select'))")
    assert any("select-name" in each for each in violations(here))


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
    # Another tab of the same browser is asked for its token first.
    expect(page.get_by_label("Your token")).to_be_visible()
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
    expect(page.get_by_label("Search")).to_be_focused()
    keyboard.type("height")
    expect(page.locator(".card-function")).to_have_count(2)
    keyboard.press("Tab")
    link = page.locator(":focus")
    assert link.get_attribute("href", timeout=5000).startswith("#/functions/fn_")  # type: ignore[union-attr]
    name = link.inner_text()
    keyboard.press("Enter")
    expect(page.get_by_role("heading", name=name, level=1)).to_be_focused()
    here.drawn()
    for _ in range(8):
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
