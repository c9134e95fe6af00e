"""Accounts and their tokens."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

import sqlalchemy as sa

from hushsum.errors import QuotaExceeded, UsageError

from .job_queue import CLOSED, stop_jobs
from .rows import Actor, Rows, exists, hash_of, new_id, value_of, write_log
from .schema import (
    Account,
    Identity,
    IssuedToken,
    Token,
    accounts,
    identities,
    jobs,
    later,
    now,
    sign_ins,
    tokens,
)


class Accounts(Rows):
    """Accounts and their tokens."""

    def create(self, name: str, role: str, actor: Actor) -> Account:
        """Make an account.

        Raises
        ------
        UsageError
            if the name is taken.
        """

        def check(connection: sa.Connection) -> None:
            if exists(connection, accounts.c.name == name):
                raise UsageError("name", "must be new", got="one that is taken")

        account = Account(new_id("acc"), name, role, now(), False)
        self._add(accounts, account, actor, "account created", check)
        return account

    def all(self) -> list[Account]:
        """Everybody, oldest first."""
        return self._all(Account)

    def find(self, *, id: str | None = None, name: str | None = None) -> Account | None:
        """The account with this id or name."""
        return self._one(Account, **({"name": name} if id is None else {"id": id}))

    def disable(self, id: str, actor: Actor) -> bool:
        """Close an account: its tokens stop working, its unpaid jobs are cancelled. False if none."""
        with self._database.writing() as connection:
            done = connection.execute(sa.update(accounts).where(accounts.c.id == id).values(disabled=True))
            if done.rowcount:
                write_log(connection, actor, "account disabled", id)
                stop_jobs(connection, jobs.c.account == id, CLOSED, actor)
        return bool(done.rowcount)

    def issue(self, made: IssuedToken, actor: Actor, *, most: int | None = None) -> IssuedToken | None:
        """Store a new token.

        One with a ``parent`` expires no later than that, and is revoked with it. None is returned if the
        parent no longer works.

        Raises
        ------
        QuotaExceeded
            if ``most`` tokens of the account work already.
        """
        with self._database.writing() as connection:
            if made.parent is not None:
                # Locked, so that it is not revoked between this look and the insertion.
                query = sa.select(tokens).where(tokens.c.id == made.parent).with_for_update()
                row = connection.execute(query).one_or_none()
                parent = None if row is None else value_of(Token, row)
                if parent is None or not parent.works:
                    return None
                own = parent.signed_in and parent.account == made.account
                made = replace(made, expires=min(made.expires, parent.expires), signed_in=own)
            if most is not None and number_working(connection, made.account) >= most:
                rule = f"an account must have at most {most} valid tokens"
                raise QuotaExceeded(rule, remedy="revoke one that is not needed")
            insert_token(connection, made, actor)
        return made

    def tokens_of(self, account: str) -> list[Token]:
        """An account's tokens, oldest first."""
        return self._all(Token, account=account)

    def known(self, token: str) -> Token | None:
        """The stored description of a token, revoked or not."""
        return self._one(Token, hash=hash_of(token))

    def authenticate(self, token: str) -> tuple[Account, Token] | None:
        """The account of a token and its description, if it works now."""
        query = (
            sa.select(tokens, accounts.c.name, accounts.c.role, accounts.c.disabled)
            .join(accounts, accounts.c.id == tokens.c.account)
            .where(tokens.c.hash == hash_of(token))
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or row.disabled or row.revoked is not None or row.expires <= now():
            return None
        return Account(row.account, row.name, row.role, "", False), value_of(Token, row)

    def revoke(self, id: str, actor: Actor, *, account: str | None = None) -> bool:
        """Revoke a token and the tokens that it issued; with ``account``, only a token of that account.

        Returns False if there is no such token.
        """
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


def _working(account: str) -> tuple[sa.ColumnElement[bool], ...]:
    """The tokens of an account that work now."""
    return tokens.c.account == account, tokens.c.revoked.is_(None), tokens.c.expires > now()


def number_working(connection: sa.Connection, account: str) -> int:
    """How many tokens of an account work now."""
    query = sa.select(sa.func.count()).select_from(tokens).where(*_working(account))
    return int(connection.execute(query).scalar_one())


def new_token(
    account: str,
    scopes: tuple[str, ...],
    *,
    days: float,
    label: str,
    signed_in: bool = False,
    parent: str | None = None,
    secret: str | None = None,
) -> IssuedToken:
    """A token that is not stored yet."""
    secret, expires = secret or "hs_" + secrets.token_urlsafe(32), later(days=days)
    return IssuedToken(new_id("tok"), account, label, scopes, now(), expires, None, signed_in, parent, secret)


def insert_token(connection: sa.Connection, made: IssuedToken, actor: Actor) -> None:
    """Store a new token with its log entry, in the caller's transaction."""
    values = asdict(made) | {"hash": hash_of(made.secret)}
    del values["secret"]
    connection.execute(sa.insert(tokens).values(values))
    write_log(connection, actor, "token issued", made.id)


TICKET_SECONDS: Final = 120
TOKEN_HOURS: Final = 8.0
_DAY: Final = 24 * 3600.0


class Identities(Rows):
    """Links between accounts and people at a provider."""

    def link(self, account: str, issuer: str, claim: str, subject: str, actor: Actor) -> Identity | None:
        """Let one person sign in to an account, replacing an earlier link; None if the account is not open.

        Raises
        ------
        UsageError
            if that person is linked to another account.
        """
        made = Identity(account, issuer, claim, subject, None, now())
        with self._database.writing() as connection:
            if not exists(connection, accounts.c.id == account, accounts.c.disabled.is_(False)):
                return None
            if exists(connection, *_is_person(issuer, claim, subject), identities.c.account != account):
                rule, remedy = "must be linked to one account only", "unlink it there first"
                raise UsageError("subject", rule, got="one of another", remedy=remedy)
            _unlink(connection, account, actor)
            connection.execute(sa.insert(identities).values(asdict(made)))
            write_log(connection, actor, "identity linked", account)
        return made

    def unlink(self, account: str, actor: Actor) -> bool:
        """Remove the link, and revoke the tokens that came from it. False if there is none."""
        with self._database.writing() as connection:
            return _unlink(connection, account, actor)

    def of(self, account: str) -> Identity | None:
        """The person who may sign in to an account."""
        return self._one(Identity, account=account)

    def admit(
        self, issuer: str, claim: str, subject: str, *, sub: str, flow: str, request: str
    ) -> tuple[str | None, str]:
        """A ticket for a person whom the provider has authenticated, or None and the reason; both are logged.

        The ticket is valid for two minutes and once; a flow gives one ticket only.
        """
        query = sa.select(identities.c.account, identities.c.sub, accounts.c.disabled).where(
            identities.c.account == accounts.c.id, *_is_person(issuer, claim, subject)
        )
        ticket = secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            found = connection.execute(query).one_or_none()
            refusal = _refusal(connection, found, sub, flow)
            if found is None or refusal:
                # The identity is logged as a digest, so that the log holds no names of strangers.
                whom = hashlib.sha256(f"{issuer}\0{sub}".encode()).hexdigest()[:16]
                actor = Actor("" if found is None else found.account, request)
                write_log(connection, actor, f"sign-in refused: {refusal}", f"identity {whom}")
                return None, refusal
            connection.execute(sa.delete(sign_ins).where(sign_ins.c.expires < later(days=-1)))
            connection.execute(
                sa.update(identities).where(identities.c.account == found.account).values(sub=sub)
            )
            made = {"flow": flow, "hash": hash_of(ticket), "account": found.account, "used": None}
            made["expires"] = later(days=TICKET_SECONDS / _DAY)
            connection.execute(sa.insert(sign_ins).values(made))
            write_log(connection, Actor(found.account, request), "identity proven", found.account)
        return ticket, ""

    def redeem(
        self, ticket: str, *, scopes: Mapping[str, tuple[str, ...]], request: str, most: int | None = None
    ) -> IssuedToken | None:
        """A token of eight hours for a valid ticket, with the scopes of the account's role.

        If ``most`` tokens of the account work already, the oldest one from a sign-in is revoked: nobody who
        forgot to sign out is kept from signing in.
        """
        query = (
            sa.select(sign_ins.c.flow, accounts.c.id, accounts.c.role)
            .join(accounts, accounts.c.id == sign_ins.c.account)
            .where(
                sign_ins.c.hash == hash_of(ticket),
                sign_ins.c.used.is_(None),
                sign_ins.c.expires > now(),
                accounts.c.disabled.is_(False),
            )
        )
        # Anybody may send any ticket, so a bad one must not make others wait for a writer.
        with self._database.reading() as connection:
            if connection.execute(query).one_or_none() is None:
                return None
        with self._database.writing() as connection:
            found = connection.execute(query).one_or_none()
            if found is None:
                return None
            used = connection.execute(
                sa.update(sign_ins)
                .where(sign_ins.c.flow == found.flow, sign_ins.c.used.is_(None))
                .values(used=now())
            )
            if not used.rowcount:
                return None
            actor = Actor(found.id, request)
            write_log(connection, actor, "signed in", found.id)
            if most is not None and number_working(connection, found.id) >= most:
                working = sa.select(tokens.c.id).where(*_working(found.id), tokens.c.signed_in.is_(True))
                oldest = working.order_by(tokens.c.created).limit(1)
                revoke_tokens(connection, tokens.c.id == oldest.scalar_subquery(), actor)
            allowed, days = scopes[found.role], TOKEN_HOURS / 24.0
            made = new_token(found.id, allowed, days=days, label="sign-in", signed_in=True)
            insert_token(connection, made, actor)
        return made


def _is_person(issuer: str, claim: str, subject: str) -> tuple[sa.ColumnElement[bool], ...]:
    return identities.c.issuer == issuer, identities.c.claim == claim, identities.c.subject == subject


def _refusal(connection: sa.Connection, found: Any, sub: str, flow: str) -> str:
    if found is None:
        return "unknown-identity"
    if found.disabled:
        return "account-closed"
    if found.sub not in (None, sub):
        return "identity-changed"
    return "replayed" if exists(connection, sign_ins.c.flow == flow) else ""


def _unlink(connection: sa.Connection, account: str, actor: Actor) -> bool:
    gone = connection.execute(sa.delete(identities).where(identities.c.account == account))
    if not gone.rowcount:
        return False
    # Kept as used, and not deleted: their flows must not give another ticket.
    waiting = sign_ins.c.account == account, sign_ins.c.used.is_(None)
    connection.execute(sa.update(sign_ins).where(*waiting).values(used=now()))
    revoke_tokens(connection, (tokens.c.account == account) & tokens.c.signed_in.is_(True), actor)
    write_log(connection, actor, "identity unlinked", account)
    return True
