"""The page's modules that compute, each with numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from scipy.stats import norm

from hushsum.operations.models import model_names
from hushsum.privacy import Promise, in_plain_words
from tests.browser.populated_service import World
from tests.browser.visitor import Visit, Visiting

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def call(browser: Browser, world: World) -> Iterator[Call]:
    """Call a function of a module of the page; one tab for all, since modules that compute keep nothing."""
    here = Visit(browser, world.url)
    page = here.page
    page.goto(here.url)

    def function(module: str, name: str, *arguments: Any) -> Any:
        return page.evaluate(
            "async ([module, name, given]) => (await import(`/assets/app/${module}.js`))[name](...given)",
            [module, name, list(arguments)],
        )

    yield function
    here.end()


def test_ticks_are_nice_numbers(call: Call) -> None:
    assert call("explorer/drawing", "ticks", [0, 1], 5) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert call("explorer/drawing", "ticks", [120, 220], 6) == [120, 140, 160, 180, 200, 220]
    assert call("explorer/drawing", "ticks", [-0.00031, 0.0021], 4) == [0, 0.001, 0.002]
    assert call("explorer/drawing", "ticks", [-3, 7], 4) == [0, 5]
    assert call("explorer/drawing", "tickTexts", [-0.5, 0, 0.5]) == ["−0.5", "0.0", "0.5"]
    assert call("explorer/drawing", "tickTexts", [0, 20000]) == ["0", "20,000"]
    assert call("explorer/drawing", "extent", [3, None, -1]) == [-1, 3]
    assert call("explorer/drawing", "extent", [2, 2]) == [1, 3]
    assert call("explorer/drawing", "extent", []) == [0, 1]


def test_values_have_the_places_that_their_errors_justify(call: Call) -> None:
    assert call("explorer/format", "withError", 0.04321, 0.0021) == {"value": "0.0432", "error": "0.0021"}
    assert call("explorer/format", "withError", 1234.567, 21.3) == {"value": "1235", "error": "21"}
    assert call("explorer/format", "withError", -1.5, None) == {"value": "−1.5", "error": "unknown"}
    assert call("explorer/format", "short", 1e-6) == "10⁻⁶"
    assert call("explorer/format", "short", 0.00123456) == "0.00123"
    assert call("explorer/format", "short", 1234567) == "1,234,567"
    assert call("explorer/format", "short", None) == "–"


def test_promises_and_columns_in_words(call: Call) -> None:
    assert call("explorer/format", "promise", {"epsilon": "1/2", "delta": "0", "rho": "0"}) == "ε 0.5"
    assert call("explorer/format", "promise", {"epsilon": 1, "delta": 1e-6, "rho": None}) == "ε 1, δ 10⁻⁶"
    assert call("explorer/format", "promise", {"epsilon": "0", "delta": "0", "rho": "1/8"}) == "ρ 0.125"
    assert call("explorer/format", "columnLabel", "height_cm") == "height (cm)"
    assert call("explorer/format", "columnLabel", "income [EUR]") == "income (EUR)"
    assert call("explorer/format", "columnLabel", "hours_per_week") == "hours per week"
    assert call("explorer/format", "columnValue", "height_cm", 164.2) == "height 164 cm"


def test_every_kind_of_model_has_a_title(call: Call) -> None:
    commands = model_names()
    assert len(commands) > 10
    titles = [call("explorer/format", "modelTitle", name) for name in commands]
    assert len(set(titles)) == len(titles)
    for name, title in zip(commands, titles, strict=True):
        assert title != name.replace("-", " "), "a title of its own, not the name on the command line"


def test_claims_are_bounds_and_never_rounded_down(call: Call) -> None:
    assert call("explorer/claims", "times", 1.3498588) == "1.35 times"
    assert call("explorer/claims", "times", 1.35000001) == "1.36 times"
    assert call("explorer/claims", "inHundred", 0.5744) == "58"
    assert call("explorer/claims", "inHundred", 0.999) == "99.9"
    assert (
        call("explorer/claims", "inShort", {"epsilon": 0.3, "delta": 0, "rho": None})
        == "at most 1.35 times as likely"
    )
    even = call("explorer/claims", "bestGuess", {"epsilon": 1.0, "delta": 0.0, "rho": None})
    assert even == pytest.approx(np.exp(1) / (1 + np.exp(1)))
    with_delta = call("explorer/claims", "bestGuess", {"epsilon": 1.0, "delta": 0.01, "rho": None})
    assert with_delta == pytest.approx((np.exp(1) + 0.01) / (1 + np.exp(1)))
    # Of the Gaussian mechanism with this rho the best guess is known exactly; the bound lies above it.
    for rho in (0.01, 0.5, 3.0):
        exactly = norm.cdf(np.sqrt(2 * rho) / 2)
        assert exactly <= call("explorer/claims", "bestGuess", {"epsilon": None, "delta": 0, "rho": rho}) <= 1


def test_the_page_says_what_python_says(call: Call) -> None:
    for epsilon, delta, rho in ((0.3, 0.0, None), (1.0, 1e-6, None), (4.0, 0.0, None), (None, 0.0, 0.25)):
        said = in_plain_words(Promise.of(epsilon=epsilon, delta=delta or None, rho=rho))
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho}
        guess = call("explorer/claims", "inHundred", call("explorer/claims", "bestGuess", numbers))
        assert f"right at most {guess} times in 100" in said
        if epsilon is not None:
            assert call("explorer/claims", "inShort", numbers) in said.replace(".50 times", ".5 times")


def test_a_quarter_is_proposed_and_counts_are_whole(call: Call) -> None:
    assert [call("release/terms_form", "firstAmount", left) for left in (1, 0.3, 2, 0.01, 0)] == [
        0.25,
        0.075,
        0.5,
        0.0025,
        0,
    ]
    assert call("explorer/explorer", "whole", 26012.3, 41.0) == "26,012"
    assert call("explorer/explorer", "whole", 26012.3, 412.0) == "26,010"
    assert call("explorer/explorer", "whole", -3.4) == "−3"


def test_differences_have_their_error(call: Call) -> None:
    def answers(value: float, error: float) -> dict[str, list[float]]:
        arms = {"lower": [value - 2 * error], "upper": [value + 2 * error]}
        return {"value": [value], "stderr": [error], **arms}

    found = call("explorer/subjects", "difference", answers(10.0, 3.0), answers(4.0, 4.0))
    assert (found["value"], found["stderr"]) == ([6.0], [5.0])
    assert (found["lower"], found["upper"]) == ([-4.0], [16.0])


HATCHED = """async ([counts, mode]) => {
  const { pictureOf } = await import("/assets/app/explorer/explorer.js");
  const names = ["a", "b"];
  const readings = [{ of: "sum", name: "records", label: "Count" }];
  const subject = { counts, classes: null, names, labels: names, readings, title: "f" };
  const other = mode === "difference" ? { title: "g" } : null;
  const state = { shown: [0, 1], ranges: [[0, 1], [0, 1]], of: "sum", layer: "value", mode, other };
  // A row that is clearly below zero, and one that is clearly above it.
  const value = [-40, -40, 50, 50];
  const [lower, upper] = [-18, 18].map((reach) => value.map((each) => each + reach));
  const shown = { value, stderr: value.map(() => 8), lower, upper };
  const { spec } = pictureOf(subject, state, { xs: [0, 1], ys: [0, 1] }, { shown, others: null });
  const box = { left: 0, right: 1, top: 0, bottom: 1 };
  const frame = { x: (v) => v, y: (v) => 1 - v, box, hatch: "hatch" };
  const hatched = spec.draw(frame).find((each) => each.getAttribute?.("fill") === "hatch");
  return hatched?.getAttribute("d").split("M").length - 1 || 0;
}"""


def test_negative_counts_are_hatched_and_negative_differences_are_not(visit: Visiting) -> None:
    """A count below zero is noise, however sure its sign is; a difference may be negative."""
    page = visit("olga").page
    assert page.evaluate(HATCHED, [True, "overlay"]) == 1
    assert page.evaluate(HATCHED, [True, "difference"]) == 0
    assert page.evaluate(HATCHED, [False, "overlay"]) == 0


def test_a_table_for_a_spreadsheet_runs_nothing(call: Call) -> None:
    written = call("explorer/controls", "csv", ["=cmd()", 'a "b", c'], [[1.5, None], [-2, "@x"]])
    assert written == '\'=cmd(),"a ""b"", c"\r\n1.5,\r\n-2,\'@x\r\n'


def test_axes_of_one_unit_have_one_scale(call: Call) -> None:
    def alike(names: list[str], *ranges: list[float]) -> Any:
        return call("explorer/explorer", "alike", {"names": names}, {"shown": [0, 1], "ranges": ranges})

    assert alike(["a", "b"], [0, 90], [0, 90])
    assert not alike(["a", "b"], [0, 90], [0, 80])
    assert alike(["arm_cm", "leg (cm)"], [0, 90], [40, 120])
    assert not alike(["arm_cm", "weight_kg"], [0, 90], [40, 120])
    assert not alike(["arm_cm", "way_cm"], [0, 90], [0, 9000])
    room = {"left": 50, "right": 650, "top": 10, "bottom": 310}
    assert call("explorer/drawing", "fitted", room, [0, 1], [5, 6]) == {
        "left": 200,
        "right": 500,
        "top": 10,
        "bottom": 310,
    }
    assert call("explorer/drawing", "fitted", room, [0, 4], [0, 1]) == {
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
    assert call("release/file_columns", "headerOf", 'a;"b; c";d, e\n1;2;3') == ["a", "b; c", "d, e"]
    assert call("release/file_columns", "headerOf", "a\tb, c\td\n1\t2\t3") == ["a", "b, c", "d"]
    assert call("release/file_columns", "headerOf", 'a|"b|c"|d, e\n1|2|3') == ["a", "b|c", "d, e"]
    assert call("release/file_columns", "headerOf", "31,17\n4,5") is None
    assert call("release/file_columns", "headerOf", "a,,b\n") is None
    assert call("release/file_columns", "headerOf", "PAR1\x00\x01") is None
    assert call("release/file_columns", "isText", "größe,alter\r\n1,2\n")
    assert not call("release/file_columns", "isText", "gr\ufffd\ufffde,alter\n1,2\n")
    assert not call("release/file_columns", "isText", "a,b\n\x00\x01")
    assert call("release/file_columns", "formatOf", "Pay.CSV.gz") == "csv.gz"
    assert call("release/file_columns", "formatOf", "pay.xlsx") == "xlsx"
    assert call("release/file_columns", "formatOf", "pay.xls") is None


def test_the_ramp_grows_lighter_all_the_way(call: Call) -> None:
    lightness = []
    for step in range(21):
        red, green, blue = (
            (part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4)
            for part in call("explorer/drawing", "ramp", step / 20)
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
