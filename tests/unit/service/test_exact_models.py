"""Models in exact mode: one answer a point, for ever; never a file; nothing beyond the limit."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import QuestionsSpent, ServiceRefused, UsageError
from hushsum.ledger import Ledger, LedgerDebit
from hushsum.operations import TrainingFiles
from hushsum.operations.models import EXACT, ModelChoice, SecretModel, secret_model
from hushsum.service.http import create_app
from hushsum.service.store import Functions
from tests.in_process_service import SECRET, Town, listening
from tests.unit.service.test_models import POINTS, confirmed, fitted, people, replaced, terms

FEW = {"mode": "exact", "most_questions": 5}


def exact(town: Town, dataset: str, model: str, **more: Any) -> str:
    job = fitted(town, dataset, model, people(300), **{**FEW, **more})
    assert job["state"] == "done", job
    return str(job["result"]["function"])


def ask(town: Town, id: str, points: list[list[float]]) -> Any:
    return town.ok("olga", "POST", f"/functions/{id}/query", json={"points": points})


@pytest.mark.parametrize("model", EXACT)
def test_the_same_point_has_the_same_answer_also_after_a_restart(town: Town, model: str) -> None:
    id = exact(town, replaced(town), model)
    reported = ask(town, id, POINTS)
    facts = town.ok("olga", "GET", f"/functions/{id}")["facts"]
    assert facts["model"]["mode"] == "exact"
    assert facts["claim"]["arithmetic"] == "real arithmetic"
    assert set(reported) - {"of", "level"} == set(facts["model"]["answers"])
    assert all(each > 0.0 for each in reported["stderr"])
    town.app = create_app(town.settings)
    assert ask(town, id, POINTS) == reported
    assert ask(town, id, POINTS[::-1])["prediction"] == reported["prediction"][::-1]


def test_labels_of_the_records_are_not_taken_as_the_list_of_classes(tmp_path: Path) -> None:
    """One record with another label would add a function, and its label would be shown."""
    path = tmp_path / "people.csv"
    path.write_text("x,label\n0.1,no\n0.2,yes\n0.3,Mrs Example\n")
    choice = ModelChoice("kernel-svc", {"epsilon": 1.0, "delta": 1e-6})
    with pytest.raises(UsageError, match="classes must be declared"):
        secret_model(choice, TrainingFiles((str(path),), ("x",), target="label"), most_questions=5)


@pytest.mark.parametrize("model", EXACT)
def test_beyond_the_limit_nothing_new_is_answered(town: Town, model: str) -> None:
    id = exact(town, replaced(town), model)
    reported = ask(town, id, POINTS)
    path = f"/functions/{id}/query"
    more = {"points": [[0.5, 0.1 * i] for i in range(3)]}
    problem = town.refused("olga", "POST", path, 409, json=more)
    assert problem["type"].endswith("questions-spent")
    assert ask(town, id, POINTS) == reported
    assert len(ask(town, id, more["points"][:2])["prediction"]) == 2


def test_it_is_never_a_file_and_its_files_are_secret(town: Town) -> None:
    dataset = replaced(town)
    id = exact(town, dataset, "density")
    ask(town, id, POINTS)
    reported = town.ok("olga", "GET", f"/functions/{id}")
    assert reported["download"] is False
    problem = town.refused("olga", "GET", f"/functions/{id}/file", 409)
    assert problem["type"].endswith("never-a-file")
    town.ok("olga", "PUT", f"/functions/{id}/grants/anna", json={"download": True})
    assert town.ok("anna", "GET", f"/functions/{id}")["download"] is False
    town.refused("anna", "GET", f"/functions/{id}/file", 409)
    files = sorted(town.settings.path("served").iterdir())
    assert [each.name for each in files] == [f"{id}.0.answers", f"{id}.secret"]
    assert all(each.stat().st_mode & 0o077 == 0 for each in files)
    assert list(town.settings.path("uploads").iterdir()) == []
    assert list(town.settings.path("functions").iterdir()) == []
    assert SECRET not in json.dumps(reported)
    ledger = town.ok("olga", "GET", f"/datasets/{dataset}/ledger")
    assert [each["step"] for each in ledger["history"]] == ["published"]
    assert SECRET not in json.dumps(ledger)


def test_several_machines_are_paid_for_once(town: Town) -> None:
    dataset = replaced(town)
    rows = people(300).replace(b",in,", b",far,", 60)
    job = fitted(town, dataset, "kernel-svc", rows, **FEW, classes=["far", "in", "out"])
    assert job["state"] == "done", job
    reported = ask(town, job["result"]["function"], POINTS)
    assert np.array(reported["decision"]).shape == (3, 3)
    assert len(list(town.settings.path("served").glob("*.answers"))) == 3
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "1"


def test_a_lost_store_is_not_replaced_by_a_new_path(town: Town) -> None:
    id = exact(town, replaced(town), "density")
    reported = ask(town, id, POINTS)
    store = town.settings.path("served", f"{id}.0.answers")
    kept = store.read_bytes()
    store.unlink()
    town.app = create_app(town.settings)
    for _ in range(2):
        town.refused("olga", "POST", f"/functions/{id}/query", 503, json={"points": POINTS})
    store.write_bytes(kept)
    town.app = create_app(town.settings)
    assert ask(town, id, POINTS) == reported


def test_a_budget_that_does_not_suffice_leaves_no_secret_behind(town: Town) -> None:
    dataset = town.dataset(epsilon=1.5, delta=1e-4, relation="replace")
    requested = []
    for _ in range(2):
        body = {"upload": town.upload(dataset, people(300)), **terms("density", **FEW)}
        requested.append(confirmed(town, dataset, body))
    for i, each in enumerate(requested):
        path, headers = f"/datasets/{dataset}/models", {"idempotency-key": f"k{i}"}
        town.ok("olga", "POST", path, 202, json=each, headers=headers)
    town.work()
    states = [each["state"] for each in town.ok("olga", "GET", f"/datasets/{dataset}/jobs")]
    assert states == ["done", "failed"]
    assert len(list(town.settings.path("served").glob("*.secret"))) == 1
    assert len(list(town.settings.path("served").glob("*.answers"))) == 1


@pytest.mark.parametrize(
    "moment",
    ["before it was paid", "before it was staged", "before the entry was closed", "before it was reported"],
)
def test_an_interrupted_opening_is_taken_up_and_paid_once(
    town: Town, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    dataset = replaced(town)
    requested = confirmed(
        town, dataset, {"upload": town.upload(dataset, people(300)), **terms("density", **FEW)}
    )

    class Died(BaseException):
        pass

    def die(*arguments: Any, **options: Any) -> Any:
        raise Died

    places: dict[str, tuple[Any, str]] = {
        "before it was paid": (SecretModel, "open"),
        "before it was staged": (LedgerDebit, "stage"),
        "before the entry was closed": (LedgerDebit, "publish"),
        "before it was reported": (Functions, "add"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*places[moment], die)
        with pytest.raises(Died):
            town.job(f"/datasets/{dataset}/models", requested, key="k")
    town.release_lease()
    assert town.work() == 1
    (job,) = town.ok("olga", "GET", f"/datasets/{dataset}/jobs")
    assert job["state"] == "done", job
    assert len(ask(town, job["result"]["function"], POINTS)["value"]) == 3
    ledger = town.ok("olga", "GET", f"/datasets/{dataset}/ledger")
    assert [each["step"] for each in ledger["history"]] == ["published"]
    assert ledger["status"]["spent"]["epsilon"] == "1"


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        ("histogram", {}),
        ("classifier", {}),
        ("density", {"delta": None}),
        ("density", {"settings": {"bandwidth": [0.1, 0.2]}}),
        ("density", {"settings": {"kernel": "euclidean"}}),
        ("density", {"most_questions": 0}),
        ("density", {"most_questions": 5001}),
        ("density", {"mode": "magic"}),
        ("kernel-svc", {"classes": None}),
        ("kernel-svc", {"target": None}),
        ("gaussian-process", {"settings": {"noise": -1}}),
        ("density", {"settings": {"method": "race"}}),
        ("gaussian-process", {"settings": {"inputs": "private"}}),
        ("gaussian-process", {"settings": {"features": 64}}),
        ("kernel-svc", {"settings": {"features": 64}}),
    ],
)
def test_what_has_no_exact_mode_is_refused(town: Town, model: str, wrong: dict[str, Any]) -> None:
    dataset = replaced(town)
    body = {"upload": town.upload(dataset, people(50)), **terms(model, **FEW), **wrong}
    town.refused("olga", "POST", f"/datasets/{dataset}/models/claims", 422, json=body)


def test_too_many_records_and_wrong_labels_fail_the_job(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = replaced(town)
    job = fitted(town, dataset, "kernel-svc", people(50), **FEW, classes=["in", "away"])
    assert job["problem"]["type"].endswith("data-refused")
    monkeypatch.setitem(EXACT, "kernel-svc", 20)
    job = fitted(town, dataset, "kernel-svc", people(50), **FEW)
    assert job["problem"]["type"].endswith("data-refused")
    assert "at most 20 records" in job["problem"]["detail"]
    assert list(town.settings.path("served").iterdir()) == []
    assert town.ok("olga", "GET", f"/datasets/{dataset}/ledger")["history"] == []


def test_the_key_of_tallies_encrypts_the_records_too(found_town: Callable[..., Town], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    town = found_town(tally_key_file=str(key))
    id = exact(town, replaced(town), "density")
    reported = ask(town, id, POINTS)
    town.app = create_app(town.settings)
    assert ask(town, id, POINTS) == reported
    with pytest.raises(hs.errors.UsageError, match="encrypted"):
        SecretModel.load(town.settings.path("served", id), encryption_key=None)


def test_a_long_body_has_the_answers_of_a_short_one(town: Town) -> None:
    """Its points are read in another process, so that other requests need not wait for that."""
    id = exact(town, replaced(town), "density")
    short, long = ask(town, id, POINTS), ask(town, id, POINTS * 300)
    assert long["value"] == short["value"] * 300
    town.refused("olga", "POST", f"/functions/{id}/query", 422, json={"points": [[None]] * 2000})


def test_many_at_once_get_one_path(town: Town) -> None:
    id = exact(town, replaced(town), "density", most_questions=60)
    points = [[0.1 * (i % 10), 0.05 * (i % 6)] for i in range(60)]
    headers = {"authorization": f"Bearer {town.tokens['olga']}"}
    with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as service:

        def one(i: int) -> list[float]:
            body = {"points": points[i:] + points[:i]}
            answer = httpx.post(f"{url}/functions/{id}/query", json=body, headers=headers, timeout=60)
            value = answer.json()["value"]
            return list(value[60 - i :] + value[: 60 - i])

        with ThreadPoolExecutor(6) as pool:
            reported = list(pool.map(one, [0, 7, 14, 21, 28, 35, 42, 49]))
        assert all(each == reported[0] for each in reported)
        model = service.model(id)
        np.testing.assert_array_equal(model.query(points).value, reported[0])
        with pytest.raises(QuestionsSpent):
            model.predict(np.random.default_rng(0).uniform(-1, 1, (61, 2)))
        with pytest.raises(ServiceRefused, match="no file"):
            model.local()
    with sqlite3.connect(town.settings.path("served", f"{id}.0.answers")) as store:
        assert store.execute("SELECT count(*) FROM answers").fetchone() == (30,)


def test_older_answers_put_back_are_refused(town: Town) -> None:
    id = exact(town, replaced(town), "density")
    ask(town, id, POINTS[:1])
    store, path = town.settings.path("served", f"{id}.0.answers"), f"/functions/{id}/query"
    older = store.read_bytes()
    reported = ask(town, id, POINTS)
    newer = store.read_bytes()
    store.write_bytes(older)
    town.app = create_app(town.settings)
    problem = town.refused("olga", "POST", path, 503, json={"points": POINTS[1:]})
    assert "fewer than were returned" in problem["detail"]
    store.write_bytes(newer)
    town.app = create_app(town.settings)
    assert ask(town, id, POINTS) == reported


def test_while_a_restore_is_not_accepted_nothing_new_is_answered(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = exact(town, replaced(town), "density")
    reported = ask(town, id, POINTS)
    monkeypatch.setattr(Ledger, "rollback_problem", lambda self: "it was restored")
    path = f"/functions/{id}/query"
    town.refused("olga", "POST", path, 503, json={"points": [[0.5, 0.5]]})
    assert ask(town, id, POINTS) == reported
    town.app = create_app(town.settings)
    problem = town.refused("olga", "POST", path, 503, json={"points": POINTS})
    assert "restored" in problem["detail"]


def test_a_model_made_before_an_accepted_restore_answers_nothing_new(town: Town, tmp_path: Path) -> None:
    # Its answers may be lost with the database's count of them: a second path would show what one hides.
    dataset = replaced(town)
    id = exact(town, dataset, "density")
    reported = ask(town, id, POINTS)
    shutil.rmtree(tmp_path / "state")
    (Path(town.settings.folder) / "service.db.rollback_guard").unlink()
    town.ok("admin", "POST", "/ledger/restores", 201, json={"reason": "restored"})
    path = f"/functions/{id}/query"
    problem = town.refused("olga", "POST", path, 503, json={"points": [[0.5, 0.5]]})
    assert "fit another" in problem["detail"]
    assert ask(town, id, POINTS) == reported
    charge = {"epsilon": 0, "delta": 0, "reason": "nothing was lost"}
    town.ok("olga", "POST", f"/datasets/{dataset}/write-offs", 201, json=charge)
    another = exact(town, dataset, "density")
    ask(town, another, POINTS)


def test_any_failure_before_the_payment_leaves_no_records(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(SecretModel, "open", fail)
        job = fitted(town, replaced(town), "density", people(300), **FEW)
    assert job["state"] == "failed"
    assert list(town.settings.path("served").iterdir()) == []


def test_the_owner_ends_a_model_and_its_records_are_deleted(town: Town) -> None:
    dataset = replaced(town)
    id, other = exact(town, dataset, "density"), exact(town, dataset, "density")
    ask(town, id, POINTS)
    reported = ask(town, other, POINTS)
    spent = town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]
    town.ok("olga", "PUT", f"/functions/{id}/grants/anna", json={"download": False})
    for who in ("anna", "otto"):
        town.refused(who, "DELETE", f"/functions/{id}", 403 if who == "anna" else 404)
    town.ok("olga", "DELETE", f"/functions/{id}", 204)
    assert not list(town.settings.path("served").glob(f"*{id}*"))
    for who in ("olga", "anna"):
        town.refused(who, "POST", f"/functions/{id}/query", 404, json={"points": POINTS})
    town.refused("olga", "DELETE", f"/functions/{id}", 404)
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"] == spent
    assert ask(town, other, POINTS) == reported


def test_a_public_function_is_not_ended(town: Town) -> None:
    id = town.function(town.dataset())
    problem = town.refused("olga", "DELETE", f"/functions/{id}", 409)
    assert problem["type"].endswith("public-for-ever")
    assert town.ok("olga", "GET", f"/functions/{id}")["id"] == id
