"""The database cut off under a running service: refusals that say when to come back, and then it goes on."""

from __future__ import annotations

import io
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from tests.e2e.service_process import ServiceProcess
from tests.in_process_service import SECRET, SMALL, Town, records
from tests.postgres_server import PostgresServer, own_postgres_server

import hushsum as hs
from hushsum.client import RemoteDataset
from hushsum.ledger import Ledger


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    with own_postgres_server() as server:
        yield server


@pytest.fixture
def services() -> Iterator[list[ServiceProcess]]:
    started: list[ServiceProcess] = []
    yield started
    for each in started:
        if each.process is not None and each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def with_a_tally(place: ServiceProcess) -> tuple[RemoteDataset, str, str]:
    token = place.start().create_account("olga", "owner")
    data = hs.connect(place.url, token).create_dataset("pay", epsilon=10.0)
    return data, data.tally(data.upload(io.BytesIO(records()), format="csv"), **SMALL), token


def refused(place: ServiceProcess, token: str, path: str = "/datasets") -> dict[str, Any]:
    """The problem that a request meets, once what the service believes for a moment is forgotten."""
    headers = {"authorization": f"Bearer {token}"}
    for _ in range(1200):
        answer = httpx.get(place.url + path, headers=headers, timeout=60, verify=False)
        if answer.status_code != 200:
            break
        time.sleep(0.1)
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["content-type"] == "application/problem+json"
    reported: dict[str, Any] = answer.json()
    assert str(place.folder) not in answer.text
    return reported


def becomes(place: ServiceProcess, status: int) -> Any:
    """Wait until /readyz answers so; /healthz always answers."""
    for _ in range(1200):
        assert httpx.get(f"{place.url}/healthz", timeout=60, verify=False).status_code == 200
        answer = httpx.get(f"{place.url}/readyz", timeout=60, verify=False)
        if answer.status_code == status:
            return answer.json()
        time.sleep(0.1)
    raise AssertionError(f"/readyz never answered {status}")


def check_books(place: ServiceProcess, data: RemoteDataset, where: str, state: Path, number: int) -> None:
    ledger = data.ledger()
    assert [each["step"] for each in ledger["history"]] == ["published"] * number
    assert Fraction(data.budget()["spent"]["epsilon"]) == number * Fraction(1, 10)
    assert Ledger(where, state=state).verify().holds
    text = place.log
    assert "Traceback" not in text
    assert SECRET not in text


def test_postgresql_stops_and_comes_back(
    tmp_path: Path, database: PostgresServer, services: list[ServiceProcess]
) -> None:
    place = ServiceProcess(tmp_path, {"HUSHSUM_DATABASE": database.url, "HUSHSUM_CACHE_SECONDS": "0.1"})
    services.append(place)
    data, tally, token = with_a_tally(place)
    data.release(tally, "f", epsilon=0.1, rows=10, idempotency_key="before")
    ended: list[str] = []

    def release() -> None:
        """As a patient client: with the same key until it is answered."""
        for i in range(8):
            for _ in range(2000):
                try:
                    data.release(tally, "f", epsilon=0.1, rows=10, idempotency_key=f"k{i}")
                    ended.append(f"k{i}")
                    break
                except hs.errors.HushsumError:
                    time.sleep(0.1)

    patient = threading.Thread(target=release)
    patient.start()
    for _ in range(3):
        time.sleep(0.4)
        database.stop()
        assert "database" in becomes(place, 503)["reasons"][0]
        assert refused(place, token)["type"].endswith("ledger-unavailable")
        metrics = httpx.get(f"{place.url}/metrics", timeout=60).text
        assert "hushsum_database_up 0.0" in metrics
        database.start()
        assert becomes(place, 200) == {"status": "ok", "reasons": []}
    patient.join(600)
    assert ended == [f"k{i}" for i in range(8)]
    check_books(place, data, database.url, tmp_path / "state", 9)


def test_what_postgresql_cannot_keep_is_refused(
    tmp_path: Path, database: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zero byte in an address is the client's fault, not the database's."""
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    name = f"zeros_{os.getpid()}"
    administrator = sa.create_engine(database.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    url = sa.make_url(database.url).set(database=name).render_as_string(hide_password=False)
    town = Town(tmp_path, database=url)
    for path in ("/datasets/%00", "/functions/a%00b", "/jobs/%00", "/functions/%00/file"):
        town.refused("olga", "GET", path, 422)
    town.refused("admin", "DELETE", "/tokens/%00", 422)
    town.refused("olga", "POST", "/functions/%00/query", 422, json={"points": [[0, 0]]})


def test_sqlite_locked_by_another_process(tmp_path: Path, services: list[ServiceProcess]) -> None:
    settings = {"HUSHSUM_DATABASE_SECONDS": "0.3", "HUSHSUM_CACHE_SECONDS": "0.1"}
    place = ServiceProcess(tmp_path, settings)
    services.append(place)
    data, tally, token = with_a_tally(place)
    file = tmp_path / "hushsum-service" / "service.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "another process" in refused(place, token)["detail"]
        becomes(place, 503)
        other.execute("ROLLBACK")
    becomes(place, 200)
    data.release(tally, "f", epsilon=0.1, rows=10)
    check_books(place, data, str(file), tmp_path / "state", 1)


@pytest.mark.parametrize("bad_day", ["gone", "replaced by something else", "no journal can be written"])
def test_sqlite_out_of_reach(tmp_path: Path, services: list[ServiceProcess], bad_day: str) -> None:
    place = ServiceProcess(tmp_path, {"HUSHSUM_CACHE_SECONDS": "0.1"})
    services.append(place)
    data, tally, token = with_a_tally(place)
    f = data.release(tally, "f", epsilon=0.1, rows=10, idempotency_key="one")
    file = tmp_path / "hushsum-service" / "service.db"
    away, journal = file.with_suffix(".away"), Path(f"{file}-journal")
    if bad_day == "no journal can be written":
        journal.mkdir()
    else:
        os.rename(file, away)
        if bad_day != "gone":
            file.write_bytes(b"something else " * 100)
    becomes(place, 503)
    refused(place, token)
    assert file.exists() == (bad_day != "gone"), "an empty database must not take its place"
    if journal.is_dir():
        journal.rmdir()
    else:
        file.unlink(missing_ok=True)
        os.rename(away, file)
    becomes(place, 200)
    assert data.release(tally, "f", epsilon=0.1, rows=10, idempotency_key="one").sha256 == f.sha256
    data.release(tally, "g", epsilon=0.1, rows=10, idempotency_key="two")
    check_books(place, data, str(file), tmp_path / "state", 2)


def test_a_full_disk_under_the_database(tmp_path: Path, services: list[ServiceProcess]) -> None:
    """What only reads goes on, what writes says why it does not, and nothing is lost."""
    place = ServiceProcess(tmp_path, {"HUSHSUM_CACHE_SECONDS": "0.1"})
    services.append(place)
    data, tally, token = with_a_tally(place)
    f = data.release(tally, "f", epsilon=0.1, rows=10, idempotency_key="one")
    place.kill()
    place.start(largest=4096)
    headers = {"authorization": f"Bearer {token}"}
    answer = httpx.post(
        f"{place.url}/datasets", json={"name": "more", "epsilon": 1.0}, headers=headers, timeout=60
    )
    assert answer.status_code == 503, answer.text
    assert answer.json()["type"].endswith("ledger-unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert [
        each["name"] for each in httpx.get(f"{place.url}/datasets", headers=headers, timeout=60).json()
    ] == ["pay"]
    assert f([[0.0, 0.0]]).shape == (1,)
    place.kill()
    place.start()
    data.release(tally, "g", epsilon=0.1, rows=10, idempotency_key="two")
    file = tmp_path / "hushsum-service" / "service.db"
    check_books(place, data, str(file), tmp_path / "state", 2)
