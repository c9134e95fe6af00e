"""Runs the migrations on the connection it is handed, inside that connection's transaction.

Alembic runs this file with its context set; importing it elsewhere does nothing.
"""

from __future__ import annotations

from alembic import context

from hushsum.ledger._database import VERSION_TABLE, metadata


def migrate() -> None:
    """Run the requested migrations."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        # SQLite has transactional DDL, if the driver does not commit behind our back; ours does not.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):
    migrate()
