"""Which kernel and which table a release has where none is named, the same in Python, command and service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.methods import default_kernel
from hushsum.planning import KernelSpec, TableSpec, empty_tally
from tests.e2e.cli_process import Shell
from tests.in_process_service import Town

BOX = ("--columns", "a,b", "--bounds", "-5:5", "--bandwidth", "1")
X = np.random.default_rng(0).normal(size=(2000, 2))


@pytest.fixture
def shell(tmp_path: Path, quick_command: Path) -> Shell:
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b", comments="")
    return Shell(tmp_path, [quick_command])


def _json(shell: Shell, *words: str) -> Any:
    return shell.ok(*words, "--json").json


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ({}, "gaussian"),
        ({"bounds": (-5, 5)}, "gaussian"),
        ({"method": "grid", "bounds": (-5, 5)}, "gaussian"),
        ({"method": "privbayes", "bounds": (-5, 5)}, "gaussian"),
        ({"method": "race"}, "euclidean"),
        ({"width": 50}, "euclidean"),
        ({"rows": 40}, "euclidean"),
        ({"kernel": "euclidean", "bounds": (-5, 5)}, "euclidean"),
    ],
)
def test_a_release_of_numbers_is_gaussian_unless_hash_rows_are_requested(
    options: dict[str, Any], kernel: str
) -> None:
    assert hs.release(X, epsilon=1.0, bandwidth=1.0, **options).kernel.name == kernel


def test_the_plan_and_the_release_of_the_same_options_have_the_same_kernel() -> None:
    planned: dict[str, Any] = {"records": 2000, "dim": 2, "epsilon": 1.0, "bandwidth": 1.0}
    assert hs.plan(**planned, bounds=(-5, 5)).best.method == "grid"
    assert hs.plan(**planned).best.method == "fourier_features"
    assert hs.plan(**planned, rows=[40, 80]).best.method == "race"
    assert hs.plan(**planned, trust="local").best.method == "reports"
    assert hs.plan(**planned, trust="shuffled", delta=1e-6).best.method == "reports"


@pytest.mark.parametrize(
    ("options", "kernel", "basis"),
    [
        (BOX, "gaussian", "grid-weights"),
        ((*BOX[:2], *BOX[4:]), "gaussian", "fourier-features"),
        ((*BOX, "--rows", "50"), "euclidean", "hash-rows"),
        ((*BOX, "--method", "race"), "euclidean", "hash-rows"),
        ((*BOX, "--kernel", "euclidean"), "euclidean", "hash-rows"),
        ((*BOX, "--kernel", "matern"), "matern", "grid-weights"),
        ((*BOX, "--features", "64"), "gaussian", "fourier-features"),
        (("--columns", "a,b", "--kernel", "dot-product"), "dot-product", "monomials"),
    ],
)
def test_a_tally_takes_the_method_of_its_kernel(
    shell: Shell, options: tuple[str, ...], kernel: str, basis: str
) -> None:
    written = _json(shell, "tally", "x.csv", *options, "-o", "x.tally")
    assert (written["kernel"]["name"], written["basis"]) == (kernel, basis)


def test_commands_that_count_numbers_are_gaussian(shell: Shell) -> None:
    shell.ok("release", "x.csv", *BOX, "--epsilon", "1", "-o", "x.hush")
    assert _json(shell, "show", "x.hush")["kernel"]["name"] == "gaussian"
    chosen = _json(shell, "choose", "bandwidth", "x.csv", "--candidates", "1,2", "--epsilon", "1")
    assert chosen["kernel"]["name"] == "gaussian"
    benchmarked = _json(shell, "benchmark", "x.csv", "--public", *BOX, "--methods", "grid", "--epsilon", "1")
    assert benchmarked["kernel"]["name"] == "gaussian"
    for name in ("in", "out"):
        (shell.folder / name).mkdir()
    (shell.folder / "in" / "x.csv").write_bytes((shell.folder / "x.csv").read_bytes())
    stream = ("--every", "day", "--horizon", "3", "--epsilon", "1", "--delta", "1e-6", "--state", "a.stream")
    shell.ok("watch", "in", *BOX, *stream, "--once", "-o", "out")


def test_what_a_plan_says_to_type_counts_what_was_planned(shell: Shell) -> None:
    for given in (BOX[2:], (*BOX[4:], "--rows", "64")):
        text = shell.ok("plan", "--records", "2000", "--dim", "2", "--epsilon", "1", *given).text
        for line in text.splitlines():
            if line.startswith("  hushsum "):
                made = line.split()[1:]
                names = {"FILE": "x.csv", "NAME.hush": "x.hush", "NAME.tally": "x.tally"}
                written = _json(shell, *(names.get(each, each) for each in made))
                name = "euclidean" if "--rows" in given else "gaussian"
                assert written.get("kernel", {"name": name})["name"] == name


def test_sets_have_the_kernel_of_sets(shell: Shell) -> None:
    (shell.folder / "s.csv").write_text("tags\n1 2\n2 3\n")
    written = _json(shell, "tally", "s.csv", "--set-column", "tags", "-o", "s.tally")
    assert written["kernel"]["name"] == "jaccard"


def test_sizes_of_another_method_are_refused_by_name() -> None:
    kernel = KernelSpec(bandwidth=1.0).build(2)
    with pytest.raises(UsageError, match="race"):
        empty_tally(kernel, TableSpec(rows=20), bounds=None, columns=None, max_per_unit=None)
    assert default_kernel(rows=20) == "euclidean"


def test_the_service_counts_as_the_command_does(tmp_path: Path) -> None:
    town = Town(tmp_path)
    dataset = town.dataset()
    counted: list[tuple[dict[str, Any], str, str]] = [
        ({"bounds": [[-5, 5]]}, "gaussian", "grid-weights"),
        ({}, "gaussian", "fourier-features"),
        ({"rows": 20, "width": 30}, "euclidean", "hash-rows"),
    ]
    for options, kernel, basis in counted:
        body = {"upload": town.upload(dataset), "columns": ["a", "b"], "bandwidth": 1.0, **options}
        assert town.job(f"/datasets/{dataset}/tallies", body)["state"] == "done"
        made = town.ok("olga", "GET", f"/datasets/{dataset}/tallies")[-1]["facts"]
        assert (made["kernel"]["name"], made["basis"]) == (kernel, basis)
    plan = {"records": 2000, "dim": 2, "epsilon": [1.0], "bandwidth": 1.0, "bounds": [[-5, 5]]}
    planned = town.ok("olga", "POST", f"/datasets/{dataset}/plans", 200, json=plan)
    assert next(each for each in planned["options"] if each["best"])["method"] == "grid"


def test_models_that_count_near_records_are_gaussian() -> None:
    model = hs.models.PrivateNeighbors(bounds=(-5, 5), random_state=0).fit(X)
    assert model.function_.kernel.name == "gaussian"
