"""The reproduction of the service paper: its mechanisms, its measures and its report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from papers.functional_perturbation import data
from papers.functional_perturbation.__main__ import FIGURES, run_one
from papers.functional_perturbation.data import Sample, gaussian, gaussian_density
from papers.functional_perturbation.experiments import Settings
from papers.functional_perturbation.mechanisms import (
    AS_PUBLISHED,
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
    largest_influence,
    machines,
    posterior,
)
from papers.functional_perturbation.paper_calibration import gaussian_path
from papers.functional_perturbation.report import write_report

import hushsum as hs
from hushsum.methods import smoother
from hushsum.models import feature_space, vectors_within

BUDGET = Budget(0.4, 0.001)
HUGE = Budget(400.0, 0.001)
LINE = np.linspace(-1.0, 1.0, 400)[:, None]


def test_fresh_noise_has_the_spread_of_its_composition() -> None:
    # The variance of 2·10⁴ draws is within 10 % but for chances below 10⁻⁶, also for Laplace noise.
    zeros = np.zeros(20_000)
    assert np.std(fresh(zeros, 1.0, GAUSSIAN, BUDGET)) == pytest.approx(5.56 * np.sqrt(20_000), rel=0.05)
    assert np.std(fresh(zeros, 1.0, LAPLACE, BUDGET)) == pytest.approx(np.sqrt(2) * 20_000 / 0.4, rel=0.1)


def test_noise_is_of_the_size_that_the_number_of_answers_needs() -> None:
    zeros = np.zeros(20_000)
    assert np.std(fresh(zeros, 1.0, GAUSSIAN, BUDGET, 4)) == pytest.approx(5.56 * 2.0, rel=0.05)
    assert np.std(fresh(zeros, 1.0, LAPLACE, BUDGET, 4)) == pytest.approx(np.sqrt(2) * 4 / 0.4, rel=0.1)


def test_an_answer_moves_by_at_most_the_largest_influence() -> None:
    space = feature_space(hs.GaussianKernel(dim=1, bandwidth=0.5), features=64, seed=0, box=[(-1.0, 1.0)])
    matrix = smoother(vectors_within(space, LINE), 0.25)
    bound = largest_influence(space, matrix, 1)
    anywhere = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 1))
    found = np.abs(vectors_within(space, anywhere) @ matrix).max()
    assert found <= bound <= 1.02 * found
    assert bound < np.linalg.norm(matrix, axis=0).max()


def test_the_paper_s_calibration_has_its_own_spread() -> None:
    # √(2·ln(2/0.001))/0.4 = 9.75 times the paper's sensitivity of 2 counts; 4000 draws are within 10 %.
    at = np.linspace(-4.0, 8.0, 20, endpoint=False)[:, None] + 0.3
    drawn = gaussian(100, 1)
    exact = histogram(drawn, at, (-4.0, 8.0), NONE, BUDGET)
    noise = [histogram(drawn, at, (-4.0, 8.0), AS_PUBLISHED, BUDGET) - exact for _ in range(200)]
    assert np.std(noise) == pytest.approx(2.0 * 9.75, rel=0.1)
    path = [gaussian_path(at, 1.0) for _ in range(500)]
    assert np.cov(np.array(path).T)[3, 3] == pytest.approx(1.0, rel=0.4)


def test_figures_run_on_generated_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    number = 1500
    married = np.where(rng.random(number) < 0.5, "Married", "Single")
    columns = {
        "age": rng.integers(17, 90, number),
        "education_years": rng.integers(6, 20, number),
        "education_num": rng.integers(1, 16, number),
        "hours_per_week": rng.integers(10, 80, number),
        "capital_gain": np.zeros(number),
        "sex": np.where(rng.random(number) < 0.5, "Male", "Female"),
        "marital_status": married,
    }
    tables = {
        "adult": {**columns, "target": (married == "Married").astype(int)},
        "cps_earnings_2004": {**columns, "target": columns["education_years"].astype(float)},
    }
    monkeypatch.setattr(data, "table", tables.__getitem__)
    little = Settings(2, (1, 50), (0.5, 50.0), (1e-3, 1e-2), (200,), (100,), 100, 2, 300, 50)
    for name in ("figure_1", "figure_4_delta"):
        (tmp_path / "results").mkdir(exist_ok=True)
        run_one(name, FIGURES[name], little, tmp_path / "results")
    answers = json.loads((tmp_path / "results" / "figure_1.json").read_text(encoding="utf-8"))["panels"]
    assert [panel["repetitions"] for panel in answers.values()] == [2, 2, 2]
    # Fifty answers by fresh noise are far worse than one.
    one, many = answers["histogram"]["lines"][LAPLACE]["mean"]
    assert one < many
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "against δ" in page


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
    panels = {"histogram": {"x": [10, 100], "repetitions": 10, "lines": lines}}
    rising = {
        "kernel SVM": {
            "x": [0.1, 1.0],
            "repetitions": 7,
            "lines": {"1000": line(0.2, 0.3), "2000": line(0.2, 0.1)},
            "parameters": {"1000": {"C": [30.0, 30.0], "error_by_C": {}}},
        }
    }
    for name, found in (("figure_1", panels), ("figure_4", rising)):
        document = {"version": "0.0 (abc)", "seconds": 1.0, "panels": found}
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(document))
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "gaussian from 100 answers on and laplace nowhere here" in text
    assert "**kernel SVM, n = 1000** (C = 30, chosen on other records), with ε: Its error **does not" in text
    assert "7 repetitions for every point; hushsum 0.0 (abc)" in text
    assert (tmp_path / "figures" / "figure_4.png").stat().st_size > 5000
