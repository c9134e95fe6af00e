"""From a file to a public function, by hand."""

from __future__ import annotations

import datetime
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Route, ViewportSize, expect

from hushsum.client import RemoteDataset
from hushsum.records import DateFormat
from tests.browser.populated_service import World
from tests.browser.test_accessibility import FAULTS, violations
from tests.browser.visitor import PHONE, WIDE, Visit, Visiting, number_in

openpyxl: Any = import_module("openpyxl")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    path = tmp_path / "shifts.csv"
    rows = np.column_stack([random.uniform(18, 65, 2000).round(), random.normal(38, 8, 2000).round(1)])
    np.savetxt(path, rows, "%g", ",", header="age,hours_per_week", comments="")
    return path


def begin(here: Visit, dataset: RemoteDataset, path: Path) -> Page:
    page = here.go(f"/datasets/{dataset.id}")
    page.get_by_role("link", name="Upload and release").click()
    page.get_by_label("A file of records").set_input_files(path)
    page.get_by_role("button", name="Upload", exact=True).click()
    return page


def columns(page: Page) -> Locator:
    return page.get_by_role("group", name="Columns", exact=True)


def declare(page: Page) -> None:
    for label, value in (
        ("lowest age", "16"),
        ("highest age", "70"),
        ("lowest hours per week", "0"),
        ("highest hours per week", "80"),
        ("Bandwidth", "4"),
        ("Name of the function", "age and hours"),
        ("ε to spend", "0.4"),
        ("Approximate number of records", "2000"),
    ):
        page.get_by_label(label).fill(value)


def test_upload_plan_release_explore(visit: Visiting, world: World, records: Path) -> None:
    here = visit("otto")
    page = here.go("/datasets")
    expect(page.get_by_role("heading", name="From records to a public function")).to_be_visible()
    expect(page.locator(".checklist li[aria-current]")).to_contain_text("Create a dataset")
    here.picture("first-steps")
    page.get_by_role("button", name="New dataset").click()
    page.get_by_label("Name", exact=True).fill("Schichten – Müller")
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.get_by_label("Name", exact=True).fill("Schichten Müller")
    page.get_by_label("Total ε").fill("0.5")
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_role("heading", name="Schichten Müller")).to_be_visible()
    page.get_by_role("link", name="Upload and release").click()
    page.get_by_label("A file of records").set_input_files(records)
    page.get_by_role("button", name="Upload", exact=True).click()

    # A quarter of what is left is proposed, and its meaning is shown.
    expect(page.get_by_label("ε to spend")).to_have_value("0.12")
    expect(page.get_by_text("For one record: at most 1.13 times as likely.")).to_be_visible()
    declare(page)
    error = page.get_by_label("Predicted error").locator(".big-number")
    expect(error).to_contain_text("records")
    first = number_in(error.inner_text())
    expect(page.get_by_role("radio", name="Grid")).to_be_checked()
    here.picture("release-choice", full=True)
    page.get_by_label("ε to spend").fill("0.1")
    expect(error).not_to_contain_text(f"{first:g} records")
    assert number_in(error.inner_text()) > 2 * first
    page.get_by_label("ε to spend").fill("0.4")
    expect(error).to_contain_text(f"{first:g} records")

    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="What this release claims")).to_be_visible()
    expect(page.locator("blockquote")).to_contain_text("no answer is more than e^0.4 times as likely")
    expect(page.get_by_text("Remaining afterwards")).to_be_visible()
    expect(page.get_by_text("at most 1.5 times as likely")).to_be_visible()
    expect(page.get_by_role("img", name="to 100, certainty: 60.")).to_be_visible()
    here.picture("release-claim")
    before = world.ask("otto", "GET", "/datasets")[0]["budget"]["spent"]["epsilon"]
    assert before == "0"
    page.get_by_role("button", name="Release, and spend ε 0.4").click()
    expect(page.get_by_role("heading", name="age and hours", level=1)).to_be_visible()
    here.drawn()

    # What is left does not suffice for the same again; and the page says so, with the way out.
    page = here.go("/datasets")
    page.get_by_role("link", name="Schichten Müller").click()
    expect(page.get_by_role("row", name="age and hours")).to_contain_text("0.1")
    assert world.ask("otto", "GET", "/datasets")[0]["budget"]["spent"]["epsilon"] == "2/5"


def test_a_budget_that_does_not_suffice(visit: Visiting, world: World, records: Path) -> None:
    here = visit("olga")
    dataset = world.olga.create_dataset("nearly spent", epsilon=0.3)
    page = begin(here, dataset, records)
    declare(page)
    refused = page.get_by_role("alert")
    expect(refused).to_have_text("Only ε 0.3 is left in the budget.")
    expect(page.get_by_label("ε to spend")).to_have_attribute("max", "0.3")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_label("ε to spend")).to_be_focused()
    expect(page.get_by_label("Predicted error").locator(".big-number")).to_contain_text("±")
    here.picture("budget-does-not-suffice", full=True)
    # Nothing was counted, so the upload is still there.
    uploads = world.ask("olga", "GET", f"/datasets/{dataset.id}/uploads")
    assert [each["state"] for each in uploads] == ["waiting"]
    assert world.ask("olga", "GET", f"/datasets/{dataset.id}/tallies") == []
    page.get_by_label("ε to spend").fill("0.3")
    expect(refused).to_be_empty()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Release, and spend ε 0.3")).to_be_visible()
    assert dataset.budget()["spent"]["epsilon"] == "0"


def test_the_predicted_error_is_in_sight_on_a_phone(visit: Visiting, world: World, records: Path) -> None:
    here = visit("olga", viewport=PHONE)
    page = begin(here, world.olga.create_dataset("on the way", epsilon=1.0), records)
    declare(page)
    seen = page.locator(".glance")
    expect(seen).to_contain_text("Predicted error ±")
    page.evaluate("scrollTo(0, 0)")
    expect(seen).to_be_in_viewport()
    expect(page.get_by_role("button", name="Continue")).to_be_in_viewport()
    assert here.too_wide() == 0
    here.picture("phone-release")


def test_somebody_else_spends_meanwhile(visit: Visiting, world: World, records: Path) -> None:
    here = visit("olga", refusals=(409,))
    dataset = world.olga.create_dataset("shared", epsilon=0.5)
    page = begin(here, dataset, records)
    declare(page)
    grid: dict[str, Any] = {"kernel": "gaussian", "bandwidth": 4.0, "method": "grid", "bounds": [[16, 70]]}
    other = dataset.tally(dataset.upload(records), columns=["age"], **grid)
    dataset.release(other, "ages", epsilon=0.2)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert").first).to_contain_text("The budget is not sufficient")
    expect(page.get_by_label("Name of the function")).to_have_value("age and hours")
    page.get_by_label("ε to spend").fill("0.3")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Release, and spend ε 0.3")).to_be_visible()


def test_an_exhausted_budget_is_shown(visit: Visiting) -> None:
    here = visit("olga")
    page = here.go("/datasets")
    card = page.get_by_role("listitem").filter(has_text="body")
    expect(card).to_contain_text("Budget spent")
    expect(card.get_by_role("img", name="ε 1 of 1 is spent, 0 remains.")).to_be_visible()
    here.picture("datasets")
    card.get_by_role("link", name="body").click()
    expect(page.get_by_text("The budget is spent.")).to_be_visible()
    page.get_by_role("link", name="Upload and release").click()
    expect(page.get_by_role("heading", name="The budget is spent")).to_be_visible()
    expect(page.get_by_label("A file of records")).to_have_count(0)


def test_a_budget_has_a_history(visit: Visiting) -> None:
    here = visit("olga")
    page = here.go("/datasets")
    page.get_by_role("link", name="heights").click()
    expect(page.locator(".gauge-part")).to_have_count(2)
    rows = page.get_by_role("region", name="Releases, oldest first").locator("tbody tr")
    assert [each.split("\t")[-2:] for each in rows.all_inner_texts()] == [["0.5", "1.5"], ["0.75", "0.75"]]
    page.get_by_text("A receipt to keep elsewhere").click()
    here.picture("budget")


def test_a_broken_connection_does_not_break_a_release(visit: Visiting, world: World, records: Path) -> None:
    here = visit("olga")
    dataset = world.olga.create_dataset("far away", epsilon=1.0)
    broken: list[str] = []

    def cut(route: Route) -> None:
        if len(broken) % 2:
            route.continue_()
        else:
            route.abort()
        broken.append(route.request.url)

    here.page.route("**/events", cut)
    page = begin(here, dataset, records)
    declare(page)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Release, and spend ε 0.4").click()
    expect(page.get_by_role("heading", name="age and hours", level=1)).to_be_visible()
    assert len(broken) >= 2
    assert dataset.budget()["spent"]["epsilon"] == "2/5"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.txt", b"hello", "must end in .csv"),
        ("empty.csv", b"", "must not be empty"),
        ("noise.csv", bytes(range(256)) * 40, "header could not be read"),
        ("twice.csv", b"age,hours, age\n1,2,3\n", "“age” is there twice"),
        ("false.parquet", b"age,hours\n1,2\n", "does not match the format"),
    ],
)
def test_a_bad_upload_is_refused(
    visit: Visiting, world: World, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    here = visit("olga", refusals=(422,))
    (tmp_path / name).write_bytes(content)
    page = begin(here, world.olga.dataset("heights"), tmp_path / name)
    expect(page.get_by_role("alert")).to_contain_text(words)
    expect(page.get_by_label("A file of records")).to_be_visible()


def test_an_interrupted_upload_is_told_and_can_be_repeated(
    visit: Visiting, world: World, records: Path
) -> None:
    here = visit("olga")
    dataset = world.olga.create_dataset("interrupted", epsilon=1.0)
    here.page.route("**/uploads?*", lambda route: route.abort(), times=1)
    page = begin(here, dataset, records)
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    assert world.ask("olga", "GET", f"/datasets/{dataset.id}/uploads") == []
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_label("lowest age")).to_be_visible()
    assert len(world.ask("olga", "GET", f"/datasets/{dataset.id}/uploads")) == 1


def test_a_header_without_names_is_told(visit: Visiting, world: World, tmp_path: Path) -> None:
    here = visit("olga")
    (tmp_path / "years.csv").write_text("2019,2020\n3,4\n")
    page = begin(here, world.olga.create_dataset("years", epsilon=1.0), tmp_path / "years.csv")
    expect(page.get_by_text("The header could not be read")).to_be_visible()
    expect(page.get_by_label("Columns", exact=True)).to_be_visible()


def test_tallies_are_told_apart(visit: Visiting, world: World, records: Path) -> None:
    here = visit("olga")
    dataset = world.olga.create_dataset("twice counted", epsilon=1.0)
    grid: dict[str, Any] = {"columns": ["age"], "kernel": "gaussian", "method": "grid", "bounds": [[16, 70]]}
    for bandwidth in (2.0, 6.0):
        dataset.tally(dataset.upload(records), bandwidth=bandwidth, **grid)
    page = here.go(f"/datasets/{dataset.id}")
    expect(page.get_by_role("row", name="gaussian, bandwidth 2")).to_contain_text("Grid")
    page.set_viewport_size(PHONE)
    for each in page.get_by_role("region", name="Confidential tallies").get_by_role("link").all():
        expect(each).to_be_visible()
        box = each.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PHONE["width"]
    here.picture("phone-dataset", full=True)
    page.set_viewport_size(WIDE)
    page = here.go(f"/datasets/{dataset.id}/release")
    here.settled()
    for bandwidth in (2, 6):
        tally = page.get_by_text(f"a tally of age: grid, gaussian, bandwidth {bandwidth}, counted")
        expect(tally.first).to_be_visible()


def test_the_predicted_error_is_that_of_the_tally(visit: Visiting, world: World, records: Path) -> None:
    here = visit("olga")
    dataset = world.olga.create_dataset("coarse and fine", epsilon=1.0)
    grid: dict[str, Any] = {
        "columns": ["age"],
        "kernel": "gaussian",
        "bandwidth": 4.0,
        "bounds": [[16, 70]],
        "method": "grid",
    }
    predicted = []
    for spacing in (1.0, 0.05):
        tally = dataset.tally(dataset.upload(records), spacing=spacing, **grid)
        page = here.go(f"/datasets/{dataset.id}/release?tally={tally}")
        page.reload()
        error = page.get_by_label("Predicted error").locator(".big-number")
        expect(error).to_contain_text("±")
        predicted.append(number_in(error.inner_text()))
        planned = dataset.plan(tally=tally, records=10_000, epsilon=[0.25])["options"]
        own = next(each["error"] for each in planned if each["best"])
        assert predicted[-1] == pytest.approx(10_000 * own, rel=0.05)
    assert predicted[1] != pytest.approx(predicted[0], rel=0.05)


def test_records_that_cannot_be_counted_are_refused(visit: Visiting, world: World, tmp_path: Path) -> None:
    here = visit("olga")
    path = tmp_path / "shifts.csv"
    path.write_text("age,hours_per_week\n31,many\n")
    page = begin(here, world.olga.create_dataset("odd shifts", epsilon=1.0), path)
    declare(page)
    expect(page.get_by_label("Predicted error").locator(".big-number")).to_contain_text("±")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Release, and spend").click()
    refused = page.get_by_role("alert").filter(has_text="The records were refused")
    expect(refused).to_be_focused()
    assert "many" not in refused.inner_text()
    # On the form as it was filled in, and at its step.
    expect(page.get_by_label("highest age")).to_have_value("70")
    expect(page.locator(".steps li[aria-current]")).to_have_text("Choice")
    here.picture("bad-records")


def test_records_with_gaps_are_left_out(visit: Visiting, world: World, tmp_path: Path, records: Path) -> None:
    here = visit("olga")
    path = tmp_path / "shifts.csv"
    path.write_text(records.read_text() + "31,\n,40\n")
    dataset = world.olga.create_dataset("gaps", epsilon=1.0, relation="replace")
    page = begin(here, dataset, path)
    declare(page)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Release, and spend ε 0.4").click()
    refused = page.locator("p.wrong").filter(has_text="missing values")
    expect(refused).to_contain_text("drop_missing")
    box = page.get_by_label("Leave out records with missing values")
    expect(box).to_be_focused()
    box.check()
    expect(refused).to_have_count(0)
    page.get_by_role("button", name="Continue").click()
    # Their number is not public, so the claim is for records that are added or removed: two steps of replace.
    page.get_by_role("button", name="Release, and spend ε 0.8").click()
    expect(page.get_by_role("heading", name="age and hours", level=1)).to_be_visible()
    assert dataset.budget()["spent"]["epsilon"] == "4/5"


def test_warnings_about_the_records_come_before_the_spending(
    visit: Visiting, world: World, records: Path
) -> None:
    here = visit("olga")
    dataset = world.olga.create_dataset("read off", epsilon=1.0)
    page = begin(here, dataset, records)
    declare(page)
    hours = np.loadtxt(records, delimiter=",", skiprows=1)[:, 1]
    page.get_by_label("lowest hours per week").fill(f"{hours.min():g}")
    page.get_by_label("highest hours per week").fill(f"{hours.max():g}")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Release, and spend ε 0.4").click()
    expect(page.locator(".note-warn")).to_contain_text("bounds")
    again = page.get_by_role("button", name="Release all the same, and spend ε 0.4")
    expect(again).to_be_focused()
    assert dataset.budget()["spent"]["epsilon"] == "0"
    assert [each["state"] for each in dataset.uploads()] == ["waiting"]
    assert page.evaluate(FAULTS) + violations(here) == []
    here.picture("release-warnings", full=True)
    again.click()
    expect(page.get_by_role("heading", name="age and hours", level=1)).to_be_visible()
    assert dataset.budget()["spent"]["epsilon"] == "2/5"


def test_persons_of_a_workbook_are_released(visit: Visiting, world: World, tmp_path: Path) -> None:
    here = visit("olga")
    path = tmp_path / "people.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["nothing"])
    sheet = book.create_sheet("visits")
    sheet.append(["person", "age"])
    for at in range(600):
        sheet.append([f"p{at % 150}", 20 + at % 40])
    book.save(path)
    dataset = world.olga.create_dataset("visitors", epsilon=1.0, unit="person")
    page = begin(here, dataset, path)
    page.get_by_label("Columns", exact=True).fill("age")
    page.keyboard.press("Tab")
    for label, value in (
        ("lowest age", "0"),
        ("highest age", "90"),
        ("Bandwidth", "6"),
        ("Column with the person's id", "person"),
        ("Most records per person", "4"),
        ("Name of the function", "ages of visitors"),
        ("Approximate number of records", "600"),
    ):
        page.get_by_label(label).fill(value)
    page.get_by_text("How the file is written").click()
    page.get_by_label("Sheet").fill("visits")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("each person, up to 4 records").first).to_be_attached()
    page.get_by_role("button", name="Release, and spend").click()
    expect(page.get_by_role("heading", name="ages of visitors", level=1)).to_be_visible()


def test_a_dataset_of_persons_says_that_models_do_not_take_them(
    visit: Visiting, world: World, records: Path
) -> None:
    here = visit("olga")
    page = begin(here, world.olga.create_dataset("persons alone", epsilon=1.0, unit="person"), records)
    page.get_by_label("Release", exact=True).select_option("density")
    panel = page.get_by_label("Predicted error")
    expect(panel).to_contain_text("Models protect records so far, and this dataset protects persons.")
    capped = world.olga.create_dataset("persons with few records", epsilon=1.0, unit="person", max_per_unit=3)
    page = begin(here, capped, records)
    page.get_by_label("Release", exact=True).select_option("density")
    expect(page.get_by_text("for persons with up to 3 records, this one costs 3 times its ε")).to_be_visible()


def test_uploads_that_were_not_counted_have_a_name_and_an_end(
    visit: Visiting, world: World, records: Path
) -> None:
    here = visit("olga")
    dataset = world.olga.create_dataset("forgotten", epsilon=1.0)
    page = begin(here, dataset, records)
    expect(page.get_by_label("Similarity")).to_be_visible()
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("listitem").filter(has_text="shifts.csv")).to_contain_text("unless it is counted")
    page = here.go(f"/datasets/{dataset.id}")
    row = page.get_by_role("row", name="shifts.csv")
    expect(row).to_be_visible()
    expect(page.get_by_role("columnheader", name="Kept until")).to_be_visible()


FITS = """() => [...document.querySelectorAll("select")].flatMap((each) => {
  if (!each.offsetParent) return [];
  const style = getComputedStyle(each);
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.font = style.font;
  const room = each.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16;
  return [...each.options].filter((one) => canvas.measureText(one.textContent).width > room)
    .map((one) => one.textContent);
})"""


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_forms_are_read_whole_and_stand_in_line(
    visit: Visiting, world: World, records: Path, viewport: ViewportSize
) -> None:
    """No text of a list is cut, controls of one row are level, the hatched part of the budget is named."""
    here = visit("olga", viewport=viewport)
    name = f"forms {viewport['width']}"
    dataset = world.olga.create_dataset(name, epsilon=1.0, delta=1e-5, unit="person", max_per_unit=2)
    page = begin(here, dataset, records)
    expect(page.get_by_text("this release, ε 0.25")).to_be_visible()
    for kind in ("kernel-sums", "classifier", "density", "gaussian-process"):
        page.get_by_label("Release", exact=True).select_option(kind)
        assert page.evaluate(FITS) == [], kind
    page = here.go(f"/datasets/{dataset.id}/stream")
    page.get_by_label("A file like those of the steps").set_input_files(records)
    # Its columns are chosen, and nothing is sent.
    expect(columns(page).get_by_label("age", exact=True)).to_be_attached()
    columns(page).get_by_label("hours per week", exact=True).check()
    page.get_by_label("Column with the person's id").select_option("age")
    assert len(dataset.uploads()) == 1
    assert page.evaluate(FITS) == []
    most = page.get_by_label("Most records per person, over all steps").bounding_box()
    who = page.get_by_label("Column with the person's id").bounding_box()
    assert most is not None
    assert who is not None
    assert viewport == PHONE or abs(most["y"] - who["y"]) < 1
    page = here.go("/datasets?new")
    page.get_by_role("button", name="Create the dataset").wait_for()
    assert page.evaluate(FITS) == []


def test_a_missing_answer_is_told_below_the_hint(visit: Visiting, world: World, records: Path) -> None:
    """The browser's own bubble would cover the help of the field."""
    here = visit("olga")
    page = begin(here, world.olga.create_dataset("bubbles", epsilon=1.0), records)
    page.get_by_role("button", name="Continue").click()
    bandwidth = page.get_by_label("Bandwidth")
    expect(bandwidth).to_be_focused()
    told = page.locator(".control", has=bandwidth).get_by_role("alert")
    expect(told).to_be_visible()
    hint = page.locator(".control", has=bandwidth).locator(".hint")
    above, below = hint.bounding_box(), told.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    bandwidth.fill("3")
    expect(told).to_have_count(0)


def test_actions_are_not_indented_on_a_phone(visit: Visiting, world: World, records: Path) -> None:
    here = visit("olga", viewport=PHONE)
    dataset = world.olga.create_dataset("on a phone", epsilon=1.0)
    dataset.upload(records)
    page = here.go(f"/datasets/{dataset.id}")
    row = page.get_by_role("row", name="shifts.csv")
    left = """node => { const range = document.createRange(); range.selectNodeContents(node);
      return range.getBoundingClientRect().left; }"""
    name = row.get_by_role("rowheader").evaluate(left)
    assert row.get_by_role("button", name="Delete").evaluate(left) == pytest.approx(name, abs=0.6)


def test_decimal_commas_and_another_encoding_are_declared(
    visit: Visiting, world: World, tmp_path: Path, records: Path
) -> None:
    here = visit("olga")
    path = tmp_path / "schichten.csv"
    text = records.read_text().replace(",", ";").replace(".", ",").replace("hours_per_week", "größe")
    path.write_bytes(text.encode("windows-1252"))
    dataset = world.olga.create_dataset("Schichten", epsilon=1.0)
    page = begin(here, dataset, path)
    expect(page.get_by_role("alert")).to_contain_text("choose the encoding of the text")
    page.get_by_label("Encoding of a CSV file").select_option("windows-1252")
    page.get_by_role("button", name="Upload", exact=True).click()
    for name, high in (("age", "70"), ("größe", "80")):
        page.get_by_label(f"lowest {name}").fill("0")
        page.get_by_label(f"highest {name}").fill(high)
    for label, value in (
        ("Bandwidth", "4"),
        ("Name of the function", "Alter und Stunden"),
        ("ε to spend", "0.4"),
        ("Approximate number of records", "2000"),
    ):
        page.get_by_label(label).fill(value)
    sign = page.get_by_label("Decimal sign")
    expect(sign).to_be_hidden()
    spend = page.get_by_role("button", name=re.compile("Release, and spend"))
    page.get_by_role("button", name="Continue").click()
    spend.click()
    expect(page.get_by_text("got decimal commas")).to_be_visible()
    expect(sign).to_be_focused()
    sign.select_option(",")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name=re.compile("Release, and spend")).click()
    expect(page.get_by_role("heading", name="Alter und Stunden")).to_be_visible()
    assert world.olga.function("Alter und Stunden").columns == ("age", "größe")


def test_columns_of_dates_are_declared(visit: Visiting, world: World, tmp_path: Path) -> None:
    """Bounds of them are typed as dates, and become the numbers that the library makes of them."""
    here = visit("olga")
    days = np.random.default_rng(3).integers(0, 60, 1500)
    path = tmp_path / "visits.csv"
    dates = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(day)) for day in days]
    path.write_text("day,stay\n" + "".join(f"{each:%d.%m.%Y},2\n" for each in dates))
    dataset = world.olga.create_dataset("dated visits", epsilon=2.0)
    page = begin(here, dataset, path)
    columns(page).get_by_label("stay").uncheck()
    for label, value in (
        ("lowest day", "0"),
        ("highest day", "60"),
        ("Bandwidth", "4"),
        ("Name of the function", "visits"),
        ("ε to spend", "1"),
        ("Approximate number of records", "1500"),
    ):
        page.get_by_label(label).fill(value)
    format_of_dates = page.get_by_label("Date format")
    day = page.get_by_role("group", name="Columns of dates").get_by_label("day")
    expect(day).to_be_hidden()
    spend = page.get_by_role("button", name=re.compile("Release, and spend"))
    page.get_by_role("button", name="Continue").click()
    spend.click()
    expect(page.get_by_role("alert").filter(has_text="got dates")).to_be_visible()
    expect(day).to_be_focused()
    expect(format_of_dates).to_be_hidden()
    day.check()
    # What was typed as numbers is no date.
    expect(page.get_by_label("lowest day")).to_have_value("")
    page.get_by_label("lowest day").fill("2024-01-01")
    page.get_by_label("highest day").fill("2024-03-01")
    page.get_by_role("button", name="Continue").click()
    spend.click()
    expect(page.get_by_text("got dates that are written in another way")).to_be_visible()
    expect(format_of_dates).to_be_focused()
    format_of_dates.fill("%d.%m.%Y")
    page.get_by_label("Unit of dates").select_option("weeks")
    page.get_by_label("The date that is 0").fill("2023-12-25")
    page.get_by_label("Bandwidth").fill("0.5")
    assert page.evaluate(FAULTS) + violations(here) == []
    page.set_viewport_size(PHONE)
    assert here.too_wide() == 0
    page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name=re.compile("Release, and spend")).click()
    expect(page.get_by_role("heading", name="visits", level=1)).to_be_visible()
    function = world.olga.function("visits")
    weeks = DateFormat(unit="weeks", origin="2023-12-25")
    assert function.bounds is not None
    assert function.bounds.low == (weeks.number("2024-01-01", "low"),)
    assert function.bounds.high == (weeks.number("2024-03-01", "high"),)
    assert float(function.sum([[5.0]])[0]) > 50


def test_a_model_is_fitted_from_the_page(visit: Visiting, world: World, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    path = tmp_path / "loans.csv"
    low, high = random.normal(30, 8, (600, 2)), random.normal(60, 8, (600, 2))
    lines = [f"{a:.1f},{b:.1f},no" for a, b in low] + [f"{a:.1f},{b:.1f},yes" for a, b in high]
    path.write_text("\n".join(["age,income_eur,repaid", *lines, ""]))
    here = visit("olga")
    dataset = world.olga.create_dataset("loans", epsilon=8.0, delta=1e-4, relation="replace")
    page = begin(here, dataset, path)
    page.get_by_label("Release", exact=True).select_option("kernel-svc")
    page.get_by_label("Column to predict").select_option("repaid")
    page.get_by_label("Its values").fill("no, yes")
    for name in ("age", "income (€)"):
        columns(page).get_by_label(name, exact=True).check()
        page.get_by_label(f"lowest {name}").fill("0")
        page.get_by_label(f"highest {name}").fill("100")
    page.get_by_label("Bandwidth").fill("25")
    page.get_by_label("Name of the function").fill("who repays")
    page.get_by_label("ε to spend").fill("6")
    status = page.get_by_label("Predicted error").get_by_role("status")
    expect(status).not_to_contain_text(re.compile("Fill in|Enter the"))
    here.picture("release-model", full=True)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Release, and spend ε 6").click()
    expect(page.get_by_role("heading", name="who repays", level=1)).to_be_visible()
    here.drawn()
    expect(page.locator(".plot .boundary")).to_have_count(1)


def test_public_rows_and_a_bandwidth_in_parts_of_the_ranges(
    visit: Visiting, world: World, tmp_path: Path
) -> None:
    random = np.random.default_rng(3)

    def file(name: str, rows: int) -> Path:
        table = np.column_stack([random.normal(45, 9, rows), random.normal(60_000, 9_000, rows)]).round()
        np.savetxt(tmp_path / name, table, "%g", ";", header="age;pay_usd", comments="")
        return tmp_path / name

    here = visit("olga")
    dataset = world.olga.create_dataset("pay by age", epsilon=1.0)
    page = begin(here, dataset, file("pay.csv", 2000))
    expect(page.get_by_label("Scale")).to_have_value("")
    page.get_by_label("Name of the function").fill("age and pay")
    page.get_by_label("Approximate number of records").fill("2000")
    page.get_by_text("Public rows", exact=True).click()
    page.get_by_label("Or upload a file of them").set_input_files(file("survey.csv", 60))
    for label, value in (
        ("lowest age", "0"),
        ("highest age", "100"),
        ("lowest pay", "0"),
        ("highest pay", "200000"),
    ):
        page.get_by_label(label).fill(value)
    # No bandwidth is entered: the public rows decide it.
    error = page.get_by_label("Predicted error").locator(".big-number")
    expect(error).to_contain_text("±")
    page.get_by_label("Scale").select_option("bounds")
    page.get_by_label("Bandwidth").fill("0.05")
    expect(error).to_contain_text("±")
    expect(page.get_by_text("as a fraction of each column's range")).to_be_visible()
    assert page.evaluate(FAULTS) + violations(here) == []
    here.picture("release-public", of=page.locator("form .card").first)
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("blockquote")).to_contain_text("This assumes that")
    page.get_by_role("button", name="Release, and spend ε 0.25").click()
    expect(page.get_by_role("heading", name="age and pay", level=1)).to_be_visible()
    here.drawn()
    expect(page.locator(".plot image")).to_have_count(1)
    expect(page.get_by_text("0.05 of each column's range")).to_be_visible()
    (made,) = [each for each in world.ask("olga", "GET", "/functions") if each["name"] == "age and pay"]
    assert made["facts"]["kernel"]["name"] == "scaled"
    assert made["facts"]["claim"]["assumptions"]
