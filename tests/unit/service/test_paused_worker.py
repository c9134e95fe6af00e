"""A worker that was paused for longer than its lease, and goes on when its job is not its own any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hushsum.errors import UsageError
from hushsum.ledger import DatasetBudget, LedgerDebit
from hushsum.operations import tally_records
from hushsum.service.jobs import JobRunner, job_runner
from hushsum.service.store import Store
from tests.in_process_service import SMALL, Town
from tests.unit.service.test_streams import TERMS


def meanwhile(town: Town, monkeypatch: pytest.MonkeyPatch, others: Callable[[], None]) -> None:
    """Pause the next worker right before its debit, until its lease has ended and ``others`` have worked."""
    debit = DatasetBudget.debit

    def paused(budget: DatasetBudget, *claim: Any, **options: Any) -> LedgerDebit:
        monkeypatch.setattr(DatasetBudget, "debit", debit)
        town.release_lease()
        others()
        return debit(budget, *claim, **options)

    monkeypatch.setattr(DatasetBudget, "debit", paused)


def next_job(town: Town) -> bool:
    return JobRunner(town.settings, Store.open(town.settings.place)).next()


def spent(town: Town, dataset: str) -> str:
    return str(town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"])


def submitted(town: Town, path: str, body: dict[str, Any]) -> str:
    headers = {"idempotency-key": "k"}
    return str(town.ok("olga", "POST", path, 202, json=body, headers=headers)["id"])


def test_nothing_is_debited_for_a_job_that_was_reported_as_failed(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = town.dataset()
    body, path = town.confirmed(dataset, town.tally(dataset)), f"/datasets/{dataset}/releases"
    job = submitted(town, path, body)

    def refuses(*_: object, **__: object) -> None:
        raise UsageError("the second worker cannot read the tally")

    def fails() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(job_runner, "release_tally", refuses)
            assert next_job(town)
        assert town.ok("olga", "GET", f"/jobs/{job}")["state"] == "failed"

    meanwhile(town, monkeypatch, fails)
    assert next_job(town)
    assert town.ok("olga", "GET", f"/jobs/{job}")["state"] == "failed"
    assert spent(town, dataset) == "0"
    # The same key again does it, and pays once.
    assert submitted(town, path, body) == job
    assert next_job(town)
    assert town.ok("olga", "GET", f"/jobs/{job}")["state"] == "done"
    assert spent(town, dataset) == "1/2"


def test_a_stream_that_a_paused_worker_has_open_is_started_later(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = town.dataset(epsilon=8.0, delta=1e-5)
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/streams/claims", json=TERMS)
    body = {**TERMS, "confirm": claim["confirm"]}
    job = submitted(town, f"/datasets/{dataset}/streams", body)

    def waits() -> None:
        assert next_job(town), "the second worker finds the stream open"
        assert town.ok("olga", "GET", f"/jobs/{job}")["state"] == "queued"

    meanwhile(town, monkeypatch, waits)
    assert next_job(town)
    assert spent(town, dataset) == "0", "the job was not this worker's any more when it went on"
    town.release_lease()
    assert next_job(town)
    assert town.ok("olga", "GET", f"/jobs/{job}")["state"] == "done"
    assert spent(town, dataset) == "5"


def test_a_paused_worker_leaves_the_files_of_the_next_one_alone(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = town.dataset()
    body = {"upload": town.upload(dataset), **SMALL}
    job = submitted(town, f"/datasets/{dataset}/tallies", body)

    def paused(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(job_runner, "tally_records", tally_records)
        town.release_lease()
        assert next_job(town)
        raise UsageError("the upload is gone")

    monkeypatch.setattr(job_runner, "tally_records", paused)
    assert next_job(town)
    done = town.ok("olga", "GET", f"/jobs/{job}")
    assert done["state"] == "done"
    assert town.settings.path("tallies", f"{done['result']['tally']}.tally").exists()
