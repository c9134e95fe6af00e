"""Released functions and their grants."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from hushsum.errors import QuotaExceeded
from hushsum.kernels import kernel_from_json
from hushsum.ledger import Database
from hushsum.service.store.accounts import hash_of, later
from hushsum.service.store.database import Actor, new_id, now, write_log
from hushsum.service.store.schema import accounts, datasets, functions, grants, shares


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


@dataclass(frozen=True, slots=True)
class Share:
    """The stored description of a link, without its key."""

    id: str
    function: str
    label: str
    origins: tuple[str, ...]
    download: bool
    created: str
    expires: str | None
    revoked: str | None

    @property
    def works(self) -> bool:
        """Whether it can be used now, if the account of its owner is open."""
        return self.revoked is None and (self.expires is None or self.expires > now())


@dataclass(frozen=True, slots=True)
class SharedFunction:
    """A function as whoever has the link sees it: nothing of its owner, its dataset or its grants."""

    share: str
    function: str
    name: str
    sha256: str
    facts: dict[str, Any]
    origins: tuple[str, ...]
    download: bool
    expires: str | None

    @property
    def signed(self) -> bool:
        """Whether its sums are not counts of records, because its kernel may be negative."""
        return is_signed(self.facts)

    @property
    def works(self) -> bool:
        """Whether the link has not expired meanwhile."""
        return self.expires is None or self.expires > now()


class Shares:
    """Links and the functions behind them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        function: str,
        *,
        label: str,
        origins: tuple[str, ...],
        download: bool,
        days: int | None,
        actor: Actor,
        most: int,
    ) -> tuple[str, Share]:
        """A new link: its key, which is returned only here, and its stored description.

        Raises
        ------
        QuotaExceeded
            if the function has ``most`` working links already.
        """
        key = secrets.token_urlsafe(32)
        expires = None if days is None else later(days=days)
        made = Share(new_id("sh"), function, label, origins, download, now(), expires, None)
        with self._database.writing() as connection:
            # Locked, so that two requests do not both take the last place.
            connection.execute(sa.select(functions.c.id).where(functions.c.id == function).with_for_update())
            rows = connection.execute(sa.select(shares).where(shares.c.function == function))
            if sum(_share(row).works for row in rows) >= most:
                raise QuotaExceeded(
                    f"a function must have at most {most} valid links", remedy="revoke one that is not needed"
                )
            connection.execute(
                sa.insert(shares).values(
                    id=made.id,
                    function=function,
                    hash=hash_of(key),
                    label=label,
                    origins=" ".join(origins),
                    download=download,
                    created=made.created,
                    expires=expires,
                    revoked=None,
                )
            )
            write_log(connection, actor, "function shared", f"{function} {made.id}")
        return key, made

    def of(self, function: str) -> list[Share]:
        """The links of a function, oldest first."""
        query = sa.select(shares).where(shares.c.function == function).order_by(shares.c.created)
        with self._database.reading() as connection:
            return [_share(row) for row in connection.execute(query)]

    def open(self, key: str) -> SharedFunction | None:
        """What is behind a key; None if it is unknown, revoked or expired, or its owner's account closed."""
        query = (
            sa.select(
                shares,
                functions.c.name,
                functions.c.sha256,
                functions.c.facts,
                accounts.c.disabled,
            )
            .join(functions, functions.c.id == shares.c.function)
            .join(datasets, datasets.c.id == functions.c.dataset)
            .join(accounts, accounts.c.id == datasets.c.owner)
            .where(shares.c.hash == hash_of(key))
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or row.disabled:
            return None
        found = _share(row)
        if not found.works:
            return None
        facts = json.loads(row.facts)
        # Where a file was is nobody's business.
        facts.pop("source", None)
        return SharedFunction(
            found.id,
            found.function,
            row.name,
            row.sha256,
            facts,
            found.origins,
            found.download,
            found.expires,
        )

    def revoke(self, id: str, actor: Actor, *, owner: str | None) -> bool:
        """Revoke a link; with ``owner``, only of a function of that account. False if there was none."""
        condition = (shares.c.id == id) & shares.c.revoked.is_(None)
        if owner is not None:
            theirs = (
                sa.select(functions.c.id)
                .join(datasets, datasets.c.id == functions.c.dataset)
                .where(datasets.c.owner == owner)
            )
            condition &= shares.c.function.in_(theirs)
        with self._database.writing() as connection:
            done = connection.execute(sa.update(shares).where(condition).values(revoked=now()))
            if done.rowcount:
                write_log(connection, actor, "link revoked", id)
        return bool(done.rowcount)


def _share(row: sa.Row[Any]) -> Share:
    return Share(
        row.id,
        row.function,
        row.label,
        tuple(row.origins.split()),
        bool(row.download),
        row.created,
        row.expires,
        row.revoked,
    )
