"""Streams of the service: one payment, then steps that count uploads; every job may be repeated."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.releases import NoisyTable
from hushsum.service.jobs import JobRunner
from hushsum.service.store import JobQueue, Store
from tests.in_process_service import Town, listening

TERMS: dict[str, Any] = {
    "name": "town",
    "columns": ["a", "b"],
    "horizon": 12,
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
    assert (listed["id"], listed["released"], listed["horizon"]) == (stream, 3, 12)
    assert listed["functions"] == [each["result"]["function"] for each in (first, second, third)]
    ledger = town.ok("olga", "GET", f"/datasets/{dataset}/ledger")
    assert len(ledger["history"]) == 1
    assert ledger["status"]["spent"]["epsilon"] == "5"


def test_a_stream_by_the_client(town: Town, dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits for jobs; here each is run when its state is requested."""
    terms = {**TERMS, "window": 2}
    name, horizon = terms.pop("name"), terms.pop("horizon")
    with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as service:
        (data,) = (each for each in service.datasets() if each.id == dataset)
        monkeypatch.setattr("hushsum.client._client.time.sleep", lambda seconds: town.work())
        assert data.stream_claim(name, horizon=horizon, **terms)["ratio"] > 1.0
        assert data.streams() == []
        stream = data.stream(name, horizon=horizon, idempotency_key="start", **terms)
        again = data.stream(name, horizon=horizon, idempotency_key="start", **terms)
        assert (again.id, stream.horizon, stream.claim["epsilon"]) == (stream.id, 12, 5.0)
        for number in (1, 2, 3):
            upload = data.upload(io.BytesIO(records(number)), format="csv")
            taken = stream.step(upload, idempotency_key=f"{number}")
            assert stream.step(upload, idempotency_key=f"{number}").id == taken.id
        counts = [each.count for each in stream.functions()]
        np.testing.assert_allclose(counts, [300, 600, 600], atol=60)
        assert stream.step().id == stream.functions()[-1].id
        with pytest.raises(UsageError, match="not counted"):
            stream.step(upload)
        assert data.budget()["spent"]["epsilon"] == "5"


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
        patch.setattr("hushsum.service.jobs.job_runner.atomic_file", _die)
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
        patch.setattr("hushsum.service.jobs.job_runner.atomic_file", _die)
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
        {"horizon": 0},
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


def test_the_state_counts_against_the_quota_of_its_owner(found_town: Callable[..., Town]) -> None:
    town = found_town(owner_bytes=25_000)
    dataset = town.dataset(epsilon=20.0, delta=1e-5)
    before = town.ok("olga", "GET", "/usage")["bytes"]["used"]
    started(town, dataset)
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/streams/claims", json=TERMS)
    used = town.ok("olga", "GET", "/usage")["bytes"]["used"] - before
    assert used == claim["state_bytes"] > 10_000
    request, key = {**TERMS, "confirm": claim["confirm"]}, {"idempotency-key": "another"}
    refused = town.refused("olga", "POST", f"/datasets/{dataset}/streams", 409, json=request, headers=key)
    assert refused["type"].endswith("quota-exceeded")
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "5"
    town.ask("olga", "DELETE", f"/datasets/{dataset}")
    assert town.ok("olga", "GET", "/usage")["bytes"]["used"] == before


def test_streams_that_were_queued_together_share_the_quota(found_town: Callable[..., Town]) -> None:
    """Each fits when it is requested; the worker looks again before it pays."""
    town = found_town(owner_bytes=25_000)
    dataset = town.dataset(epsilon=20.0, delta=1e-5)
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/streams/claims", json=TERMS)
    request = {**TERMS, "confirm": claim["confirm"]}
    path = f"/datasets/{dataset}/streams"
    jobs = [
        town.ok("olga", "POST", path, 202, json=request, headers={"idempotency-key": key})["id"]
        for key in ("one", "two")
    ]
    town.work()
    first, second = (town.ok("olga", "GET", f"/jobs/{id}") for id in jobs)
    assert (first["state"], second["state"]) == ("done", "failed")
    assert second["problem"]["type"].endswith("quota-exceeded")
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "5"


def test_a_state_that_no_worker_can_hold_is_never_paid(found_town: Callable[..., Town]) -> None:
    town = found_town(worker_memory_bytes=60_000)
    dataset = town.dataset(epsilon=20.0, delta=1e-5)
    refused = town.refused("olga", "POST", f"/datasets/{dataset}/streams/claims", 422, json=TERMS)
    assert "the state of a stream must have at most 15000 bytes" in refused["detail"]
    smaller = {**TERMS, "horizon": 2}
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/streams/claims", json=smaller)
    assert claim["state_bytes"] <= 15_000


def test_counters_of_persons_grow_the_state(town: Town, dataset: str) -> None:
    persons = town.dataset(
        name="persons", epsilon=8.0, delta=1e-5, unit="person", max_per_unit=2, relation="add/remove"
    )
    stream = started(town, persons, unit_column="who", max_per_unit=2)
    before = town.ok("olga", "GET", "/usage")["bytes"]["used"]
    rows = "".join(f"{i % 7 - 3},{i % 5 - 2},person {i}\n" for i in range(5000))
    done = step(town, persons, stream, town.upload(persons, f"a,b,who\n{rows}".encode()), key="1")
    assert done["state"] == "done", done
    size = town.settings.path("streams", f"{stream}.stream").stat().st_size
    assert town.ok("olga", "GET", "/usage")["bytes"]["used"] == size > before


def test_an_upload_of_a_queued_step_is_not_deleted(town: Town, dataset: str) -> None:
    stream = started(town, dataset)
    upload = town.upload(dataset, records(1))
    path = f"/datasets/{dataset}/streams/{stream}/steps"
    town.ok("olga", "POST", path, 202, json={"uploads": [upload]}, headers={"idempotency-key": "1"})
    refused = town.refused("olga", "DELETE", f"/datasets/{dataset}/uploads/{upload}", 409)
    assert refused["type"].endswith("in-use")


def test_steps_are_taken_in_the_order_of_their_requests(town: Town, dataset: str) -> None:
    """Also where the worker of the first one has died, and another one finds the second first."""
    stream = started(town, dataset)
    path = f"/datasets/{dataset}/streams/{stream}/steps"
    jobs = [
        town.ok("olga", "POST", path, 202, json={}, headers={"idempotency-key": key})["id"]
        for key in ("1", "2")
    ]
    store = Store.open(town.settings.place)
    held = JobQueue(store.database).claim(1000.0)
    assert held is not None
    assert held.id == jobs[0]
    runner = JobRunner(replace(town.settings, workers=4), store)
    assert runner.next()
    waiting = JobQueue(store.database).find(jobs[1])
    assert waiting is not None
    assert (waiting.state, waiting.attempts) == ("queued", 0), "it was no attempt"
    for _ in range(2):
        town.release_lease()
        assert runner.next()
    assert [town.ok("olga", "GET", f"/jobs/{id}")["result"]["step"] for id in jobs] == [1, 2]


def test_a_step_whose_job_failed_is_published_before_the_next_one(
    town: Town, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid for is not lost because somebody did not repeat the request."""
    stream = started(town, dataset)
    upload = town.upload(dataset, records(1))
    with monkeypatch.context() as patch:
        patch.setattr("hushsum.service.jobs.job_runner.atomic_file", _die)
        failed = step(town, dataset, stream, upload, key="1")
        assert failed["state"] == "failed"
    second = step(town, dataset, stream, town.upload(dataset, records(2)), key="2")
    assert second["result"]["step"] == 2
    left = "fn_" + failed["id"].removeprefix("job_")
    assert abs(function(town, left).count - 300) < 40
    assert town.ok("olga", "GET", f"/functions/{left}")["name"] == "town step 1"
    assert step(town, dataset, stream, upload, key="1")["result"]["function"] == left
