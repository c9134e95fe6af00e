"""One refused parameter, one error: the same data on every surface, each in its own spelling."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hushsum as hs
from hushsum.cli import main
from hushsum.client import Service
from hushsum.errors import (
    KINDS,
    PYTHON,
    SERVICE,
    AlreadyPublished,
    Argument,
    BudgetExhausted,
    FilePath,
    FileRefused,
    HushsumError,
    Parameter,
    PerSurface,
    Surface,
    UsageError,
    error_from_json,
    render,
)
from tests.in_process_service import SECRET, SMALL, Town, listening, records

COMMAND_LINE = Surface("command line", {"width": "--width", "delta": "--delta"})
REFUSED: dict[str, dict[str, Any]] = {
    "delta": {"epsilon": 0.5, "delta": 0.01},
    "delta of a population": {"epsilon": 0.5, "delta": 0.01, "population": 100},
    "delta with rho": {"rho": 0.1, "delta": 1e-6},
    "rows": {"epsilon": 0.5, "rows": 5000},
}
"""Releases that are refused, by the parameter that is wrong."""


@dataclass(frozen=True)
class Surfaces:
    tally: Path
    town: Town
    service: Service
    dataset: str
    stored: str


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    folder = tmp_path_factory.mktemp("errors")
    file = folder / "a.csv"
    file.write_bytes(records())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        place = folder / "service"
        place.mkdir()
        town = Town(place)
        dataset = town.dataset()
        stored = town.tally(dataset)
        tally = folder / "a.tally"
        sizes = ["--columns", "a,b", "--bandwidth", "1", "--rows", "60", "--width", "50", "--bounds=-5:5"]
        assert command(patch, "tally", str(file), "--output", str(tally), *sizes) == 0
        with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as service:
            yield Surfaces(tally, town, service, dataset, stored)


def command(patch: pytest.MonkeyPatch, *arguments: str) -> int:
    patch.setattr(sys, "argv", ["hushsum", *arguments])
    return main._run()


def option(name: str) -> str:
    return "--" + "-".join(name.split("_"))


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_release_is_the_same_error_everywhere(
    surfaces: Surfaces,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    terms = REFUSED[name]
    with pytest.raises(HushsumError) as local:
        hs.load_tally(surfaces.tally).release(**terms)
    error = local.value
    assert error.parameter is not None
    assert str(error).startswith(f"{error.parameter} ")

    options = [part for each, value in terms.items() for part in (option(each), str(value))]
    output = str(tmp_path / "a.hush")
    capsys.readouterr()
    code = command(monkeypatch, "release", str(surfaces.tally), "--output", output, "--yes", *options)
    printed = capsys.readouterr().err
    assert code == error.exit_code
    assert f"hushsum: {option(error.parameter)} " in printed
    assert "=..." not in printed
    assert "=True" not in printed

    request = {"tally": surfaces.stored, "name": "pay", **terms}
    path = f"/datasets/{surfaces.dataset}/claims"
    document = surfaces.town.refused("olga", "POST", path, error.status, json=request)
    assert document["type"] == f"urn:hushsum:problem:{error.kind}"
    assert document["error"] == error.as_json()
    assert document["detail"] == error.words(SERVICE)
    assert document["detail"].startswith(f"{error.parameter} ")
    assert "=" not in document["detail"].partition(";")[2]

    with pytest.raises(HushsumError) as remote:
        surfaces.service.dataset("payroll").claim(surfaces.stored, "pay", **terms)
    assert type(remote.value) is type(error)
    assert remote.value.as_json() == error.as_json()
    assert str(remote.value) == str(error)
    assert SECRET not in printed + str(error) + document["detail"]


def test_a_failed_job_raises_the_error_of_a_local_call(surfaces: Surfaces) -> None:
    upload = surfaces.town.upload(surfaces.dataset, b"a,b\n1,x\n")
    job = surfaces.town.job(f"/datasets/{surfaces.dataset}/tallies", {"upload": upload, **SMALL})
    problem = job["problem"]
    again = error_from_json(problem["type"].rpartition(":")[2], problem["error"])
    assert type(again) is hs.errors.DataRefused
    assert again.words(SERVICE) == problem["detail"]
    assert surfaces.town.settings.folder not in str(problem)
    assert "'x'" not in str(problem)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_a_problem_document_and_a_pickle(kind: str) -> None:
    made = KINDS[kind]("width", "must be at least 2", got=1, remedy=(Argument("width", 7),))
    again = error_from_json(kind, made.as_json())
    copied = pickle.loads(pickle.dumps(made))
    assert type(again) is type(copied) is KINDS[kind]
    assert again.as_json() == copied.as_json() == made.as_json()
    assert [each.words(COMMAND_LINE) for each in (made, again, copied)] == [
        "--width must be at least 2, got 1; --width 7"
    ] * 3


def test_every_class_has_a_kind_of_its_own() -> None:
    classes, found = [HushsumError], []
    while classes:
        found.append(classes.pop())
        classes += found[-1].__subclasses__()
    ours = [each for each in found if each.__module__ == "hushsum.errors"]
    assert sorted(KINDS) == sorted(each.kind for each in ours)


def test_parts_are_spelled_by_the_surface() -> None:
    words = (Parameter("delta"), " or ", Argument("delta", 0.5), ", ", PerSurface("p", "c", "s"))
    assert render(words, PYTHON) == "delta or delta=0.5, p"
    assert render(words, COMMAND_LINE) == "--delta or --delta 0.5, c"
    assert render(words, SERVICE) == 'delta or "delta": 0.5, s'
    assert Argument("seed").words(COMMAND_LINE) == "seed", "a command without the option keeps the name"


def test_a_path_of_the_service_does_not_leave_it() -> None:
    error = FileRefused((FilePath("/srv/uploads/up_1.csv"), " is damaged"))
    assert str(error) == "/srv/uploads/up_1.csv is damaged"
    assert error.words(SERVICE) == "the file is damaged"
    assert "/srv" not in str(error.as_json())


def test_no_object_is_shown_as_what_was_given() -> None:
    error = UsageError("bounds", "must be pairs", got=[31415926.5])
    assert error.got == "a list"
    assert SECRET not in str(error)


def test_a_plain_sentence_is_an_error_too() -> None:
    error = BudgetExhausted("nothing is left")
    assert (str(error), error.parameter, error.remedy) == ("nothing is left", None, None)
    assert error_from_json("budget-exhausted", error.as_json()).words(SERVICE) == "nothing is left"
    published = error_from_json("already-published", AlreadyPublished("done", sha256="ab").as_json())
    assert isinstance(published, AlreadyPublished)
    assert published.sha256 == "ab"


def test_an_unknown_kind_is_refused_by_the_service() -> None:
    assert type(error_from_json("of-a-later-version", {"rule": "no"})) is hs.errors.ServiceRefused
