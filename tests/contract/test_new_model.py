"""A new model is one class: Python, the command line, forms and the service have it from its declarations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.cli.main import application
from hushsum.declaration import setting
from hushsum.errors import UsageError
from hushsum.models import MODELS, TableModel, declared, load_model
from hushsum.operations.models import model_kinds
from tests.in_process_service import Town

app = application()

X = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))


def register_toy() -> Any:
    """A model that says how many records are near, times a factor; making the class registers it."""

    @declared
    class PrivateToy(TableModel):
        """Says how many records are near, times a factor.

        Privacy
        -------
        One release of one table.
        """

        COMMAND = "toy"
        DEFAULT_BANDWIDTH = 0.5

        factor: float = setting(2.0, "What counts are multiplied by.", above=0)

        def predict(self, X: object) -> Floats:
            """Counts, shape (n_queries,)."""
            counts: NDArray[np.float64] = self._reading().sum(self._queries(X))
            return self.factor * counts

    return PrivateToy


@pytest.fixture
def toy() -> Iterator[Any]:
    made = register_toy()
    model_kinds.cache_clear()
    yield made
    del MODELS["PrivateToy"]
    model_kinds.cache_clear()


def test_python(toy: Any, tmp_path: Path) -> None:
    assert "factor : a number above 0, default 2.0\n" in toy.__doc__
    with pytest.raises(UsageError, match="factor must be a number above 0, got 0"):
        toy(factor=0).fit(X)
    model = toy(random_state=0).fit(X)
    assert model.claim_ == model.claim()
    predicted = toy().predicted_error(500, 2)
    assert predicted is not None
    model.save(tmp_path / "toy.hush")
    np.testing.assert_array_equal(load_model(tmp_path / "toy.hush").predict(X[:5]), model.predict(X[:5]))


def test_the_command_line(toy: Any, tmp_path: Path) -> None:
    source, made, answers = (str(tmp_path / name) for name in ("x.csv", "toy.hush", "answers.csv"))
    np.savetxt(source, X, delimiter=",", header="a,b", comments="")
    fit = ["fit", "toy", source, "--epsilon", "1", "--yes", "-o", made]
    app([*fit, "--factor", "3"], standalone_mode=False)
    assert load_model(made).get_params()["factor"] == 3
    app(["predict", made, source, "-o", answers], standalone_mode=False)
    assert (tmp_path / "answers.csv").read_text(encoding="utf-8").startswith("a,b,prediction\n")
    with pytest.raises(UsageError, match="factor must be a number above 0"):
        app([*fit, "--factor", "-1"], standalone_mode=False)


def test_the_service(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    town = Town(tmp_path, extensions="tests.contract.own_model")
    kinds = {each["name"]: each for each in town.ok("olga", "GET", "/models")}
    settings = {each["name"]: each for each in kinds["toy"]["settings"]}
    assert (settings["factor"]["type"], settings["factor"]["default"]) == ("number", 2.0)
    dataset = town.dataset(epsilon=5.0)
    data = "a,b\n" + "".join(f"{a:.3f},{b:.3f}\n" for a, b in X)
    requested = {
        "upload": town.upload(dataset, data.encode()),
        "name": "toy",
        "model": "toy",
        "columns": ["a", "b"],
        "bounds": [[-1, 1]],
        "epsilon": 1.0,
        "settings": {"factor": 3.0},
    }
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/models/claims", json=requested)
    job = town.job(f"/datasets/{dataset}/models", {**requested, "confirm": claim["confirm"]})
    assert job["state"] == "done", job
    path = f"/functions/{job['result']['function']}"
    facts = town.ok("olga", "GET", path)["facts"]
    assert (facts["model"]["kind"], facts["model"]["estimator"]) == ("toy", "PrivateToy")
    queries = pd.DataFrame([[0.1, 0.2], [-0.5, 0.5]], columns=["a", "b"])
    answer = town.ok("olga", "POST", f"{path}/query", json={"points": queries.to_numpy().tolist()})
    (tmp_path / "toy.hush").write_bytes(town.ask("olga", "GET", f"{path}/file").content)
    local = load_model(tmp_path / "toy.hush")
    assert local.get_params()["factor"] == 3.0
    np.testing.assert_array_equal(answer["prediction"], local.predict(queries))
