"""Models in a real service: fitted, requested from afar, killed anywhere, and paid for once."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from tests.e2e.service_process import ServiceProcess
from tests.in_process_service import SECRET, Town
from tests.ledger_workers import start
from tests.service_workers import work_once
from tests.unit.service.test_models import confirmed, people, terms

import hushsum as hs
from hushsum.errors import BudgetExhausted, DataRefused, QuestionsSpent, ServiceRefused, UsageError
from hushsum.ledger import Ledger

KILLED = -signal.SIGKILL
POINTS = np.array([[0.0, 0.1], [0.9, -0.9], [-0.9, 0.9]])
TABLE = pa.table({"a": POINTS[:, 0], "b": POINTS[:, 1]})
PROMISE: dict[str, Any] = {"columns": ["a", "b"], "bounds": [[-1, 1]], "epsilon": 1.0, "delta": 1e-6}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ServiceProcess]:
    found = ServiceProcess(tmp_path)
    yield found
    if found.process is not None and found.process.poll() is None:
        found.process.kill()
        found.process.wait()


def sent(data: Any) -> str:
    return str(data.upload(io.BytesIO(people(3000)), format="csv"))


def test_classify_and_regress_from_afar(place: ServiceProcess) -> None:
    """Upload, claim, fit, ask, kill -9, ask again; what does not suit is refused and shows no record."""
    admin = place.start()
    token, analyst = admin.create_account("olga", "owner"), admin.create_account("anna", "analyst")
    olga = hs.connect(place.url, token)
    assert "kernel-svc" in [each["name"] for each in olga.model_kinds()]
    data = olga.create_dataset("people", epsilon=6.0, delta=1e-4, relation="replace")
    labels: dict[str, Any] = {"target": "side", "classes": ["in", "out"]}

    upload = sent(data)
    reported = data.model_claim(upload, "side", model="kernel-svc", **PROMISE, **labels, records=3000)
    assert reported["claim"]["relation"] == "replace"
    assert 0.1 < reported["predicted"]["error"] < 0.3
    machine = data.fit(upload, "side", model="kernel-svc", idempotency_key="one", **PROMISE, **labels)
    assert machine.predict(POINTS).tolist() == ["in", "out", "out"]
    assert (
        data.fit(upload, "side", model="kernel-svc", idempotency_key="one", **PROMISE, **labels).id
        == machine.id
    )

    settings = {"bandwidth": 0.8, "noise": 8.0, "target_bounds": [-0.5, 0.5]}
    height: dict[str, Any] = {"model": "gaussian-process", "target": "height", "settings": settings}
    served = data.fit(sent(data), "height", **height, **PROMISE, mode="exact", most_questions=10)
    curve = served.query(POINTS)
    assert (curve.lower < curve.value).all()
    # Some seven standard errors apart.
    assert curve.value[1] > curve.value[0] > curve.value[2]
    line = data.fit(sent(data), "line", model="regressor", target="height", **PROMISE)
    own: Any = line.local()
    np.testing.assert_array_equal(line.predict(TABLE), own.predict(TABLE))

    data.grant(machine, "anna", download=True)
    data.grant(served, "anna", download=True)
    anna = hs.connect(place.url, analyst)
    remote = anna.model("side")
    local: Any = remote.local()
    for method in ("predict", "decision_function"):
        np.testing.assert_array_equal(getattr(remote, method)(TABLE), getattr(local, method)(TABLE))
    with pytest.raises(ServiceRefused, match="no file"):
        anna.model("height").save(io.BytesIO())
    with pytest.raises(UsageError, match="gives no probability"):
        remote.predict_proba(POINTS)

    refused: list[dict[str, Any]] = [{"classes": ["in"]}, {"classes": None}, {"bounds": []}, {"target": "a"}]
    for wrong in refused:
        with pytest.raises(UsageError):
            data.fit(sent(data), "x", model="kernel-svc", **{**PROMISE, **labels, **wrong})
    with pytest.raises(DataRefused, match="declared classes"):
        data.fit(sent(data), "x", model="kernel-svc", **{**PROMISE, **labels, "classes": ["in", "away"]})
    with pytest.raises(BudgetExhausted):
        data.fit(sent(data), "x", model="density", **{**PROMISE, "epsilon": 9.0})

    place.kill()
    place.start()
    np.testing.assert_array_equal(served.query(POINTS).value, curve.value)
    with pytest.raises(QuestionsSpent):
        served.predict(np.random.default_rng(0).uniform(-1.0, 1.0, (8, 2)))
    assert [each["step"] for each in data.ledger()["history"]] == ["published"] * 3
    # The regressor protects a record that is added or removed, which counts twice where one is replaced.
    assert data.budget()["spent"]["epsilon"] == "4"
    answer = httpx.get(
        f"{place.url}/functions/{served.id}/file", headers={"authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 409
    place.stop()
    assert "Traceback" not in place.log
    assert SECRET not in place.log
    assert {each["event"] for each in place.events()} >= {"serving", "answered", "job done", "job failed"}


@pytest.mark.parametrize(
    ("mode", "step"),
    [
        ("file", 31),
        ("exact", 13),
        pytest.param("file", 5, marks=pytest.mark.slow),
        pytest.param("exact", 1, marks=pytest.mark.slow),
    ],
)
def test_a_fit_killed_at_some_touches_of_files_is_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, step: int
) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    town = Town(tmp_path, lease_seconds=60.0)
    dataset = town.dataset(epsilon=1000.0, delta=1e-3, relation="replace")
    runs = 0
    for moment in range(0, 10_000, step):
        requested = {"upload": town.upload(dataset, people(200)), **terms("density", mode=mode)}
        made = town.ok(
            "olga",
            "POST",
            f"/datasets/{dataset}/models",
            202,
            json=confirmed(town, dataset, requested),
            headers={"idempotency-key": f"at{moment}"},
        )
        process = start(work_once, town.settings.for_worker(), moment)
        process.join(120)
        town.release_lease()
        town.work()
        job = town.ok("olga", "GET", f"/jobs/{made['id']}")
        assert job["state"] == "done", job
        runs += 1
        assert list(town.settings.path("uploads").iterdir()) == []
        path = f"/functions/{job['result']['function']}/query"
        assert town.ok("olga", "POST", path, json={"points": POINTS.tolist()})["value"]
        if process.exitcode == 0:
            break
        assert process.exitcode == KILLED
    assert runs >= 3
    ledger = Ledger(town.settings.place)
    entries = ledger.history(dataset)
    assert len(entries) == runs
    assert {str(entry.step) for entry in entries} == {"published"}
    cost = 1 if mode == "exact" else 2
    assert ledger.account(dataset).spent.epsilon == runs * cost
    assert ledger.verify().holds
