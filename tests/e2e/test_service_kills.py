"""Jobs of the service killed anywhere, or on a full disk, then taken up again: one debit, one result."""

from __future__ import annotations

import hashlib
import os
import random
import signal
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.in_process_service import SMALL, Town
from tests.ledger_fixtures import postgres, server, state
from tests.ledger_workers import start
from tests.service_workers import work_once

from hushsum.ledger import Charge, Kind, Ledger
from hushsum.service.jobs import JobRunner
from hushsum.service.store import Store

__all__ = ["postgres", "server", "state"]

KILLED = -signal.SIGKILL
SPENT = Fraction(1, 100)


@dataclass
class Yard:
    """A town with a tally, whose jobs are done by processes that may die."""

    town: Town
    dataset: str
    tally: str
    runs: int = 0

    def ask_for_release(self, key: str) -> str:
        requested = self.town.confirmed(self.dataset, self.tally, epsilon=0.01)
        made = self.town.ok(
            "olga",
            "POST",
            f"/datasets/{self.dataset}/releases",
            202,
            json={**requested},
            headers={"idempotency-key": key},
        )
        return str(made["id"])

    def ask_for_tally(self, key: str) -> str:
        upload = self.town.upload(self.dataset)
        path = f"/datasets/{self.dataset}/tallies"
        made = self.town.ok(
            "olga", "POST", path, 202, json={"upload": upload, **SMALL}, headers={"idempotency-key": key}
        )
        return str(made["id"])

    def job(self, id: str) -> Any:
        return self.town.ok("olga", "GET", f"/jobs/{id}")

    def run(self, kill_at: int | None = None, largest: int | None = None, seconds: float = 600) -> int | None:
        process = start(work_once, self.town.settings.for_worker(), kill_at, largest)
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join(60)
        return process.exitcode

    def function(self, job: str) -> Path:
        return self.town.settings.path("functions", f"fn_{job.removeprefix('job_')}.hush")

    def take_up(self, job: str) -> None:
        """What the next worker does once the lease has run out; a file that was there must not change."""
        path = self.function(job)
        seen = path.read_bytes() if path.exists() else None
        store = Store.open(self.town.settings.place)
        with store.database.writing() as connection:
            connection.execute(sa.text("UPDATE hushsum_jobs SET lease = 0, attempts = 0"))
        if self.job(job)["state"] != "done":
            assert self.run() == 0
        ended = self.job(job)
        assert ended["state"] == "done", ended
        self.runs += 1
        assert seen in (None, path.read_bytes()), "two different results for one debit"

    def clean(self) -> None:
        """What the workers do hours after a kill: only what is unfinished goes."""
        settings = self.town.settings
        for file in Path(settings.folder).rglob("*"):
            os.utime(file, (0, 0))
        JobRunner(settings, Store.open(settings.place)).clean_up()

    def check(self) -> None:
        """Every release was paid once and published once, and its file is the one in the book."""
        ledger = Ledger(self.town.settings.place)
        entries = ledger.history(self.dataset)
        assert len(entries) == self.runs
        assert ledger.account(self.dataset).spent == Charge(SPENT * self.runs)
        functions = self.town.ok("olga", "GET", "/functions")
        assert len(functions) == self.runs
        digests = {each["sha256"] for each in functions}
        assert digests == {entry.sha256 for entry in entries}
        assert all(entry.step is Kind.PUBLISHED for entry in entries)
        self.clean()
        files = list(self.town.settings.path("functions").iterdir())
        assert {hashlib.sha256(file.read_bytes()).hexdigest() for file in files} == digests
        assert ledger.verify().holds


def yard(folder: Path, **settings: Any) -> Yard:
    town = Town(folder, lease_seconds=60.0, **settings)
    dataset = town.dataset(epsilon=100.0)
    return Yard(town, dataset, town.tally(dataset))


def kill_everywhere(yard: Yard, step: int) -> int:
    """Kill at every ``step``-th touch of a file, from the first to the last; how many kills that were."""
    for kills, moment in enumerate(range(0, 10_000, step)):
        job = yard.ask_for_release(f"at{moment}")
        code = yard.run(moment)
        yard.take_up(job)
        if code == 0:
            return kills
        assert code == KILLED
    raise AssertionError("the job never ended")


def test_releases_killed_at_some_touches_of_files(tmp_path: Path) -> None:
    place = yard(tmp_path)
    assert kill_everywhere(place, 11) >= 3
    place.check()


@pytest.mark.slow
def test_releases_killed_at_every_touch_of_a_file(tmp_path: Path) -> None:
    place = yard(tmp_path)
    assert kill_everywhere(place, 1) >= 25
    place.check()


@pytest.mark.slow
def test_releases_killed_at_random_on_postgresql(tmp_path: Path, postgres: str) -> None:
    place = yard(tmp_path, database=postgres)
    generator = random.Random(1)
    for i in range(20):
        job = place.ask_for_release(f"random{i}")
        assert place.run(seconds=generator.uniform(0.02, 0.6)) in (0, KILLED)
        place.take_up(job)
    place.check()


def test_a_release_on_postgresql(tmp_path: Path, postgres: str) -> None:
    place = yard(tmp_path, database=postgres)
    place.take_up(place.ask_for_release("once"))
    place.check()


def test_counting_killed_at_some_touches_of_files(tmp_path: Path) -> None:
    place = yard(tmp_path)
    for moment in range(0, 10_000, 11):
        job = place.ask_for_tally(f"at{moment}")
        code = place.run(moment)
        store = Store.open(place.town.settings.place)
        with store.database.writing() as connection:
            connection.execute(sa.text("UPDATE hushsum_jobs SET lease = 0"))
        if place.job(job)["state"] != "done":
            assert place.run() == 0
        assert place.job(job)["state"] == "done"
        assert list(place.town.settings.path("uploads").iterdir()) == []
        if code == 0:
            break
        assert code == KILLED
    place.clean()
    files = {file.stem for file in place.town.settings.path("tallies").iterdir()}
    listed = place.town.ok("olga", "GET", f"/datasets/{place.dataset}/tallies")
    assert files == {each["id"] for each in listed}


def test_a_worker_that_dies_again_and_again_fails_its_job(tmp_path: Path) -> None:
    place = yard(tmp_path)
    job = place.ask_for_release("doomed")
    store = Store.open(place.town.settings.place)
    with store.database.writing() as connection:
        connection.execute(sa.text("UPDATE hushsum_jobs SET attempts = 5 WHERE id = :id"), {"id": job})
    assert place.run() == 0
    assert place.job(job)["problem"]["type"].endswith("worker-died")
    assert Ledger(place.town.settings.place).history(place.dataset) == []
    assert place.ask_for_release("doomed") == job
    place.take_up(job)
    place.check()


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """No file may grow beyond a limit, from hardly a byte to all but the last pages."""
    place = yard(tmp_path)
    database = Path(place.town.settings.place)
    failures = 0
    for i, extra in enumerate([-(10**9), 0, 8192]):
        job = place.ask_for_release(f"full{i}")
        largest = max(100, database.stat().st_size + extra)
        code = place.run(largest=largest)
        ended = place.job(job)
        failures += ended["state"] != "done"
        assert code in (0, 1)
        if ended["state"] == "failed":
            assert ended["problem"]["status"] in (503, 507)
            assert place.ask_for_release(f"full{i}") == job
        place.take_up(job)
    assert failures >= 2
    hidden = list(Path(place.town.settings.folder).rglob(".*"))
    assert hidden == [], "unfinished files were left behind"
    place.check()
