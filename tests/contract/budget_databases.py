"""Where a ledger may live: a contract is inherited once for each kind of database."""

from __future__ import annotations

import pytest

from hushsum.ledger import DatasetTerms, Ledger, connect
from tests.ledger_fixtures import claim_of

TENTH = claim_of(epsilon=0.1)


class BudgetPlace:
    """``place`` is where an empty database is, ``ledger`` a ledger there with ε = 1 for a dataset."""

    @pytest.fixture
    def place(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, place: str) -> Ledger:
        ledger = Ledger.create(place)
        ledger.create_dataset("d", DatasetTerms.of(epsilon=1.0))
        return ledger

    def change(self, place: str, *statements: str) -> None:
        """Change the database behind the ledger's back, triggers switched off."""
        raise NotImplementedError


class InSQLite(BudgetPlace):
    @pytest.fixture
    def place(self, sqlite: str) -> str:
        return sqlite

    def change(self, place: str, *statements: str) -> None:
        with connect(place).writing() as connection:
            query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = connection.exec_driver_sql(query).all()
            for name, _ in triggers:
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
            for each in statements:
                connection.exec_driver_sql(each)
            for _, trigger in triggers:
                connection.exec_driver_sql(trigger)


class InPostgreSQL(BudgetPlace):
    @pytest.fixture
    def place(self, postgres: str) -> str:
        return postgres

    def change(self, place: str, *statements: str) -> None:
        with connect(place).writing() as connection:
            connection.exec_driver_sql("ALTER TABLE hushsum_events DISABLE TRIGGER ALL")
            for each in statements:
                connection.exec_driver_sql(each)
            connection.exec_driver_sql("ALTER TABLE hushsum_events ENABLE TRIGGER ALL")
