"""Append-only events, a head row, staged bytes."""

from __future__ import annotations

from alembic import op

from hushsum.ledger._database import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_REFUSAL = "the events of a ledger are append-only"


def upgrade() -> None:
    """Make the tables as the code declares them, and the triggers that refuse every change of an event.

    The version that first changes a published table writes out here what was published.
    """
    metadata.create_all(op.get_bind())
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
