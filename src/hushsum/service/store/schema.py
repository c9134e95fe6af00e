"""The service's tables; ``migrations`` makes them, and brings those of an earlier version to this one's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

REVISION = "0001"
"""The migration this code needs; a test compares it with Alembic's newest."""

OLDEST_CODE = "0001"
"""The oldest migration whose code works with these tables too: a service of that version may run beside one
of this version while a deployment is upgraded. Raise it with a migration that older code cannot live with."""

VERSION_TABLE = "hushsum_service_version"

metadata = MetaData()


class Json(TypeDecorator[Any]):
    """A value that is stored as JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """The text that is stored."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """The value that was stored."""
        return None if value is None else json.loads(value)


class Words(TypeDecorator[tuple[str, ...]]):
    """Words without spaces, which are stored with spaces between them."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Iterable[str] | None, dialect: Dialect) -> str:
        """The text that is stored."""
        return " ".join(value or ())

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...]:
        """The words."""
        return tuple((value or "").split())


accounts = Table(
    "hushsum_accounts",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("created", String(40), nullable=False),
    Column("disabled", Boolean, nullable=False),
)

tokens = Table(
    "hushsum_tokens",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("account", String(40), nullable=False, index=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("label", String(80), nullable=False),
    Column("scopes", Words, nullable=False),
    Column("created", String(40), nullable=False),
    Column("expires", String(40), nullable=False),
    Column("revoked", String(40)),
    Column("signed_in", Boolean, nullable=False),
    Column("parent", String(40), index=True),
)
"""``signed_in``: it comes from a sign-in at a provider. ``parent``: the token that issued it; it is revoked
with that one.
"""

identities = Table(
    "hushsum_identities",
    metadata,
    Column("account", String(40), primary_key=True),
    Column("issuer", String(500), nullable=False),
    Column("claim", String(80), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("sub", String(255)),
    Column("created", String(40), nullable=False),
    # Nobody signs in to two accounts, whatever the code believes.
    UniqueConstraint("issuer", "claim", "subject", name="hushsum_identities_subjects"),
)
"""Whom a provider must name to let somebody into an account; ``sub`` is the first person who signed in."""

sign_ins = Table(
    "hushsum_sign_ins",
    metadata,
    Column("flow", String(64), primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("account", String(40), nullable=False, index=True),
    Column("expires", String(40), nullable=False),
    Column("used", String(40)),
)
"""Proven at a provider, and waiting for the page to fetch a token. The primary key stops a replay."""

datasets = Table(
    "hushsum_datasets",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", String(40), nullable=False, index=True),
    Column("name", String(80), nullable=False),
    Column("created", String(40), nullable=False),
    Column("deleted", String(40)),
    UniqueConstraint("owner", "name", name="hushsum_datasets_names"),
)
"""The ledger knows a dataset by its id, so that names of different owners never meet. A deleted one keeps its
row, for the functions that were released from it; its name is free again."""

uploads = Table(
    "hushsum_uploads",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("dataset", String(40), nullable=False, index=True),
    Column("format", String(20), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("state", String(20), nullable=False),
    Column("created", String(40), nullable=False),
    Column("name", String(255)),
)

tallies = Table(
    "hushsum_tallies",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("dataset", String(40), nullable=False, index=True),
    Column("cells", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("facts", Json, nullable=False),
    Column("created", String(40), nullable=False),
)

jobs = Table(
    "hushsum_jobs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("dataset", String(40), nullable=False, index=True),
    Column("account", String(40), nullable=False, index=True),
    Column("key", String(100), nullable=False),
    Column("request", Json, nullable=False),
    Column("state", String(20), nullable=False, index=True),
    Column("progress", Float),
    Column("attempts", Integer, nullable=False),
    Column("lease", Float, nullable=False),
    Column("touched", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("before", Float, nullable=False),
    Column("paying", Boolean, nullable=False),
    Column("stop", String(20)),
    Column("result", Json),
    Column("problem", Json),
    Column("created", String(40), nullable=False),
    Column("updated", String(40), nullable=False),
    # The same key never makes two jobs, whatever the code believes.
    UniqueConstraint("dataset", "kind", "key", name="hushsum_jobs_keys"),
)
"""``lease``: before this time (in seconds) no other worker takes the job. ``seconds``: how long workers have
worked on it, up to ``touched``; ``before``: how much of that was before it was last requested.
``paying``: its debit may be in the ledger, so it is no longer stopped. ``stop``: why it is to stop before
that."""

functions = Table(
    "hushsum_functions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("dataset", String(40), nullable=False, index=True),
    Column("name", String(80), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("facts", Json, nullable=False),
    Column("created", String(40), nullable=False),
)

grants = Table(
    "hushsum_grants",
    metadata,
    Column("function", String(40), primary_key=True),
    Column("account", String(40), primary_key=True),
    Column("download", Boolean, nullable=False),
    Column("created", String(40), nullable=False),
)

shares = Table(
    "hushsum_shares",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("function", String(40), nullable=False, index=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("label", String(80), nullable=False),
    Column("origins", Words, nullable=False),
    Column("download", Boolean, nullable=False),
    Column("created", String(40), nullable=False),
    Column("expires", String(40)),
    Column("revoked", String(40)),
)
"""Links by which anybody may query a function. ``hash``: that of the key in the link. ``origins``: the sites
that may frame it."""

served = Table(
    "hushsum_served",
    metadata,
    Column("function", String(40), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("answers", Integer, nullable=False),
)
"""How many answers were given by each path of a model in exact mode; its store must not have fewer."""

log = Table(
    "hushsum_log",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("at", String(40), nullable=False),
    Column("request", String(64), nullable=False),
    Column("account", String(40), nullable=False),
    Column("action", String(40), nullable=False),
    Column("object", String(100), nullable=False),
)
"""Append-only: triggers refuse every change."""

version = Table(VERSION_TABLE, metadata, Column("version_num", String(32), primary_key=True))
"""Alembic's own, to be read without Alembic."""
