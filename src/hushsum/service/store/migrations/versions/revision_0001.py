"""All tables of the service, and the triggers that keep the log append-only."""

from __future__ import annotations

from alembic import op

from hushsum.service.store.schema import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_REFUSAL = "the log of the service is append-only"


def upgrade() -> None:
    """Make the tables as ``schema`` declares them, and the triggers that refuse every change of a log line.

    The version that first changes a published table writes out here what was published.
    """
    metadata.create_all(op.get_bind())
    if op.get_bind().dialect.name == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER hushsum_log_no_{action.lower()} BEFORE {action} ON hushsum_log "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION hushsum_log_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER hushsum_log_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON hushsum_log "
        "FOR EACH STATEMENT EXECUTE FUNCTION hushsum_log_refuse_change()"
    )
