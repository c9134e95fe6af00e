"""A stream of a dataset on the page: steps are taken, played as a film, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.populated_service import World, table
from tests.browser.test_accessibility import FAULTS, violations
from tests.browser.visitor import PHONE, Visiting

STEPS = 3
"""Taken by the fixture; the test takes one more."""


@pytest.fixture(scope="module")
def dataset(world: World) -> str:
    """A stream of maps: first in the lower left, from the third step on also in the upper right."""
    made = world.olga.create_dataset("arrivals", epsilon=4.0, delta=1e-4)
    path = f"/datasets/{made.id}/streams"
    terms: dict[str, Any] = {
        "name": "Arrivals",
        "columns": ["east_km", "north_km"],
        "kernel": "gaussian",
        "bandwidth": 5.0,
        "method": "grid",
        "bounds": [[0, 50], [0, 50]],
        "horizon": 10,
        "epsilon": 4.0,
        "delta": 1e-5,
    }
    claim = world.ask("olga", "POST", f"{path}/claims", terms)
    made.wait(world.ask("olga", "POST", path, {**terms, "confirm": claim["confirm"]})["id"])
    (stream,) = world.ask("olga", "GET", path)
    random = np.random.default_rng(8)
    for step in range(STEPS):
        centre = 12 if step < 2 else 36
        rows = random.normal(centre, 4, (1500, 2)).round(1)
        upload = made.upload(table(["east_km", "north_km"], rows), format="csv")
        job = world.ask("olga", "POST", f"{path}/{stream['id']}/steps", {"uploads": [upload]})
        made.wait(job["id"])
    return made.id


def test_steps_are_taken_played_and_compared(
    visit: Visiting, world: World, dataset: str, tmp_path: Path
) -> None:
    here = visit("olga")
    page = here.go(f"/datasets/{dataset}")
    expect(page.get_by_text(f"{STEPS} of 10 steps; shows all steps so far.")).to_be_visible()
    assert page.evaluate(FAULTS) + violations(here) == []
    # A step without records is a step, too.
    page.get_by_role("button", name="Take the next step").click()
    expect(page.get_by_text(f"{STEPS + 1} of 10 steps")).to_be_visible()
    page.get_by_role("link", name=f"Film of {STEPS + 1} steps").click()
    expect(page.get_by_role("heading", name="Arrivals", level=1)).to_be_visible()
    here.drawn()
    queries: list[str] = []
    page.on("request", lambda sent: queries.append(sent.url) if "/query" in sent.url else None)

    where = page.locator(".film-where")
    expect(where).to_have_text(f"Step {STEPS + 1} of {STEPS + 1} (10 planned)")
    # By the keyboard alone: the slider goes from step to step, Space plays to the end.
    step = page.get_by_role("slider", name="Step")
    step.focus()
    page.keyboard.press("Home")
    expect(where).to_contain_text("Step 1 of")
    page.keyboard.press("ArrowRight")
    expect(where).to_contain_text("Step 2 of")
    page.get_by_label("Speed").select_option("8")
    step.focus()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(where).to_contain_text(f"Step {STEPS + 1} of")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert page.evaluate(FAULTS) + violations(here) == []

    # From the first step to the last, records came; from the third to the fourth, none.
    change = page.get_by_label("Show the change since")
    change.select_option("step 1")
    expect(page.locator(".ramp")).to_contain_text("difference in records near here")
    words = page.get_by_text("that hold for all of its points together")
    expect(words).to_contain_text(f"from step 1 to step {STEPS + 1}")
    grown = _share(words.inner_text())
    here.picture("film")
    change.select_option(f"step {STEPS}")
    expect(words).to_contain_text(f"from step {STEPS} to step {STEPS + 1}")
    still = _share(words.inner_text())
    assert grown > 5
    assert still <= 1
    page.get_by_text("Curve", exact=True).click()
    expect(page.locator(".plot .curve")).to_have_count(1)
    change.select_option("step 1")
    page.get_by_role("slider", name="north (km)").fill("36")
    expect(page.locator(".plot .apart")).to_have_count(1)
    page.wait_for_function("() => document.querySelector('.plot .apart').getAttribute('d') !== ''")
    assert queries == []

    page.set_viewport_size(PHONE)
    here.drawn()
    assert here.too_wide() == 0
    assert page.evaluate(FAULTS) + violations(here) == []
    here.picture("phone-film")

    # One card in the list stands for all steps.
    here.go("/functions")
    card = page.locator(".card-function").filter(has_text=f"Arrivals step {STEPS + 1}")
    card.get_by_role("link", name=f"Film of {STEPS + 1} steps").click()
    expect(page.get_by_role("heading", name="Arrivals", level=1)).to_be_visible()


def test_who_may_only_query_sees_the_film_by_the_service(visit: Visiting, world: World, dataset: str) -> None:
    steps = [each for each in world.ask("olga", "GET", "/functions") if each["dataset"] == dataset]
    steps.sort(key=lambda each: each["facts"]["stream"]["step"])
    for each in (steps[0], steps[2]):
        world.ask("olga", "PUT", f"/functions/{each['id']}/grants/anna", {"download": False})
    here = visit("anna")
    page = here.go(f"/films/{steps[0]['facts']['stream']['stream']}")
    here.drawn()
    expect(page.locator(".film-where")).to_have_text("Step 3: 2 of the 2 that you may see (10 planned)")
    page.get_by_label("Show the change since").select_option("the one before")
    expect(page.get_by_text("from step 1 to step 3")).to_be_visible()
    expect(page.get_by_text("wider than need be")).to_be_visible()
    page = here.go(f"/films/{'0' * 32}")
    expect(page.get_by_role("heading", name="No such film")).to_be_visible()


def test_a_stream_is_started_from_the_page(visit: Visiting, world: World) -> None:
    here = visit("olga", refusals=(422,))
    made = world.olga.create_dataset("visits", epsilon=2.0, delta=1e-4)
    page = here.go(f"/datasets/{made.id}")
    page.get_by_role("link", name="Start a stream").click()
    page.get_by_label("Columns", exact=True).fill("hour")
    page.get_by_label("Columns", exact=True).press("Tab")
    page.get_by_label("lowest hour").fill("0")
    page.get_by_label("highest hour").fill("24")
    page.get_by_label("Bandwidth").fill("1")
    page.get_by_label("Similarity").select_option("angular")
    page.get_by_label("Number of steps").fill("30")
    page.get_by_label("Each step shows").select_option("window")
    page.get_by_label("Name of the function").fill("Visits by hour")
    page.get_by_label("δ to spend").fill("1e-5")
    assert page.evaluate(FAULTS) + violations(here) == []
    page.get_by_role("button", name="Show the claim").click()
    # The grid does not take this kernel, and nothing was spent.
    expect(page.get_by_role("alert").filter(has_text="kernel")).to_be_visible()
    page.get_by_label("Similarity").select_option("gaussian")
    here.picture("stream-start", of=page.locator("form"))
    page.get_by_role("button", name="Show the claim").click()
    expect(page.locator("blockquote")).to_contain_text("the steps are taken at times")
    page.get_by_role("button", name="Release, and spend ε 0.5").click()
    expect(page.get_by_text("0 of 30 steps; shows the last 7 steps.")).to_be_visible()


def _share(text: str) -> int:
    return int(text.split(" % of the picture")[0].split()[-1])
