"""Fixtures that contracts share."""

from tests.ledger_fixtures import postgres, server, sqlite

__all__ = ["postgres", "server", "sqlite"]
