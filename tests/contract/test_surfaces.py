"""Every kind of released object in every surface: Python, ``query``, ``show`` and ``plot``, service, client.

The kinds come from the registries of methods, file types and models, so a new one is held to this without
being named here. Service and client: ``test_released_functions`` and ``test_remote_models``, same kinds.
"""

from __future__ import annotations

import io
import json
import warnings
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import hushsum as hs
from hushsum.cli.main import application
from hushsum.kernels import ColumnKernel, named, parameter_names
from hushsum.methods import Method, all_methods
from hushsum.releases import Description, ReleasedFunction, load_function, load_released
from tests.contract.fitted_models import MODELS, fitted
from tests.released_cases import ALL_RELEASES, PLANE, RELEASES

COLUMNS = ("a", "b")
FRAME = pd.DataFrame(np.random.default_rng(4).normal([0.3, 0.6], 0.1, size=(1500, 2)), columns=list(COLUMNS))
METHODS = {f"method {method.name}": method for method in all_methods()}
CASES = [*RELEASES, *METHODS]


def by_method(method: Method) -> ReleasedFunction:
    """A release by a registered method, with the first kernel that has the role it needs."""
    dim = min(2, method.most_columns or 2)
    # One with a bandwidth where there is one: it compares columns, for which bounds are declared.
    names = sorted(method.role.kernels(dim), key=lambda each: "bandwidth" not in parameter_names(each))
    kernel = named(names[0], dim=dim, bandwidth=0.2 if "bandwidth" in parameter_names(names[0]) else None)
    return hs.release(
        FRAME[list(COLUMNS[:dim])],
        kernel=kernel,
        bounds=(0, 1) if isinstance(kernel, ColumnKernel) else None,
        epsilon=2.0,
        delta=None if method.pure else 1e-6,
        relation=method.relations[0],
        method=method.name,
        records=1000,
        insecure_noise_seed=1,
    )


@cache
def released(name: str) -> ReleasedFunction:
    return RELEASES[name]() if name in RELEASES else by_method(METHODS[name])


@pytest.fixture(params=CASES)
def f(request: pytest.FixtureRequest) -> Any:
    return released(request.param)


@pytest.fixture
def source(f: ReleasedFunction, tmp_path: Path) -> str:
    f.save(tmp_path / "f.hush")
    return str(tmp_path / "f.hush")


@cache
def _kinds() -> dict[tuple[type, type], ReleasedFunction]:
    """Of every kind of function with every kind of reading, the one that is drawn: the small ones first."""
    kinds: dict[tuple[type, type], ReleasedFunction] = {}
    for name in CASES:
        kinds.setdefault(_kind(released(name)), released(name))
    return kinds


def _kind(f: Any) -> tuple[type, type]:
    return type(f), type(getattr(f, "reading", None))


def _drawn(f: Any) -> tuple[int, ...] | None:
    """Both columns of a function in two, the first otherwise; None if another one of its kind is drawn."""
    if _kinds()[_kind(f)] is not f:
        return None
    small = any(released(name) is f for name in RELEASES)
    return (0, 1) if small and f.dim == 2 else (0,)


def run(*words: str) -> str:
    result = CliRunner().invoke(application(words[0]), list(words))
    assert result.exit_code == 0, (words, result.output)
    return result.stdout


class Elements(HTMLParser):
    """The elements and attributes of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes |= {name for name, _ in attrs}


def check_html(shown: Any) -> Elements:
    elements = Elements(shown._repr_html_())
    assert set(elements.found) <= {
        "div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "img",
    }  # fmt: skip
    assert elements.attributes <= {"style", "alt", "src"}
    return elements


def test_python_describes_draws_and_shows_it(f: Any) -> None:
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    assert isinstance(f, hs.ReleasedFunction)
    assert f.dim == f.kernel.dim
    assert f.bounds is not None
    assert f.bounds.dim == f.dim
    about = f.describe()
    assert isinstance(about, Description)
    assert json.loads(json.dumps(about.as_json()))["kind"] == "released function"
    assert f.claim.sentence() in str(about)
    ax = pyplot.figure().add_subplot()
    assert f.plot(ax, axes=0, at=0.5 if f.dim > 1 else None, of="sum", range=(0.2, 0.8)) is ax
    if (axes := _drawn(f)) is not None:
        assert isinstance(f.plot(axes=axes), Axes)
        assert "img" in check_html(f).found
    pyplot.close("all")


def test_answers_carry_their_points(f: Any) -> None:
    rows = np.array([[0.25, 0.5], [0.75, 0.5], [0.5, 0.5]])[:, : f.dim]
    answers = f.query(rows.tolist())
    np.testing.assert_array_equal(answers.points, rows)
    np.testing.assert_array_equal(answers.value, f.query(rows).value)
    assert "img" not in check_html(answers).found
    # One row, and in one column a number or a flat list, are queries too.
    np.testing.assert_array_equal(f(rows[0]), f(rows[:1]))
    if f.dim == 1:
        np.testing.assert_array_equal(f(0.25), f([[0.25]]))
        np.testing.assert_array_equal(f([0.25, 0.75]), f([[0.25], [0.75]]))
        assert f.query(0.25).points.shape == (1, 1)


def test_the_command_line_queries_shows_and_plots_it(f: Any, source: str, tmp_path: Path) -> None:
    at = ",".join(["0.5"] * f.dim)
    reported = json.loads(run("query", source, "--at", at, "--json"))["answers"]
    assert reported[0]["value"] == pytest.approx(f([[0.5] * f.dim])[0], rel=1e-12)
    assert run("query", source, "--at", at)
    names = f.columns or COLUMNS[: f.dim]
    pd.DataFrame([[0.5] * f.dim] * 3, columns=list(names)).to_csv(tmp_path / "q.csv", index=False)
    assert len(run("query", source, "--points", str(tmp_path / "q.csv")).splitlines()) == 4
    assert str(f.claim.mechanism) in run("show", source)
    shown = json.loads(run("show", source, "--json"))
    assert {**shown, "source": None, "size": None} == {**f.describe().as_json(), "source": None, "size": None}
    if (axes := _drawn(f)) is not None:
        run("plot", source, "--axes", ",".join(map(str, axes)), "-o", str(tmp_path / "f.png"))
        assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    again: Any = hs.load(source)
    assert type(again) is type(f) is type(load_function(source))
    point = [[0.5] * (f.dim or 1)]
    np.testing.assert_array_equal(again(point), f(point))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_matches_queries_by_column_name(name: str) -> None:
    f: Any = released(name)
    assert f.columns == COLUMNS[: f.dim]
    rows = pd.DataFrame([[0.3, 0.6]], columns=list(COLUMNS))[list(f.columns)]
    turned = rows[rows.columns[::-1]]
    containers = [
        turned,
        pl.from_pandas(turned),
        pl.from_pandas(turned).lazy(),
        duckdb.sql("SELECT 0.6::DOUBLE AS b, 0.3::DOUBLE AS a"),
    ]
    for each in containers:
        np.testing.assert_array_equal(f(each), f(rows.to_numpy()))
        np.testing.assert_array_equal(f.query(each).points, rows.to_numpy())


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_every_model_is_loaded_shown_and_refused_as_a_function(kind: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.errors.PublicAssumption)
        model = fitted(kind)
    path = tmp_path / "m.hush"
    model.save(path)
    assert type(hs.load(path)) is kind
    assert load_released(path).claim == model.claim_
    assert kind.__name__ in run("show", str(path))
    result = CliRunner().invoke(application("query"), ["query", str(path), "--at", "0,0"])
    assert isinstance(result.exception, hs.errors.FileRefused)
    with pytest.raises(hs.errors.FileRefused, match="holds a model"):
        load_function(path)


def test_plans_claims_and_audits_show_themselves() -> None:
    plan = hs.plan(records=1000, dim=1, bandwidth=0.1, epsilon=1.0)
    claim = released("race").claim
    report = hs.audit(hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=20, width=11).basis)
    for each in (plan, claim, report):
        check_html(each)
    assert claim.sentence()[:20] in claim._repr_html_()


def test_names_are_escaped() -> None:
    frame = FRAME.rename(columns={"a": "<script>alert(1)</script>"})
    f: Any = hs.release(frame, bandwidth=0.2, kernel="gaussian", bounds=(0, 1), epsilon=1.0)
    assert "<script>" not in f._repr_html_()
    assert "&lt;script&gt;" in f._repr_html_()
    check_html(f)


def test_a_set_function_is_shown_without_a_picture(tmp_path: Path) -> None:
    f: Any = hs.race(hs.JaccardKernel(), rows=16).add([[1, 2], [3]] * 50).release(epsilon=1.0)
    answers = f.query([[1, 2], [4]])
    assert answers.points == ((1, 2), (4,))
    assert "img" not in check_html(f).found
    check_html(answers)
    with pytest.raises(hs.errors.UsageError, match="columns of numbers"):
        f.plot()


def test_marginals_in_every_surface(tmp_path: Path) -> None:
    f: Any = ALL_RELEASES["marginals"]()
    source = str(tmp_path / "f.hush")
    f.save(source)
    assert "marginals" in run("show", source)
    reported = json.loads(run("query", source, "--at", "0.5,0.5", "--json"))["answers"]
    assert reported[0]["value"] == pytest.approx(f([[0.5, 0.5]])[0], rel=1e-12)
    turned = pd.DataFrame({"b": [0.1, 0.9], "a": [0.5, 0.5]})
    np.testing.assert_array_equal(f(turned), f([[0.5, 0.1], [0.5, 0.9]]))
    drawn = pd.read_csv(io.StringIO(run("sample", source, "-n", "2000", "--seed", "1")))
    assert list(drawn) == ["a", "b"]
    np.testing.assert_allclose(drawn.mean(), PLANE.mean(axis=0), atol=0.05)
    assert "img" not in check_html(f).found
    for words in (["plot", source, "-o", str(tmp_path / "f.png")], ["page", source, "-o", "f.html"]):
        refused = CliRunner().invoke(application(words[0]), words).exception
        assert isinstance(refused, hs.errors.UsageError)
        assert "query" in str(refused)


def test_lazy_records_are_evaluated_once() -> None:
    evaluated = 0

    def count(rows: pl.DataFrame) -> pl.DataFrame:
        nonlocal evaluated
        evaluated += 1
        return rows

    lazy = pl.from_pandas(FRAME).lazy().map_batches(count)
    keywords: dict[str, Any] = {
        "bandwidth": 0.2, "kernel": "gaussian", "bounds": (0, 1), "epsilon": 1.0, "insecure_noise_seed": 3,
    }  # fmt: skip
    f, expected = hs.release(lazy, **keywords), hs.release(FRAME, **keywords)
    assert evaluated == 1
    relation = duckdb.from_df(FRAME)
    again = hs.release(relation, **keywords)
    stream = pl.from_pandas(FRAME).to_arrow().to_reader()
    for each in (f, again, hs.release(stream, **keywords)):
        assert each.columns == COLUMNS
        np.testing.assert_array_equal(each([[0.3, 0.6]]), expected([[0.3, 0.6]]))
    evaluated = 0
    hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=10).add(lazy)
    assert evaluated == 1
    evaluated = 0
    model = hs.PrivateDensity(epsilon=1.0, bounds=(0, 1), random_state=0).fit(lazy)
    assert evaluated == 1
    assert model.feature_names_in_.tolist() == list(COLUMNS)


def test_dir_shows_public_names_only() -> None:
    assert set(dir(hs)) == {*hs.__all__, "models"}
