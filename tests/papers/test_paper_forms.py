"""The paper's own forms: oracle grids, held-out densities, and the surrogate loss without derivatives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from papers.private_race import paper_classification, paper_regression, table2, table2_run
from papers.private_race.curves import Settings, Subject
from papers.private_race.data import Dataset, Floats
from papers.private_race.kde import tuned_growth
from papers.private_race.oracle import Grid, best_values
from papers.private_race.report import OURS, classification_part, merged, regression_part
from papers.private_race.table2_data import HeldOut, held_out
from papers.private_race.table2_report import table2_section
from papers.provenance import made_by

import hushsum as hs
from hushsum.methods import regression_loss, surrogate_tally

QUICK = Settings(epsilons=(1.0, 10.0), repetitions=2, quick=True)


def silent(line: str) -> None:
    pass


def test_a_grid_goes_on_until_the_best_value_is_inside() -> None:
    found, tried = best_values(Grid("rows", (8, 16), 1, 4096), lambda rows: {1.0: abs(rows - 300.0)})
    assert found[1.0].value == 256
    assert found[1.0].inside
    assert sorted(tried) == [8, 16, 32, 64, 128, 256, 512]
    limited, _ = best_values(Grid("rows", (8, 16), 1, 64), lambda rows: {1.0: abs(rows - 300.0)})
    assert (limited[1.0].value, limited[1.0].inside) == (64, False)
    # Values that are equally good do not push the grid outwards.
    flat, tried = best_values(Grid("rows", (8, 16, 32), 1, 4096), lambda rows: {1.0: 1.0})
    assert (flat[1.0].value, flat[1.0].inside, sorted(tried)) == (16, True, [8, 16, 32])


def pixels(number: int) -> HeldOut:
    rows = np.random.default_rng(3).normal(0.5, 0.15, (3000, 1)).clip(0.0, 1.0).astype(np.float32)
    return held_out("few", rows, 0.1, (0.0, 1.0), "few, σ = 0.1", number)


def test_queries_are_held_out_and_kernels_have_one_mean_density() -> None:
    case = pixels(200)
    assert len(case.records) == 2800
    assert not (case.queries[:, None] == case.records[None]).all(axis=2).any()
    assert case.gaussian_truth.mean() == pytest.approx(case.hashed_truth.mean(), rel=0.05)


def test_parts_at_held_out_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table2_run, "DATA", {"few": pixels})
    monkeypatch.setattr(table2_run, "ENTRANTS", {"histogram": table2.ENTRANTS["histogram"]})
    file = tmp_path / "table2.json"
    table2_run.measure_missing(["few"], file, queries=50, quick=True)
    written = file.read_text(encoding="utf-8")
    table2_run.measure_missing(["few"], file, queries=50, quick=True)
    assert file.read_text(encoding="utf-8") == written
    parts = {part["method"]: part for part in json.loads(written)}
    assert set(parts) == {"race", "histogram", "auto", "auto, δ"}
    for part in parts.values():
        errors = [cell["error"] for cell in part["cells"]]
        assert errors[-1] < errors[0]
        assert part["version"]
    page = table2_section(list(parts.values()), tmp_path)
    assert "| histogram |" in page
    assert "1 release" in page
    assert (tmp_path / "table2.png").stat().st_size > 10_000


def plane(number: int, noise: float) -> Dataset:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(number, 3))
    return Dataset("airfoil", X, X @ np.array([2.0, 0.5, -1.0]) + rng.normal(scale=noise, size=number))


def unit_records(theta: Floats, number: int) -> Floats:
    rng = np.random.default_rng(2)
    U = rng.uniform(-1.0, 1.0, (number, 2))
    return paper_regression.in_unit_ball(U, np.column_stack([np.ones(number), U]) @ theta, np.sqrt(3.0))


def test_both_forms_of_the_surrogate_loss_estimate_the_exact_one() -> None:
    theta = np.array([0.1, 0.5, -0.3])
    records = unit_records(theta, 4000)
    thetas = np.array([theta, [0.0, 0.0, 0.0], [0.1, -0.5, 0.3]])
    exact = paper_regression.exact_loss(records, thetas)
    assert exact[0] == pytest.approx(2.0 ** (1 - 4), rel=1e-3)
    assert exact[0] < exact[1] < exact[2]
    columns, radius = records.shape[1], paper_regression.QUERY_RADIUS
    tally = surrogate_tally(columns, rows=4000, seed=1, query_radius=radius).add(records)
    length = np.sqrt(3.0)
    queried = regression_loss(tally.release(epsilon=1e6, rows=4000), thetas * length, length)
    tally.add(-records)
    released = tally.release(epsilon=1e6, rows=4000)
    assert np.allclose(queried, exact, rtol=0.04)
    assert np.allclose(paper_regression.one_sided_loss(released, thetas), exact, rtol=0.04)


def test_inserting_both_signs_needs_half_the_budget_for_each() -> None:
    records = unit_records(np.zeros(3), 50)
    thetas = np.random.default_rng(3).normal(size=(20, 3))
    tally = surrogate_tally(records.shape[1], rows=1000, seed=1, query_radius=3.0).add(records)
    both = surrogate_tally(records.shape[1], rows=1000, seed=1, query_radius=3.0).add(records).add(-records)
    queried = [regression_loss(tally.release(epsilon=1.0, rows=1000), thetas, 1.0) for _ in range(20)]
    inserted = [
        paper_regression.one_sided_loss(both.release(epsilon=0.5, rows=1000), thetas) for _ in range(20)
    ]
    # One query with noise of twice the scale against two with once: a factor 2·2/√2, counts being equal.
    spreads = [float(np.std(losses, axis=0).mean()) for losses in (queried, inserted)]
    assert spreads[1] > 1.2 * spreads[0]


@pytest.mark.parametrize("form", paper_regression.MINIMA)
def test_slopes_of_the_loss_are_its_differences(form: str) -> None:
    records = unit_records(np.array([0.1, 0.5, -0.3]), 100) * 0.9
    for theta in (np.array([0.2, -0.4, 0.3]), np.array([2.0, 2.0, 1.0])):
        _, slopes = paper_regression._loss_and_slopes(records, theta[None], form)
        steps = 1e-5 * np.eye(3)
        ends = [paper_regression.exact_loss(records, theta + sign * steps, form) for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slopes[0], abs=1e-7)


def test_only_the_padded_loss_has_the_minimum_of_least_squares() -> None:
    """A slope of 0.5 with residuals as long as the line: total least squares is far from it."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-0.4, 0.4, 4000)
    records = np.column_stack((x, 0.5 * x + rng.uniform(-0.5, 0.5, 4000)))
    slope = (records[:, 0] @ records[:, 1]) / (records[:, 0] @ records[:, 0])
    found = {form: float(paper_regression.minimum(records, form)[0]) for form in paper_regression.MINIMA}
    assert found["padded"] == pytest.approx(slope, abs=0.02)
    assert found["record"] > slope + 0.5
    assert found["angle"] > slope + 0.5


def test_regression_in_the_paper_s_form(tmp_path: Path) -> None:
    curves = paper_regression.regress(plane(2000, 0.05), QUICK)
    subject = Subject("regression_paper", "error", QUICK, {"airfoil": curves})
    assert subject.at("airfoil", paper_regression.LEAST_SQUARES, 1.0) < 0.1
    assert subject.at("airfoil", paper_regression.MINIMA["padded"], 1.0) < 0.1
    assert subject.at("airfoil", paper_regression.EXACT, 1.0) < 0.5
    assert subject.at("airfoil", paper_regression.PRIVBAYES, 10.0) < 0.6
    page = regression_part(subject, None, tmp_path, {"airfoil": "airfoil"})["regression_paper"]
    assert "| PrivBayes, least squares |" in page


def test_classification_in_the_paper_s_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        paper_classification, "_LAMBDAS", Grid("λ", (1e-3, 1e-1), 1e-3, 0.1, factor=10.0, whole=False)
    )
    rng = np.random.default_rng(5)
    y = (rng.random(1500) < 0.4).astype(np.float64)
    X = rng.normal(size=(1500, 2)) + 4.0 * y[:, None]
    curves = paper_classification.classify(Dataset("htru2", X, y), QUICK)
    subject = Subject("classification_paper", "accuracy", QUICK, {"htru2": curves})
    assert subject.at("htru2", paper_classification.PAPER, 10.0) > 0.9
    assert subject.at("htru2", paper_classification.PAPER + paper_classification.PLAIN, 10.0) > 0.9
    ours = Subject("classification", "accuracy", QUICK, {"htru2": curves})
    whole = merged(subject, ours, {paper_classification.PAPER: OURS})
    assert whole.at("htru2", OURS, 1.0) == subject.at("htru2", paper_classification.PAPER, 1.0)
    page = classification_part(whole, None, tmp_path, {"htru2": "pulsars"})["classification_paper"]
    assert "pulsars: powers 4 and 8" in page
    assert (tmp_path / "classification_paper.png").stat().st_size > 10_000


def test_parameters_are_tuned_for_every_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("papers.private_race.kde.FIXED", {"trigonometric": {}, "grid": {}})
    found = tuned_growth(silent, sizes=(500, 50_000), repeats=3)
    few, many = found["trigonometric"]["chosen"]
    assert few <= many
    assert found["trigonometric"]["error_exponent"] < 0.9
    assert "chosen" not in found["grid"]


def test_results_name_the_version() -> None:
    assert made_by("papers.data").startswith(hs.__version__)
