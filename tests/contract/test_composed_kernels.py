"""Products and combinations in every surface: Python, command line, service and client, models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hushsum as hs
from hushsum.cli.main import application
from hushsum.kernels import named
from hushsum.methods import all_methods
from tests.in_process_service import Town, listening

app = application()

RNG = np.random.default_rng(7)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40.0, 12.0, 1500).round(2),
        "town": RNG.integers(0, 3, 1500),
        "pay": RNG.normal(size=1500),
    }
)
COLUMNS = list(FRAME.columns)
TEXTS = {
    "product": "euclidean(age, bandwidth=20) * hamming(town)",
    "combination": "1.5 * euclidean(age, bandwidth=20) * hamming(town) - 0.5 * hamming(town)",
}
POINT = {"age": 40.0, "town": 1, "pay": 0.0}


@pytest.fixture(params=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return TEXTS[request.param]


def exact(text: str) -> float:
    kernel = named(text, dim=3, columns=COLUMNS)
    return float(kernel.exact_sum(FRAME, [list(POINT.values())])[0]) / len(FRAME)


def test_the_command_line_plans_counts_releases_and_queries(text: str, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    source, tally, function = (str(tmp_path / name) for name in ("x.csv", "x.tally", "x.hush"))
    commands = [
        ["plan", "--records", "1500", "--kernel", text, "--epsilon", "4", "--json"],
        ["tally", source, "--kernel", text, "--rows", "300", "-o", tally, "--json"],
        ["release", tally, "--epsilon", "4", "--rows", "300", "--yes", "-o", function],
        ["query", function, "--at", "40,1,0", "--json"],
        ["show", function, "--json"],
        ["show", function],
        ["audit", function],
    ]
    shown = []
    for command in commands:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (command, result.output)
        shown.append(result.stdout)
    kernel = named(text, dim=3, columns=COLUMNS)
    assert json.loads(shown[1])["kernel"]["name"] == kernel.name
    assert json.loads(shown[3])["answers"][0]["value"] == pytest.approx(exact(text), abs=0.15)
    assert json.loads(shown[4])["kernel"]["parameters"] == json.loads(json.dumps(kernel.parameters()))
    assert "euclidean(0, bandwidth=20.0) * hamming(1)" in shown[5]
    together = CliRunner().invoke(
        app, ["release", source, "--kernel", text, "--epsilon", "4", "--yes", "-o", str(tmp_path / "y.hush")]
    )
    assert together.exit_code == 0, together.output
    again: Any = hs.load(tmp_path / "y.hush")
    assert again.kernel == kernel
    assert again.columns == tuple(COLUMNS)
    assert again(FRAME[["town", "pay", "age"]][:1]).shape == (1,)


@pytest.mark.parametrize(
    "wrong", ["euclidean(age) * hamming(town)", "euclidean(height, bandwidth=1)", "nothing(age)"]
)
def test_the_command_line_refuses_other_text_in_one_sentence(wrong: str, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    result = CliRunner().invoke(
        app, ["tally", str(tmp_path / "x.csv"), "--kernel", wrong, "-o", str(tmp_path / "x.tally")]
    )
    assert isinstance(result.exception, hs.errors.UsageError)
    assert not (tmp_path / "x.tally").exists()


def test_the_service_and_its_client(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    town = Town(tmp_path)
    dataset = town.dataset(epsilon=9.0)
    path = f"/datasets/{dataset}"
    plan = town.ok("olga", "POST", f"{path}/plans", json={"records": 1500, "epsilon": [1.0], "kernel": text})
    assert {option["method"] for option in plan["options"]} == {"race"}
    upload = town.upload(dataset, FRAME.to_csv(index=False).encode())
    request = {"upload": upload, "columns": COLUMNS, "kernel": text, "rows": 300}
    refused = town.refused(
        "olga", "POST", f"{path}/tallies", 422, json={**request, "kernel": "hamming(height)"},
        headers={"idempotency-key": "0123456789"},
    )  # fmt: skip
    assert "kernel" in str(refused) or "columns" in str(refused)
    counted = town.job(f"{path}/tallies", request)
    assert counted["state"] == "done", counted
    tally = counted["result"]["tally"]
    released = town.job(f"{path}/releases", town.confirmed(dataset, tally, epsilon=8.0))
    assert released["state"] == "done", released
    id = released["result"]["function"]
    answer = town.ok("olga", "POST", f"/functions/{id}/query", json={"points": [[40.0, 1, 0.0]]})
    assert answer["value"][0] == pytest.approx(exact(text), abs=0.15)
    with listening(town.app) as address, hs.connect(address, token=town.tokens["olga"]) as service:
        remote = service.function(id)
        assert remote.kernel == named(text, dim=3, columns=COLUMNS)
        np.testing.assert_allclose(remote([[40.0, 1, 0.0]]), answer["value"], rtol=1e-12)


NUMBERS = np.clip(RNG.normal(0.5, 0.15, (2000, 2)), 0.01, 0.99)
ON_NUMBERS = {
    "hashed product": hs.kernels.on_columns(hs.EuclideanKernel(1, 0.3), 0, of=2)
    * hs.kernels.on_columns(hs.ManhattanKernel(1, 0.6), 1, of=2),
    "spectral product": hs.kernels.on_columns(hs.GaussianKernel(1, 0.3), 0, of=2)
    * hs.kernels.on_columns(hs.LaplacianKernel(1, 0.6), 1, of=2),
    "difference": 1.5 * hs.EuclideanKernel(2, 0.4) - 0.5 * hs.EuclideanKernel(2, 0.4, power=3),
    "mixture": 0.5 * hs.GaussianKernel(2, 0.3) + 0.5 * hs.LaplacianKernel(2, 0.6),
}
SIZES: dict[str, dict[str, Any]] = {
    "race": {"rows": 400, "width": 100},
    "fourier_features": {"features": 400},
    "landmarks": {"points": 200},
    "mwem": {"bins": 12, "rounds": 6},
    "privbayes": {"bins": 12, "size": 4000},
    "kme": {"points": 60},
    "pfda": {"steps": 64, "penalty": 1e-4},
}
PAIRS = [
    (name, method.name)
    for name, kernel in ON_NUMBERS.items()
    for method in all_methods()
    if method.role.test(kernel) and method.most_columns != 1
]


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_every_method_whose_role_a_composed_kernel_has_releases_it(name: str, method: str) -> None:
    kernel, way = ON_NUMBERS[name], next(each for each in all_methods() if each.name == method)
    f: Any = way.release(
        NUMBERS, kernel, bounds=(0, 1), epsilon=4.0, delta=None if way.pure else 1e-6,
        relation=way.relations[0], insecure_noise_seed=3, **SIZES.get(method, {}),
    )  # fmt: skip
    truth = kernel.exact_sum(NUMBERS, NUMBERS[:25]) / len(NUMBERS)
    assert np.abs(f(NUMBERS[:25]) - truth).mean() < 0.1
    answers = f.query(NUMBERS[:25])
    np.testing.assert_allclose(answers.value, f(NUMBERS[:25]))


def test_roles_reach_the_methods_that_they_are_for() -> None:
    reached = {name: {method for each, method in PAIRS if each == name} for name in ON_NUMBERS}
    assert {"race", "grid"} <= reached["hashed product"]
    assert {"fourier_features", "grid"} <= reached["spectral product"]
    assert {"race", "grid"} <= reached["difference"]
    assert {"fourier_features", "grid"} <= reached["mixture"]
    assert "race" not in reached["mixture"]


@pytest.mark.parametrize("name", ON_NUMBERS)
def test_plans_and_releases_choose_a_method(name: str) -> None:
    kernel = ON_NUMBERS[name]
    plan = hs.plan(records=2000, kernel=kernel, bounds=(0, 1), epsilon=2.0)
    f = hs.release(NUMBERS, kernel=kernel, bounds=(0, 1), epsilon=2.0, records=2000, insecure_noise_seed=1)
    truth = kernel.exact_sum(NUMBERS, NUMBERS[:25]) / 2000
    assert np.abs(f(NUMBERS[:25]) - truth).mean() < 4.0 * plan.best.error + 0.01


def test_records_with_sets_are_released_and_shown(tmp_path: Path) -> None:
    tags: Any = [[i % 5, 5 + i % 3] for i in range(1500)]
    frame = FRAME[["age", "town"]].assign(tags=tags)
    kernel = hs.kernels.on_columns(hs.EuclideanKernel(1, 20.0), 0, of=3) * hs.kernels.on_columns(
        hs.JaccardKernel(), 2, of=3
    )
    f: Any = hs.release(frame, kernel=kernel, epsilon=4.0, records=1500, insecure_noise_seed=2)
    answers = f.query(frame[:3])
    assert answers.points[1] == (frame["age"][1], frame["town"][1], (1, 6))
    truth = kernel.exact_sum(frame, frame[:3]) / 1500
    np.testing.assert_allclose(answers.value, truth, atol=0.15)
    assert "{1, 6}" in answers._repr_html_()
    f.save(tmp_path / "f.hush")
    np.testing.assert_array_equal(hs.load(tmp_path / "f.hush")(frame[:3]), f(frame[:3]))
    with pytest.raises(hs.errors.UsageError, match="columns of numbers"):
        f.plot()
    frame.to_parquet(tmp_path / "x.parquet")
    text = "euclidean(age, bandwidth=20) * jaccard(tags)"
    for command in (
        [
            "tally",
            str(tmp_path / "x.parquet"),
            "--kernel",
            text,
            "--rows",
            "50",
            "-o",
            str(tmp_path / "x.tally"),
        ],
        ["query", str(tmp_path / "f.hush"), "--points", str(tmp_path / "x.parquet")],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    assert hs.load_tally(tmp_path / "x.tally").kernel == kernel


@pytest.mark.parametrize("name", ["hashed product", "difference"])
def test_models_take_composed_kernels(name: str, tmp_path: Path) -> None:
    model = hs.PrivateNeighbors(epsilon=4.0, bounds=(0, 1), kernel=ON_NUMBERS[name], rows=200, random_state=0)
    model.fit(NUMBERS)
    model.save(tmp_path / "m.hush")
    again: Any = hs.load(tmp_path / "m.hush")
    assert again.function_.kernel == ON_NUMBERS[name]
