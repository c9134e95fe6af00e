from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.cli.demo import SALARY_BOUNDS, write_payroll
from hushsum.errors import UsageError
from hushsum.operations import (
    FunctionDescription,
    QueryTerms,
    RecordFiles,
    TallyDescription,
    describe_file,
    plot_function,
    query_file,
    query_points,
)
from hushsum.records import CellFormat, DateFormat


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(4)
    points = random.standard_normal((2000, 3))
    kernel = hs.EuclideanKernel(dim=3, bandwidth=1.0)
    for name, bounds in (("boxed", (-4.0, 4.0)), ("open", None)):
        tally = hs.race(kernel, rows=40, width=100, bounds=bounds).add(points)
        tally.save(tmp_path / f"{name}.tally")
        tally.release(epsilon=1.0).save(tmp_path / f"{name}.hush")
    return tmp_path


def test_answers_are_those_of_the_library(folder: Path) -> None:
    source = str(folder / "open.hush")
    points = np.random.default_rng(5).standard_normal((70_000, 3)).round(3)
    np.savetxt(folder / "q.csv", points, "%.3f", ",", header="x,y,z", comments="")
    batches = list(query_file(source, RecordFiles((str(folder / "q.csv"),)), QueryTerms(level=0.9)))
    assert len(batches) > 1
    expected = hs.load(source).query(points, level=0.9)
    for name in ("value", "stderr", "lower", "upper"):
        streamed = np.concatenate([batch.answers[name] for batch in batches])
        np.testing.assert_array_equal(streamed, getattr(expected, name))
    few = query_points(source, points[:2].tolist(), QueryTerms(sum=True)).as_json()
    np.testing.assert_array_equal([each["value"] for each in few], hs.load(source).sum(points[:2]))
    assert [each["at"] for each in few] == points[:2].tolist()


def test_the_bound_of_the_median_of_means_is_the_theorem(folder: Path) -> None:
    source = str(folder / "open.hush")
    terms = QueryTerms(sum=True, estimator="median-of-means")
    answered = query_points(source, [[0.0, 0.0, 0.0]], terms)
    bound = hs.load(source).error_bound([[0.0, 0.0, 0.0]])  # type: ignore[union-attr]
    np.testing.assert_allclose(answered.answers["upper"] - answered.answers["value"], bound)
    mean = query_points(source, [[0.0, 0.0, 0.0]], QueryTerms(estimator="median-of-means"))
    count = hs.load(source).count
    assert (mean.answers["upper"] - mean.answers["value"])[0] > bound[0] / count
    with pytest.raises(UsageError, match=r"level must be 0\.95"):
        QueryTerms(estimator="median-of-means", level=0.9)


def test_simultaneous_intervals_of_given_points(folder: Path) -> None:
    source = str(folder / "open.hush")
    points = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    together = query_points(source, points, QueryTerms(simultaneous=True))
    np.testing.assert_array_equal(
        together.answers["upper"], hs.load(source).query(points, simultaneous=True).upper
    )
    assert (together.answers["upper"] > query_points(source, points, QueryTerms()).answers["upper"]).all()
    (folder / "q.csv").write_text("x,y,z\n0,0,0\n")
    with pytest.raises(UsageError, match="while it is read"):
        query_file(source, RecordFiles((str(folder / "q.csv"),)), QueryTerms(simultaneous=True))
    with pytest.raises(UsageError, match="mean over rows"):
        QueryTerms(simultaneous=True, estimator="median-of-means")


DATED = DateFormat(("hired",), unit="weeks", origin="2020-01-06")


@pytest.fixture
def dated(tmp_path: Path) -> str:
    X = np.random.default_rng(2).uniform(0.0, 100.0, (500, 2))
    box, columns = (0.0, 100.0), ["age", "hired"]
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=10.0), bounds=box, columns=columns).add(X)
    tally.release(epsilon=1.0, insecure_noise_seed=3).save(tmp_path / "dated.hush")
    return str(tmp_path / "dated.hush")


def test_points_with_dates(dated: str) -> None:
    answered = query_points(dated, [[30.0, "2020-02-03"], [30.0, 4.0]], QueryTerms(), DATED)
    np.testing.assert_allclose(answered.answers["value"], [hs.load(dated)([[30.0, 4.0]])[0]] * 2)
    assert [each["at"] for each in answered.as_json()] == [[30.0, "2020-02-03"], [30.0, 4.0]]
    refused: list[tuple[list[list[float | str]], DateFormat, str]] = [
        ([["2020-02-03", 4.0]], DATED, "at must have numbers in columns that are not declared as dates"),
        ([[30.0, "2020-02-03"]], DateFormat(), "name the column in dates"),
        ([[30.0, "2020-02-99"]], DATED, "at must be a date, got '2020-02-99'"),
        ([[30.0, "2020-02-03T00:00+01:00"]], DATED, "at must be a date"),
        ([[30.0, 4.0]], DateFormat(("fired",)), "must name columns of the data, got 'fired'"),
    ]
    for points, dates, message in refused:
        with pytest.raises(UsageError, match=message):
            query_points(dated, points, QueryTerms(), dates)


def test_dates_need_the_names_of_columns(folder: Path) -> None:
    with pytest.raises(UsageError, match="dates must name columns, got a file whose columns have no names"):
        query_points(str(folder / "open.hush"), [[0.0, 0.0, 0.0]], QueryTerms(), DATED)


def test_files_of_points_with_dates(dated: str, tmp_path: Path) -> None:
    """The dates are shown as dates, in the columns of the file."""
    (tmp_path / "q.csv").write_text("since,years\n03.02.2020,30\n03.02.2020,31\n")
    dates = DateFormat(("since",), "%d.%m.%Y", DATED.unit, DATED.origin)
    path, columns = str(tmp_path / "q.csv"), ["years", "since"]
    points = RecordFiles((path,), columns=tuple(columns), cells=CellFormat(dates=dates))
    (batch,) = query_file(dated, points, QueryTerms())
    np.testing.assert_allclose(batch.answers["value"], hs.load(dated)([[30.0, 4.0], [31.0, 4.0]]))
    assert [each["at"] for each in batch.as_json()] == [[30.0, "2020-02-03"], [31.0, "2020-02-03"]]
    with pytest.raises(UsageError, match="must name columns of the data, got 'hired'"):
        query_file(dated, replace(points, cells=CellFormat(dates=DATED)), QueryTerms())


def test_descriptions(folder: Path) -> None:
    function = describe_file(str(folder / "boxed.hush"))
    tally = describe_file(str(folder / "boxed.tally"))
    assert isinstance(function, FunctionDescription)
    assert isinstance(tally, TallyDescription)
    assert function.as_json()["bounds"] == tally.as_json()["bounds"] == [[-4.0, 4.0]] * 3
    assert tally.as_json()["warning"].startswith("CONFIDENTIAL")
    assert "2000" not in str(tally.as_json())


def test_slices(folder: Path) -> None:
    boxed, free, output = (str(folder / name) for name in ("boxed.hush", "open.hush", "x.png"))
    drawn = plot_function(boxed, output)
    assert (drawn.axes, drawn.ranges, drawn.fixed) == ((0, 1), ((-4.0, 4.0),) * 2, {2: 0.0})
    drawn = plot_function(free, output, axes=(2,), range=((0.0, 1.0),), at=(5.0, 6.0))
    assert drawn.fixed == {0: 5.0, 1: 6.0}
    drawn = plot_function(free, output, axes=(2, 0), range=((0.0, 1.0),), at=(7.0, 8.0, 9.0))
    assert (drawn.ranges, drawn.fixed) == (((0.0, 1.0),) * 2, {1: 8.0})
    drawn = plot_function(free, output, axes=(1,), range=((0.0, 1.0),), at=(5.0,))
    assert drawn.fixed == {0: 5.0, 2: 5.0}
    unit = ((0.0, 1.0),)
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "range must be given"),
        ({"range": unit}, "for every column that is not drawn"),
        ({"range": unit, "axes": (0, 0)}, "axes must be"),
        ({"range": unit, "axes": ("height",)}, "axes must be"),
        ({"range": unit * 3, "at": (1.0,)}, "range must be one"),
        ({"range": ((1.0, 0.0),), "at": (1.0,)}, "low < high"),
        ({"range": (1.0, 2.0, 3.0), "at": (1.0,)}, "another shape"),
        ({"range": unit, "at": (1.0, 2.0)}, r"at must be one value .* \(1\), got 2; such as 0"),
        ({"range": unit, "at": (1.0,), "labels": ("a",)}, "labels must name"),
        ({"range": unit, "at": (1.0,), "of": "median"}, "of must be"),
    ]
    for view, says in refused:
        with pytest.raises(UsageError, match=says):
            plot_function(free, output, **view)


def test_sets_have_no_picture(folder: Path) -> None:
    hs.race(hs.JaccardKernel(), rows=8).add([[1, 2]]).release(epsilon=1.0).save(folder / "s.hush")
    with pytest.raises(UsageError, match="columns of numbers"):
        plot_function(str(folder / "s.hush"), str(folder / "s.png"))


def test_the_payroll_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    first, again, other = (
        write_payroll(tmp_path / "p.parquet", records=500, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert SALARY_BOUNDS[0] <= first.min() < first.max() <= SALARY_BOUNDS[1]
