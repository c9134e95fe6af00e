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
from hushsum.plotting import web_page, write_page

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
        expect(found.page.get_by_label("One point")).to_contain_text("95 %")
        return found

    yield open_page
    for each in contexts:
        each.close()


@pytest.mark.parametrize("name", ["curve", "map", "slices"])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_usable_without_a_network(opened: Any, name: str, dark: bool) -> None:
    here = opened(name, dark=dark, width=375 if dark else 1000)
    expect(here.page.locator("h1")).to_have_text(f"A <{name}>")
    expect(here.page.locator("blockquote.claim")).to_contain_text("e^1 times as likely")
    assert here.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert here.page.evaluate(_ACCESSIBLE) == []
    assert here.faults == []


def test_answers_are_those_of_python(opened: Any, pages: Path) -> None:
    here = opened("map")
    function = hs.load(pages / "map.hush")
    point = here.page.get_by_label("One point")
    for name, value in (("age", "4"), ("height", "6")):
        point.get_by_label(name, exact=True).fill(value)
        here.page.keyboard.press("Enter")
    for reading, of in (("Count", "sum"), ("Share", "mean")):
        here.page.get_by_text(reading, exact=True).click()
        (answer,) = function.query([[4.0, 6.0]], of=of)
        number = f"about {answer['value']:,.0f}" if of == "sum" else f"{answer['value']:.4f}"
        expect(point.locator(".big-number")).to_contain_text(number)
        ends = [float(each.replace(",", "")) for each in _ends(point.inner_text())]
        assert ends == pytest.approx([answer["lower"], answer["upper"]], rel=0.05)
    here.page.get_by_text("Density", exact=True).click()
    share = function.query([[4.0, 6.0]]).value[0] / (2.0 * np.pi)
    expect(point).to_contain_text("probability density")
    expect(point.locator(".big-number")).to_contain_text(f"{share:.4f}"[:5])
    assert here.faults == []


def _ends(text: str) -> tuple[str, str]:
    found = re.search(r"95 %: ([\d,.]+) to ([\d,.]+)", text)
    assert found is not None
    return found[1], found[2]


def test_intervals_have_a_level_and_hold_together_or_at_each_point(opened: Any, pages: Path) -> None:
    here = opened("curve")
    legend = here.page.locator(".legend")
    expect(legend).to_contain_text(
        "95 % interval of the noise and the approximation, for all points together"
    )
    here.page.get_by_text("Intervals", exact=True).click()
    here.page.get_by_label("for all points together").uncheck()
    expect(legend).not_to_contain_text("together")
    here.page.get_by_text("99 %", exact=True).click()
    expect(legend).to_contain_text("99 % interval")
    point = here.page.get_by_label("One point")
    expect(point).to_contain_text("99 %: ")
    (answer,) = hs.load(pages / "curve.hush").query([[5.0]], of="sum", level=0.99)
    found = re.search(r"99 %: ([\d,.]+) to ([\d,.]+)", point.inner_text())
    assert found is not None
    assert float(found[1].replace(",", "")) == pytest.approx(answer["lower"], abs=0.06)
    assert here.faults == []


def test_the_keyboard_moves_the_point_and_the_slider_the_slice(opened: Any) -> None:
    here = opened("slices")
    age = here.page.get_by_label("age", exact=True)
    before = age.input_value()
    here.page.get_by_role("application").focus()
    here.page.keyboard.press("Shift+ArrowRight")
    assert float(age.input_value()) == pytest.approx(float(before) + 1.0)
    slider = here.page.get_by_role("slider", name="income")
    slider.focus()
    here.page.keyboard.press("Home")
    expect(here.page.get_by_label("One point")).to_contain_text("no different from 0")
    assert here.faults == []


def test_pictures_grow_finer_while_nothing_else_happens(opened: Any) -> None:
    here = opened("map")
    expect(here.page.locator(".plot")).to_have_attribute("data-points", re.compile(r"^(?!17$)\d+$"))
    assert here.faults == []


def test_a_file_is_dropped_into_a_page_without_one(browser: Browser, pages: Path, tmp_path: Path) -> None:
    (tmp_path / "reader.html").write_text(web_page(None, title="Released functions"), encoding="utf-8")
    context = browser.new_context(offline=True)
    here = Opened(context.new_page())
    here.page.goto((tmp_path / "reader.html").as_uri())
    (tmp_path / "x.hush").write_bytes(b"no such file")
    chosen = here.page.get_by_label("Drop a .hush file here, or choose one")
    chosen.set_input_files(tmp_path / "x.hush")
    expect(here.page.get_by_role("alert")).to_contain_text("not a released function")
    chosen.set_input_files(pages / "curve.hush")
    expect(here.page.get_by_text("curve.hush: its checksum holds.")).to_be_visible()
    expect(here.page.locator(".plot .band")).to_have_count(1)
    assert here.page.evaluate(_ACCESSIBLE) == []
    assert here.faults == []
    context.close()


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
    expect(found.page.get_by_label("One point")).to_contain_text("95 %")
    assert found.page.locator("img").count() == 0
    assert found.page.title() == HOSTILE[0]
    # e/(1+e) is 73.106 %: a bound is rounded up.
    expect(found.page.get_by_label("Privacy")).to_contain_text("at most 74 times in 100")
    with found.page.expect_download() as download:
        found.page.get_by_role("button", name="CSV").click()
    saved = tmp_path / "saved.csv"
    download.value.save_as(saved)
    with saved.open(newline="") as stream:
        head = next(csv.reader(stream))
    assert head == [HOSTILE[0], f"'{HOSTILE[1]}", "value", "stderr", "lower", "upper"]
    assert found.faults == []
    context.close()
