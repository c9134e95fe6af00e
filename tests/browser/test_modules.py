"""The page's modules that compute, each with numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.visits import Visiting

Call = Callable[..., Any]


@pytest.fixture
def call(visit: Visiting) -> Call:
    here = visit(None)
    page: Page = here.page
    page.goto(here.url)

    def function(module: str, name: str, *arguments: Any) -> Any:
        return page.evaluate(
            "async ([module, name, given]) => (await import(`/assets/app/${module}.js`))[name](...given)",
            [module, name, list(arguments)],
        )

    return function


def test_ticks_are_nice_numbers(call: Call) -> None:
    assert call("charts/scale", "ticks", [0, 1], 5) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert call("charts/scale", "ticks", [120, 220], 6) == [120, 140, 160, 180, 200, 220]
    assert call("charts/scale", "ticks", [-0.00031, 0.0021], 4) == [0, 0.001, 0.002]
    assert call("charts/scale", "ticks", [-3, 7], 4) == [0, 5]
    assert call("charts/scale", "tickTexts", [-0.5, 0, 0.5]) == ["−0.5", "0.0", "0.5"]
    assert call("charts/scale", "tickTexts", [0, 20000]) == ["0", "20,000"]
    assert call("charts/scale", "extent", [3, None, -1]) == [-1, 3]
    assert call("charts/scale", "extent", [2, 2]) == [1, 3]
    assert call("charts/scale", "extent", []) == [0, 1]


def test_values_have_the_places_that_their_errors_justify(call: Call) -> None:
    assert call("format", "withError", 0.04321, 0.0021) == {"value": "0.0432", "error": "0.0021"}
    assert call("format", "withError", 1234.567, 21.3) == {"value": "1235", "error": "21"}
    assert call("format", "withError", -1.5, None) == {"value": "−1.5", "error": "unknown"}
    assert call("format", "short", 1e-6) == "10⁻⁶"
    assert call("format", "short", 0.00123456) == "0.00123"
    assert call("format", "short", 1234567) == "1,234,567"
    assert call("format", "short", None) == "–"


def test_promises_and_columns_in_words(call: Call) -> None:
    assert call("format", "promise", {"epsilon": "1/2", "delta": "0", "rho": "0"}) == "ε 0.5"
    assert call("format", "promise", {"epsilon": 1, "delta": 1e-6, "rho": None}) == "ε 1, δ 10⁻⁶"
    assert call("format", "promise", {"epsilon": "0", "delta": "0", "rho": "1/8"}) == "ρ 0.125"
    assert call("format", "columnLabel", "height_cm") == "height (cm)"
    assert call("format", "columnLabel", "income [EUR]") == "income (EUR)"
    assert call("format", "columnLabel", "hours_per_week") == "hours per week"
    assert call("format", "columnValue", "height_cm", 164.2) == "height 164 cm"


def test_axes_of_one_unit_have_one_scale(call: Call) -> None:
    def alike(names: list[str], *ranges: list[float]) -> Any:
        return call("explorer/picture", "alike", {"names": names}, {"shown": [0, 1], "ranges": ranges})

    assert alike(["a", "b"], [0, 90], [0, 90])
    assert not alike(["a", "b"], [0, 90], [0, 80])
    assert alike(["arm_cm", "leg (cm)"], [0, 90], [40, 120])
    assert not alike(["arm_cm", "weight_kg"], [0, 90], [40, 120])
    assert not alike(["arm_cm", "way_cm"], [0, 90], [0, 9000])
    room = {"left": 50, "right": 650, "top": 10, "bottom": 310}
    assert call("charts/plot", "fitted", room, [0, 1], [5, 6]) == {
        "left": 200,
        "right": 500,
        "top": 10,
        "bottom": 310,
    }
    assert call("charts/plot", "fitted", room, [0, 4], [0, 1]) == {
        "left": 50,
        "right": 650,
        "top": 10,
        "bottom": 160,
    }


def test_headers_are_read_and_records_are_not_taken_for_them(call: Call) -> None:
    assert call("release/file_columns", "headerOf", '\ufeffa,"b, c","d ""e"""\r\n1,2,3') == [
        "a",
        "b, c",
        'd "e"',
    ]
    assert call("release/file_columns", "headerOf", "31,17\n4,5") is None
    assert call("release/file_columns", "headerOf", "a,,b\n") is None
    assert call("release/file_columns", "headerOf", "PAR1\x00\x01") is None
    assert call("release/file_columns", "isText", "größe,alter\r\n1,2\n")
    assert not call("release/file_columns", "isText", "gr\ufffd\ufffde,alter\n1,2\n")
    assert not call("release/file_columns", "isText", "a,b\n\x00\x01")
    assert call("release/file_columns", "formatOf", "Pay.CSV.gz") == "csv.gz"
    assert call("release/file_columns", "formatOf", "pay.xlsx") is None


def test_the_ramp_grows_lighter_all_the_way(call: Call) -> None:
    lightness = []
    for step in range(21):
        red, green, blue = (
            (part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4)
            for part in call("charts/colour", "ramp", step / 20)
        )
        lightness.append(116 * (0.2126 * red + 0.7152 * green + 0.0722 * blue) ** (1 / 3) - 16)
    steps = [after - before for before, after in pairwise(lightness)]
    assert min(steps) > 0
    assert max(steps) < 2 * (lightness[-1] - lightness[0]) / 20


def test_pauses_between_attempts_grow_and_heed_the_service(call: Call) -> None:
    problem = {"retryAfter": 0}
    assert [call("api", "pauseAfter", n, problem, 1) for n in (1, 2, 3, 4, 50)] == [
        1000,
        2000,
        4000,
        8000,
        30000,
    ]
    assert call("api", "pauseAfter", 1, problem, 0) == 500
    assert call("api", "pauseAfter", 1, {"retryAfter": 7}, 1) == 7000


def test_a_release_is_followed_through_refusals(visit: Visiting) -> None:
    """Too many streams, then a restarting service, then a broken connection: the release is paid for."""
    here = visit(None, refusals=(429, 503))
    page: Page = here.page
    page.goto(here.url)
    answers = [
        {"status": 429, "headers": {"retry-after": "0"}, "body": '{"type":"urn:x:too-often","status":429}'},
        {"status": 429, "body": "busy"},
        {"status": 503, "body": "restarting"},
        None,
        {"status": 200, "body": 'event: job\ndata: {"state":"running"}\n\n'},
        {"status": 200, "body": 'event: job\ndata: {"state":"done","result":{"function":"fn_1"}}\n\n'},
    ]

    def answer(route: Any) -> None:
        reported = answers.pop(0)
        if reported is None:
            route.abort()
        else:
            route.fulfill(**reported)

    page.route("**/jobs/job_1/events", answer)
    page.clock.install()
    page.evaluate(
        """async () => {
          const { follow } = await import("/assets/app/api.js");
          const states = [];
          follow({ id: "job_1", state: "queued" }, (job) => states.push(job.state)).then(
            (result) => { window.found = { states, result }; },
            (problem) => { window.found = { problem: String(problem) }; },
          );
        }"""
    )
    for _ in range(200):
        page.clock.run_for(1000)
        if page.evaluate("window.found !== undefined"):
            break
    assert page.evaluate("window.found") == {
        "states": ["queued", "running", "done"],
        "result": {"function": "fn_1"},
    }
    here.faults[:] = [each for each in here.faults if "ERR_FAILED" not in each]
