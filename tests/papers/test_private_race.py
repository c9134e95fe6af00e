"""The reproduction runs from end to end on a little generated data, and its measures are right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from papers.private_race import __main__ as run
from papers.private_race import anomalies, classification, regression
from papers.private_race.curves import Settings, load_subject
from papers.private_race.data import Dataset, split_records
from papers.private_race.kernel_choice import stratified_folds
from papers.private_race.report import write_report
from papers.private_race.scaling import unit_box, whitened

QUICK = Settings(epsilons=(1.0, 10.0), repetitions=1, quick=True)


def two_clusters(name: str, *, number: int, share: float) -> Dataset:
    """A cluster labelled 0, and at a distance, with that share of the records, one labelled 1."""
    rng = np.random.default_rng(5)
    y = (rng.random(number) < share).astype(np.float64)
    X = rng.normal(size=(number, 3)) + 6.0 * y[:, None] * np.array([1.0, -1.0, 1.0])
    return Dataset(name, X, y)


def plane(name: str, *, number: int) -> Dataset:
    """A target that is linear in three columns, up to little noise."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(number, 3)) * np.array([1.0, 10.0, 0.1]) + np.array([0.0, 50.0, 1.0])
    target = X @ np.array([2.0, 0.3, -10.0]) + rng.normal(scale=0.3, size=number)
    return Dataset(name, X, target)


def test_runs_from_data_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generated = {
        "htru2": two_clusters("htru2", number=3000, share=0.3),
        "shuttle": two_clusters("shuttle", number=4000, share=0.03),
        "airfoil": plane("airfoil", number=3000),
    }
    monkeypatch.setattr(run, "load_dataset", generated.__getitem__)
    results = tmp_path / "results"
    results.mkdir()
    for name, dataset in (("classification", "htru2"), ("anomalies", "shuttle"), ("regression", "airfoil")):
        experiment, _ = run.EXPERIMENTS[name]
        run.run_one(experiment, [dataset], QUICK, results)
    page = write_report(tmp_path).read_text(encoding="utf-8")

    classes = load_subject(results / "classification.json")
    assert classes.at("htru2", classification.EXACT, 1.0) > 0.97
    assert classes.at("htru2", classification.SKETCH, 10.0) > 0.95
    outliers = load_subject(results / "anomalies.json")
    assert outliers.at("shuttle", anomalies.EXACT, 1.0) > 0.97
    assert outliers.at("shuttle", anomalies.SKETCH, 10.0) > 0.9
    lines = load_subject(results / "regression.json")
    assert lines.at("airfoil", regression.LEAST_SQUARES, 1.0) < 0.1
    assert lines.at("airfoil", regression.ADASSP, 10.0) < 0.3
    for name in ("classification", "anomalies", "regression"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 10_000
        assert f"figures/{name}.png" in page
        assert json.loads((results / f"{name}.json").read_text(encoding="utf-8"))["repetitions"] == 1
    assert "| sketch |" in page


def test_splits_share_no_record() -> None:
    split = split_records(1000, 3)
    assert [len(split.public), len(split.test), len(split.private)] == [50, 200, 750]
    assert len(np.unique(np.concatenate([split.public, split.test, split.private]))) == 1000
    assert not np.array_equal(split.public, split_records(1000, 4).public)


def test_folds_hold_out_every_record_once_and_keep_the_shares() -> None:
    y = np.repeat([0, 1], [80, 20])
    held = [hidden for _, hidden in stratified_folds(y)]
    assert sorted(np.concatenate(held).tolist()) == list(range(100))
    assert all(np.count_nonzero(y[hidden]) == 5 for hidden in held)


def test_scalings_see_public_records_alone_and_stay_within_their_bounds() -> None:
    rng = np.random.default_rng(1)
    public = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3))
    box = unit_box(public, 0.01)(100.0 * public)
    assert box.min() == 0.0
    assert box.max() == 1.0
    white = whitened(public, 0.0)(public).astype(np.float64)
    assert np.allclose(np.cov(white.T), np.eye(3), atol=0.25)


def test_measures() -> None:
    truth = np.array([0, 0, 0, 1])
    assert classification.balanced_accuracy(truth, np.array([0, 0, 0, 0])) == 0.5
    assert classification.best_threshold(truth, np.array([0.1, 0.2, 0.9, 0.8])) == pytest.approx(5 / 6)
    assert anomalies.area_under_roc(truth, np.array([3.0, 2.0, 1.0, 0.0])) == 1.0
    assert anomalies.area_under_roc(truth, np.array([1.0, 1.0, 1.0, 1.0])) == 0.5
    assert anomalies.area_under_roc(truth, np.array([3.0, 2.0, 0.0, 1.0])) == pytest.approx(2 / 3)
    assert regression.relative_error(np.array([1.0, 2.0]), np.array([1.0, 3.0]), 2.0) == 0.5


def test_the_baseline_is_tuned_on_the_mean_over_repetitions() -> None:
    scores = np.array([[[0.9, 0.1], [0.8, 0.8]], [[0.5, 0.2], [0.8, 0.7]]])
    assert classification.best_on_test(scores).tolist() == [[0.8, 0.8], [0.8, 0.7]]
