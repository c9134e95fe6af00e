"""Runs the migrations on the connection it is handed, inside that connection's transaction.

Alembic runs this file with its context set; importing it elsewhere does nothing.
"""

from __future__ import annotations

from alembic import context

from hushsum.service.store.schema import VERSION_TABLE, metadata


def migrate() -> None:
    """Run what the command asks for."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):
    migrate()
