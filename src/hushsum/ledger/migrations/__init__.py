"""The schema's history, for Alembic; run by :func:`hushsum.ledger._database.upgrade`."""
