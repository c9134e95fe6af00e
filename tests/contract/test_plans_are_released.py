"""A plan is what the release does: in Python, on the command line, and by the commands that a plan prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hushsum as hs
from hushsum.cli.main import application

NAMES = "abcdefgh"
CASES: dict[str, tuple[int, str]] = {
    "eight columns": (8, "--bandwidth 0.2 --bounds 0:1 --epsilon 1"),
    "two columns": (2, "--bandwidth 0.2 --bounds 0:1 --epsilon 1"),
    "two columns with steps": (2, "--bandwidth 0.2 --bounds 0:1 --epsilon 1 --steps 0.01"),
    "a method": (2, "--bandwidth 0.2 --bounds 0:1 --epsilon 1 --method fourier_features"),
    "replace, with delta": (4, "--bandwidth 0.3 --bounds 0:1 --epsilon 1 --delta 1e-6 --relation replace"),
    "rho": (3, "--bandwidth 0.3 --bounds 0:1 --rho 0.1"),
    "inner products": (8, "--kernel dot-product --radius 2 --epsilon 1"),
    "hash rows": (3, "--kernel euclidean --bandwidth 0.4 --epsilon 1 --rows 200 --width 300"),
    "a comparison": (2, "--bounds 0:1 --epsilon 1 --purpose compare"),
    "a density": (8, "--bandwidth 0.2 --bounds 0:1 --epsilon 1 --density 0.02"),
}


def run(*words: str) -> str:
    result = CliRunner().invoke(application(words[0]), list(words))
    assert result.exit_code == 0, (words, result.output)
    return result.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path


def written(path: Path, dim: int) -> str:
    records = np.random.default_rng(0).uniform(0.2, 0.8, (600, dim))
    np.savetxt(path, records, delimiter=",", header=",".join(NAMES[:dim]), comments="")
    return str(path)


@pytest.mark.parametrize("case", CASES)
def test_the_printed_commands_do_what_was_planned(case: str, folder: Path) -> None:
    dim, options = CASES[case]
    words = ["plan", "--records", "600", "--dim", str(dim), *shlex.split(options)]
    best = next(each for each in json.loads(run(*words, "--json"))["options"] if each["best"])
    lines = run(*words).splitlines()
    release = lines[lines.index("Release it with:") + 1]
    source = written(folder / "x.csv", dim)
    said = release.replace("FILE", source).replace("NAME.hush", "f.hush").split()[1:]
    released = json.loads(run(*said, "-y", "--json"))
    assert released["method"] == best["method"]
    if "--density" not in options:  # a release predicts for the typical one
        assert released["predicted_error"] == pytest.approx(best["error"])
    if "Several sites count it with:" in lines:
        tally = lines[lines.index("Several sites count it with:") + 1]
        run(*tally.replace("FILE", source).replace("NAME.tally", "f.tally").split()[1:])


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"epsilon": 0.3, "delta": 1e-6}, {"rho": 0.05}])
def test_python_and_the_command_line_plan_alike(dim: int, promise: dict[str, Any], folder: Path) -> None:
    plan = hs.plan(records=20_000, dim=dim, bandwidth=0.2, bounds=(0, 1), **promise)
    options = [word for name, value in promise.items() for word in (f"--{name}", str(value))]
    words = ["--records", "20000", "--dim", str(dim), "--bandwidth", "0.2", "--bounds", "0:1", *options]
    best = next(each for each in json.loads(run("plan", *words, "--json"))["options"] if each["best"])
    assert (best["method"], best["error"]) == (plan.best.method, pytest.approx(plan.best.error))
