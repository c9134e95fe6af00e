"""Public rows: every model that takes them, on every surface, and what must not be taken for public."""

from __future__ import annotations

import inspect
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer

import hushsum as hs
from hushsum.cli.main import application
from hushsum.errors import DataRefused, UsageError
from hushsum.models import PUBLIC_PARAMETERS, median_distance, visible_bandwidth
from hushsum.operations.models import ModelChoice, model_names
from hushsum.planning import plan, release
from hushsum.service.schemas import ModelClaimRequest, PlanRequest, ReleaseClaimRequest, TallyRequest
from tests.contract.fitted_models import MODELS, ask, target_for

app = application()

RNG = np.random.default_rng(3)
X = RNG.normal((50.0, 3.0), (10.0, 0.5), (1500, 2))
ROWS = RNG.normal((50.0, 3.0), (10.0, 0.5), (200, 2))


def left(kind: type[Any]) -> dict[str, str]:
    return {each.name: "public" for each in kind.PARAMETERS if each.from_public}


def given(kind: type[Any]) -> dict[str, Any]:
    named = {each.name for each in kind.PARAMETERS}
    small: dict[str, Any] = {"rows": 50, "width": 50, "features": 10}
    return {
        "delta": 1e-6,
        "random_state": 0,
        **{name: value for name, value in small.items() if name in named},
        **({"classes": [0, 1]} if "classes" in named else {}),
    }


def target(model: Any) -> Any:
    found = target_for(model, (X - X.mean(axis=0)) / 50.0)
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_takes_bounds_and_what_else_it_declares_from_public_rows(kind: type[Any]) -> None:
    assert "bounds" in left(kind)
    assert ("bandwidth" in left(kind)) == ("bandwidth" in inspect.signature(kind).parameters) or (
        kind is hs.PrivateClassifier
    )
    model = kind(**given(kind), **left(kind), public=ROWS)
    assert PUBLIC_PARAMETERS in model.claim(2).assumptions
    model.fit(X, target(model))
    assert model.claim_.assumptions == model.claim(2).assumptions
    file = io.BytesIO()
    model.save(file)
    assert b"public" in file.getvalue()
    assert ROWS.astype("<f4").tobytes()[:64] not in file.getvalue()
    file.seek(0)
    loaded: Any = hs.load(file)
    low, high = np.array(loaded.bounds).T
    assert (low < ROWS.min(axis=0)).all()
    assert (high > ROWS.max(axis=0)).all()
    assert loaded.claim_ == model.claim_
    assert loaded.public is None
    if "bandwidth" in left(kind):
        assert 0.01 < loaded.bandwidth < 50.0
    np.testing.assert_array_equal(ask(loaded, X[:5]), ask(model, X[:5]))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(ask(again, X[:5]), ask(model, X[:5]))


@pytest.mark.parametrize("kind", MODELS)
def test_rows_that_decide_nothing_or_that_are_not_there_are_refused(kind: type[Any]) -> None:
    with pytest.raises(UsageError, match="is left to public rows, which must be given"):
        kind(**given(kind), **left(kind)).claim(2)
    if kind is not hs.PrivateClassifier:
        with pytest.raises(UsageError, match="public must decide a parameter"):
            kind(**given(kind), public=ROWS).claim(2)
    with pytest.raises(DataRefused, match="at least 10 rows"):
        kind(**given(kind), bounds="public", public=ROWS[:9]).fit(X, target(kind()))


def test_private_records_are_not_public() -> None:
    model = hs.PrivateHistogram(bounds="public", public=X)
    with pytest.raises(UsageError, match="no part of the private records"):
        model.fit(X)
    for view in (X[:100], X[::2], X.T.T):
        with pytest.raises(UsageError, match="no part of the private records"):
            hs.PrivateHistogram(bounds="public", public=view).fit(X)
        with pytest.raises(UsageError, match="no part of the private records"):
            hs.release(X, epsilon=1.0, public=view)


def test_rows_that_change_between_counting_and_release_are_noticed() -> None:
    rows = ROWS.copy()
    model = hs.PrivateHistogram(bounds="public", public=rows).partial_fit(X)
    rows += 100.0
    with pytest.raises(UsageError, match="parameters were changed"):
        model.release()


def test_columns_of_frames_are_found_by_name() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    rows = pd.DataFrame(ROWS, columns=["a", "b"])
    plain = hs.PrivateHistogram(bounds="public", public=rows).fit(frame)
    turned = hs.PrivateHistogram(bounds="public", public=rows[["b", "a"]]).fit(frame)
    assert [each.tolist() for each in plain.bin_edges_] == [each.tolist() for each in turned.bin_edges_]
    with pytest.raises(UsageError, match="'b'"):
        hs.PrivateHistogram(bounds="public", public=rows[["a"]]).fit(frame)


def test_a_kernel_has_its_own_bandwidth() -> None:
    kernel = hs.GaussianKernel(dim=2, bandwidth=1.0)
    with pytest.raises(UsageError, match="bandwidth must be left out for a kernel"):
        hs.PrivateModes(kernel=kernel, bandwidth="public", public=ROWS).fit(X)


def test_bandwidths_widen_until_sums_stand_out_of_the_noise() -> None:
    def kernel(bandwidth: float) -> Any:
        return hs.GaussianKernel(dim=2, bandwidth=bandwidth)

    narrow = visible_bandwidth(kernel, ROWS, 10_000, lambda _: 1e-9)
    wide = visible_bandwidth(kernel, ROWS, 10_000, lambda _: 0.1)
    assert narrow < wide
    values = kernel(wide).similarity(ROWS, ROWS)
    assert np.median(values.mean(axis=1)) > 0.4
    assert median_distance(np.zeros((20, 2))) == 1.0


def test_several_bandwidths_may_contain_the_public_one() -> None:
    model = hs.PrivateDensity(bandwidth=["public", 0.5], scale="units", bounds="public", public=ROWS).fit(X)
    first, second = (each.bandwidth for each in model.compared_by(2))  # type: ignore[attr-defined]
    assert second == 0.5
    assert first != 0.5


def test_the_surfaces_call_them_by_one_name() -> None:
    for call in (plan, release):
        assert inspect.signature(call).parameters["public"].default is None
    commands: Any = typer.main.get_command(app)
    for name in ("plan", "release", "fit"):
        assert {each.name: each.default for each in commands.commands[name].params}["public"] is None
    for body in (ReleaseClaimRequest, TallyRequest, PlanRequest, ModelClaimRequest):
        assert body.model_fields["public"].default is None
    for kind in MODELS:
        assert inspect.signature(kind).parameters["public"].default is None


@pytest.mark.parametrize("name", model_names())
def test_what_is_not_given_is_left_to_public_rows(name: str) -> None:
    choice = ModelChoice(name, {"delta": 1e-6}, public=ROWS)
    model: Any = choice.build()
    assert {each: getattr(model, each) for each in choice.left_to_public()} == left(type(model))
    assert "bounds" not in choice.assumed()
    declared: Any = ModelChoice(name, {"delta": 1e-6, "bounds": (0, 100)}, public=ROWS)
    assert "bounds" not in declared.left_to_public()
    if "radius" in inspect.signature(type(model)).parameters:
        assert ModelChoice(name, {"radius": 1.0}, public=ROWS).left_to_public() == []


def test_the_command_line(tmp_path: Path) -> None:
    source, rows, made = (str(tmp_path / name) for name in ("x.csv", "rows.csv", "model.hush"))
    labels = np.where(X[:, 0] > 50.0, "old", "young")
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": labels}).to_csv(source, index=False)
    pd.DataFrame({"b": ROWS[:, 1], "a": ROWS[:, 0], "y": "old"}).to_csv(rows, index=False)
    fit = ["fit", "classifier", source, "--target", "y", "--classes", "old,young", "--epsilon", "1"]
    app([*fit, "--public", rows, "--yes", "-o", made], standalone_mode=False)
    loaded: Any = hs.load(made)
    assert loaded.bounds[0][1] > 60.0 > loaded.bounds[1][1]
    assert PUBLIC_PARAMETERS in loaded.claim_.assumptions
    copy = tmp_path / "copy.csv"
    copy.write_bytes(Path(source).read_bytes())
    for private in (source, str(copy)):
        with pytest.raises(UsageError, match="public must be a file of public records"):
            app([*fit, "--public", private, "--yes", "-o", made], standalone_mode=False)
        one = ["release", source, "--columns", "a", "--epsilon", "1", "--public", private, "-o", made]
        with pytest.raises(UsageError, match="public must be a file of public records"):
            app(one, standalone_mode=False)
