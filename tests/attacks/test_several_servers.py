"""Several servers at one database: started together, with the wrong folder, of two versions, after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from hushsum.errors import FileRefused
from hushsum.ledger import connect
from hushsum.service.http import create_app
from hushsum.service.store import FOLDER_FILE, Store, agreements, schema
from tests.e2e.cli_process import environment
from tests.in_process_service import Town
from tests.postgres_server import postgres_server

START = """
import sys
from hushsum.service.http import create_app
from hushsum.service.settings import Settings

settings = Settings(folder=sys.argv[1], database=sys.argv[2], workers=0)
print("here", flush=True)
sys.stdin.readline()
create_app(settings)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture
def database(server: str, tmp_path: Path) -> str:
    """An empty database."""
    name = f"two_{abs(hash(tmp_path)) % 10**12}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("postgresql", 2),
        pytest.param("postgresql", 8, marks=pytest.mark.slow),
        pytest.param("sqlite", 8, marks=pytest.mark.slow),
    ],
)
def test_servers_that_start_together(database: str, tmp_path: Path, place: str, number: int) -> None:
    """All come up, there is one administrator, and its token is shown once."""
    where = database if place == "postgresql" else str(tmp_path / "service.db")
    command = [sys.executable, "-c", START, str(tmp_path / "folder"), where]
    given = environment(HUSHSUM_STATE=str(tmp_path / "state"))
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(command, env=given, stdin=pipe, stdout=pipe, stderr=pipe) for _ in range(number)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == b"here\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write(b"\n")
        each.stdin.flush()
    said = [each.communicate()[1] for each in started]
    assert [each.returncode for each in started] == [0] * number, said
    assert sum(text.count(b"hs_") for text in said) == 1
    with Store.open(where).database.reading() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(schema.accounts)).scalar() == 1


def test_a_replica_with_the_wrong_folder_is_not_ready(town: Town, tmp_path: Path) -> None:
    assert town.ask(None, "GET", "/readyz").status_code == 200
    shared = town.settings.place
    elsewhere = replace(town.settings, folder=str(tmp_path / "elsewhere"), database=shared)
    right = town.app
    town.app = create_app(elsewhere)
    reported = town.ask(None, "GET", "/readyz")
    assert reported.status_code == 503
    assert "HUSHSUM_FOLDER" in reported.json()["reasons"][0]
    assert town.ask(None, "GET", "/healthz").status_code == 200
    town.app = right
    assert town.ask(None, "GET", "/readyz").status_code == 200
    # The volume of the folder is gone, or another one has taken its place.
    (Path(town.settings.folder) / FOLDER_FILE).rename(tmp_path / "kept")
    assert town.ask(None, "GET", "/readyz").status_code == 503
    (Path(town.settings.folder) / FOLDER_FILE).write_text("0" * 32)
    assert town.ask(None, "GET", "/readyz").status_code == 503


def test_a_later_version_upgrades_beside_this_one(town: Town) -> None:
    later = "9999"
    store = Store.open(town.settings.place)

    def upgraded(oldest: str) -> None:
        with store.database.writing() as connection:
            connection.execute(sa.update(schema.version).values(version_num=later))
            row = agreements.c.name == "oldest code"
            connection.execute(sa.update(agreements).where(row).values(value=oldest))

    upgraded(schema.REVISION)
    assert town.ask(None, "GET", "/readyz").status_code == 200
    town.dataset()
    # Also one that is started again in the middle of it, and its workers.
    town.app = create_app(town.settings)
    town.ok("olga", "GET", "/datasets")
    Store.open(town.settings.place)
    with store.database.reading() as connection:
        assert connection.execute(sa.select(schema.version.c.version_num)).scalar() == later

    upgraded(later)
    assert town.ask(None, "GET", "/readyz").status_code == 503
    with pytest.raises(FileRefused, match="later version"):
        create_app(town.settings)


def test_connections_are_kept_and_shared(database: str) -> None:
    """A transaction finds a connection that is open; a forked process opens its own."""

    def backend() -> int:
        with connect(database).reading() as connection:
            return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())

    first = backend()
    assert {backend() for _ in range(5)} == {first}
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(backend()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read, 100)) != first
    os.close(read)
    os.close(write)
    assert backend() == first
    # The server ends the connection: the next transaction has another one, and nobody notices.
    engine = sa.create_engine(database, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"SELECT pg_terminate_backend({first})"))
    assert backend() != first
