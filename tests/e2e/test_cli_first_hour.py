"""From a file as people have it to a picture, and no budget spent on nonsense without a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.e2e.conftest import QuickShell
from typer.testing import CliRunner

import hushsum as hs
from hushsum.cli.main import application
from hushsum.errors import DataRefused, HushsumError, UsageError

app = application()

RNG = np.random.default_rng(3)
N = 2000
PEOPLE = pd.DataFrame(
    {
        "hired": pd.Timestamp("2015-01-01") + pd.to_timedelta(RNG.integers(0, 3000, N), "D"),
        "age": RNG.normal(45.0, 12.0, N).clip(18.0, 90.0).round(),
        "pay": np.exp(RNG.normal(10.8, 0.4, N)).round(2),
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("people.csv", index=False)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (arguments, result.output, result.exception)
    return result


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, HushsumError):
        return str(result.exception)
    assert result.exit_code, arguments
    return result.output + str(result.exception)


PAY = ("--columns", "pay", "--bounds", "0:300000", "--bandwidth", "5000", "--kernel", "gaussian")


BOX = ("--bounds", "2015-01-01:2024-12-31", "--epsilon", "1")


class TestOneCommand:
    def test_a_file_becomes_a_picture(self, folder: Path) -> None:
        run("release", "people.csv", *PAY, "--epsilon", "1", "--records", "2000", "-o", "pay.hush")
        assert run("plot", "pay.hush", "-o", "pay.png").stdout == "pay.png\n"
        f: Any = hs.load(folder / "pay.hush")
        truth = f.kernel.exact_sum(PEOPLE[["pay"]].to_numpy(), [[50_000.0]])[0] / N
        assert abs(f([[50_000.0]])[0] - truth) < 0.02

    def test_wildcards_take_all_files(self, folder: Path) -> None:
        PEOPLE[:1000].to_csv("part-1.csv", index=False)
        PEOPLE[1000:].to_csv("part-2.csv.gz", index=False)
        for command in (("release", "part-*"), ("release", "part-[12]*")):
            run(*command, *PAY, "--epsilon", "8", "-o", "f.hush")
        f: Any = hs.load(folder / "f.hush")
        assert abs(f.count - N) < 60
        assert "must match a file" in refused(
            "release", "nothing-*.csv", *PAY, "--epsilon", "1", "-o", "g.hush"
        )

    def test_columns_with_different_units_are_scaled(self, folder: Path) -> None:
        both = (
            "--columns",
            "age,pay",
            "--bounds",
            "0:120,0:300000",
            "--kernel",
            "gaussian",
            "--epsilon",
            "1",
        )
        told = run("release", "people.csv", *both, "--bandwidth", "0.05", "-o", "f.hush").stdout
        assert "of the declared ranges: 6 × 15000" in told
        f: Any = hs.load(folder / "f.hush")
        assert f.kernel.column_bandwidths() == (6.0, 15_000.0)
        for command, name in (("tally", "f.tally"), ("plan", "")):
            given = [command, *(() if command == "plan" else ("people.csv", "--columns", "age,pay"))]
            sizes = (
                ["--records", "2000", "--dim", "2", "--epsilon", "1"] if command == "plan" else ["-o", name]
            )
            run(*given, *both[2:6], "--bandwidth", "0.05", "--scale", "bounds", "--method", "grid", *sizes)
        assert hs.load_tally(folder / "f.tally").kernel == f.kernel
        assert "a fraction of the declared range" in refused(
            "release", "people.csv", *both, "--bandwidth", "5000", "-o", "g.hush"
        )

    def test_dates(self, folder: Path) -> None:
        run(
            *("release", "people.csv", "--columns", "hired", "--dates", "hired", "--date-unit", "days"),
            *("--bounds", "2015-01-01:2024-12-31", "--bandwidth", "60", "--epsilon", "1", "-o", "f.hush"),
        )
        f: Any = hs.load(folder / "f.hush")
        assert f.bounds.low == (16_436.0,)
        dated = ("--dates", "hired")
        run("plot", "f.hush", *dated, "--range", "2016-01-01:2018-01-01", "-o", "f.svg")
        assert "<!-- 2017" in (folder / "f.svg").read_text()
        run("plot", "f.hush", "-o", "f.svg")
        assert "<!-- 2017" not in (folder / "f.svg").read_text()
        assert "columns" in refused("plot", "f.hush", "--dates", "fired", "-o", "f.svg")
        typed = run("query", "f.hush", *dated, "--at", "2017-01-01", "--json").stdout
        assert json.loads(typed)["answers"][0]["value"] == f([[17_167.0]])[0]
        (folder / "q.csv").write_text("hired\n2017-01-01\n")
        read = run("query", "f.hush", *dated, "--points", "q.csv").stdout
        assert read.startswith('hired,value,stderr,lower,upper\n"2017-01-01",')
        assert "name the column in dates" in refused("query", "f.hush", "--at", "2017-01-01")
        run("fit", "density", "people.csv", *dated, "--columns", "hired", *BOX, "-o", "m.hush")
        run("plot", "m.hush", *dated, "-o", "m.svg")
        assert "<!-- 2018 -->" in (folder / "m.svg").read_text()
        predicted = run("predict", "m.hush", "q.csv", *dated).stdout
        assert predicted.splitlines()[1].startswith('"2017-01-01",')
        assert "name the column in dates" in refused("predict", "m.hush", "q.csv")
        assert "fired" in refused("predict", "m.hush", "q.csv", "--dates", "fired")
        assert "got dates" in refused(
            "release", "people.csv", "--columns", "hired", "--bounds", "0:1", "--bandwidth", "1",
            "--epsilon", "1", "-o", "g.hush",
        )  # fmt: skip
        assert "name the column in dates" in refused(
            *("release", "people.csv", "--columns", "pay", "--bounds", "2015-01-01:2024-12-31"),
            *("--bandwidth", "60", "--epsilon", "1", "-o", "g.hush"),
        )
        assert "date_unit" in refused(
            "release", "people.csv", *PAY, "--date-unit", "moons", "--epsilon", "1", "-o", "g.hush"
        )


class TestWarningsBeforeTheDebit:
    WIDE = ("--columns", "pay", "--bounds", "0:100", "--kernel", "gaussian", "--bandwidth", "5")

    def test_strict_stops_before_anything_is_spent(self, folder: Path) -> None:
        run("ledger", "init", "--ledger", "l.db", "--dataset", "town", "--epsilon", "2")
        booked = ("--ledger", "l.db", "--dataset", "town", "--epsilon", "1")
        for strict in ((), ("--strict",), ("--allow-clipping", "--strict")):
            message = refused("release", "people.csv", *self.WIDE, *booked, *strict, "-o", "f.hush")
            assert "outside" in message
            assert "nothing was spent" in message
            assert ("allow_clipping" in message) == ("--allow-clipping" not in strict)
        for command in ("tally", "heatmap", "fit"):
            files = (*(("density",) if command == "fit" else ()), "people.csv")
            box = ("--columns", "pay,age", "--bounds", "0:100,0:120", "--bandwidth", "5")
            more = ("-o", "x.tally") if command == "tally" else ("--epsilon", "1", "-o", "x.hush")
            plane = ("--plane",) if command == "heatmap" else ()
            assert "allow_clipping" in refused(command, *files, *box, *plane, *more)
        assert not (folder / "f.hush").exists()
        assert (
            "| spent | nothing |" in run("ledger", "export", "--ledger", "l.db", "--dataset", "town").stdout
        )
        told = run("release", "people.csv", *self.WIDE, *booked, "--allow-clipping", "-o", "f.hush")
        assert "outside the declared bounds" in told.stderr

    @pytest.mark.parametrize(
        ("bandwidth", "words"), [("500000", "nearly constant"), ("20", "most answers will be noise")]
    )
    def test_bandwidths(self, folder: Path, bandwidth: str, words: str) -> None:
        given = ("--columns", "pay", "--bounds", "0:300000", "--kernel", "gaussian", "--bandwidth", bandwidth)
        assert words in refused("release", "people.csv", *given, "--epsilon", "1", "--strict", "-o", "f.hush")
        run("tally", "people.csv", *given, "--method", "grid", "-o", "f.tally")
        assert words in refused("release", "f.tally", "--epsilon", "1", "--strict", "-o", "f.hush")
        assert not (folder / "f.hush").exists()

    def test_inputs_that_are_taken_to_be_public(self, folder: Path) -> None:
        given = ("--columns", "age", "--target", "pay", "--bounds", "0:120", "--target-bounds", "0:300000")
        more = ("--epsilon", "1", "--delta", "1e-6", "--strict", "-o", "m.hush")
        assert "--inputs is not given" in refused("fit", "gaussian-process", "people.csv", *given, *more)
        run("fit", "gaussian-process", "people.csv", *given, *more, "--inputs", "public")

    def test_defaults_of_models(self, folder: Path) -> None:
        given = ("people.csv", "--columns", "age", "--target", "pay", "--epsilon", "1", "-o", "m.hush")
        assert "allow_clipping" in refused("fit", "regressor", *given)
        assert "clipped" in refused("fit", "regressor", *given, "--allow-clipping", "--strict")
        assert not (folder / "m.hush").exists()


class TestModelsInFiles:
    @pytest.fixture
    def models(self, folder: Path) -> Path:
        box = {"age": (0.0, 120.0), "pay": (0.0, 300_000.0)}
        X = PEOPLE[["age", "pay"]]
        old = np.where(X["age"] > 45, "old", "young")
        hs.PrivateClassifier(classes=["old", "young"], bounds=box, random_state=0).fit(X, old).save(
            "cls.hush"
        )
        hs.PrivateDensity(bounds=(0, 120), bandwidth=5.0).fit(X[["age"]]).save("density.hush")
        hs.PrivateSampler(bounds=box, bandwidth=0.05, random_state=0).fit(X).save("sampler.hush")
        return folder

    def test_pictures_samples_and_descriptions(self, models: Path) -> None:
        for name in ("cls", "density", "sampler"):
            run("plot", f"{name}.hush", "-o", f"{name}.svg")
            shown = run("show", f"{name}.hush").stdout
            assert "mechanism" in shown
            assert "0:120" in shown
        run("plot", "cls.hush", "--axes", "age", "--at", "50000", "-o", "curves.svg")
        run("plot", "sampler.hush", "--log", "--pointwise", "-o", "log.svg")
        drawn = run("sample", "density.hush", "-n", "500", "--seed", "1").stdout.splitlines()
        assert drawn[0] == "age"
        assert abs(np.median([float(each) for each in drawn[1:]]) - 45.0) < 5.0
        run("sample", "sampler.hush", "-n", "50", "-o", "s.csv")
        assert len(pd.read_csv("s.csv")) == 50
        found = json.loads(run("sample", "density.hush", "-n", "3", "--json").stdout)
        assert (found["columns"], len(found["records"])) == (["age"], 3)
        assert "densities and samplers" in refused("sample", "cls.hush")

    def test_audits(self, models: Path) -> None:
        assert json.loads(run("audit", "density.hush", "--json").stdout)["holds"]

    def test_functions_are_sampled_too(self, folder: Path) -> None:
        run("release", "people.csv", *PAY, "--epsilon", "1", "-o", "pay.hush")
        drawn = run("sample", "pay.hush", "-n", "400", "--seed", "2").stdout.splitlines()
        assert drawn[0] == "pay"
        assert abs(np.median([float(each) for each in drawn[1:]]) / PEOPLE["pay"].median() - 1.0) < 0.2
        run("tally", "people.csv", "--columns", "pay", "--bandwidth", "5000", "--rows", "50", "-o", "n.tally")
        run("release", "n.tally", "--epsilon", "1", "-o", "n.hush")
        assert "declared bounds" in refused("sample", "n.hush")


def test_the_disclosure_report_says_what_was_released(folder: Path) -> None:
    run("ledger", "init", "--ledger", "l.db", "--dataset", "town", "--epsilon", "5")
    booked = ("--ledger", "l.db", "--dataset", "town", "--epsilon", "1")
    run("release", "people.csv", *PAY, *booked, "-o", "pay.hush")
    run(
        *("fit", "density", "people.csv", "--columns", "age", "--bounds", "0:120", "--bandwidth", "5"),
        *(*booked, "-o", "age.hush"),
    )
    report = run("ledger", "export", "--ledger", "l.db", "--dataset", "town").stdout
    for words in ("kernel: gaussian", "columns: pay", "bounds: 0:300000", "mechanism: discrete laplace",
                  "model: PrivateDensity", "columns: age", "bounds: 0:120"):  # fmt: skip
        assert words in report.replace("\\", "")


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("6.000", "must be an integer, got '6.000'; write it without separators: 6000"),
        ("6,000", "must be an integer, got '6,000'; write it without separators: 6000"),
        ("1.200.000", "write it without separators: 1200000"),
        ("6.0", "must be an integer, got '6.0'"),
        ("6.5", "must be an integer, got '6.5'"),
        ("5k", "must be an integer, got '5k'; see hushsum plan --help"),
    ],
)
def test_integers_are_typed_as_integers(typed: str, says: str, quick: QuickShell) -> None:
    """A parser may take 6.000 for 6, a thousandth of what is meant."""
    for words in (["--records", typed], [f"--records={typed}"]):
        assert says in quick.run("plan", *words, "--dim", "2", "--bandwidth", "5", "--epsilon", "1").err


def test_a_decimal_comma_on_the_command_line(quick: QuickShell) -> None:
    ended = quick.run("plan", "--records", "6000", "--dim", "2", "--bandwidth", "1,5", "--epsilon", "1")
    assert "got '1,5'; write it with a decimal point" in ended.err


def test_what_was_typed_is_shown_and_no_value_is(quick: QuickShell, folder: Path) -> None:
    typed = ("release", "people.csv", *PAY[:-3], "5k", "--epsilon", "1", "-o", "f.hush")
    assert "got '5k'" in quick.run(*typed).err
    wrong = ("--columns", "pay", "--bounds", "0-5", "--bandwidth", "1")
    assert "'0-5'" in refused("release", "people.csv", *wrong, "--epsilon", "1", "-o", "f.hush")
    (folder / "bad.csv").write_text("pay\n1\nsecret value\n")
    error = CliRunner().invoke(app, ["release", "bad.csv", *PAY, "--epsilon", "1", "-o", "f.hush"]).exception
    assert isinstance(error, DataRefused)
    assert "secret" not in str(error)


class TestMessages:
    PAY = ("--bounds", "0:300000", "--bandwidth", "5000", "--epsilon", "1", "-o", "f.hush")

    def test_names_with_commas_and_other_spellings(self, folder: Path) -> None:
        PEOPLE.rename(columns={"pay": "Base Pay, US$"}).to_csv("names.csv", index=False)
        message = refused("release", "names.csv", "--columns", "Base Pay, US$", *self.PAY)
        assert "in quotes: '\"Base Pay, US$\"'" in message
        run("release", "names.csv", "--columns", '"Base Pay, US$"', *self.PAY)
        message = refused("release", "names.csv", "--columns", '"base_pay, us$"', *self.PAY)
        assert "did you mean 'Base Pay, US$'" in message

    def test_the_target_is_called_the_target(self, folder: Path) -> None:
        fit = ("people.csv", "--columns", "age", "--bounds", "0:120", "--epsilon", "1", "-o", "m.hush")
        for model in ("classifier", "regressor"):
            with pytest.raises(UsageError) as error:
                CliRunner().invoke(app, ["fit", model, *fit, "--target", "nothing"], catch_exceptions=False)
            assert error.value.parameter == "target"

    def test_a_tiny_epsilon_is_refused_as_epsilon(self, folder: Path) -> None:
        for epsilon, words in (("1e-300", "epsilon must be at least"), ("1e-14", "choose a larger epsilon")):
            given = ("--columns", "pay", *self.PAY[:4], "--epsilon", epsilon, "-o", "f.hush")
            assert words in refused("release", "people.csv", *given)
        assert not (folder / "f.hush").exists()

    def test_a_release_without_bounds_says_what_bounds_would_allow(self, folder: Path) -> None:
        told = run(
            "release",
            "people.csv",
            "--columns",
            "pay",
            "--bandwidth",
            "5000",
            "--epsilon",
            "1",
            "-o",
            "f.hush",
        )
        assert "with --bounds, grid" in told.stderr
        told = run("release", "people.csv", "--columns", "pay", *self.PAY)
        assert "with --bounds" not in told.stderr

    def test_columns_of_a_synthesizer_are_those_of_the_file(self, folder: Path) -> None:
        given = ("--bounds", "0:120,0:300000", "--epsilon", "1", "-o", "s.hush")
        run("fit", "synthesizer", "people.csv", "--columns", "age,pay", *given)
        assert run("sample", "s.hush", "-n", "3").stdout.splitlines()[0] == "age,pay"
