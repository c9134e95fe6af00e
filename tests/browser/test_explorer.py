"""Functions as pictures, and one point at a time."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import Page, Request, expect

from tests.browser.populated_service import World
from tests.browser.visitor import Visiting, number_in


def readout(page: Page) -> str:
    return page.get_by_label("One point").locator(".big-number").inner_text()


def test_one_column_is_a_curve_with_a_band(visit: Visiting, world: World) -> None:
    here = visit("anna")
    page = here.open_function("heights")
    here.drawn()
    expect(page.locator(".plot .curve")).to_have_count(1)
    expect(page.locator(".plot .band")).to_have_count(1)
    expect(page.locator(".plot .axis-name").first).to_have_text("height (cm)")
    expect(page.locator("blockquote")).to_contain_text("one record is in the data or is not")
    here.picture("curve")

    page.get_by_label("height (cm)", exact=True).fill("165")
    page.keyboard.press("Enter")
    counted = world.olga.function("heights").query([[165.0]], of="sum")
    answer = page.get_by_label("One point").locator(".big-number")
    expect(answer).to_contain_text(
        f"about {counted.value[0]:.0f} records near here, ± {counted.stderr[0]:.0f}"
    )

    page.get_by_text("Share", exact=True).click()
    expect(page.locator(".plot .axis-name").last).to_have_text("share of records near here")
    here.drawn()
    local = world.olga.function("heights").query([[165.0]])
    expect(answer).to_contain_text(f"{local.value[0]:.4f}")
    assert abs(number_in(readout(page).split("±")[1]) - local.stderr[0]) < 0.1 * local.stderr[0]
    page.get_by_text("The same as a table").click()
    rows = page.get_by_role("region", name="height (cm) and the answer").locator("tbody tr")
    expect(rows).to_have_count(12)
    assert "±" in rows.first.inner_text()


def test_two_columns_are_a_heat_map_that_is_clicked(visit: Visiting, world: World) -> None:
    here = visit("anna")
    page = here.open_function("height and weight")
    here.drawn()
    expect(page.locator(".plot image")).to_have_count(1)
    expect(page.locator(".ramp")).to_contain_text("records near here")
    here.picture("map")
    page.locator(".plot svg").click(position={"x": 300, "y": 200})
    at = [float(page.get_by_label(each, exact=True).input_value()) for each in ("height (cm)", "weight (kg)")]
    assert 120 < at[0] < 220
    assert 30 < at[1] < 150
    expected = world.olga.function("height and weight").query([at], of="sum").value[0]
    page.wait_for_function("() => !document.querySelector('.plot').hasAttribute('aria-busy')")
    expect(page.get_by_label("One point").locator(".big-number")).to_contain_text("records near here")
    if "about" in readout(page):
        np.testing.assert_allclose(number_in(readout(page)), expected, atol=1.0)
    else:
        assert number_in(readout(page)) >= expected
    before = page.locator(".plot image").get_attribute("href")
    page.get_by_text("Its error", exact=True).click()
    assert page.locator(".plot image").get_attribute("href") != before
    page.get_by_text("Curve", exact=True).click()
    expect(page.locator(".plot .curve")).to_have_count(1)
    expect(page.get_by_role("slider", name="weight (kg)")).to_be_visible()


def test_three_columns_are_slices_chosen_by_sliders(visit: Visiting) -> None:
    here = visit("olga")
    page = here.open_function("colours")
    expect(page.get_by_text("declares no bounds")).to_be_visible()
    for name in ("red", "green", "blue"):
        page.get_by_label(f"lowest {name}").fill("0")
        page.get_by_label(f"highest {name}").fill("0")
    page.get_by_role("button", name="Show this range").click()
    expect(page.get_by_role("alert")).to_contain_text("must be above the lowest")
    for name in ("red", "green", "blue"):
        page.get_by_label(f"highest {name}").fill("255")
    page.get_by_role("button", name="Show this range").click()
    here.drawn()
    before = page.locator(".plot image").get_attribute("href")
    slider = page.get_by_role("slider", name="blue")
    slider.focus()
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    moved = page.get_by_label("blue, typed").input_value()
    assert float(moved) < 127
    page.wait_for_function(f"() => document.querySelector('.plot image').getAttribute('href') !== {before!r}")
    here.picture("slices")
    page.get_by_label("Upwards").select_option("2")
    expect(page.get_by_role("slider", name="green")).to_be_visible()
    expect(page.locator(".plot .axis-name").last).to_have_text("blue")


def test_a_regression_has_a_curve_with_a_band(visit: Visiting) -> None:
    here = visit("olga")
    page = here.open_function("growth curve")
    here.drawn()
    expect(page.locator(".plot .band")).to_have_count(1)
    expect(page.locator(".plot .axis-name").last).to_have_text("height (cm)")
    expect(page.get_by_label("One point").locator(".big-number")).to_contain_text("±")
    assert 140 < number_in(readout(page)) < 190
    here.picture("regression")


def test_a_classifier_has_regions_and_a_boundary(visit: Visiting) -> None:
    here = visit("olga")
    page = here.open_function("who earns more")
    here.drawn()
    expect(page.locator(".plot .boundary")).to_have_count(1)
    assert len(page.locator(".plot .boundary").get_attribute("d") or "") > 500
    expect(page.locator(".legend")).to_contain_text("yes")
    for age, hours, answer in (("25", "25", "no"), ("62", "60", "yes")):
        page.get_by_label("age", exact=True).fill(age)
        page.get_by_label("hours", exact=True).fill(hours)
        page.keyboard.press("Enter")
        expect(page.get_by_label("One point").locator(".big-number")).to_have_text(answer)
    here.picture("boundary")
    page.get_by_text("Curve", exact=True).click()
    expect(page.locator(".plot .curve")).to_have_count(2)


def test_a_model_with_counted_questions_is_requested_sparingly(visit: Visiting, world: World) -> None:
    here = visit("olga")
    requested: list[int] = []
    [model] = [each for each in world.ask("olga", "GET", "/functions") if each["name"] == "ages exactly"]

    def count(sent: Request) -> None:
        # Also not for the small picture in the list of functions.
        if sent.url.partition("?")[0].endswith(f"/{model['id']}/query"):
            requested.append(len((sent.post_data_json or {})["points"]))

    here.page.on("request", count)
    page = here.open_function("ages exactly")
    draw = page.get_by_role("button", name="Draw a plot with 41 queries")
    expect(draw).to_be_visible()
    expect(page.get_by_role("button", name="Download .hush")).to_have_count(0)
    page.get_by_label("age", exact=True).fill("40")
    page.keyboard.press("Enter")
    assert requested == []
    page.get_by_role("button", name="Query this point").click()
    expect(page.get_by_label("One point").locator(".big-number")).to_contain_text("±")
    assert requested == [1]
    draw.click()
    here.drawn()
    page.get_by_role("application").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert requested == [1, 41]
    page.keyboard.press("Enter")
    expect(page.locator(".plot .whisker")).to_have_count(1)
    assert requested == [1, 41, 1]


def test_owners_grant_and_withdraw_and_files_are_saved(visit: Visiting, world: World) -> None:
    here = visit("olga", refusals=(404,))
    page = here.open_function("heights once more")
    page.get_by_label("Analyst's name").fill("nobody")
    page.get_by_role("button", name="Grant").click()
    expect(page.get_by_role("alert")).to_contain_text("no analyst's account of this name")
    page.get_by_label("Analyst's name").fill("anna")
    page.get_by_label("may download the file").check()
    page.get_by_role("button", name="Grant").click()
    expect(page.get_by_role("row", name="anna")).to_contain_text("query and download")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download .hush").click()
    assert saved.value.suggested_filename == "heights once more.hush"
    page.get_by_role("button", name="Withdraw the grant of anna").click()
    expect(page.get_by_role("heading", name="Only you")).to_be_visible()


def test_who_may_not_download_is_not_offered_it(visit: Visiting) -> None:
    here = visit("anna")
    page = here.go("/functions")
    expect(page.locator(".thumb canvas, .thumb svg")).to_have_count(2)
    here.picture("functions")
    page = here.open_function("heights")
    expect(page.get_by_role("button", name="Download .hush")).to_have_count(0)
    expect(page.get_by_role("heading", name="Access")).to_have_count(0)
    expect(page.get_by_role("heading", name="Public links")).to_have_count(0)
    page = here.open_function("height and weight")
    expect(page.get_by_role("button", name="Download .hush")).to_be_visible()


def test_what_is_hatched_holds_for_the_whole_map(visit: Visiting, world: World) -> None:
    """Intervals of a map hold for all its points together, answered here or by the service."""
    here = visit("olga")
    page = here.open_function("height and weight")
    here.drawn()
    page.get_by_text("Never negative", exact=True).click()
    expect(page.get_by_text("The service computed the nearest values")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0].endswith("value,stderr,lower,upper")
    value, stderr, _, upper = np.array([each.split(",")[-4:] for each in lines[1:]], float).T
    # At each point alone it would be 1.96 standard errors and the approximation error.
    function = world.olga.function("height and weight")
    points = np.array([each.split(",")[:2] for each in lines[1:]], float)
    alone = function.query(points, of="sum")
    assert (upper > alone.upper + stderr).all()
    # The map is of the non-negative version.
    assert (value >= 0.0).all()
    assert (alone.value < 0.0).any()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    here.open_function("who earns more")
    here.drawn()
    levels = [float(parse_qs(urlsplit(each).query)["level"][0]) for each in asked if "/query?" in each]
    assert min(abs(level - (1 - 0.05 / 73**2)) for level in levels) < 1e-12
    assert 0.95 in levels
