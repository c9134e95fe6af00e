"""Answers that the page computes from a function's file, and when it asks the service instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from playwright.sync_api import Request, Route, expect

from tests.browser.populated_service import World
from tests.browser.visitor import Visit, Visiting, number_in

HERE = "Computed in this page from the function's file"
BOTH = """async ([response, of, points, lattice]) => {
  const { serviceSource } = await import("/assets/app/sources/service.js");
  const { post } = await import("/assets/app/api.js");
  const source = serviceSource(response);
  const local = await source.answer(of, points, { lattice });
  const remote = await post(`/functions/${response.id}/query?of=${of}`, { points });
  return { local, origin: source.origin(), remote };
}"""


class Requests:
    """The paths that a page requests, by their last part."""

    def __init__(self, here: Visit, *, signed_in: bool = True) -> None:
        if signed_in:
            # The list of functions, the first view, queries its small pictures.
            expect(here.go("/account").get_by_role("heading", level=1)).to_be_visible()
        self.queries: list[str] = []
        self.files: list[str] = []
        here.page.on("request", self._note)

    def _note(self, sent: Request) -> None:
        path = sent.url.partition("?")[0]
        if path.endswith("/query"):
            self.queries.append(path)
        elif path.endswith("/file"):
            self.files.append(path)


def functions(world: World, who: str = "olga") -> dict[str, Any]:
    return {each["name"]: each for each in world.ask(who, "GET", "/functions")}


def test_maps_curves_sliders_points_and_differences_send_no_query(visit: Visiting, world: World) -> None:
    here = visit("olga")
    sent = Requests(here)
    known = functions(world)
    page = here.go(f"/functions/{known['height and weight']['id']}")
    here.drawn()
    expect(page.get_by_text(HERE)).to_be_visible()
    page.locator(".plot svg").click(position={"x": 300, "y": 200})
    page.get_by_text("Curve", exact=True).click()
    expect(page.locator(".plot .curve")).to_have_count(1)
    before = page.locator(".plot .curve").get_attribute("d")
    page.get_by_role("slider", name="weight (kg)").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => document.querySelector('.plot .curve').getAttribute('d') !== {before!r}")
    page.get_by_text("Share", exact=True).click()
    page.get_by_label("height (cm)", exact=True).fill("171")
    page.keyboard.press("Enter")
    weight = float(page.get_by_label("weight (kg), typed").input_value())
    local = world.olga.function("height and weight").query([[171.0, weight]])
    shown = page.get_by_label("One point").locator(".big-number")
    expect(shown).to_contain_text("±")
    assert abs(number_in(shown.inner_text()) - local.value[0]) < 0.06 * local.stderr[0]
    assert (len(sent.files), sent.queries) == (1, [])

    here.go(f"/functions/{known['heights']['id']}")
    here.drawn()
    page.get_by_label("Compare with").select_option("heights once more")
    expect(page.locator(".plot .curve")).to_have_count(2)
    page.get_by_text("Difference", exact=True).click()
    expect(page.locator(".plot .curve")).to_have_count(1)
    assert (len(sent.files), sent.queries) == (3, [])
    # What was read once stays in memory.
    here.go(f"/functions/{known['height and weight']['id']}")
    here.drawn()
    assert (len(sent.files), sent.queries) == (3, [])


def test_the_page_and_the_service_answer_alike(visit: Visiting, world: World) -> None:
    page = visit("olga").page
    random = np.random.default_rng(5)
    for name, low, high in (
        ("heights", [120], [220]),
        ("height and weight", [120, 30], [220, 150]),
        ("colours", [0, 0, 0], [255, 255, 255]),
    ):
        response = functions(world)[name]
        points = random.uniform(low, high, (40, len(low))).tolist()
        # All points of a picture at once, which grids read in another way.
        steps = [np.linspace(a, b, 7).tolist() for a, b in zip(low, high, strict=True)][:2]
        fixed = points[0]
        rows = [
            [x, *([y] if len(low) > 1 else []), *fixed[2:]]
            for y in (steps[1] if len(low) > 1 else [None])
            for x in steps[0]
        ]
        lattice = {"axes": list(range(len(steps))), "steps": steps, "fixed": fixed}
        for of in ("sum", "mean"):
            for given, picture in ((points, None), (rows, lattice)):
                found = page.evaluate(BOTH, [response, of, given, picture])
                assert found["origin"].startswith(HERE), name
                for number in ("value", "stderr", "lower", "upper"):
                    local, remote = found["local"][number], found["remote"][number]
                    if name == "colours" and (of, number) == ("sum", "value"):
                        assert local == remote  # hash rows, bit for bit
                    np.testing.assert_allclose(
                        local, remote, rtol=1e-12, atol=1e-12 * max(map(abs, remote)), err_msg=f"{name} {of}"
                    )


def test_models_and_functions_without_a_download_are_answered_by_the_service(
    visit: Visiting, world: World
) -> None:
    here = visit("anna")
    sent = Requests(here)
    here.go(f"/functions/{functions(world)['heights']['id']}")
    here.drawn()
    assert sent.files == []
    assert sent.queries
    expect(here.page.get_by_text(HERE)).to_have_count(0)
    here.page.evaluate("() => import('/assets/reader.js')")


def test_a_file_that_was_changed_on_its_way_is_not_used(visit: Visiting, world: World) -> None:
    here = visit("olga")
    sent = Requests(here)
    response = functions(world)["height and weight"]

    def change(route: Route) -> None:
        answer = route.fetch()
        body = bytearray(answer.body())
        body[len(body) // 2] ^= 1
        route.fulfill(response=answer, body=bytes(body))

    here.page.route("**/file", change)
    here.go(f"/functions/{response['id']}")
    here.drawn()
    expect(here.page.get_by_text("the downloaded file is not the one that was released")).to_be_visible()
    assert sent.queries


def test_a_link_with_the_file_is_answered_in_the_page_of_whoever_has_it(
    visit: Visiting, world: World
) -> None:
    response = functions(world)["heights"]
    made = world.ask("olga", "POST", f"/functions/{response['id']}/shares", {"download": True})
    here = visit(None)
    sent = Requests(here, signed_in=False)
    here.page.goto(world.url + made["path"])
    here.drawn()
    expect(here.page.get_by_text(HERE)).to_be_visible()
    here.page.get_by_text("Share", exact=True).click()
    here.drawn()
    assert (len(sent.files), sent.queries) == (1, [])
    world.ask("olga", "DELETE", f"/shares/{made['id']}")
