"""A state folder for every test."""

from tests.ledger_fixtures import sqlite, state

__all__ = ["sqlite", "state"]
