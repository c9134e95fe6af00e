"""Append-only events, a head row, staged bytes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_REFUSAL = "the events of a ledger are append-only"


def upgrade() -> None:
    """Make the tables and the triggers that refuse every change of an event."""
    op.create_table(
        "hushsum_ledger",
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.CheckConstraint("place = 1", name="hushsum_ledger_one_row"),
    )
    op.create_table(
        "hushsum_events",
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("dataset", sa.String(200), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False, unique=True),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
    )
    op.create_index("hushsum_events_dataset", "hushsum_events", ["dataset", "sequence"])
    op.create_index("hushsum_events_kind", "hushsum_events", ["kind", "sequence"])
    # One step of one key happens once, whatever the code above it believes.
    op.create_index(
        "hushsum_events_key_step",
        "hushsum_events",
        ["key", "kind"],
        unique=True,
        sqlite_where=sa.text("key <> ''"),
        postgresql_where=sa.text("key <> ''"),
    )
    op.create_table(
        "hushsum_staged",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER hushsum_events_no_{action.lower()} BEFORE {action} ON hushsum_events "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION hushsum_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER hushsum_events_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON hushsum_events "
        "FOR EACH STATEMENT EXECUTE FUNCTION hushsum_refuse_change()"
    )
