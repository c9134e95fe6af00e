"""The reproduction of the service paper: its mechanisms, its measures and its report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from papers.functional_perturbation.data import Sample, gaussian, gaussian_density
from papers.functional_perturbation.mechanisms import (
    FUNCTIONAL,
    GAUSSIAN,
    LAPLACE,
    MECHANISMS,
    NONE,
    Budget,
    density,
    divergence,
    error,
    fresh,
    histogram,
    machines,
    posterior,
)
from papers.functional_perturbation.report import write_report

BUDGET = Budget(0.4, 0.001)
HUGE = Budget(400.0, 0.001)
LINE = np.linspace(-1.0, 1.0, 400)[:, None]


def test_fresh_noise_has_the_spread_of_its_composition() -> None:
    # The variance of 2·10⁴ draws is within 10 % but for chances below 10⁻⁶, also for Laplace noise.
    zeros = np.zeros(20_000)
    assert np.std(fresh(zeros, 1.0, GAUSSIAN, BUDGET)) == pytest.approx(5.56 * np.sqrt(20_000), rel=0.05)
    assert np.std(fresh(zeros, 1.0, LAPLACE, BUDGET)) == pytest.approx(np.sqrt(2) * 20_000 / 0.4, rel=0.1)


@pytest.mark.parametrize("mechanism", [FUNCTIONAL, NONE])
def test_densities_are_near_the_truth_without_much_noise(mechanism: str) -> None:
    drawn, at = gaussian(20_000, 1), np.linspace(0.0, 4.0, 30)[:, None]
    truth = gaussian_density(at)
    found = density(drawn, at, (-4.0, 8.0), 0.2, mechanism, HUGE)
    assert divergence(truth, found, 1e-4) < 0.01
    counts = histogram(drawn, at, (-4.0, 8.0), mechanism, HUGE)
    assert divergence(truth, counts / 20_000 / 0.6, 1e-4) < 0.05


@pytest.mark.parametrize("mechanism", [*MECHANISMS, NONE])
def test_a_posterior_answers_by_every_mechanism(mechanism: str) -> None:
    sample = Sample(LINE, np.sin(3.0 * LINE[:, 0]), LINE, np.sin(3.0 * LINE[:, 0]))
    answer = posterior(sample, (-1.0, 1.0), 0.5, 0.5, 0)
    assert error(sample.y_test, answer(LINE, mechanism, HUGE)) < (
        0.1 if mechanism in (NONE, FUNCTIONAL) else 1.5
    )


def test_machines_are_fitted_once_and_tested_for_any_budget() -> None:
    labels = (LINE[:, 0] > 0.1).astype(np.float64)
    wrong = machines(Sample(LINE, labels, LINE, labels), 2, 30.0, 0.5, 0)
    assert wrong(LINE, labels, None) < 0.05
    assert wrong(LINE, labels, HUGE) < 0.1


def test_the_report_says_where_the_paper_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()

    def line(*means: float) -> dict[str, list[float]]:
        return {"mean": list(means), "std": [0.1] * len(means)}

    lines = {
        FUNCTIONAL: line(1.0, 1.0),
        GAUSSIAN: line(0.5, 2.0),
        LAPLACE: line(0.5, 0.6),
        NONE: line(0.1, 0.1),
    }
    panels = {"histogram": {"x": [10, 100], "lines": lines}}
    rising = {"kernel SVM": {"x": [0.1, 1.0], "lines": {"1000": line(0.2, 0.3), "2000": line(0.2, 0.1)}}}
    (tmp_path / "results" / "figure_1.json").write_text(json.dumps(panels))
    (tmp_path / "results" / "figure_4.json").write_text(json.dumps(rising))
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "gaussian from 100 answers on and laplace nowhere here" in text
    assert "**kernel SVM, n = 1000**, with ε: Its error **does not fall**" in text
    assert (tmp_path / "figures" / "figure_4.png").stat().st_size > 5000
