"""Streams of the service: one payment, then steps that count uploads; every job may be repeated."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.releases.noisy_table import NoisyTable
from hushsum.service.store import Store
from hushsum.service.work.job_runner import JobRunner
from tests.in_process_service import Town

TERMS: dict[str, Any] = {
    "name": "town",
    "columns": ["a", "b"],
    "steps": 12,
    "method": "grid",
    "kernel": "gaussian",
    "bandwidth": 1.0,
    "bounds": [[-5.0, 5.0]],
    "epsilon": 5.0,
    "delta": 1e-6,
}


def records(seed: int, number: int = 300) -> bytes:
    points = np.random.default_rng(seed).normal(0.0, 1.0, (number, 2))
    buffer = io.BytesIO()
    np.savetxt(buffer, points, delimiter=",", header="a,b", comments="")
    return buffer.getvalue()


def started(town: Town, dataset: str, **more: Any) -> str:
    terms = {**TERMS, **more}
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/streams/claims", json=terms)
    assert 1.5 < claim["ratio"] < 2.0
    job = town.job(f"/datasets/{dataset}/streams", {**terms, "confirm": claim["confirm"]}, key="start")
    assert job["state"] == "done", job
    return str(job["result"]["stream"])


def step(town: Town, dataset: str, stream: str, *uploads: str, key: str) -> dict[str, Any]:
    job = town.job(f"/datasets/{dataset}/streams/{stream}/steps", {"uploads": list(uploads)}, key=key)
    return dict(job)


def function(town: Town, id: str) -> NoisyTable:
    found = hs.load(io.BytesIO(town.ask("olga", "GET", f"/functions/{id}/file").content))
    assert isinstance(found, NoisyTable)
    return found


@pytest.fixture
def dataset(town: Town) -> str:
    return town.dataset(epsilon=8.0, delta=1e-5)


def test_uploads_over_time_under_one_payment(town: Town, dataset: str) -> None:
    stream = started(town, dataset)
    first = step(town, dataset, stream, town.upload(dataset, records(1)), key="1")
    second = step(town, dataset, stream, town.upload(dataset, records(2)), key="2")
    third = step(town, dataset, stream, key="3")
    assert [each["result"]["step"] for each in (first, second, third)] == [1, 2, 3]
    counts = [function(town, each["result"]["function"]).count for each in (first, second, third)]
    np.testing.assert_allclose(counts, [300, 600, 600], atol=40)
    (listed,) = town.ok("olga", "GET", f"/datasets/{dataset}/streams")
    assert (listed["id"], listed["released"], listed["steps"]) == (stream, 3, 12)
    assert listed["functions"] == [each["result"]["function"] for each in (first, second, third)]
    ledger = town.ok("olga", "GET", f"/datasets/{dataset}/ledger")
    assert len(ledger["history"]) == 1
    assert ledger["status"]["spent"]["epsilon"] == "5"


def test_the_same_key_takes_no_second_step(town: Town, dataset: str) -> None:
    stream = started(town, dataset)
    upload = town.upload(dataset, records(1))
    assert step(town, dataset, stream, upload, key="1") == step(town, dataset, stream, upload, key="1")
    refused = town.refused(
        "olga",
        "POST",
        f"/datasets/{dataset}/streams/{stream}/steps",
        422,
        json={"uploads": [upload]},
        headers={"idempotency-key": "2"},
    )
    assert "not counted" in refused["detail"]


def test_a_step_that_died_after_its_state_was_written_is_published_by_the_next_worker(
    town: Town, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = started(town, dataset)
    upload = town.upload(dataset, records(1))
    with monkeypatch.context() as patch:
        patch.setattr("hushsum.service.work.stream_jobs.atomic_file", _die)
        failed = step(town, dataset, stream, upload, key="1")
        assert failed["state"] == "failed"
    done = step(town, dataset, stream, upload, key="1")
    assert done["state"] == "done"
    assert done["result"]["step"] == 1, "it was not drawn again"
    assert abs(function(town, done["result"]["function"]).count - 300) < 40


def test_an_upload_is_counted_once(town: Town, dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = started(town, dataset)
    upload = town.upload(dataset, records(1))
    path = f"/datasets/{dataset}/streams/{stream}/steps"
    twice = {"uploads": [upload, upload]}
    town.refused("olga", "POST", path, 422, json=twice, headers={"idempotency-key": "0"})
    with monkeypatch.context() as patch:
        patch.setattr("hushsum.service.work.stream_jobs.atomic_file", _die)
        assert step(town, dataset, stream, upload, key="1")["state"] == "failed"
    another = step(town, dataset, stream, upload, key="2")
    assert another["state"] == "failed"
    assert "not counted" in another["problem"]["detail"]
    done = step(town, dataset, stream, upload, key="1")
    assert (done["state"], done["result"]["step"]) == ("done", 1)


def _die(*_: object) -> None:
    raise OSError("no space")


def test_a_bad_upload_takes_no_step(town: Town, dataset: str) -> None:
    stream = started(town, dataset)
    upload = town.upload(dataset, b"a,b\n1,2\nx,3\n")
    assert step(town, dataset, stream, upload, key="1")["state"] == "failed"
    assert step(town, dataset, stream, key="2")["result"]["step"] == 1


def test_an_upload_without_records_is_counted(town: Town, dataset: str) -> None:
    stream = started(town, dataset)
    done = step(town, dataset, stream, town.upload(dataset, b"a,b\n"), key="1")
    assert (done["state"], done["result"]["step"]) == ("done", 1)
    claim = function(town, done["result"]["function"]).claim
    assert "no file is refused or comes late" in claim.sentence()


def test_what_is_refused(town: Town, dataset: str) -> None:
    base = f"/datasets/{dataset}/streams"
    several: list[dict[str, Any]] = [
        {"steps": 0},
        {"columns": []},
        {"window": 3, "decay": 0.5},
        {"epsilon": 9.0},
    ]
    for wrong in several:
        town.refused(
            "olga", "POST", f"{base}/claims", 409 if "epsilon" in wrong else 422, json={**TERMS, **wrong}
        )
    town.refused(
        "olga", "POST", f"{base}/st_{'0' * 16}/steps", 404, json={}, headers={"idempotency-key": "k"}
    )
    town.refused(
        "olga", "POST", base, 409, json={**TERMS, "confirm": "0" * 64}, headers={"idempotency-key": "k"}
    )
    town.refused("otto", "GET", base, 404)


def test_a_deleted_dataset_takes_the_state_with_it(town: Town, dataset: str) -> None:
    stream = started(town, dataset)
    file = town.settings.path("streams", f"{stream}.stream")
    assert file.exists()
    town.ask("olga", "DELETE", f"/datasets/{dataset}")
    assert not file.exists()


def test_states_that_no_stream_continues_go(town: Town, dataset: str) -> None:
    """What a process left behind that was killed while it wrote a state, or deleted a dataset."""
    state = town.settings.path("streams", f"{started(town, dataset)}.stream")
    unknown = state.with_name("st_0000000000000000.stream")
    unfinished = state.with_name(f".{state.name}.x")
    runner = JobRunner(town.settings, Store.open(town.settings.place))
    contents = state.read_bytes()
    for path in (state, unknown, unfinished):
        path.write_bytes(contents)
        os.utime(path, (0, 0))
    runner.clean_up()
    assert state.exists()
    assert not unknown.exists()
    assert not unfinished.exists()
    town.ask("olga", "DELETE", f"/datasets/{dataset}")
    state.write_bytes(contents)
    os.utime(state, (0, 0))
    runner.clean_up()
    assert not state.exists()
