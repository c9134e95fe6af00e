"""The race and the paper's densities run on little generated data, and choose and judge as they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.accuracy.comparison import _continued, keep, parts
from benchmarks.accuracy.comparison_contestants import (
    AT_THE_END,
    CONTESTANTS,
    EPSILONS,
    Contestant,
    Ladder,
    auto_cells,
    hash_cells,
    lsq_rff_cells,
    race_of,
)
from benchmarks.accuracy.comparison_report import _made_by, targets, write_report
from benchmarks.data import COLUMNS, CONTESTS, Contest, on_salary_grid, synthetic_salaries
from benchmarks.plans.plan_validation import fitted, modelled, two_digits
from benchmarks.plans.plan_validation import write_report as write_validation
from benchmarks.writer import Results, version_of_code
from papers.private_race import kde as growth

import hushsum as hs


def silent(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def contest() -> Contest:
    rows = np.random.default_rng(3).normal(100.0, 20.0, (1500, 1)).astype(np.float32)
    return Contest("few", rows, hs.GaussianKernel(dim=1, bandwidth=8.0), (0.0, 200.0), "made up")


def test_a_baseline_s_best_setting_counts(contest: Contest) -> None:
    (entrant,) = [each for each in CONTESTANTS if each.name == "histogram"]
    ladder = Ladder("bins", (2, 40, 41), 0, 1)
    cells = race_of(contest, Contestant("histogram", ladder), repeats=2, tell=silent)
    assert not entrant.ours
    assert len(cells) == 2 * len(EPSILONS)
    assert {cell.settings["bins"] for cell in cells if cell.epsilon >= 0.5} <= {40, 41}


def test_a_grid_is_extended_while_its_best_value_is_at_an_end(contest: Contest) -> None:
    """With 2 and 3 bins to begin with, more are tried until the best is not the last."""
    ladder = Ladder("bins", (2, 3, 6, 40, 4096, 8192), 0, 1)
    cells = race_of(contest, Contestant("histogram", ladder), repeats=2, tell=silent)
    assert {cell.settings["bins"] for cell in cells if cell.epsilon >= 1.0} == {40}
    short = Ladder("bins", (2, 3), 0, 1)
    cells = race_of(contest, Contestant("histogram", short), repeats=2, tell=silent)
    assert all(AT_THE_END in cell.note for cell in cells)


def test_lsq_features_take_more_of_them_for_more_budget(contest: Contest) -> None:
    cells = {
        (cell.epsilon, cell.delta): cell for cell in lsq_rff_cells(contest, tell=silent, most_features=1024)
    }
    sizes = [cells[epsilon, 0.0].settings["features"] for epsilon in EPSILONS]
    assert sizes[0] < sizes[-1]
    assert cells[0.1, 0.0].error > cells[1.0, 0.0].error


def test_ours_are_reported_nothing_but_the_number_of_records() -> None:
    for each in CONTESTANTS:
        if each.ours:
            assert (len(each.few.values), each.many, each.vast) == (1, None, None)


def test_every_data_set_has_parts_and_columns() -> None:
    assert COLUMNS.keys() == CONTESTS.keys()
    found = list(parts(tuple(CONTESTS), None, quick=False))
    assert {data for data, _ in found} == set(CONTESTS)
    assert ("wiki_vote", "sketch") in found
    assert ("covtype", "landmarks") not in found


def test_results_of_another_version_are_not_added_to() -> None:
    version = version_of_code()
    own = {"version": version.as_json(), "cells": [1]}
    assert _continued(own, version, again=True, some=False, quick=False) is own
    other = {"version": {**version.as_json(), "digest": "another"}, "cells": [1]}
    with pytest.raises(SystemExit, match="another version"):
        _continued(other, version, again=False, some=False, quick=False)
    assert _continued(other, version, again=True, some=False, quick=False)["cells"] == []


def test_matched_kernels_have_one_mean_density(contest: Contest) -> None:
    hashed = contest.matched.exact_sum(contest.records, contest.queries) / len(contest.records)
    assert hashed.mean() == pytest.approx(contest.truth.mean(), rel=0.02)


def test_the_report_is_made_of_the_cells(contest: Contest, tmp_path: Path) -> None:
    cells = auto_cells(contest, repeats=2, tell=silent)
    cells += auto_cells(contest, repeats=2, tell=silent, declared=False)
    cells += hash_cells(contest, tell=silent, most_seeds=2, max_bytes=1_000_000)
    for each in CONTESTANTS:
        if each.name in ("grid", "lsq_fgt"):
            cells += race_of(contest, each, repeats=1, tell=silent)
    facts = {"records": 1500, "columns": 1, "words": "made up", "hash_bandwidth": 1.0, "density": 0.1}
    results: dict[str, Any] = {
        "quick": True,
        "version": version_of_code().as_json(),
        "data": {"few": facts},
        "cells": [cell.as_json() for cell in cells],
        "exact": [{"data": "few", "fit": 0.1, "query": 1e-3, "queries": 20}],
        "scaling": [],
        "builds": [{"case": "a build", "wall": 11.0, "processor": 3.0}],
        "parts": [{"name": "few auto", "seconds": 2.0}],
    }
    page = write_report(results, Results("comparison", tmp_path), parts=3).read_text(encoding="utf-8")
    assert "| **auto** |" in page
    assert "by oracle" in page
    found = {each.what: each for each in targets(results)}
    assert not found["build of a build"].reached
    assert any(what.startswith("measured over predicted") for what in found)
    assert any(what.startswith("auto against the best") for what in found)
    assert f"sources {results['version']['digest']}" in page
    assert "2 of 3 parts are not measured" in page


def test_a_part_that_is_measured_again_takes_its_own_place() -> None:
    version = version_of_code()
    results: dict[str, Any] = {"version": version.as_json(), "data": {}, "builds": [], "parts": []}
    results["cells"] = [{"part": "few auto", "error": 1.0}, {"part": "few grid", "error": 2.0}]
    keep(results, "few auto", {"cells": [{"error": 3.0}, {"error": 4.0}]}, 1.23, version)
    assert [cell["error"] for cell in results["cells"]] == [2.0, 3.0, 4.0]
    assert {cell["part"] for cell in results["cells"]} == {"few auto", "few grid"}
    assert results["parts"] == [{"name": "few auto", "seconds": 1.2}]


def test_a_part_of_another_version_says_so() -> None:
    version = version_of_code()
    later = replace(version, digest="another")
    found: dict[str, Any] = {"version": version.as_json(), "quick": True, "data": {}}
    found |= {name: [] for name in ("cells", "exact", "scaling", "builds")}
    found["parts"] = [{"name": "few auto", "seconds": 1.0}, {"name": "few grid", "seconds": 1.0}]
    with pytest.raises(SystemExit, match="another version"):
        _continued(found, later, again=False, some=True, quick=True)
    assert _continued(found, later, again=True, some=False, quick=True)["parts"] == []
    assert _continued(found, later, again=True, some=True, quick=True) is found
    keep(found, "few auto", {}, 2.0, later)
    page = _made_by(found, 2, [])
    assert "1 parts were measured by one version" in page
    assert f"sources another, {later.day}: few auto." in page


def test_growth_of_errors_and_of_time() -> None:
    found = growth.growth(silent, sizes=(600, 9600), repeats=2)
    # A grid's error of the sum is its noise, which does not depend on N until its own error shows.
    assert found["grid"]["error_exponent"] < 0.4
    assert set(found) == set(growth.FIXED)


def test_salaries_are_requested_on_the_paper_s_grid() -> None:
    requested = on_salary_grid(synthetic_salaries()).queries
    assert requested.shape == (200, 1)
    assert (requested[0, 0], requested[-1, 0]) == (10_000, 250_000)


def test_constants_of_plans_are_found_again_from_densities() -> None:
    """Made with a box of 6 deviations and the power 0.6; candidates are at most 5 % apart."""
    made = [
        {"dim": dim, "bandwidth": h, "group": f"{dim}", "density": 0.0}
        for dim in (1, 2, 3, 6, 9)
        for h in (0.02, 0.1, 0.3)
    ]
    made = [{**each, "density": float(np.exp(modelled(each, 6.0, 0.6)))} for each in made]
    spread, power = fitted(made)
    assert spread == pytest.approx(6.0, rel=0.06)
    assert power == pytest.approx(0.6, abs=0.03)


def test_numbers_are_rounded_to_two_digits() -> None:
    given = np.array([[123.4, -0.0987], [0.0, 5.0]])
    assert two_digits(given).tolist() == [[120.0, pytest.approx(-0.099)], [0.0, 5.0]]


def test_the_validation_of_plans_is_reported(tmp_path: Path) -> None:
    version = version_of_code()
    shared: dict[str, Any] = {
        "group": "a",
        "columns": 1,
        "records": 10,
        "delta": 0.0,
        "density": 0.1,
        "data": "one",
    }
    shared["version"] = version.as_json()
    declared = {
        "kind": "declared",
        "planned_density": 0.1,
        "constants": [8.0, 0.5],
        "method": "grid",
        **shared,
    }
    cells = [
        {"name": "one, near", "planned": 1.0, "measured": 1.1, **declared},
        {"name": "one, far", "planned": 1.0, "measured": 3.0, **declared},
        {"name": "hashed", "planned": 1.0, "measured": 1.0, "kind": "public", "method": "race", **shared},
    ]
    output = Results("plan_validation", tmp_path)
    page = write_validation({"densities": [], "cells": cells}, output, every=9).read_text(encoding="utf-8")
    assert f"3 of 9 cells: 3 cells by version {version.number}, sources {version.digest}" in page
    assert "| one, far | grid |" in page
    assert "| one, near | grid |" not in page
    assert "| all choices from declared quantities | 2 | 1.10 |" in page
