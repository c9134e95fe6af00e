"""Released functions and their grants."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from hushsum.kernels.registry import kernel_from_json
from hushsum.ledger.database import Database
from hushsum.service.store.database import Actor, now, write_log
from hushsum.service.store.schema import accounts, datasets, functions, grants


@dataclass(frozen=True, slots=True)
class Function:
    """A released function, and what the account that looked it up may do with it."""

    id: str
    dataset: str
    name: str
    sha256: str
    facts: dict[str, Any]
    created: str
    owned: bool
    download: bool

    @property
    def is_served(self) -> bool:
        """Whether it is a model in exact mode, which has no public file."""
        return _is_exact(self.facts)

    @property
    def signed(self) -> bool:
        """Whether its sums are not counts of records, because its kernel may be negative."""
        return is_signed(self.facts)


class Functions:
    """Functions and grants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, id: str, dataset: str, name: str, *, sha256: str, facts: dict[str, Any], actor: Actor
    ) -> None:
        """Store a published function; idempotent."""
        with self._database.writing() as connection:
            if connection.execute(sa.select(functions.c.id).where(functions.c.id == id)).first() is None:
                connection.execute(
                    sa.insert(functions).values(
                        id=id,
                        dataset=dataset,
                        name=name,
                        sha256=sha256,
                        facts=json.dumps(facts),
                        created=now(),
                    )
                )
                write_log(connection, actor, "function released", id)

    def end(self, id: str, actor: Actor) -> None:
        """Delete a function and its grants; its answers stay public, and its budget spent."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(grants).where(grants.c.function == id))
            if connection.execute(sa.delete(functions).where(functions.c.id == id)).rowcount:
                write_log(connection, actor, "function ended", id)

    def served_of(self, dataset: str) -> list[str]:
        """The models in exact mode of a dataset."""
        query = sa.select(functions.c.id, functions.c.facts).where(functions.c.dataset == dataset)
        with self._database.reading() as connection:
            return [row.id for row in connection.execute(query) if _is_exact(json.loads(row.facts))]

    def known(self, id: str) -> bool:
        """Whether a function exists."""
        with self._database.reading() as connection:
            return (
                connection.execute(sa.select(functions.c.id).where(functions.c.id == id)).first() is not None
            )

    def visible_to(self, account: str) -> list[Function]:
        """What an account owns or was granted, oldest first; nothing of an owner whose account is closed."""
        with self._database.reading() as connection:
            rows = connection.execute(_visible(account).order_by(functions.c.created))
            return [_function(row, account) for row in rows]

    def find(self, id: str, *, account: str) -> Function | None:
        """A function, if this account owns it or was granted it, and its owner's account is not closed."""
        with self._database.reading() as connection:
            row = connection.execute(_visible(account).where(functions.c.id == id)).one_or_none()
        return None if row is None else _function(row, account)

    def grant(self, function: str, account: str, *, download: bool, actor: Actor) -> None:
        """Let an account query a function and, with ``download``, download it."""
        with self._database.writing() as connection:
            connection.execute(
                sa.delete(grants).where(grants.c.function == function, grants.c.account == account)
            )
            connection.execute(
                sa.insert(grants).values(function=function, account=account, download=download, created=now())
            )
            write_log(connection, actor, "function granted", f"{function} {account}")

    def withdraw(self, function: str, account: str, actor: Actor) -> bool:
        """Withdraw a grant; what was downloaded stays public. False if there was none."""
        query = sa.delete(grants).where(grants.c.function == function, grants.c.account == account)
        with self._database.writing() as connection:
            done = connection.execute(query)
            if done.rowcount:
                write_log(connection, actor, "grant withdrawn", f"{function} {account}")
        return bool(done.rowcount)

    def grants_of(self, function: str) -> list[tuple[str, bool]]:
        """The names of those who were granted a function, and whether they may download it."""
        query = (
            sa.select(accounts.c.name, grants.c.download)
            .join(accounts, accounts.c.id == grants.c.account)
            .where(grants.c.function == function)
            .order_by(accounts.c.name)
        )
        with self._database.reading() as connection:
            return [(row.name, bool(row.download)) for row in connection.execute(query)]


def is_signed(facts: dict[str, Any]) -> bool:
    """Whether a function's kernel may be negative; a model has none."""
    return "model" not in facts and kernel_from_json(facts["kernel"]).signed


def _is_exact(facts: dict[str, Any]) -> bool:
    return bool(facts.get("model", {}).get("mode") == "exact")


def _visible(account: str) -> sa.Select[Any]:
    mine = (grants.c.function == functions.c.id) & (grants.c.account == account)
    return (
        sa.select(functions, datasets.c.owner, grants.c.download)
        .join(datasets, datasets.c.id == functions.c.dataset)
        .join(accounts, accounts.c.id == datasets.c.owner)
        .outerjoin(grants, mine)
        .where((datasets.c.owner == account) | (grants.c.account == account))
        .where(accounts.c.disabled.is_(False))
    )


def _function(row: sa.Row[Any], account: str) -> Function:
    owned = row.owner == account
    facts = json.loads(row.facts)
    exact = _is_exact(facts)
    return Function(
        row.id,
        row.dataset,
        row.name,
        row.sha256,
        facts,
        row.created,
        owned,
        (owned or bool(row.download)) and not exact,
    )
