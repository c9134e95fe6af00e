"""The service's tables; ``migrations`` makes them, and brings those of an earlier version to this one's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

REVISION = "0001"
"""The migration this code needs; a test compares it with Alembic's newest."""

OLDEST_CODE = "0001"
"""The oldest migration whose code works with these tables too: a service of that version may run beside one
of this version while a deployment is upgraded. Raise it with a migration that older code cannot live with."""

VERSION_TABLE = "hushsum_service_version"

metadata = sa.MetaData()


class Json(sa.TypeDecorator[Any]):
    """A value that is stored as JSON."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        """The text that is stored."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        """The value that was stored."""
        return None if value is None else json.loads(value)


class Words(sa.TypeDecorator[tuple[str, ...]]):
    """Words without spaces, which are stored with spaces between them."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Iterable[str] | None, dialect: sa.Dialect) -> str:
        """The text that is stored."""
        return " ".join(value or ())

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> tuple[str, ...]:
        """The words."""
        return tuple((value or "").split())


accounts = sa.Table(
    "hushsum_accounts",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False),
)

tokens = sa.Table(
    "hushsum_tokens",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("account", sa.String(40), nullable=False, index=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("label", sa.String(80), nullable=False),
    sa.Column("scopes", Words, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("expires", sa.String(40), nullable=False),
    sa.Column("revoked", sa.String(40)),
    sa.Column("signed_in", sa.Boolean, nullable=False),
    sa.Column("parent", sa.String(40), index=True),
)
"""``signed_in``: it comes from a sign-in at a provider. ``parent``: the token that issued it; it is revoked
with that one.
"""

identities = sa.Table(
    "hushsum_identities",
    metadata,
    sa.Column("account", sa.String(40), primary_key=True),
    sa.Column("issuer", sa.String(500), nullable=False),
    sa.Column("claim", sa.String(80), nullable=False),
    sa.Column("subject", sa.String(255), nullable=False),
    sa.Column("sub", sa.String(255)),
    sa.Column("created", sa.String(40), nullable=False),
    # Nobody signs in to two accounts, whatever the code believes.
    sa.UniqueConstraint("issuer", "claim", "subject", name="hushsum_identities_subjects"),
)
"""The identities that a provider must state for each account; ``sub`` is the first person who signed in."""

sign_ins = sa.Table(
    "hushsum_sign_ins",
    metadata,
    sa.Column("flow", sa.String(64), primary_key=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("account", sa.String(40), nullable=False, index=True),
    sa.Column("expires", sa.String(40), nullable=False),
    sa.Column("used", sa.String(40)),
)
"""Proven at a provider, and waiting for the page to fetch a token. The primary key stops a replay."""

datasets = sa.Table(
    "hushsum_datasets",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("owner", sa.String(40), nullable=False, index=True),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("deleted", sa.String(40)),
    sa.UniqueConstraint("owner", "name", name="hushsum_datasets_names"),
)
"""The ledger knows a dataset by its id, so that names of different owners never meet. A deleted one keeps its
row, for the functions that were released from it; its name is free again."""

uploads = sa.Table(
    "hushsum_uploads",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("dataset", sa.String(40), nullable=False, index=True),
    sa.Column("format", sa.String(20), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("name", sa.String(255)),
)

tallies = sa.Table(
    "hushsum_tallies",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("dataset", sa.String(40), nullable=False, index=True),
    sa.Column("cells", sa.BigInteger, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("facts", Json, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
)

jobs = sa.Table(
    "hushsum_jobs",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("dataset", sa.String(40), nullable=False, index=True),
    sa.Column("account", sa.String(40), nullable=False, index=True),
    sa.Column("key", sa.String(100), nullable=False),
    sa.Column("request", Json, nullable=False),
    sa.Column("state", sa.String(20), nullable=False, index=True),
    sa.Column("progress", sa.Float),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("lease", sa.Float, nullable=False),
    sa.Column("touched", sa.Float, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("before", sa.Float, nullable=False),
    sa.Column("paying", sa.Boolean, nullable=False),
    sa.Column("stop", sa.String(20)),
    sa.Column("result", Json),
    sa.Column("problem", Json),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("updated", sa.String(40), nullable=False),
    # The same key never makes two jobs, whatever the code believes.
    sa.UniqueConstraint("dataset", "kind", "key", name="hushsum_jobs_keys"),
)
"""``lease``: before this time (in seconds) no other worker takes the job. ``seconds``: how long workers have
worked on it, up to ``touched``; ``before``: how much of that was before it was last requested.
``paying``: its debit may be in the ledger, so it is no longer stopped. ``stop``: why it is to stop before
that."""

functions = sa.Table(
    "hushsum_functions",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("dataset", sa.String(40), nullable=False, index=True),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("facts", Json, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
)

grants = sa.Table(
    "hushsum_grants",
    metadata,
    sa.Column("function", sa.String(40), primary_key=True),
    sa.Column("account", sa.String(40), primary_key=True),
    sa.Column("download", sa.Boolean, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
)

shares = sa.Table(
    "hushsum_shares",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("function", sa.String(40), nullable=False, index=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("label", sa.String(80), nullable=False),
    sa.Column("origins", Words, nullable=False),
    sa.Column("download", sa.Boolean, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("expires", sa.String(40)),
    sa.Column("revoked", sa.String(40)),
)
"""Links by which anybody may query a function. ``hash``: that of the key in the link. ``origins``: the sites
that may frame it."""

served = sa.Table(
    "hushsum_served",
    metadata,
    sa.Column("function", sa.String(40), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("answers", sa.Integer, nullable=False),
)
"""How many answers were given by each path of a model in exact mode; its store must not have fewer."""

log = sa.Table(
    "hushsum_log",
    metadata,
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", sa.String(40), nullable=False),
    sa.Column("request", sa.String(64), nullable=False),
    sa.Column("account", sa.String(40), nullable=False),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("object", sa.String(100), nullable=False),
)
"""Append-only: triggers refuse every change."""

version = sa.Table(VERSION_TABLE, metadata, sa.Column("version_num", sa.String(32), primary_key=True))
"""Alembic's own, to be read without Alembic."""
