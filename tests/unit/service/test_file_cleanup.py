"""What a kill leaves behind, and what a database that is away does to jobs."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from hushsum.errors import LedgerUnavailable
from hushsum.ledger import LedgerDebit
from hushsum.service.jobs import GRACE_SECONDS, JobRunner, delete_orphaned_files
from hushsum.service.store import MOST_ATTEMPTS, Actor, Datasets, Functions, Store
from tests.in_process_service import SMALL, Town, records
from tests.unit.service.test_models import confirmed, fitted, people, replaced, terms


def aged(path: Path, seconds: float) -> Path:
    path.write_bytes(b"1,2\n")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_unfinished_and_unknown_files_go_and_the_rest_stays(town: Town) -> None:
    dataset = town.dataset()
    function = town.function(dataset)
    upload = town.upload(dataset)
    settings = town.settings
    kept = [
        settings.path("uploads", f"{upload}.csv"),
        settings.path("functions", f"{function}.hush"),
        *settings.path("tallies").iterdir(),
    ]
    for path in kept:
        os.utime(path, (0, 0))
    old = [
        aged(settings.path("uploads", ".up_0.csv.part"), GRACE_SECONDS + 60),
        aged(settings.path("uploads", "up_0000000000000000.csv"), GRACE_SECONDS + 60),
        aged(settings.path("tallies", ".ta_0.tally.x"), GRACE_SECONDS + 60),
        aged(settings.path("tallies", "ta_0000000000000000.tally"), GRACE_SECONDS + 60),
        aged(settings.path("functions", ".fn_0.hush.x"), GRACE_SECONDS + 60),
    ]
    # Published and paid for by a job that will find it again; and one that is still on its way.
    kept.append(aged(settings.path("functions", "fn_0000000000000000.hush"), GRACE_SECONDS + 60))
    kept.append(aged(settings.path("uploads", ".up_1.csv.part"), GRACE_SECONDS - 600))
    assert delete_orphaned_files(
        settings, Datasets(Store.open(settings.place).database), lambda id: False, lambda id: False
    ) == len(old)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in kept)


def test_uploads_have_a_name_an_age_and_an_end(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are deleted after the hours that the setting says, unless a job needs them."""
    dataset = town.dataset()
    path = f"/datasets/{dataset}/uploads"
    for name in ("pay%20roll.csv", "queued.csv"):
        town.ok("olga", "POST", f"{path}?format=csv&name={name}", 201, content=records())
    forgotten, queued = town.ok("olga", "GET", path)
    assert forgotten["name"] == "pay roll.csv"
    age = datetime.fromisoformat(forgotten["expires"]) - datetime.fromisoformat(forgotten["created"])
    assert age == timedelta(hours=town.settings.upload_hours)
    town.refused("olga", "POST", f"{path}?format=csv&name=a%0Ab", 422, content=records())
    town.ok(
        "olga",
        "POST",
        f"/datasets/{dataset}/tallies",
        202,
        json={"upload": queued["id"], **SMALL},
        headers={"idempotency-key": "later"},
    )
    late = replace(town.settings, upload_hours=1e-9)
    JobRunner(late, Store.open(late.place)).clean_up()
    states = {each["name"]: (each["state"], each["expires"]) for each in town.ok("olga", "GET", path)}
    assert states["pay roll.csv"] == ("deleted", None)
    assert states["queued.csv"][0] == "waiting"
    assert not town.settings.path("uploads", f"{forgotten['id']}.csv").exists()
    assert town.settings.path("uploads", f"{queued['id']}.csv").exists()


def test_a_job_that_misses_the_database_is_taken_up_again(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = town.dataset()
    requested = town.confirmed(dataset, town.tally(dataset))
    headers = {"idempotency-key": "k"}
    path = f"/datasets/{dataset}/releases"
    job = town.ok("olga", "POST", path, 202, json=requested, headers=headers)["id"]
    store = Store.open(town.settings.place)

    def away(*_: object, **__: object) -> None:
        raise LedgerUnavailable("the database is away; try again")

    with monkeypatch.context() as patch:
        patch.setattr("hushsum.service.jobs.job_runner.release_tally", away)
        patch.setattr("hushsum.service.jobs.job_runner.FIRST_PAUSE_SECONDS", 3600.0)
        for attempt in range(1, MOST_ATTEMPTS + 1):
            assert town.work() == 1
            reported = town.ok("olga", "GET", f"/jobs/{job}")
            assert reported["state"] == ("queued" if attempt < MOST_ATTEMPTS else "failed")
            assert town.work() == 0, "it rests before it is tried again"
            with store.database.writing() as connection:
                connection.execute(sa.text("UPDATE hushsum_jobs SET lease = 0"))
    assert reported["problem"]["type"].endswith("ledger-unavailable")
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "0"
    assert town.job(path, requested, key="k")["state"] == "done"
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "1/2"


def test_records_that_nobody_serves_go(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = replaced(town)
    folder = town.settings.path("served")
    few = {"mode": "exact", "most_questions": 5}
    requested, done = fitted(town, dataset, "density", people(300), **few), sorted(folder.iterdir())
    assert requested["state"] == "done", requested
    body = {"upload": town.upload(dataset, people(300)), **terms("density", **few)}
    path, headers = f"/datasets/{dataset}/models", {"idempotency-key": "waits"}
    waiting = town.ok("olga", "POST", path, 202, json=confirmed(town, dataset, body), headers=headers)

    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        # After the payment: the owner may ask again, with the same key.
        patch.setattr(LedgerDebit, "publish", fail)
        assert town.work() == 1
    paid = sorted(set(folder.iterdir()) - set(done))
    assert town.ok("olga", "GET", f"/jobs/{waiting['id']}")["state"] == "failed"
    assert len(paid) == 2
    for each in done + paid:
        os.utime(each, (0, 0))
    body = {"upload": town.upload(dataset, people(300)), **terms("density", **few)}
    headers = {"idempotency-key": "queued"}
    queued = town.ok("olga", "POST", path, 202, json=confirmed(town, dataset, body), headers=headers)
    kept = [
        *done,
        *paid,
        aged(folder / f"{queued['id'].replace('job', 'fn')}.secret", GRACE_SECONDS + 60),
        aged(folder / "fn_1111111111111111.secret", GRACE_SECONDS - 600),
    ]
    old = [
        aged(folder / "fn_0000000000000000.secret", GRACE_SECONDS + 60),
        aged(folder / "fn_0000000000000000.0.answers", GRACE_SECONDS + 60),
        aged(folder / ".fn_0000000000000000.secret.x", GRACE_SECONDS + 60),
    ]
    JobRunner(town.settings, Store.open(town.settings.place)).clean_up()
    assert not any(each.exists() for each in old)
    assert all(each.exists() for each in kept)
    # The rest of a model that was ended by somebody who was killed on the way.
    Functions(Store.open(town.settings.place).database).end(requested["result"]["function"], Actor("olga"))
    JobRunner(town.settings, Store.open(town.settings.place)).clean_up()
    assert not any(each.exists() for each in done)
    assert all(each.exists() for each in paid)
