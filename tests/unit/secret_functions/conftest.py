"""A state folder of each test's own."""

from tests.ledger_fixtures import state

__all__ = ["state"]
