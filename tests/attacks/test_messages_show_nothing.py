"""No exception and no warning of a public call shows a value of the records or how many there are."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

import hushsum as hs
from hushsum.methods import method_names
from hushsum.models import CategoryColumn, NumberColumn, PublicEncoder
from tests.contract.fitted_models import MODELS
from tests.shown_numbers import shows_number

N = 137
VALUE = 0.7234567
PLANTED = ("0.7234", "7.234", "72345", "SMITH", "JONES")
NUMBERS = (137, 136, 138, 274, 411)
"""The number of records, alone and times a few columns; `PLANTED` is a value and texts of theirs."""

X = np.full((N, 2), VALUE)
Y = np.r_[np.zeros(70, int), np.ones(N - 70, int)]
KERNEL = hs.GaussianKernel(dim=2, bandwidth=0.5)
EUCLIDEAN = hs.EuclideanKernel(dim=2, bandwidth=0.5)


def _with(where: tuple[int, int], value: object) -> Any:
    changed = X.astype(object)
    changed[where] = value
    return changed


def _bad_records() -> dict[str, Any]:
    """Records that break a rule, each in its own way."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from scipy import sparse

    names = np.array(["SMITH"] * N, object)
    return {
        "1-D": X[:, 0],
        "0-D": np.float64(VALUE),
        "3-D": X[:, :, None],
        "three columns": np.c_[X, X[:, 0]],
        "transposed": X.T,
        "no columns": X[:, :0],
        "no records": X[:0],
        "text": np.c_[names, names],
        "text of fixed width": np.full((N, 2), "SMITH"),
        "bytes": np.full((N, 2), b"SMITH"),
        "one text": _with((3, 1), "SMITH"),
        "one None": _with((3, 1), None),
        "one dictionary": _with((3, 1), {"SMITH": VALUE}),
        "one list": [*X.tolist()[:-1], [VALUE, [VALUE]]],
        "NaN": np.where(np.arange(N)[:, None] == 3, np.nan, X),
        "infinity": np.where(np.arange(N)[:, None] == 3, np.inf, X),
        "huge": _with((3, 1), 10**400),
        "complex": X * (1 + 0j),
        "ragged": [*X.tolist()[:-1], [VALUE]],
        "ragged objects": np.array([*X.tolist()[:-1], [VALUE]], object),
        "lists of text": [["SMITH", "JONES"]] * N,
        "dictionaries": [{"name": "SMITH", "value": VALUE}] * N,
        "a dictionary": {"SMITH": [VALUE] * N},
        "a generator": (row for row in X),
        "a string": "SMITH",
        "a set": {VALUE, "SMITH"},
        "None": None,
        "sparse": sparse.csr_array(X),
        "masked": np.ma.masked_array(X, mask=2.0 * np.arange(N)[:, None] < X),
        "structured": np.array([(VALUE, "SMITH")] * N, dtype=[("a", float), ("b", "U5")]),
        "dates": np.full((N, 2), np.datetime64("2020-01-01")),
        "a frame with text": pd.DataFrame({"a": X[:, 0], "b": names}),
        "a frame with one text": pd.DataFrame({"a": X[:, 0], "b": _with((3, 1), "SMITH")[:, 1]}),
        "a frame with missing": pd.DataFrame({"a": X[:, 0], "b": pd.array([None] + [1] * (N - 1), "Int64")}),
        "a frame with dates": pd.DataFrame({"a": X[:, 0], "b": pd.to_datetime(["2020-01-01"] * N)}),
        "a frame with categories": pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(names)}),
        "a frame with lists": pd.DataFrame({"a": X[:, 0], "b": [[VALUE]] * N}),
        "a frame with three columns": pd.DataFrame(np.c_[X, X[:, 0]], columns=["a", "b", "c"]),
        "a series": pd.Series(X[:, 0]),
        "an Arrow table with text": pa.table({"a": X[:, 0], "b": ["SMITH"] * N}),
        "an Arrow table with nulls": pa.table({"a": X[:, 0], "b": [None] + [VALUE] * (N - 1)}),
        "a Polars frame with text": pl.DataFrame({"a": X[:, 0], "b": ["SMITH"] * N}),
        "a lazy frame with text": pl.DataFrame({"a": X[:, 0], "b": ["SMITH"] * N}).lazy(),
    }


def _bad_targets() -> dict[str, Any]:
    return {
        "short": Y[:-1],
        "long": np.r_[Y, 1],
        "2-D": np.c_[Y, Y],
        "text": np.array(["SMITH"] * 70 + ["JONES"] * (N - 70)),
        "many texts": np.array([f"SMITH{i}" for i in range(N)]),
        "objects": np.array([*["SMITH"] * 70, *[VALUE] * (N - 70)], object),
        "a dictionary among them": np.array([*Y[:-1], {"SMITH": VALUE}], object),
        "values": np.where(np.arange(N) == 5, VALUE, Y),
        "NaN": np.where(np.arange(N) == 5, np.nan, Y),
        "infinity": np.where(np.arange(N) == 5, np.inf, Y),
        "complex": Y * VALUE * (1 + 0j),
        "ragged": [[VALUE]] * (N - 1) + [[VALUE, VALUE]],
        "None": None,
        "a number": VALUE,
        "a string": "SMITH",
        "missing": [None] * N,
    }


def _said(error: BaseException) -> str:
    """What a printed traceback and a log show of an exception and those that it is chained to."""
    lines: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        lines += traceback.format_exception_only(seen)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return "".join(lines)


def _shown(calls: Iterator[tuple[str, Callable[[], object]]], folder: Path | None = None) -> list[str]:
    """Which calls showed something planted, in an exception or a warning.

    The name of ``folder`` is the caller's and may contain any number.
    """
    found = []
    for name, call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            text = ""
            try:
                call()
            except Exception as error:
                text = _said(error)
        text += "".join(str(each.message) for each in caught)
        if folder is not None:
            text = text.replace(str(folder), "FOLDER")
        found += [f"{name} shows {part}: {text[:300]}" for part in PLANTED if part in text]
        found += [f"{name} shows {each}: {text[:300]}" for each in NUMBERS if shows_number(text, each)]
    return found


def _target(model: Any) -> Any:
    if is_classifier(model):
        return Y
    return X[:, 0] if is_regressor(model) else None


@pytest.mark.filterwarnings("ignore::hushsum.errors.PublicAssumption")
@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_models(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Messages do not depend on how well a synthesizer is fitted, which takes seconds.
    monkeypatch.setattr("hushsum.models._synthesizer.ITERATIONS", 3)
    fitted = kind(random_state=0)
    targets = {} if _target(fitted) is None else _bad_targets()

    def calls() -> Iterator[tuple[str, Callable[[], object]]]:
        fitted.fit(X, _target(fitted))
        for name, records in _bad_records().items():
            y = _target(fitted)
            yield f"fit {name}", partial(kind().fit, records, y)
            yield f"partial_fit {name}", partial(kind().partial_fit, records, y)
            if hasattr(fitted, "fit_predict"):
                yield f"fit_predict {name}", partial(kind().fit_predict, records)
            for method in (
                "predict", "predict_proba", "score_samples", "decision_function", "query", "decide",
            ):  # fmt: skip
                if hasattr(fitted, method):
                    yield f"{method} {name}", partial(getattr(fitted, method), records)
            if hasattr(fitted, "score"):
                yield f"score {name}", partial(fitted.score, records, y)
        for name, y in targets.items():
            yield f"fit y {name}", partial(kind().fit, X, y)
            yield f"partial_fit y {name}", partial(kind().partial_fit, X, y)
            yield f"score y {name}", partial(fitted.score, X, y)
            if is_classifier(fitted):
                yield f"fit y {name}, classes", partial(kind(classes=[0, 1]).fit, X, y)
                yield f"classes y {name}", partial(kind(classes=y).fit, X, Y)
                yield f"partial_fit classes {name}", partial(kind().partial_fit, X, Y, classes=y)
        for parameter in fitted.get_params():
            for mixed_up in (X, X.tolist(), Y, ["SMITH"] * N):
                changed = kind().set_params(**{parameter: mixed_up})
                yield f"{parameter}=records", partial(changed.fit, X, _target(fitted))

    assert _shown(calls()) == []


def test_the_encoder() -> None:
    def calls() -> Iterator[tuple[str, Callable[[], object]]]:
        for name, records in _bad_records().items():
            yield f"fit {name}", partial(PublicEncoder().fit, records)
            yield f"transform {name}", partial(PublicEncoder().fit(X).transform, records)
            declared: tuple[Any, ...] = (
                {"a": NumberColumn(0, 1), "b": NumberColumn(0, 1)},
                [NumberColumn(0, 0.5), CategoryColumn(["x"])],
            )
            for columns in declared:
                yield f"declared {name}", partial(PublicEncoder(columns).fit_transform, records)

    assert _shown(calls()) == []


def _tallies() -> dict[str, Callable[[], Any]]:
    box = (0.0, 1.0)
    return {
        "race": lambda: hs.race(EUCLIDEAN, rows=10, bounds=box),
        "grid": lambda: hs.grid(KERNEL, bounds=box),
        "fourier_features": lambda: hs.fourier_features(KERNEL, bounds=box, features=8),
        "hamming": lambda: hs.race(hs.HammingKernel(dim=2), rows=10),
        "jaccard": lambda: hs.race(hs.JaccardKernel(), rows=10),
        "angular": lambda: hs.race(hs.AngularKernel(dim=2), rows=10),
    }


@pytest.mark.parametrize("kind", list(_tallies()))
def test_tallies_and_released_functions(kind: str) -> None:
    make = _tallies()[kind]
    tally = make()
    tally.add([{1, 2}] if kind == "jaccard" else np.zeros((1, 2), int if kind == "hamming" else float) + 1)
    f = tally.release(epsilon=1.0)

    def calls() -> Iterator[tuple[str, Callable[[], object]]]:
        for name, records in _bad_records().items():
            yield f"add {name}", partial(make().add, records)
            yield f"remove {name}", partial(make().remove, records)
            yield f"call {name}", partial(f, records)
            yield f"sum {name}", partial(f.sum, records)
            yield f"query {name}", partial(f.query, records)
        for name, units in _bad_targets().items():
            yield f"units {name}", partial(make().add, X, units=units)

    assert _shown(calls()) == []


@pytest.mark.parametrize("method", [None, *method_names()])
def test_release(method: str | None) -> None:
    given: dict[str, Any] = {"kernel": KERNEL, "bounds": (0.0, 1.0), "epsilon": 1.0, "delta": 1e-6}
    if method is not None:
        given["method"] = method

    def calls() -> Iterator[tuple[str, Callable[[], object]]]:
        for name, records in _bad_records().items():
            yield name, partial(hs.release, records, **given)
        if method is None:
            for parameter in ("bounds", "epsilon", "delta", "kernel", "method", "bandwidth"):
                for mixed_up in (X, X.tolist(), X[:, 0], ["SMITH"] * N):
                    yield f"{parameter}=records", partial(hs.release, X, **{**given, parameter: mixed_up})

    assert _shown(calls()) == []


def test_plan_choices_and_quantiles() -> None:
    candidates = [hs.GaussianKernel(dim=2, bandwidth=each) for each in (0.5, 1.0)]
    mixed_up = {**_bad_records(), **_bad_targets()}

    def calls() -> Iterator[tuple[str, Callable[[], object]]]:
        for name, records in mixed_up.items():
            if name not in ("0-D", "a number", "a string"):  # one number or name is a parameter, and shown
                given_plan: Any = {"epsilon": 1.0, "bandwidth": 0.5}
                yield f"plan {name}", partial(hs.plan, records=records, dim=2, **given_plan)
                yield f"plan dim {name}", partial(hs.plan, records=100, dim=records, **given_plan)
            for call in (hs.private_quantiles, hs.private_bounds):
                given: Any = {"bounds": (0, 1), "epsilon": 1.0}
                arguments: Any = (records, 0.5) if call is hs.private_quantiles else (records,)
                yield f"{call.__name__} {name}", partial(call, *arguments, **given)
            yield f"choose_kernel {name}", partial(hs.methods.choose_kernel, records, candidates, epsilon=1.0)

            def run(kernel: Any, epsilon: float, given: Any = records) -> Any:
                return hs.release(given, kernel=kernel, bounds=(0, 1), epsilon=epsilon)

            scored: Any = {"score": lambda f: f.count, "epsilon": 1.0}
            yield f"choose {name}", partial(hs.methods.choose, candidates, run, **scored)
            yield f"choose among {name}", partial(hs.methods.choose, records, run, **scored)

    assert _shown(calls()) == []


def _files(folder: Path) -> dict[str, Path]:
    """Files of records that break a rule in line 62, which a message may name."""
    rows = [f"{VALUE},{VALUE},{label}" for label in Y]
    wrong = {
        "text": f"SMITH,{VALUE},1",
        "text in another column": f"{VALUE},SMITH,1",
        "short row": f"{VALUE}",
        "long row": f"{VALUE},{VALUE},1,SMITH",
        "missing": f",{VALUE},1",
        "NaN": f"nan,{VALUE},1",
        "infinity": f"inf,{VALUE},1",
        "fraction": f"{VALUE},{VALUE},{VALUE}",
        "label": f"{VALUE},{VALUE},SMITH",
        "quotes": f'"SMITH,{VALUE},1',
    }
    made = {}
    for name, line in wrong.items():
        made[name] = folder / f"{name.replace(' ', '-')}.csv"
        made[name].write_text("\n".join(["a,b,ill", *rows[:60], line, *rows[61:]]) + "\n")
    made["header"] = folder / "header.csv"
    made["header"].write_text("\n".join(rows) + "\n")
    return made


def test_the_command_line(tmp_path: Path) -> None:
    from hushsum.cli.main import application

    good = tmp_path / "good.csv"
    good.write_text("a,b,ill\n" + "".join(f"{VALUE},{VALUE},{label}\n" for label in Y))
    promise = ["--epsilon", "1"]
    run = partial(application(), standalone_mode=False)
    tally, hush, model = (str(tmp_path / name) for name in ("t.tally", "f.hush", "m.hush"))
    run(["tally", str(good), "--columns", "a,b", "--bandwidth", "0.5", "--rows", "10", "-o", tally])
    run(["release", tally, *promise, "-o", hush, "--yes"])
    classify = ["--target", "ill", "--classes", "0,1", *promise, "--rows", "10", "--yes"]
    run(["fit", "classifier", str(good), *classify, "-o", model])

    def calls() -> Iterator[tuple[str, Callable[[], object]]]:
        for name, path in _files(tmp_path).items():
            source, output = str(path), str(tmp_path / f"{path.stem}.out")
            counted = ["--bandwidth", "1", "--rows", "10", "-o", output + ".tally"]
            yield f"tally {name}", partial(run, ["tally", source, *counted])
            yield (
                f"fit {name}",
                partial(run, ["fit", "classifier", source, *classify, "-o", output + ".hush"]),
            )
            yield f"query {name}", partial(run, ["query", hush, source, "-o", output])
            yield f"predict {name}", partial(run, ["predict", model, source, "-o", output + "p"])

    assert _shown(calls(), tmp_path) == []
