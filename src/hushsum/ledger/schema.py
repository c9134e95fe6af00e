"""The tables as the code sees them; ``migrations`` is what makes them.

Names begin with ``hushsum_``, so that a ledger can live in a database with other things.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, String, Table, Text

REVISION = "0001"
"""The migration this code needs; a test compares it with Alembic's newest."""

VERSION_TABLE = "hushsum_ledger_version"

metadata = MetaData()

head = Table(
    "hushsum_ledger",
    metadata,
    Column("place", Integer, primary_key=True),
    Column("id", String(32), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
)
"""One row: which ledger this is, and the last event. Whoever appends locks it first."""

events = Table(
    "hushsum_events",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("dataset", String(200), nullable=False),
    Column("key", String(200), nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)
"""Append-only: triggers refuse every change."""

staged = Table(
    "hushsum_staged",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
)
"""The bytes between *staged* and *published*, in pieces."""

version = Table(VERSION_TABLE, metadata, Column("version_num", String(32), primary_key=True))
"""Alembic's own, to be read without Alembic."""
