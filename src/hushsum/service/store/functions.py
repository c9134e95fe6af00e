"""Released functions, who may query them, and how many answers were given by models in exact mode."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from hushsum.errors import LedgerUnavailable, QuotaExceeded
from hushsum.ledger import Database, Ledger

from .rows import Actor, Rows, hash_of, value_of, write_log
from .schema import (
    Function,
    Share,
    SharedFunction,
    StoredFunction,
    accounts,
    datasets,
    functions,
    grants,
    is_exact,
    now,
    served,
    shares,
)


class Functions(Rows):
    """Functions and grants."""

    def add(self, made: StoredFunction, actor: Actor) -> None:
        """Store a published function; idempotent."""
        self._add(functions, made, actor, "function released")

    def end(self, id: str, actor: Actor) -> None:
        """Delete a function and its grants; its answers stay public, and its budget spent."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(grants).where(grants.c.function == id))
            if connection.execute(sa.delete(functions).where(functions.c.id == id)).rowcount:
                write_log(connection, actor, "function ended", id)

    def served_of(self, dataset: str) -> list[str]:
        """The models in exact mode of a dataset."""
        return [each.id for each in self._all(StoredFunction, dataset=dataset) if is_exact(each.facts)]

    def known(self, id: str) -> bool:
        """Whether a function exists."""
        return self._one(StoredFunction, id=id) is not None

    def visible_to(self, account: str) -> list[Function]:
        """The functions that an account owns or was granted, oldest first; nothing of an owner whose account
        is closed.
        """
        return self._all(Function, _visible(account).order_by(functions.c.created))

    def find(self, id: str, *, account: str) -> Function | None:
        """A function, if this account owns it or was granted it, and its owner's account is not closed."""
        return self._one(Function, _visible(account).where(functions.c.id == id))

    def grant(self, function: str, account: str, *, download: bool, actor: Actor) -> None:
        """Let an account query a function and, with ``download``, download it."""
        granted = {"function": function, "account": account, "download": download, "created": now()}
        with self._database.writing() as connection:
            connection.execute(_grant(function, account))
            connection.execute(sa.insert(grants).values(granted))
            write_log(connection, actor, "function granted", f"{function} {account}")

    def withdraw(self, function: str, account: str, actor: Actor) -> bool:
        """Withdraw a grant; what was downloaded stays public. False if there was none."""
        return self._change(_grant(function, account), actor, "grant withdrawn", f"{function} {account}")

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


def _grant(function: str, account: str) -> sa.Delete:
    return sa.delete(grants).where(grants.c.function == function, grants.c.account == account)


def _visible(account: str) -> sa.Select[Any]:
    mine = (grants.c.function == functions.c.id) & (grants.c.account == account)
    owned = (datasets.c.owner == account).label("owned")
    granted = sa.func.coalesce(grants.c.download, sa.false()).label("granted_download")
    return (
        sa.select(functions, owned, granted)
        .join(datasets, datasets.c.id == functions.c.dataset)
        .join(accounts, accounts.c.id == datasets.c.owner)
        .outerjoin(grants, mine)
        .where((datasets.c.owner == account) | (grants.c.account == account))
        .where(accounts.c.disabled.is_(False))
    )


class Shares(Rows):
    """Links and the functions behind them."""

    def create(self, made: Share, actor: Actor, *, most: int) -> str:
        """Store a new link; its key, which is returned only here.

        Raises
        ------
        QuotaExceeded
            if the function has ``most`` working links already.
        """
        key = secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            # Locked, so that two requests do not both take the last place.
            mine = sa.select(functions.c.id).where(functions.c.id == made.function)
            connection.execute(mine.with_for_update())
            rows = connection.execute(sa.select(shares).where(shares.c.function == made.function))
            if sum(value_of(Share, row).works for row in rows) >= most:
                rule = f"a function must have at most {most} valid links"
                raise QuotaExceeded(rule, remedy="revoke one that is not needed")
            connection.execute(sa.insert(shares).values(**asdict(made), hash=hash_of(key)))
            write_log(connection, actor, "function shared", f"{made.function} {made.id}")
        return key

    def of(self, function: str) -> list[Share]:
        """The links of a function, oldest first."""
        return self._all(Share, function=function)

    def open(self, key: str) -> SharedFunction | None:
        """The function that a key leads to; None if it is unknown, revoked or expired, or its owner's account
        closed.
        """
        shown = (functions.c.name, functions.c.sha256, functions.c.facts)
        query = (
            sa.select(shares, shares.c.id.label("share"), *shown)
            .join(functions, functions.c.id == shares.c.function)
            .join(datasets, datasets.c.id == functions.c.dataset)
            .join(accounts, accounts.c.id == datasets.c.owner)
            .where(shares.c.hash == hash_of(key), shares.c.revoked.is_(None), accounts.c.disabled.is_(False))
        )
        found = self._one(SharedFunction, query)
        if found is None or not found.works:
            return None
        # Where a file was is nobody's business.
        found.facts.pop("source", None)
        return found

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
        query = sa.update(shares).where(condition).values(revoked=now())
        return self._change(query, actor, "link revoked", id)


_GROW = sa.text(
    "INSERT INTO hushsum_served (function, number, answers) VALUES (:function, :number, :answers) "
    "ON CONFLICT (function, number) DO UPDATE SET answers = excluded.answers "
    "WHERE hushsum_served.answers < excluded.answers"
)


@dataclass(frozen=True, slots=True)
class AnswerGuard:
    """The rollback guard of one path of a model."""

    database: Database
    ledger: Ledger
    function: str
    number: int

    def known(self) -> int:
        """How many answers were given at least.

        Raises
        ------
        LedgerUnavailable
            if the database may be an older copy, or was restored since the model was fitted: then its counts
            may be too low.
        """
        if self.ledger.rollback_problem() is not None:
            rule = "the database may be a restored backup, so models in exact mode answer no new points"
            raise LedgerUnavailable(rule, remedy="contact the service's administrator")
        restored = self.ledger.restored_at()
        created = sa.select(functions.c.created).where(functions.c.id == self.function)
        given = sa.select(served.c.answers).filter_by(function=self.function, number=self.number)
        with self.database.reading() as connection:
            # A model that is unknown was made before everything.
            if restored is not None and str(connection.execute(created).scalar() or "") <= restored:
                rule = "the database was restored from a backup since this model was fitted, and answers may "
                rule += "be lost, so it answers no new points"
                raise LedgerUnavailable(rule, remedy="delete it, and fit another")
            return int(connection.execute(given).scalar() or 0)

    def note(self, mark: int) -> None:
        """Store durably that this many answers are about to be given; never fewer than before."""
        values = {"function": self.function, "number": self.number, "answers": mark}
        with self.database.writing() as connection:
            connection.execute(_GROW, values)
