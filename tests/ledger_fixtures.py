"""Ledgers for tests: on SQLite, and on a real PostgreSQL server that the session starts itself."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy as sa

from hushsum.privacy import Claim, Mechanism, Promise, Relation
from tests.postgres_server import postgres_server


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, so that no test leaves a mark in the user's."""
    folder = tmp_path / "state"
    monkeypatch.setenv("HUSHSUM_STATE", str(folder))
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres(server: str) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"test_{secrets.token_hex(6)}"
    administrator = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return str(tmp_path / "book.db")


def claim_of(
    *,
    epsilon: float | Fraction | None = None,
    delta: float | None = None,
    rho: float | None = None,
    unit: str = "record",
    per_unit: int = 1,
    relation: Relation = Relation.ADD_REMOVE,
    mechanism: str | None = None,
    secure: bool = True,
) -> Claim:
    """A claim as releases make them."""
    promise = Promise.of(epsilon=epsilon, delta=delta, rho=rho)
    usual = "discrete laplace" if promise.pure else "discrete gaussian"
    named = Mechanism.from_text(mechanism or usual)
    return Claim(promise, unit, per_unit, relation, named, "exact integers", secure)
