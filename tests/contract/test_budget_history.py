"""A budget's history: what is changed behind its back is found, what was restored is frozen."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy as sa

from hushsum.errors import BudgetExhausted, FileRefused, UsageError
from hushsum.ledger import Charge, DatasetTerms, Kind, Ledger, LedgerGuard, Receipt, Watermark, connect
from tests.contract.budget_databases import TENTH, BudgetPlace, InPostgreSQL, InSQLite
from tests.ledger_fixtures import state

__all__ = ["state"]


class HistoryContract(BudgetPlace):
    def test_events_cannot_be_changed_by_accident(self, ledger: Ledger, place: str) -> None:
        with pytest.raises(FileRefused, match="append-only"), connect(place).writing() as connection:
            connection.exec_driver_sql("UPDATE hushsum_events SET dataset = 'other'")
        with pytest.raises(FileRefused, match="append-only"), connect(place).writing() as connection:
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


class PowerCut(BaseException):
    """The process is gone at this point."""


def dies(*_: object) -> None:
    raise PowerCut


class RestoreContract(BudgetPlace):
    """A database that is put back to an earlier moment, with crashes and several machines around it."""

    def put_back(self, place: str, to: Receipt) -> None:
        """Restore the database as it was at a moment when nothing was staged."""
        self.change(
            place,
            f"DELETE FROM hushsum_events WHERE sequence > {to.sequence}",
            f"UPDATE hushsum_ledger SET sequence = {to.sequence}, hash = '{to.hash}'",
            "DELETE FROM hushsum_staged",
        )

    def test_staged_bytes_that_were_delivered_after_a_power_cut_are_not_drawn_again(
        self, ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        debit = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="spring")
        debit.draw()
        backup = ledger.receipt()
        with monkeypatch.context() as patch:
            patch.setattr(LedgerGuard, "advance", dies)
            with pytest.raises(PowerCut):
                debit.stage(b"first")
        # The retry delivers, and dies before *published*.
        retry = Ledger(place).dataset("d").debit(TENTH, subject={}, idempotency_key="spring")
        assert retry.staged == b"first"
        self.put_back(place, backup)
        assert Ledger(place).rollback_problem() is not None
        with pytest.raises(FileRefused, match="accept-restore"):
            Ledger(place).dataset("d").debit(TENTH, subject={}, idempotency_key="spring")

    def test_staged_bytes_are_known_to_the_guard_before_they_are_returned(
        self, ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        debit = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="spring")
        debit.draw()
        backup = ledger.receipt()
        with monkeypatch.context() as patch:
            patch.setattr(LedgerGuard, "advance", dies)
            with pytest.raises(PowerCut):
                debit.stage(b"first")
        # By the debit that was found before: nothing is written between it and the bytes.
        assert debit.staged == b"first"
        self.put_back(place, backup)
        with pytest.raises(FileRefused, match="accept-restore"):
            debit.draw()

    def test_a_machine_without_the_guard_of_the_ledger_spends_nothing(
        self, ledger: Ledger, place: str, tmp_path: Path
    ) -> None:
        second = tmp_path / "second"
        known = second / "ledgers" / f"{ledger.id}.json"
        for own in (tmp_path / "nothing.json", known):
            with pytest.raises(FileRefused, match="HUSHSUM_GUARD"):
                Ledger(place, state=second, guard=own).dataset("d").debit(
                    TENTH, subject={}, idempotency_key="b"
                )
        # A machine that has used the ledger knows some of its events: they may be older than a backup.
        shared = tmp_path / "shared.json"
        ledger.move_guard(shared, reason="two machines")
        joined = Ledger(place, state=second, guard=shared)
        joined.dataset("d").debit(TENTH, subject={}, idempotency_key="c")
        backup = joined.receipt()
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="d")
        for restored in (False, True):
            if restored:
                self.put_back(place, backup)
            with pytest.raises(FileRefused, match="HUSHSUM_GUARD"):
                Ledger(place, state=second, guard=known).dataset("d").debit(
                    TENTH, subject={}, idempotency_key="b"
                )

    def test_two_machines_with_one_guard_do_not_spend_twice_after_a_restore(
        self, place: str, guard: str, tmp_path: Path
    ) -> None:
        idle, busy = (Ledger.create(place, state=tmp_path / name, guard=guard) for name in ("idle", "busy"))
        idle.create_dataset("d", DatasetTerms.of(epsilon=0.1))
        backup = idle.receipt()
        busy.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        self.put_back(place, backup)
        for each in (idle, busy):
            assert each.rollback_problem() is not None
            with pytest.raises(FileRefused, match="restored"):
                each.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        assert busy.accept_restore(reason="fire") == ["d"]
        assert idle.rollback_problem() is None, "accepted once, for all"
        assert idle.write_off("d", Charge(Fraction(1, 10)), reason="a").remaining == Charge(Fraction(0))
        assert idle.verify().holds
        # To before the acceptance, which gave the guard a new id.
        self.put_back(place, backup)
        for each in (idle, busy):
            assert each.rollback_problem() is not None

    def test_a_guard_is_moved_to_where_others_reach_it(
        self, place: str, guard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = tmp_path / "old.json"
        first = Ledger.create(place, state=tmp_path / "first", guard=old)
        first.create_dataset("d", DatasetTerms.of(epsilon=1.0))
        before = first.receipt()
        first.move_guard(guard, reason="a second machine")
        first.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        monkeypatch.setenv("HUSHSUM_GUARD", guard)
        second = Ledger(place, state=tmp_path / "second")
        second.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        assert second.verify().holds
        # Who still uses the old place is refused, also by a database from before the move.
        for restored in (False, True):
            if restored:
                self.put_back(place, before)
            late = Ledger(place, state=tmp_path / "late", guard=old)
            with pytest.raises(FileRefused):
                late.dataset("d").debit(TENTH, subject={}, idempotency_key="c")

    def test_a_restore_between_a_commit_and_its_guard_delivers_nothing(
        self, ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        debit = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="spring")
        debit.draw()
        backup = ledger.receipt()
        advance = LedgerGuard.advance
        for events_after in (1, 2):
            with monkeypatch.context() as patch:

                def restored(guard: LedgerGuard, mark: Watermark, number: int = events_after) -> bool:
                    """Committed, not noted: now the database is put back, and another process goes on."""
                    patch.setattr(LedgerGuard, "advance", advance)
                    self.put_back(place, backup)
                    other = Ledger(place).dataset("d")
                    again = other.debit(TENTH, subject={}, idempotency_key="spring")
                    again.stage(b"second")
                    if number == 2:
                        again.publish()
                    return guard.advance(mark)

                patch.setattr(LedgerGuard, "advance", restored)
                with pytest.raises(FileRefused, match="put back"):
                    debit.stage(b"first")
            # For the second turn, as if nothing had happened: database and guards from before.
            self.put_back(place, backup)
            for each in (ledger, Ledger(place)):
                each._guard.reset(Watermark(backup, None, self.guard_id(each)))

    def guard_id(self, ledger: Ledger) -> str | None:
        with ledger._reading() as journal:
            return journal.guard()

    def test_a_removed_event_is_noticed_by_whoever_goes_on(self, ledger: Ledger, place: str) -> None:
        ledger.create_dataset("other", DatasetTerms.of(epsilon=1.0))
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        paid = ledger.receipt().sequence
        late = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="late")
        late.draw()
        drawn = ledger.receipt().sequence
        late.stage(b"x")
        ledger.dataset("other").debit(TENTH, subject={}, idempotency_key="b")
        for sequence in (drawn + 1, drawn, paid):
            # Opened before, as by a service; then a step of a release is gone, or a debit.
            self.change(place, f"DELETE FROM hushsum_events WHERE sequence = {sequence}")
            with pytest.raises(FileRefused, match="removed"):
                ledger.rollback_problem()
            with pytest.raises(FileRefused, match="removed"):
                Ledger(place)
        with pytest.raises(FileRefused, match="removed"):
            ledger.create_dataset("third", DatasetTerms.of(epsilon=1.0))
        with pytest.raises(FileRefused, match="removed"):
            ledger.accept_restore(reason="no")
        with pytest.raises(FileRefused, match="removed"):
            ledger.standing(["d"])
        assert not ledger.verify().holds

    def test_the_last_debit_of_a_dataset_is_not_forgotten_with_its_event(
        self, ledger: Ledger, place: str
    ) -> None:
        ledger.create_dataset("other", DatasetTerms.of(epsilon=1.0))
        debit = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        ledger.dataset("other").debit(TENTH, subject={}, idempotency_key="b")
        gone = ledger.receipt().sequence - 1
        self.change(place, f"DELETE FROM hushsum_events WHERE sequence = {gone}")
        for forgetful in (
            lambda: ledger.account("d"),
            lambda: ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="c"),
            debit.draw,
        ):
            with pytest.raises(FileRefused, match=r"removed|no longer"):
                forgetful()

    def test_a_step_of_a_release_is_not_taken_again_when_its_event_is_removed(
        self, ledger: Ledger, place: str
    ) -> None:
        debit = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        debit.draw()
        debit.stage(b"first")
        gone = ledger.receipt().sequence
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        self.change(place, f"DELETE FROM hushsum_events WHERE sequence = {gone}")
        with pytest.raises(FileRefused, match="removed"):
            debit.draw()
        with pytest.raises(FileRefused, match="removed"):
            debit.stage(b"second")


class TestSQLite(InSQLite, HistoryContract):
    pass


class TestPostgreSQL(InPostgreSQL, HistoryContract):
    pass


class TestRestoresOfSQLite(InSQLite, RestoreContract):
    @pytest.fixture
    def guard(self, tmp_path: Path) -> str:
        """A file that all machines mount."""
        return str(tmp_path / "shared" / "guard.json")


class TestRestoresOfPostgreSQL(InPostgreSQL, RestoreContract):
    @pytest.fixture
    def guard(self, postgres: str, server: str) -> Iterator[str]:
        """Another database of the same server."""
        name = sa.make_url(postgres).database
        administrator = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with administrator.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}_guard")
        yield sa.make_url(server).set(database=f"{name}_guard").render_as_string(hide_password=False)
        with administrator.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name}_guard WITH (FORCE)")

    def test_a_guard_in_the_database_that_it_guards_is_refused(self, ledger: Ledger, place: str) -> None:
        with pytest.raises(UsageError, match="another database"):
            ledger.move_guard(place, reason="convenient")

    def test_without_a_shared_guard_one_machine_uses_it(
        self, ledger: Ledger, place: str, tmp_path: Path
    ) -> None:
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        second = Ledger(place, state=tmp_path / "second")
        with pytest.raises(FileRefused, match="HUSHSUM_GUARD"):
            second.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        assert second.account("d").remaining == Charge(Fraction(9, 10)), "reading goes on"
