"""From an upload to a public model, its predictions, and everything that is refused on the way."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from hushsum.models import load_model
from hushsum.operations.models import model_names
from tests.in_process_service import SECRET, Town

pa: Any = pytest.importorskip("pyarrow")
ARROW = "application/vnd.apache.arrow.stream"
POINTS = [[0.0, 0.1], [0.9, -0.9], [-0.2, 0.3]]
KINDS = ("density", "histogram", "gaussian-process", "kernel-svc", "classifier", "regressor", "outliers")


def people(number: int = 600) -> bytes:
    """Records with two columns, a label and a number to learn; one value is easily recognised."""
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (number, 2))
    lines = [
        f"{a:.4f},{b:.4f},{'in' if a * a + b * b < 0.5 else 'out'},{int(a > 0)},{0.5 * a:.4f}"
        for a, b in points
    ]
    return "\n".join(["a,b,side,sign,height", f"{SECRET},0,out,1,{SECRET}", *lines, ""]).encode()


def terms(model: str, **more: Any) -> dict[str, Any]:
    """What is requested, but for the upload."""
    requested: dict[str, Any] = {
        "name": model,
        "model": model,
        "columns": ["a", "b"],
        "bounds": [[-1, 1]],
        "epsilon": 1.0,
        "delta": 1e-6,
    }
    if model in ("kernel-svc", "classifier", "linear-svc"):
        requested |= {"target": "side", "classes": ["in", "out"]}
    if model in ("gaussian-process", "regressor"):
        requested |= {"target": "height"}
    return requested | more


def replaced(town: Town) -> str:
    """A dataset in which every model can be booked."""
    return town.dataset(epsilon=50.0, delta=1e-4, relation="replace")


def confirmed(town: Town, dataset: str, requested: dict[str, Any]) -> dict[str, Any]:
    reported = town.ok("olga", "POST", f"/datasets/{dataset}/models/claims", json=requested)
    return {**requested, "confirm": reported["confirm"]}


def fitted(town: Town, dataset: str, model: str, data: bytes | None = None, **more: Any) -> Any:
    upload = town.upload(dataset, people() if data is None else data)
    requested = confirmed(town, dataset, {"upload": upload, **terms(model, **more)})
    return town.job(f"/datasets/{dataset}/models", requested)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> tuple[Town, dict[str, str]]:
    """A town with one model of every kind."""
    folder = tmp_path_factory.mktemp("gallery")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        town = Town(folder)
        dataset = replaced(town)
        made = {}
        for model in model_names():
            job = fitted(town, dataset, model, seed=1)
            assert job["state"] == "done", job
            made[model] = str(job["result"]["function"])
        return town, made


def test_the_kinds_are_those_of_the_command_line_and_can_be_made_into_a_form(town: Town) -> None:
    reported = {each["name"]: each for each in town.ok("olga", "GET", "/models")}
    assert list(reported) == model_names()
    assert reported["kernel-svc"]["learns"] == "label"
    assert reported["gaussian-process"]["learns"] == "number"
    assert reported["density"]["learns"] is None
    assert [name for name, each in reported.items() if each["needs_delta"]] == [
        "gaussian-process",
        "kernel-svc",
    ]
    settings = {each["name"]: each for each in reported["gaussian-process"]["settings"]}
    assert settings["kernel"]["choices"] == ["gaussian", "laplacian", "matern"]
    assert settings["features"] | {"help": ""} == {
        "name": "features",
        "type": "integer",
        "default": "auto",
        "optional": False,
        "listed": False,
        "choices": ["auto"],
        "rule": "an integer of at least 1 or 'auto'",
        "help": "",
    }
    assert settings["target_bounds"]["type"] == "pair"
    for each in reported.values():
        names = {setting["name"] for setting in each["settings"]}
        assert names.isdisjoint(
            {"epsilon", "delta", "bounds", "classes", "budget", "idempotency_key", "random_state"}
        )


@pytest.mark.parametrize("model", model_names())
def test_a_model_in_the_service_answers_as_its_file(
    gallery: tuple[Town, dict[str, str]], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    town, made = gallery
    id = made[model]
    reported = town.ok("olga", "GET", f"/functions/{id}")
    facts = reported["facts"]["model"]
    assert facts["kind"] == model
    assert facts["features"] == ["a", "b"]
    assert facts["bounds"] == [[-1.0, 1.0]] * 2
    assert facts["target"] == terms(model).get("target")
    assert facts["classes"] == terms(model).get("classes")
    assert SECRET not in json.dumps(reported)
    answers = town.ok("olga", "POST", f"/functions/{id}/query?of=predict", json={"points": POINTS})
    assert set(answers) - {"of", "level"} == set(facts["answers"])
    assert answers == town.ok("olga", "POST", f"/functions/{id}/query", json={"points": POINTS})
    file = town.ask("olga", "GET", f"/functions/{id}/file").content
    local: Any = load_model(io.BytesIO(file))
    table = pa.table({"b": [each[1] for each in POINTS], "a": [each[0] for each in POINTS]})
    if "prediction" in answers:
        assert answers["prediction"] == local.predict(table.select(["a", "b"])).tolist()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    sent = {"content-type": ARROW, "accept": ARROW}
    answer = town.ask("olga", "POST", f"/functions/{id}/query", content=sink.getvalue(), headers=sent)
    back = pa.ipc.open_stream(answer.content).read_all().to_pydict()
    assert back == {name: values for name, values in answers.items() if name in back}
    assert set(back) == set(facts["answers"])


def test_values_come_with_standard_errors_and_predictions_with_what_decided_them(
    gallery: tuple[Town, dict[str, str]],
) -> None:
    town, made = gallery

    def requested(model: str, level: float = 0.95) -> Any:
        path = f"/functions/{made[model]}/query?level={level}"
        return town.ok("olga", "POST", path, json={"points": POINTS})

    for model in ("density", "histogram", "gaussian-process", "outliers", "neighbors"):
        narrow, wide = requested(model, 0.5), requested(model, 0.99)
        for i in range(len(POINTS)):
            assert wide["lower"][i] < narrow["lower"][i] < narrow["value"][i] < narrow["upper"][i]
            assert narrow["stderr"][i] > 0.0
    machine = requested("kernel-svc")
    assert [row.index(max(row)) for row in machine["decision"]] == [
        ["in", "out"].index(label) for label in machine["prediction"]
    ]
    assert machine["stderr"][0] > 0.0
    assert np.array(requested("classifier")["probability"]).sum(axis=1) == pytest.approx([1.0] * len(POINTS))


def test_the_upload_is_deleted_and_the_dataset_is_debited_once(town: Town) -> None:
    dataset = town.dataset(epsilon=2.0)
    upload = town.upload(dataset, people())
    requested = confirmed(town, dataset, {"upload": upload, **terms("density", delta=None, epsilon=0.5)})
    first = town.job(f"/datasets/{dataset}/models", requested, key="once")
    assert first["state"] == "done"
    assert list(town.settings.path("uploads").iterdir()) == []
    again = town.job(f"/datasets/{dataset}/models", requested, key="once")
    assert again == first
    ledger = town.ok("olga", "GET", f"/datasets/{dataset}/ledger")
    assert ledger["status"]["spent"]["epsilon"] == "1/2"
    assert [(each["step"], each["who"]) for each in ledger["history"]] == [("published", "olga")]
    reported = town.ok("olga", "GET", f"/functions/{first['result']['function']}")
    assert reported["sha256"] == ledger["history"][0]["sha256"]
    other = {**requested, "name": "another"}
    town.refused(
        "olga", "POST", f"/datasets/{dataset}/models", 409, json=other, headers={"idempotency-key": "twice"}
    )


def test_a_used_upload_makes_no_second_model(town: Town) -> None:
    dataset = town.dataset(epsilon=2.0)
    upload = town.upload(dataset, people())
    requested = confirmed(town, dataset, {"upload": upload, **terms("density", epsilon=0.5, delta=None)})
    town.job(f"/datasets/{dataset}/models", requested)
    reported = town.refused(
        "olga", "POST", f"/datasets/{dataset}/models", 422, json=requested, headers={"idempotency-key": "two"}
    )
    assert reported["type"].endswith("parameter-refused")


def test_the_claim_is_shown_before_a_record_is_read_and_predicts_the_error(town: Town) -> None:
    dataset = replaced(town)
    upload = town.upload(dataset, b"nothing,of,use\n")
    path = f"/datasets/{dataset}/models/claims"
    for model in model_names():
        requested = {"upload": upload, **terms(model), "records": 10_000}
        reported = town.ok("olga", "POST", path, json=requested)
        assert reported["claim"]["epsilon"] == 1.0
        expected = "replace" if model in ("gaussian-process", "kernel-svc") else "add/remove"
        assert reported["claim"]["relation"] == expected
        known = model not in ("gaussian-process", "regressor", "linear-svc")
        assert (reported["predicted"] is not None) == known
        if known:
            more = town.ok("olga", "POST", path, json={**requested, "records": 1_000_000})["predicted"]
            less = reported["predicted"]
            assert more["of"] == less["of"]
            scale = 100 if more["of"] == "count" else 1
            assert 0.0 < more["error"] / scale < less["error"]
        assert town.ok("olga", "POST", path, json=requested | {"records": None})["predicted"] is None
    assert town.ok("olga", "GET", f"/datasets/{dataset}/ledger")["history"] == []


def test_a_model_of_replaced_records_is_refused_where_records_come_and_go(town: Town) -> None:
    dataset = town.dataset(epsilon=10.0, delta=1e-4)
    requested = {"upload": town.upload(dataset), **terms("kernel-svc")}
    reported = town.refused("olga", "POST", f"/datasets/{dataset}/models/claims", 422, json=requested)
    assert reported["type"].endswith("claim-refused")


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        ("density", {"model": "oracle"}),
        ("density", {"bounds": None}),
        ("density", {"bounds": []}),
        ("density", {"bounds": [[1, -1]]}),
        ("density", {"bounds": [[0, 1], [0, 1], [0, 1]]}),
        ("density", {"columns": []}),
        ("density", {"columns": ["a", "a"]}),
        ("classifier", {"classes": ["in", "in", "out"]}),
        ("density", {"epsilon": None}),
        ("density", {"rho": 0.1}),
        ("density", {"target": "side"}),
        ("density", {"classes": ["in", "out"]}),
        ("density", {"settings": {"colour": 1}}),
        ("density", {"settings": {"bandwidth": "wide"}}),
        ("density", {"settings": {"bandwidth": 0}}),
        ("density", {"settings": {"bandwidth": 1e-12}}),
        ("density", {"settings": {"bandwidth": []}}),
        ("density", {"settings": {"bandwidth": [0.1, 0.1]}}),
        ("density", {"settings": {"kernel": "jaccard"}}),
        ("density", {"settings": {"kernel": {"a kernel": {}}}}),
        ("density", {"settings": {"epsilon": 9.0}}),
        ("density", {"settings": {"ledger": "/etc/passwd"}}),
        ("density", {"settings": {"method": "functional"}, "delta": None}),
        ("histogram", {"settings": {"bins": 10**9}}),
        ("histogram", {"settings": {"bins": [3]}}),
        ("histogram", {"settings": {"relation": "sideways"}}),
        ("outliers", {"settings": {"rows": 10**8, "width": 10**8}}),
        ("outliers", {"settings": {"contamination": 2}}),
        ("outliers", {"settings": {"contamination": 1e-300}}),
        ("outliers", {"settings": {"threshold": True}}),
        ("kernel-svc", {"settings": {"features": 10**7}}),
        ("kernel-svc", {"settings": {"C": -1}}),
        ("kernel-svc", {"epsilon": 1e-9}),
        ("kernel-svc", {"target": None}),
        ("kernel-svc", {"target": "a"}),
        ("kernel-svc", {"classes": None}),
        ("kernel-svc", {"classes": ["in"]}),
        ("kernel-svc", {"delta": None}),
        ("linear-svc", {"classes": ["in", "out", "far"]}),
        ("gaussian-process", {"classes": ["in", "out"]}),
        ("gaussian-process", {"settings": {"target_bounds": [1, -1]}}),
        ("gaussian-process", {"settings": {"noise": 0}}),
        ("regressor", {"settings": {"method": "magic"}}),
        ("regressor", {"settings": {"target_bounds": [0, 1, 2]}}),
        ("modes", {"settings": {"n_modes": 0}}),
        ("neighbors", {"settings": {"level": 2}}),
        ("sampler", {"settings": {"steps": 0}}),
    ],
    ids=lambda each: json.dumps(each)[:60],
)
def test_what_is_no_model_is_refused_before_a_record_is_read(
    town: Town, model: str, wrong: dict[str, Any]
) -> None:
    dataset = replaced(town)
    requested = {"upload": town.upload(dataset, people()), **terms(model), **wrong}
    town.refused("olga", "POST", f"/datasets/{dataset}/models/claims", 422, json=requested)
    made = {**requested, "confirm": "0" * 64}
    path, headers = f"/datasets/{dataset}/models", {"idempotency-key": "k"}
    town.refused("olga", "POST", path, 422, json=made, headers=headers)


@pytest.mark.parametrize(
    ("model", "more", "kind"),
    [
        ("classifier", {"classes": ["in", "away"]}, "data-refused"),
        ("classifier", {"target": "sign", "classes": ["no", "yes"]}, "data-refused"),
        ("classifier", {"target": "height"}, "data-refused"),
        ("classifier", {"target": "nowhere"}, "parameter-refused"),
        ("density", {"columns": ["a", "nowhere"]}, "parameter-refused"),
        ("density", {"columns": ["a", "side"]}, "data-refused"),
        ("regressor", {"target": "side"}, "data-refused"),
        ("gaussian-process", {"target": "side"}, "data-refused"),
    ],
)
def test_records_that_do_not_suit_fail_the_job_and_tell_no_value(
    town: Town, model: str, more: dict[str, Any], kind: str
) -> None:
    dataset = replaced(town)
    job = fitted(town, dataset, model, **more)
    assert job["state"] == "failed"
    assert job["problem"]["type"].endswith(kind), job
    assert job["problem"]["status"] == 422
    text = json.dumps(job)
    assert SECRET not in text
    assert town.settings.folder not in text
    assert town.ok("olga", "GET", f"/datasets/{dataset}/ledger")["history"] == []
    assert len(list(town.settings.path("uploads").iterdir())) == 1, "it may be tried again on other terms"


def test_labels_of_any_kind_come_back_as_they_were(town: Town) -> None:
    a = np.random.default_rng(2).uniform(-1.0, 1.0, 3000)
    table = pa.table({"a": a, "sign": (a > 0).astype(np.int8), "flag": a > 0})
    sink = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(table, sink)
    dataset = town.dataset(epsilon=10.0)
    for target, classes, labels in (("sign", ["0", "1"], [1, 0]), ("flag", ["false", "true"], [True, False])):
        upload = town.upload(dataset, sink.getvalue(), "parquet")
        requested = {"upload": upload, **terms("classifier", delta=None, columns=["a"], seed=1)}
        requested |= {"target": target, "classes": classes}
        job = town.job(f"/datasets/{dataset}/models", confirmed(town, dataset, requested))
        assert job["state"] == "done", job
        id = job["result"]["function"]
        answers = town.ok("olga", "POST", f"/functions/{id}/query", json={"points": [[0.9], [-0.9]]})
        assert answers["prediction"] == labels
        assert town.ok("olga", "GET", f"/functions/{id}")["facts"]["model"]["classes"] == labels[::-1]


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("?of=mean", {"points": POINTS}),
        ("?of=sum", {"points": POINTS}),
        ("?only=value", {"points": POINTS}),
        ("?of=predict&only=value", {"points": POINTS}),
        ("", {"points": [[1.0]]}),
        ("", {"points": [[1.0, 2.0, 3.0]]}),
        ("", {"points": [["in", "out"]]}),
        ("", {"points": [[None, 1.0]]}),
        ("", {"points": []}),
        ("?level=2", {"points": POINTS}),
    ],
)
@pytest.mark.parametrize("model", ["density", "gaussian-process", "kernel-svc", "classifier"])
def test_what_is_no_question_of_a_model_is_refused(
    gallery: tuple[Town, dict[str, str]], model: str, query: str, body: dict[str, Any]
) -> None:
    town, made = gallery
    town.refused("olga", "POST", f"/functions/{made[model]}/query{query}", 422, json=body)


@pytest.mark.parametrize("model", model_names())
def test_points_far_away_are_answered_or_refused(gallery: tuple[Town, dict[str, str]], model: str) -> None:
    town, made = gallery
    for far in (5.0, 1e6, 1e30, 1e300, -1e308):
        path = f"/functions/{made[model]}/query"
        answer = town.ask("olga", "POST", path, json={"points": [[far, -far]]})
        assert answer.status_code in (200, 422), answer.text


def test_a_function_of_sums_predicts_nothing(town: Town) -> None:
    dataset = town.dataset()
    function = town.function(dataset)
    points = {"points": [[0.0, 0.0]]}
    town.refused("olga", "POST", f"/functions/{function}/query?of=predict", 422, json=points)


def test_an_analyst_asks_a_granted_model_and_downloads_it_only_if_allowed(town: Town) -> None:
    dataset = town.dataset()
    job = fitted(town, dataset, "outliers", epsilon=0.5, delta=None)
    id = job["result"]["function"]
    town.refused("anna", "POST", f"/functions/{id}/query", 404, json={"points": POINTS})
    town.ok("olga", "PUT", f"/functions/{id}/grants/anna", json={})
    assert town.ok("anna", "POST", f"/functions/{id}/query", json={"points": POINTS})["prediction"]
    town.refused("anna", "GET", f"/functions/{id}/file", 403)
    town.refused("anna", "GET", f"/jobs/{job['id']}", 403)


def test_a_dataset_of_persons_refuses_a_claim_for_records(town: Town) -> None:
    dataset = town.dataset(epsilon=8.0, unit="person")
    requested = {"upload": town.upload(dataset, people()), **terms("density"), "delta": None}
    path = f"/datasets/{dataset}/models/claims"
    refused = town.refused("olga", "POST", path, 422, json=requested)
    assert "max_per_unit" in refused["detail"]
    capped = town.dataset(name="capped", epsilon=8.0, unit="person", max_per_unit=4)
    job = fitted(town, capped, "density", delta=None)
    assert job["state"] == "done", job
    assert town.ok("olga", "GET", f"/datasets/{capped}")["budget"]["spent"]["epsilon"] == "4"
