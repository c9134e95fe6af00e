"""Runs the migrations on the connection it is handed, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from hushsum.ledger.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite has transactional DDL, if the driver does not commit behind our back; ours does not.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
