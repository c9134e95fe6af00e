"""The page of a released function, opened from a file without any network."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import Dialog, expect

import hushsum as hs
from hushsum.jobs.function_page import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_ACCESSIBLE = Path(__file__).with_name("accessible.js").read_text(encoding="utf-8")
SPACE = np.random.default_rng(3).normal(5.0, 1.5, size=(3000, 3))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, dim in (("curve", 1), ("map", 2), ("slices", 3)):
        kernel = hs.GaussianKernel(dim=dim, bandwidth=1.0)
        tally = hs.grid(kernel, bounds=(0, 10), columns=["age", "height", "income"][:dim])
        tally.add(SPACE[:, :dim]).release(epsilon=1.0).save(folder / f"{name}.hush")
        write_page(str(folder / f"{name}.hush"), str(folder / f"{name}.html"), title=f"A <{name}>")
    return folder


class Opened:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda request: self.faults.append(request.url) if not request.url.startswith("file:") else None,
        )


@pytest.fixture
def opened(browser: Browser, pages: Path) -> Iterator[Any]:
    contexts = []

    def open_page(name: str, *, dark: bool = False, width: int = 1000) -> Opened:
        context = browser.new_context(
            offline=True, color_scheme="dark" if dark else "light", viewport={"width": width, "height": 800}
        )
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.goto((pages / f"{name}.html").as_uri())
        expect(found.page.locator("output.answer")).to_contain_text("interval")
        return found

    yield open_page
    for each in contexts:
        each.close()


@pytest.mark.parametrize("name", ["curve", "map", "slices"])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_usable_without_a_network(opened: Any, name: str, dark: bool) -> None:
    here = opened(name, dark=dark, width=375 if dark else 1000)
    expect(here.page.locator("h1")).to_have_text(f"A <{name}>")
    expect(here.page.locator("p.claim")).to_contain_text("e^1 times as likely")
    assert here.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert here.page.evaluate(_ACCESSIBLE) == []
    assert here.faults == []


def test_answers_are_those_of_python(opened: Any, pages: Path) -> None:
    here = opened("map")
    here.page.get_by_label("age", exact=True).fill("4")
    here.page.get_by_label("height", exact=True).fill("6")
    answer = hs.load(pages / "map.hush").query([[4.0, 6.0]], of="sum")
    expect(here.page.locator("output.answer strong")).to_have_text(_shown(float(answer.value[0])))
    text = here.page.locator("output.answer").inner_text()
    found = re.search(r"interval ([\d,.]+) to ([\d,.]+)", text)
    assert found is not None
    assert list(found.groups()) == [
        _shown(float(answer.lower[0])),
        _shown(float(answer.upper[0])),
    ]


def _shown(value: float) -> str:
    """Four significant digits, as the page shows them."""
    return f"{float(f'{value:.4g}'):,.10g}"


def test_the_keyboard_moves_the_point_and_the_slider_the_slice(opened: Any) -> None:
    here = opened("slices")
    before = here.page.get_by_label("age", exact=True).input_value()
    here.page.locator("canvas").focus()
    here.page.keyboard.press("Shift+ArrowRight")
    assert float(here.page.get_by_label("age", exact=True).input_value()) == pytest.approx(
        float(before) + 1.0
    )
    slider = here.page.locator("input[type=range]")
    slider.focus()
    here.page.keyboard.press("Home")
    expect(here.page.locator("output.answer")).to_contain_text("distinguished from zero")
    assert here.faults == []


HOSTILE = ('</script><img src=x onerror="alert(1)">', '=HYPERLINK("http://evil.example")')


def test_hostile_names_are_text_in_the_page_and_no_formula_in_its_table(
    browser: Browser, tmp_path: Path
) -> None:
    source, page_path = tmp_path / "hostile.hush", tmp_path / "hostile.html"
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=1.0), bounds=(0, 10), columns=list(HOSTILE))
    tally.add(SPACE[:, :2]).release(epsilon=1.0).save(source)
    write_page(str(source), str(page_path), title=HOSTILE[0])
    context = browser.new_context(offline=True)
    found = Opened(context.new_page())

    def asked(dialog: Dialog) -> None:
        found.faults.append(dialog.message)
        dialog.dismiss()

    found.page.on("dialog", asked)
    found.page.goto(page_path.as_uri())
    expect(found.page.locator("output.answer")).to_contain_text("interval")
    assert found.page.locator("img").count() == 0
    assert found.page.title() == HOSTILE[0]
    # e/(1+e) is 73.106 %: a bound is rounded up.
    expect(found.page.get_by_label("Privacy claim")).to_contain_text("at most 73.2 % sure")
    with found.page.expect_download() as download:
        found.page.get_by_role("button", name="Save numbers (CSV)").click()
    saved = tmp_path / "saved.csv"
    download.value.save_as(saved)
    with saved.open(newline="") as stream:
        head = next(csv.reader(stream))
    assert head == [HOSTILE[0], f"'{HOSTILE[1]}", "value", "lower", "upper"]
    assert found.faults == []
    context.close()
