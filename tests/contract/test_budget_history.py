"""A budget's history: what is changed behind its back is found, what was restored is frozen."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy as sa

from hushsum.errors import (
    BudgetExhausted,
    FileRefused,
    UsageError,
)
from hushsum.ledger import Charge, DatasetTerms, Ledger
from hushsum.ledger.database import connect
from hushsum.ledger.events import Kind
from tests.contract.budget_databases import TENTH, BudgetPlace, InPostgreSQL, InSQLite
from tests.ledger_fixtures import state

__all__ = ["state"]


class HistoryContract(BudgetPlace):
    def test_events_cannot_be_changed_by_accident(self, ledger: Ledger, place: str) -> None:
        with (
            pytest.raises(FileRefused, match="append-only"),
            connect(place).writing() as connection,
        ):
            connection.exec_driver_sql("UPDATE hushsum_events SET dataset = 'other'")
        with (
            pytest.raises(FileRefused, match="append-only"),
            connect(place).writing() as connection,
        ):
            connection.exec_driver_sql("DELETE FROM hushsum_events WHERE sequence = 2")
        assert ledger.verify().holds

    @pytest.mark.parametrize("column", ["at", "kind", "dataset", "key", "body", "previous", "hash"])
    def test_verify_names_a_changed_row(self, ledger: Ledger, place: str, column: str) -> None:
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        new = {"kind": "'drawn'", "body": "replace(body, '1/10', '1/99')"}.get(column, f"{column} || '0'")
        if column in ("previous", "hash"):
            new = "'" + "1" * 64 + "'"
        self.change(place, f"UPDATE hushsum_events SET {column} = {new} WHERE sequence = 3")
        found = ledger.verify()
        assert not found.holds
        assert found.sequence == 3

    def test_a_balance_that_does_not_follow_is_found_though_its_hashes_do(
        self, ledger: Ledger, place: str
    ) -> None:
        with ledger._writing() as journal:
            richer = ledger.account("d").as_json()
            richer["terms"]["budget"]["epsilon"] = "100"
            journal.append(Kind.VOIDED, dataset="d", key="", body={"who": "eve", "account": richer})
        found = ledger.verify()
        assert found.sequence == 3

    def test_a_missing_tail_shows_in_the_head_the_guard_and_the_receipt(
        self, ledger: Ledger, place: str, state: Path
    ) -> None:
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        receipt = ledger.receipt()
        self.change(place, "DELETE FROM hushsum_events WHERE sequence = 3")
        with pytest.raises(FileRefused, match="not its last event"):
            ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        assert "tail" in (ledger.verify().problem or "")
        last = Ledger(place, damaged=True).verify
        previous = self.hash_of(place, 2)
        self.change(place, f"UPDATE hushsum_ledger SET sequence = 2, hash = '{previous}'")
        assert "receipt names event 3" in (last(receipt).problem or "")
        with pytest.raises(FileRefused, match="accept-restore"):
            ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        for guard in (*state.rglob("*.json"), *state.parent.glob("*.rollback_guard")):
            guard.unlink()
        assert ledger.verify().holds, "nothing outside the ledger is left to compare with"
        assert not ledger.verify(receipt).holds

    def hash_of(self, place: str, sequence: int) -> str:
        with connect(place).reading() as connection:
            query = sa.text("SELECT hash FROM hushsum_events WHERE sequence = :n")
            return str(connection.execute(query, {"n": sequence}).scalar_one())

    def test_a_restored_ledger_freezes_until_it_is_written_off(self, ledger: Ledger, place: str) -> None:
        early = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="early")
        early.draw()
        before = ledger.receipt()
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="late")
        self.change(
            place,
            f"DELETE FROM hushsum_events WHERE sequence > {before.sequence}",
            f"UPDATE hushsum_ledger SET sequence = {before.sequence}, hash = '{before.hash}'",
        )
        with pytest.raises(FileRefused, match="restored"):
            early.stage(b"x")
        assert ledger.rollback_problem() is not None
        assert ledger.accept_restore(reason="fire") == ["d"]
        with pytest.raises(BudgetExhausted, match="frozen"):
            ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="new")
        with pytest.raises(UsageError, match="older than a restored backup"):
            early.stage(b"x")
        account = ledger.write_off("d", Charge(Fraction(1, 2)), reason="unknown")
        assert account.remaining == Charge(Fraction(4, 10))
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="new").draw()
        with pytest.raises(UsageError, match="nothing to accept"):
            ledger.accept_restore(reason="again")
        assert ledger.verify().holds
        with ledger._writing() as journal:
            journal.append(Kind.STAGED, dataset="d", key="early", body={"sha256": "0" * 64, "size": 1})
        assert "closed" in (ledger.verify().problem or "")

    def test_a_later_schema_is_refused(self, ledger: Ledger, place: str) -> None:
        with connect(place).writing() as connection:
            connection.exec_driver_sql("UPDATE hushsum_ledger_version SET version_num = '9999'")
        with pytest.raises(FileRefused, match="later"):
            Ledger(place)

    def test_creating_twice_finds_the_same_ledger(self, ledger: Ledger, place: str) -> None:
        assert Ledger.create(place).id == ledger.id
        assert Ledger.upgrade(place).id == ledger.id
        with pytest.raises(UsageError, match="already"):
            ledger.create_dataset("d", DatasetTerms.of(epsilon=1.0))


class TestSQLite(InSQLite, HistoryContract):
    pass


class TestPostgreSQL(InPostgreSQL, HistoryContract):
    pass
