"""Accounts and their tokens."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from hushsum.errors import QuotaExceeded, UsageError
from hushsum.ledger.database import Database
from hushsum.service.store.database import Actor, as_dict, new_id, now, write_log
from hushsum.service.store.job_queue import CLOSED, stop_jobs
from hushsum.service.store.schema import accounts, jobs, tokens


@dataclass(frozen=True, slots=True)
class Account:
    """An account of the service."""

    id: str
    name: str
    role: str
    created: str
    disabled: bool


@dataclass(frozen=True, slots=True)
class Token:
    """The stored description of a token, without its secret; ``parent`` is the token that issued it."""

    id: str
    account: str
    label: str
    scopes: tuple[str, ...]
    created: str
    expires: str
    revoked: str | None
    signed_in: bool = False
    parent: str | None = None

    @property
    def works(self) -> bool:
        """Whether it can be used now, if its account is open."""
        return self.revoked is None and self.expires > now()


def hash_of(token: str) -> str:
    """The digest that is stored instead of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Accounts:
    """Accounts and their tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, role: str, actor: Actor) -> Account:
        """Make an account.

        Raises
        ------
        UsageError
            if the name is taken.
        """
        account = Account(new_id("acc"), name, role, now(), False)
        with self._database.writing() as connection:
            taken = connection.execute(sa.select(accounts.c.id).where(accounts.c.name == name)).first()
            if taken is not None:
                raise UsageError(
                    parameter="name", rule="must be new", got="one that is taken", remedy="choose another"
                )
            connection.execute(
                sa.insert(accounts).values(
                    id=account.id, name=name, role=role, created=account.created, disabled=False
                )
            )
            write_log(connection, actor, "account created", account.id)
        return account

    def all(self) -> list[Account]:
        """Everybody, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(accounts).order_by(accounts.c.created))
            return [Account(**as_dict(row)) for row in rows]

    def find(self, *, id: str | None = None, name: str | None = None) -> Account | None:
        """The account with this id or name."""
        condition = accounts.c.id == id if id is not None else accounts.c.name == name
        with self._database.reading() as connection:
            row = connection.execute(sa.select(accounts).where(condition)).one_or_none()
        return None if row is None else Account(**as_dict(row))

    def disable(self, id: str, actor: Actor) -> bool:
        """Close an account: its tokens stop working, its unpaid jobs are cancelled. False if none."""
        with self._database.writing() as connection:
            done = connection.execute(sa.update(accounts).where(accounts.c.id == id).values(disabled=True))
            if done.rowcount:
                write_log(connection, actor, "account disabled", id)
                stop_jobs(connection, jobs.c.account == id, CLOSED, actor)
        return bool(done.rowcount)

    def issue(
        self,
        account: str,
        *,
        scopes: tuple[str, ...],
        days: float,
        label: str,
        actor: Actor,
        token: str | None = None,
        parent: str | None = None,
        most: int | None = None,
    ) -> tuple[str, Token] | None:
        """A new token: its secret, which is returned only here, and its stored description.

        Parameters
        ----------
        parent : str, optional
            The id of the token that issues this one. The new one expires no later, and is revoked with it.
            None is returned if the parent no longer works.
        most : int, optional
            How many tokens of the account may work at once.

        Raises
        ------
        QuotaExceeded
            if as many work already.
        """
        expires = later(days=days)
        with self._database.writing() as connection:
            maker = None
            if parent is not None:
                # Locked, so that it is not revoked between this look and the insertion.
                row = connection.execute(
                    sa.select(tokens).where(tokens.c.id == parent).with_for_update()
                ).one_or_none()
                maker = None if row is None else _token(row._mapping)
                if maker is None or not maker.works:
                    return None
                expires = min(expires, maker.expires)
            if most is not None and number_working(connection, account) >= most:
                raise QuotaExceeded(
                    rule=f"an account must have at most {most} valid tokens",
                    remedy="revoke one that is not needed",
                )
            return insert_token(
                connection,
                account,
                scopes=scopes,
                expires=expires,
                label=label,
                actor=actor,
                token=token,
                signed_in=maker is not None and maker.signed_in and maker.account == account,
                parent=parent,
            )

    def tokens_of(self, account: str) -> list[Token]:
        """An account's tokens, oldest first."""
        query = sa.select(tokens).where(tokens.c.account == account).order_by(tokens.c.created)
        with self._database.reading() as connection:
            return [_token(row._mapping) for row in connection.execute(query)]

    def known(self, token: str) -> Token | None:
        """The stored description of a token, revoked or not."""
        with self._database.reading() as connection:
            query = sa.select(tokens).where(tokens.c.hash == hash_of(token))
            row = connection.execute(query).one_or_none()
        return None if row is None else _token(row._mapping)

    def authenticate(self, token: str) -> tuple[Account, Token] | None:
        """Whose token it is, if it works now."""
        query = (
            sa.select(tokens, accounts.c.name, accounts.c.role, accounts.c.disabled)
            .join(accounts, accounts.c.id == tokens.c.account)
            .where(tokens.c.hash == hash_of(token))
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or row.disabled or row.revoked is not None or row.expires <= now():
            return None
        return Account(row.account, row.name, row.role, "", False), _token(row._mapping)

    def revoke(self, id: str, actor: Actor, *, account: str | None = None) -> bool:
        """Revoke a token and those it issued; with ``account``, only a token of that one. False if none."""
        condition = tokens.c.id == id
        if account is not None:
            condition &= tokens.c.account == account
        with self._database.writing() as connection:
            return bool(revoke_tokens(connection, condition, actor))


def revoke_tokens(connection: sa.Connection, which: sa.ColumnElement[bool], actor: Actor) -> list[str]:
    """Revoke tokens that are not revoked yet, and the tokens that they issued; returns their ids."""
    ended: list[str] = []
    while True:
        query = sa.select(tokens.c.id).where(which, tokens.c.revoked.is_(None)).with_for_update()
        found = list(connection.execute(query).scalars())
        if not found:
            return ended
        connection.execute(sa.update(tokens).where(tokens.c.id.in_(found)).values(revoked=now()))
        for id in found:
            write_log(connection, actor, "token revoked", id)
        ended += found
        which = tokens.c.parent.in_(found)


def number_working(connection: sa.Connection, account: str) -> int:
    """How many tokens of an account work now."""
    working = (tokens.c.account == account, tokens.c.revoked.is_(None), tokens.c.expires > now())
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(tokens).where(*working)).scalar_one()
    )


def later(*, days: float) -> str:
    """A future time, in a form that sorts."""
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="microseconds")


def insert_token(
    connection: sa.Connection,
    account: str,
    *,
    scopes: tuple[str, ...],
    expires: str,
    label: str,
    actor: Actor,
    token: str | None = None,
    signed_in: bool = False,
    parent: str | None = None,
) -> tuple[str, Token]:
    """A new token with its log entry, in the caller's transaction."""
    secret = token or "hs_" + secrets.token_urlsafe(32)
    made = Token(new_id("tok"), account, label, scopes, now(), expires, None, signed_in, parent)
    connection.execute(
        sa.insert(tokens).values(
            id=made.id,
            account=account,
            hash=hash_of(secret),
            label=label,
            scopes=" ".join(scopes),
            created=made.created,
            expires=expires,
            revoked=None,
            signed_in=signed_in,
            parent=parent,
        )
    )
    write_log(connection, actor, "token issued", made.id)
    return secret, made


def _token(row: sa.RowMapping) -> Token:
    return Token(
        row["id"],
        row["account"],
        row["label"],
        tuple(row["scopes"].split()),
        row["created"],
        row["expires"],
        row["revoked"],
        row["signed_in"],
        row["parent"],
    )
