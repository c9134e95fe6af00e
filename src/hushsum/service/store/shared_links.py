"""Shared links: who has the key of one may query a function, until it is revoked or expires."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from hushsum.errors import QuotaExceeded
from hushsum.ledger.database import Database
from hushsum.service.store.accounts import hash_of, later
from hushsum.service.store.database import Actor, new_id, now, write_log
from hushsum.service.store.functions import is_signed
from hushsum.service.store.schema import accounts, datasets, functions, shares


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
                    rule=f"a function must have at most {most} valid links",
                    remedy="revoke one that is not needed",
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
