"""What every budget book does, on SQLite and on PostgreSQL: one contract, inherited by both."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy as sa

import hushsum as hs
from hushsum.errors import (
    AlreadyPublished,
    BudgetExhausted,
    ClaimError,
    FileRefused,
    LedgerUnavailable,
    UsageError,
)
from hushsum.ledger import Charge, DatasetTerms, Ledger
from hushsum.ledger.chain import Kind
from hushsum.ledger.database import connect
from tests.ledger_fixtures import claim_of, state
from tests.ledger_workers import (
    GRANTED,
    REFUSED,
    debit_together,
    processes,
    release_together,
    start,
)

__all__ = ["state"]

TENTH = claim_of(epsilon=0.1)


class BudgetContract:
    """Inherited by each kind of database; ``place`` is where an empty one is."""

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

    def test_a_release_passes_four_steps_and_leaves_its_hash(self, ledger: Ledger, place: str) -> None:
        debit = ledger.debit("d", TENTH, subject={"output": "a.hush"}, key="k", to="the press", who="ann")
        assert debit.staged is None
        debit.draw()
        assert debit.stage(b"bytes") == b"bytes"
        assert Ledger.open(place).debit("d", TENTH, subject={"output": "a.hush"}, key="k").staged == b"bytes"
        debit.publish()
        entry = ledger.history("d")[0]
        assert entry.step is Kind.PUBLISHED
        assert (entry.who, entry.to, entry.subject, entry.size) == (
            "ann",
            "the press",
            {"output": "a.hush"},
            5,
        )
        assert entry.claim == TENTH
        assert entry.charge == Charge(Fraction(1, 10))
        assert debit.staged is None
        assert [each.kind for each in ledger.events("d")][1:] == [
            Kind.DEBITED,
            Kind.DRAWN,
            Kind.STAGED,
            Kind.PUBLISHED,
        ]
        assert ledger.verify().holds

    def test_ten_tenths_fit_exactly_and_no_more(self, ledger: Ledger) -> None:
        for i in range(10):
            ledger.debit("d", TENTH, subject={}, key=f"k{i}")
        before = ledger.receipt()
        with pytest.raises(BudgetExhausted, match="nothing left of ε 1"):
            ledger.debit("d", claim_of(epsilon=1e-9), subject={}, key="more")
        assert ledger.receipt() == before
        assert ledger.account("d").remaining == Charge()

    def test_a_key_never_spends_twice_and_means_one_thing(self, ledger: Ledger) -> None:
        for _ in range(3):
            ledger.debit("d", TENTH, subject={"rows": 5}, key="k")
        assert ledger.account("d").spent == Charge(Fraction(1, 10))
        for claim, subject in ((claim_of(epsilon=0.2), {"rows": 5}), (TENTH, {"rows": 6})):
            with pytest.raises(UsageError, match="belongs to another release"):
                ledger.debit("d", claim, subject=subject, key="k")

    def test_the_first_to_stage_is_heard(self, ledger: Ledger, place: str) -> None:
        one = ledger.debit("d", TENTH, subject={}, key="k")
        two = Ledger.open(place).debit("d", TENTH, subject={}, key="k")
        one.draw()
        two.draw()
        assert one.stage(b"first") == b"first"
        assert two.stage(b"second") == b"first"
        one.publish()
        two.publish()
        with pytest.raises(AlreadyPublished):
            two.stage(b"third")
        with pytest.raises(AlreadyPublished) as refused:
            ledger.debit("d", TENTH, subject={}, key="k")
        assert refused.value.sha256 == ledger.history()[0].sha256

    def test_steps_out_of_order_are_refused(self, ledger: Ledger) -> None:
        debit = ledger.debit("d", TENTH, subject={}, key="k")
        with pytest.raises(UsageError, match="after they were drawn"):
            debit.stage(b"x")
        with pytest.raises(UsageError, match="only staged"):
            debit.publish()

    def test_only_what_was_never_drawn_is_given_back(self, ledger: Ledger) -> None:
        never = ledger.debit("d", TENTH, subject={}, key="never")
        drawn = ledger.debit("d", TENTH, subject={}, key="drawn")
        drawn.draw()
        ledger.void("never")
        assert ledger.account("d").spent == Charge(Fraction(1, 10))
        with pytest.raises(UsageError, match="never drawn"):
            ledger.void("drawn")
        with pytest.raises(UsageError, match="voided"):
            never.draw()
        with pytest.raises(UsageError, match="voided"):
            ledger.debit("d", TENTH, subject={}, key="never")
        assert ledger.verify().holds

    def test_what_cannot_be_booked_is_refused(self, ledger: Ledger) -> None:
        for claim in (
            claim_of(epsilon=0.1, secure=False),
            claim_of(epsilon=0.1, mechanism="homemade"),
            claim_of(epsilon=0.1, delta=1e-6),
            claim_of(rho=0.1),
            claim_of(epsilon=0.1, unit="person", per_unit=2),
        ):
            with pytest.raises(ClaimError):
                ledger.debit("d", claim, subject={}, key="k")
        with pytest.raises(UsageError, match="'d'"):
            ledger.debit("nothing", TENTH, subject={}, key="k")
        assert len(ledger.events()) == 2

    def test_a_tally_releases_through_it(self, ledger: Ledger) -> None:
        tally = hs.race(hs.EuclideanKernel(1, 1.0), rows=10, width=10, seed=1).add([[1.0]] * 20)
        function = tally.release(epsilon=0.1, ledger=ledger.spending(to="me"), dataset="d", key="k")
        assert function.claim.epsilon == 0.1
        assert ledger.find("k") is not None
        with pytest.raises(AlreadyPublished):
            tally.release(epsilon=0.1, ledger=ledger, dataset="d", key="k")
        with pytest.raises(BudgetExhausted):
            tally.release(epsilon=1.0, ledger=ledger, dataset="d")

    def test_large_bytes_are_staged_in_pieces(self, ledger: Ledger) -> None:
        payload = bytes(range(256)) * (1 << 17)
        debit = ledger.debit("d", TENTH, subject={}, key="k")
        debit.draw()
        debit.stage(payload)
        assert debit.staged == payload
        assert ledger.verify().holds

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
        ledger.debit("d", TENTH, subject={}, key="a")
        ledger.debit("d", TENTH, subject={}, key="b")
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

    def test_a_missing_tail_shows_in_the_head_the_mark_and_the_receipt(
        self, ledger: Ledger, place: str, state: Path
    ) -> None:
        ledger.debit("d", TENTH, subject={}, key="a")
        receipt = ledger.receipt()
        self.change(place, "DELETE FROM hushsum_events WHERE sequence = 3")
        with pytest.raises(FileRefused, match="not its last event"):
            ledger.debit("d", TENTH, subject={}, key="b")
        assert "tail" in (ledger.verify().problem or "")
        last = Ledger.open(place, damaged=True).verify
        previous = self.hash_of(place, 2)
        self.change(place, f"UPDATE hushsum_ledger SET sequence = 2, hash = '{previous}'")
        assert "receipt names event 3" in (last(receipt).problem or "")
        with pytest.raises(FileRefused, match="accept-restore"):
            ledger.debit("d", TENTH, subject={}, key="b")
        for mark in state.rglob("*.json"):
            mark.unlink()
        assert ledger.verify().holds, "nothing outside the ledger is left to compare with"
        assert not ledger.verify(receipt).holds

    def hash_of(self, place: str, sequence: int) -> str:
        with connect(place).reading() as connection:
            query = sa.text("SELECT hash FROM hushsum_events WHERE sequence = :n")
            return str(connection.execute(query, {"n": sequence}).scalar_one())

    def test_a_restored_ledger_freezes_until_it_is_written_off(self, ledger: Ledger, place: str) -> None:
        early = ledger.debit("d", TENTH, subject={}, key="early")
        early.draw()
        before = ledger.receipt()
        ledger.debit("d", TENTH, subject={}, key="late")
        self.change(
            place,
            f"DELETE FROM hushsum_events WHERE sequence > {before.sequence}",
            f"UPDATE hushsum_ledger SET sequence = {before.sequence}, hash = '{before.hash}'",
        )
        with pytest.raises(FileRefused, match="restored"):
            early.stage(b"x")
        assert ledger.behind() is not None
        assert ledger.accept_restore(reason="fire") == ["d"]
        with pytest.raises(BudgetExhausted, match="frozen"):
            ledger.debit("d", TENTH, subject={}, key="new")
        with pytest.raises(UsageError, match="older than a restored backup"):
            early.stage(b"x")
        account = ledger.write_off("d", Charge(Fraction(1, 2)), reason="unknown")
        assert account.remaining == Charge(Fraction(4, 10))
        ledger.debit("d", TENTH, subject={}, key="new").draw()
        with pytest.raises(UsageError, match="nothing to accept"):
            ledger.accept_restore(reason="again")
        assert ledger.verify().holds
        with ledger._writing() as journal:
            journal.append(Kind.STAGED, dataset="d", key="early", body={"sha256": "0" * 64, "size": 1})
        assert "closed" in (ledger.verify().problem or "")

    def test_budget_changes_and_retirement_are_booked(self, ledger: Ledger) -> None:
        ledger.debit("d", TENTH, subject={}, key="a")
        assert ledger.change_budget("d", Charge(Fraction(2)), reason="board").remaining.epsilon == Fraction(
            19, 10
        )
        ledger.retire("d", reason="deleted")
        with pytest.raises(BudgetExhausted, match="retired"):
            ledger.debit("d", TENTH, subject={}, key="b")
        assert ledger.verify().holds

    def race(self, place: str, racers: int) -> None:
        ledger = Ledger.create(place)
        ledger.create_dataset("d", DatasetTerms.of(epsilon=Fraction(racers, 2) / 100))
        gate = processes().Barrier(racers)
        running = [start(debit_together, place, f"k{i}", 0.01, gate) for i in range(racers)]
        for each in running:
            each.join(300)
        codes = [each.exitcode for each in running]
        assert set(codes) == {GRANTED, REFUSED}
        assert codes.count(GRANTED) == racers // 2
        assert len(ledger.history("d")) == racers // 2, "a granted debit was lost"
        assert ledger.account("d").remaining == Charge()
        assert ledger.verify().holds

    def test_processes_that_race_get_exactly_the_budget(self, place: str) -> None:
        self.race(place, 16)

    @pytest.mark.slow
    def test_two_hundred_processes_get_exactly_the_budget(self, place: str) -> None:
        self.race(place, 200)

    def test_processes_with_one_key_publish_one_result(
        self, ledger: Ledger, place: str, tmp_path: Path
    ) -> None:
        results = tmp_path / "results"
        results.mkdir()
        gate = processes().Barrier(4)
        running = [start(release_together, place, "k", b"mine %d" % i, str(results), gate) for i in range(4)]
        for each in running:
            each.join(120)
        assert [each.exitcode for each in running] == [0] * 4
        heard = {path.read_bytes() for path in results.iterdir()}
        assert len(heard) == 1
        assert ledger.account("d").spent == Charge(Fraction(1, 2))
        assert ledger.verify().holds

    def test_creating_twice_finds_the_same_ledger(self, ledger: Ledger, place: str) -> None:
        assert Ledger.create(place).id == ledger.id
        assert Ledger.upgrade(place).id == ledger.id
        with pytest.raises(UsageError, match="already"):
            ledger.create_dataset("d", DatasetTerms.of(epsilon=1.0))

    def test_a_later_schema_is_refused(self, ledger: Ledger, place: str) -> None:
        with connect(place).writing() as connection:
            connection.exec_driver_sql("UPDATE hushsum_ledger_version SET version_num = '9999'")
        with pytest.raises(FileRefused, match="later"):
            Ledger.open(place)


class TestSQLite(BudgetContract):
    @pytest.fixture
    def place(self, sqlite: str) -> str:
        return sqlite

    def change(self, place: str, *statements: str) -> None:
        with connect(place).writing() as connection:
            for action in ("update", "delete"):
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS hushsum_events_no_{action}")
            for each in statements:
                connection.exec_driver_sql(each)

    def test_the_file_is_its_owners(self, ledger: Ledger, place: str) -> None:
        assert Path(place).stat().st_mode & 0o077 == 0

    def test_another_file_is_refused(self, tmp_path: Path) -> None:
        other = tmp_path / "notes.txt"
        other.write_text("not a database, whatever it is called" * 100)
        with pytest.raises(FileRefused, match="no SQLite database"):
            Ledger.open(other)
        with pytest.raises(UsageError, match="no ledger"):
            Ledger.open(tmp_path / "missing.db")
        with pytest.raises(UsageError, match="outlive"):
            Ledger.create("sqlite://")


class TestPostgreSQL(BudgetContract):
    @pytest.fixture
    def place(self, postgres: str) -> str:
        return postgres

    def change(self, place: str, *statements: str) -> None:
        with connect(place).writing() as connection:
            connection.exec_driver_sql("ALTER TABLE hushsum_events DISABLE TRIGGER ALL")
            for each in statements:
                connection.exec_driver_sql(each)
            connection.exec_driver_sql("ALTER TABLE hushsum_events ENABLE TRIGGER ALL")

    def test_a_connection_lost_in_a_transaction_spends_nothing(self, ledger: Ledger, place: str) -> None:
        told: list[Exception] = []

        def debit() -> None:
            try:
                ledger.debit("d", TENTH, subject={}, key="k")
            except LedgerUnavailable as error:
                told.append(error)

        with connect(place).writing() as holder:
            holder.exec_driver_sql("SELECT * FROM hushsum_ledger FOR UPDATE")
            thread = threading.Thread(target=debit)
            thread.start()
            victim = None
            while victim is None and thread.is_alive():
                time.sleep(0.01)
                victim = holder.exec_driver_sql(
                    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                    "AND datname = current_database()"
                ).scalar()
            assert victim is not None
            holder.exec_driver_sql(f"SELECT pg_terminate_backend({victim})")
            thread.join(60)
        assert len(told) == 1
        assert "same key" in str(told[0])
        assert ledger.account("d").spent == Charge()
        ledger.debit("d", TENTH, subject={}, key="k")
        assert ledger.account("d").spent == Charge(Fraction(1, 10))

    def test_an_unreachable_server_is_told_without_its_address(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerUnavailable) as told:
            Ledger.open(f"postgresql://secret-user@/nothing?host={tmp_path}")
        assert "secret-user" not in str(told.value)
