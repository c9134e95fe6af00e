"""The identities at a provider that may sign in to accounts, and sign-ins that have no token yet."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from hushsum.errors import UsageError
from hushsum.ledger.database import Database
from hushsum.service.store.accounts import Token, hash_of, insert_token, later, number_working, revoke_tokens
from hushsum.service.store.database import Actor, as_dict, now, write_log
from hushsum.service.store.schema import accounts, identities, sign_ins, tokens

TICKET_SECONDS: Final = 120
TOKEN_HOURS: Final = 8.0
_DAY: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Link:
    """An account, and the person at a provider who may sign in to it.

    ``subject`` is the value that the provider's ``claim`` must have; ``sub`` is the provider's
    id of the person who signed in first. An email address may pass to another person, ``sub`` never does.
    """

    account: str
    issuer: str
    claim: str
    subject: str
    sub: str | None
    created: str


class Identities:
    """Links between accounts and people at a provider."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def link(self, account: str, issuer: str, claim: str, subject: str, actor: Actor) -> Link | None:
        """Let one person sign in to an account, replacing an earlier link; None if the account is not open.

        Raises
        ------
        UsageError
            if that person is linked to another account.
        """
        made = Link(account, issuer, claim, subject, None, now())
        with self._database.writing() as connection:
            if connection.execute(_is_open(account)).first() is None:
                return None
            other = sa.select(identities.c.account).where(
                identities.c.issuer == issuer,
                identities.c.claim == claim,
                identities.c.subject == subject,
                identities.c.account != account,
            )
            if connection.execute(other).first() is not None:
                raise UsageError(
                    parameter="subject",
                    rule="must be linked to one account only",
                    got="one of another",
                    remedy="unlink it there first",
                )
            _unlink(connection, account, actor)
            connection.execute(
                sa.insert(identities).values(
                    account=account, issuer=issuer, claim=claim, subject=subject, created=made.created
                )
            )
            write_log(connection, actor, "identity linked", account)
        return made

    def unlink(self, account: str, actor: Actor) -> bool:
        """Remove the link, and revoke the tokens that came from it. False if there is none."""
        with self._database.writing() as connection:
            return _unlink(connection, account, actor)

    def of(self, account: str) -> Link | None:
        """Who may sign in to an account."""
        query = sa.select(identities).where(identities.c.account == account)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Link(**as_dict(row))

    def admit(
        self, issuer: str, claim: str, subject: str, *, sub: str, flow: str, request: str
    ) -> tuple[str | None, str]:
        """A ticket for a person whom the provider has authenticated, or None and the reason; both are logged.

        The ticket is valid for two minutes and once; a flow gives one ticket only.
        """
        query = sa.select(identities.c.account, identities.c.sub, accounts.c.disabled).where(
            identities.c.account == accounts.c.id,
            identities.c.issuer == issuer,
            identities.c.claim == claim,
            identities.c.subject == subject,
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
            connection.execute(
                sa.insert(sign_ins).values(
                    flow=flow,
                    hash=hash_of(ticket),
                    account=found.account,
                    expires=later(days=TICKET_SECONDS / _DAY),
                    used=None,
                )
            )
            write_log(connection, Actor(found.account, request), "identity proven", found.account)
        return ticket, ""

    def redeem(
        self, ticket: str, *, scopes: Mapping[str, tuple[str, ...]], request: str, most: int | None = None
    ) -> tuple[str, Token] | None:
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
                working = (
                    (tokens.c.account == found.id)
                    & tokens.c.signed_in.is_(True)
                    & tokens.c.revoked.is_(None)
                    & (tokens.c.expires > now())
                )
                oldest = sa.select(tokens.c.id).where(working).order_by(tokens.c.created).limit(1)
                revoke_tokens(connection, tokens.c.id == oldest.scalar_subquery(), actor)
            return insert_token(
                connection,
                found.id,
                scopes=scopes[found.role],
                expires=later(days=TOKEN_HOURS / 24.0),
                label="sign-in",
                actor=actor,
                signed_in=True,
            )


def _is_open(account: str) -> sa.Select[tuple[str]]:
    return sa.select(accounts.c.id).where(accounts.c.id == account, accounts.c.disabled.is_(False))


def _refusal(connection: sa.Connection, found: Any, sub: str, flow: str) -> str:
    if found is None:
        return "unknown-identity"
    if found.disabled:
        return "account-closed"
    if found.sub not in (None, sub):
        return "identity-changed"
    seen = connection.execute(sa.select(sign_ins.c.flow).where(sign_ins.c.flow == flow)).first()
    return "" if seen is None else "replayed"


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
