"""The race and the paper's densities run on little generated data, and choose and judge as they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.accuracy import keep
from benchmarks.accuracy_data import Contest, on_salary_grid, synthetic_salaries
from benchmarks.accuracy_methods import CONTESTANTS, Contestant, race_of
from benchmarks.accuracy_ours import auto_cells, hash_cells
from benchmarks.accuracy_report import write_report
from benchmarks.accuracy_targets import targets
from papers.private_race import kde

import hushsum as hs


def silent(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def contest() -> Contest:
    rows = np.random.default_rng(3).normal(100.0, 20.0, (1500, 1)).astype(np.float32)
    return Contest("few", rows, hs.GaussianKernel(dim=1, bandwidth=8.0), (0.0, 200.0), "made up")


def test_a_baseline_s_best_setting_counts(contest: Contest) -> None:
    bad, good = {"bins": 2}, {"bins": 40}
    (entrant,) = [each for each in CONTESTANTS if each.name == "histogram"]
    cells = race_of(contest, Contestant("histogram", (bad, good)), repeats=2, tell=silent)
    assert not entrant.ours
    assert len(cells) == 10
    assert {cell.settings["bins"] for cell in cells if cell.epsilon >= 0.5} == {40}


def test_ours_are_reported_nothing_but_the_number_of_records() -> None:
    for each in CONTESTANTS:
        if each.ours:
            assert each.few == ({},)
            assert each.many == ({},)


def test_matched_kernels_have_one_mean_density(contest: Contest) -> None:
    hashed = contest.matched.exact_sum(contest.records, contest.queries) / len(contest.records)
    assert hashed.mean() == pytest.approx(contest.truth.mean(), rel=0.02)


def test_the_report_is_made_of_the_cells(contest: Contest, tmp_path: Path) -> None:
    cells = auto_cells(contest, repeats=2, tell=silent)
    cells += hash_cells(contest, tell=silent, most_seeds=2, max_bytes=1_000_000)
    for each in CONTESTANTS:
        if each.name in ("grid", "lsq_fgt"):
            cells += race_of(contest, each, repeats=1, tell=silent)
    facts = {"records": 1500, "columns": 1, "words": "made up", "hash_bandwidth": 1.0, "density": 0.1}
    results: dict[str, Any] = {
        "quick": True,
        "data": {"few": facts},
        "cells": [cell.as_json() for cell in cells],
        "exact": [{"data": "few", "fit": 0.1, "query": 1e-3, "queries": 20}],
        "scaling": [],
        "builds": [{"case": "a build", "wall": 11.0, "processor": 3.0}],
        "parts": [{"name": "few auto", "seconds": None}],
    }
    page = write_report(results, tmp_path).read_text(encoding="utf-8")
    assert "| **auto** |" in page
    assert "by oracle" in page
    found = {each.what: each for each in targets(results)}
    assert not found["build of a build"].reached
    assert any(what.startswith("predicted over measured") for what in found)
    assert "**Measured earlier**" in page
    assert "few: auto" in page


def test_a_part_that_is_measured_again_takes_its_own_place() -> None:
    results: dict[str, Any] = {"data": {}, "builds": [], "parts": []}
    results["cells"] = [{"part": "few auto", "error": 1.0}, {"part": "few grid", "error": 2.0}]
    keep(results, "few auto", {"cells": [{"error": 3.0}, {"error": 4.0}]}, 1.23)
    assert [cell["error"] for cell in results["cells"]] == [2.0, 3.0, 4.0]
    assert {cell["part"] for cell in results["cells"]} == {"few auto", "few grid"}
    assert results["parts"] == [{"name": "few auto", "seconds": 1.2}]


def test_growth_of_errors_and_of_time() -> None:
    found = kde.growth(silent, sizes=(600, 9600), repeats=2)
    # A grid's error of the sum is its noise, which does not depend on N until its own error shows.
    assert found["grid"]["error_exponent"] < 0.4
    assert set(found) == set(kde.GROWTH)


def test_salaries_are_requested_on_the_paper_s_grid() -> None:
    requested = on_salary_grid(synthetic_salaries()).queries
    assert requested.shape == (200, 1)
    assert (requested[0, 0], requested[-1, 0]) == (10_000, 250_000)
