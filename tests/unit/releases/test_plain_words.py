"""Claims and errors in words that need no mathematics: pictures, descriptions, plans, the ledger's report."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest

import hushsum as hs
from hushsum.ledger import DatasetTerms, DisclosureReport
from hushsum.releases import ReleasedFunction

matplotlib.use("agg")

AGES = np.random.default_rng(0).normal(50.0, 9.0, (5000, 1))
KERNEL = hs.GaussianKernel(dim=1, bandwidth=5.0)
GUESS = (
    "at most 2.72 times as likely. A guess which of the two it is, by somebody who knows everything else, is \
right at most 74 times in 100."
)


def released(kernel: hs.GaussianKernel = KERNEL) -> ReleasedFunction:
    return hs.release(AGES, kernel=kernel, bounds=(0, 100), epsilon=1.0, columns=["age"])


def words_of(function: ReleasedFunction, of: str) -> tuple[str, str]:
    """The label of the value axis, and everything that is written outside of the axes."""
    from matplotlib import pyplot

    axes = function.plot(of=of)
    figure = axes.get_figure()
    assert figure is not None
    text = " ".join(each.get_text() for each in figure.texts).replace("\n", " ")
    pyplot.close("all")
    return axes.get_ylabel(), text


def test_a_picture_says_what_a_reader_understands() -> None:
    function = released()
    label, text = words_of(function, "sum")
    assert label == "records near here"
    assert "Records near each point" in text
    assert GUESS in text
    stderr = float(np.median(function.query(np.linspace(0, 100, 500)[:, np.newaxis], of="sum").stderr))
    assert f"Standard error ± {stderr:.2g} records" in text
    label, text = words_of(function, "mean")
    assert label == "share of records near here"
    assert f"± {stderr:.2g} records" in text
    assert "% of all" in text


def test_a_combination_is_not_called_a_number_of_records() -> None:
    function = hs.release(AGES, kernel=3.0 * KERNEL, bounds=(0, 100), epsilon=1.0)
    label, text = words_of(function, "sum")
    assert label == "sum of similarities"
    assert "records near" not in text


def test_a_description_states_the_error() -> None:
    function = released()
    about = function.describe()
    assert about.error == float(function.query([[50.0]], of="sum").stderr[0])
    assert f"± {about.error:.2g} records near a point in the middle of the bounds" in str(about)
    assert GUESS in str(about)
    unbounded = hs.race(hs.EuclideanKernel(dim=1, bandwidth=5.0), rows=50).add(AGES).release(epsilon=1.0)
    assert unbounded.describe().error is None


def test_a_plan_states_the_error_of_the_best_option_in_records() -> None:
    planned = hs.plan(kernel=KERNEL, bounds=(0, 100), epsilon=1.0, records=25_000)
    shown = f"± {planned.best.error * 25_000:.2g} records near a typical point"
    assert shown in str(planned)
    assert f"{100 * planned.best.error:.2g} % of all, for 25,000 records" in str(planned)


def report_of(ledger: hs.Ledger) -> str:
    account = ledger.account("town")
    return DisclosureReport.of("town", account, ledger.events(), ledger.receipt()).as_markdown()


def test_the_report_of_a_ledger_states_the_error_of_each_release(tmp_path: Path) -> None:
    ledger = hs.Ledger.create(str(tmp_path / "ledger.db"))
    ledger.create_dataset("town", DatasetTerms.of(epsilon=3.0))
    town = ledger.dataset("town")
    assert "A guess" not in report_of(ledger)
    tally = hs.grid(KERNEL, bounds=(0, 100)).add(AGES)
    function = tally.release(epsilon=1.0, budget=town, idempotency_key="ages")
    noise = function.query([[50.0]], of="sum").stderr[0]
    text = report_of(ledger)
    assert text.count(GUESS) == 2
    (stated,) = [line for line in text.splitlines() if line.startswith("- error: ")]
    assert float(stated.partition("± ")[2].partition(" records")[0]) == pytest.approx(noise, rel=0.1)
    hs.PrivateKMeans(bounds=(0, 100), budget=town).fit(AGES)
    assert report_of(ledger).count("- error: ") == 2
