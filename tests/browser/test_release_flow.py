"""From a file to a public function, by hand."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from hushsum.client.dataset import RemoteDataset
from hushsum.records.dates import DateFormat
from tests.browser.populated_service import World
from tests.browser.test_accessibility import FAULTS, violations
from tests.browser.visitor import PHONE, WIDE, Visit, Visiting, number_in


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
    expect(page.get_by_role("alert")).to_contain_text("The budget is not sufficient")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_label("Name of the function")).to_have_value("age and hours")
    expect(page.get_by_role("alert")).to_have_text("Only ε 0.3 is left in the budget.")
    page.get_by_label("ε to spend").fill("0.3")
    page.get_by_role("button", name="Show the claim").click()
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
    expect(page.get_by_role("alert")).to_contain_text("The records were refused")
    assert "many" not in page.get_by_role("alert").inner_text()
    here.picture("bad-records")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_label("highest age")).to_have_value("70")


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
    page.get_by_role("button", name="Continue").click()
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
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert").filter(has_text="got dates")).to_be_visible()
    expect(day).to_be_focused()
    expect(format_of_dates).to_be_hidden()
    day.check()
    # What was typed as numbers is no date.
    expect(page.get_by_label("lowest day")).to_have_value("")
    page.get_by_label("lowest day").fill("2024-01-01")
    page.get_by_label("highest day").fill("2024-03-01")
    page.get_by_role("button", name="Continue").click()
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
