"""What every ledger promises: exact sums, four steps, one key for one release."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest

import hushsum as hs
from hushsum.errors import (
    AlreadyPublished,
    BudgetExhausted,
    ClaimError,
    FileRefused,
    LedgerUnavailable,
    UsageError,
)
from hushsum.ledger import Charge, Kind, Ledger, connect
from tests.contract.budget_databases import TENTH, BudgetPlace, InPostgreSQL, InSQLite
from tests.ledger_fixtures import claim_of, state

__all__ = ["state"]


class BudgetContract(BudgetPlace):
    def test_a_release_passes_four_steps_and_leaves_its_hash(self, ledger: Ledger, place: str) -> None:
        budget = ledger.dataset("d", to="the press", who="ann")
        subject = {"output": "a.hush"}
        debit = budget.debit(TENTH, subject=subject, idempotency_key="k")
        assert debit.staged is None
        debit.draw()
        assert debit.stage(b"bytes") == b"bytes"
        again = Ledger(place).dataset("d")
        assert again.debit(TENTH, subject=subject, idempotency_key="k").staged == b"bytes"
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
            ledger.dataset("d").debit(TENTH, subject={}, idempotency_key=f"k{i}")
        before = ledger.receipt()
        with pytest.raises(BudgetExhausted, match="nothing left of ε 1"):
            ledger.dataset("d").debit(claim_of(epsilon=1e-9), subject={}, idempotency_key="more")
        assert ledger.receipt() == before
        assert ledger.account("d").remaining == Charge()

    def test_a_key_never_spends_twice_and_means_one_thing(self, ledger: Ledger) -> None:
        for _ in range(3):
            ledger.dataset("d").debit(TENTH, subject={"rows": 5}, idempotency_key="k")
        assert ledger.account("d").spent == Charge(Fraction(1, 10))
        for claim, subject in ((claim_of(epsilon=0.2), {"rows": 5}), (TENTH, {"rows": 6})):
            with pytest.raises(UsageError, match="belongs to another release"):
                ledger.dataset("d").debit(claim, subject=subject, idempotency_key="k")

    def test_the_first_to_stage_is_heard(self, ledger: Ledger, place: str) -> None:
        one = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="k")
        two = Ledger(place).dataset("d").debit(TENTH, subject={}, idempotency_key="k")
        one.draw()
        two.draw()
        assert one.stage(b"first") == b"first"
        assert two.stage(b"second") == b"first"
        one.publish()
        two.publish()
        with pytest.raises(AlreadyPublished):
            two.stage(b"third")
        with pytest.raises(AlreadyPublished) as refused:
            ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="k")
        assert refused.value.sha256 == ledger.history()[0].sha256

    def test_steps_out_of_order_are_refused(self, ledger: Ledger) -> None:
        debit = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="k")
        with pytest.raises(UsageError, match="after they were drawn"):
            debit.stage(b"x")
        with pytest.raises(UsageError, match="only staged"):
            debit.publish()

    def test_only_what_was_never_drawn_is_given_back(self, ledger: Ledger) -> None:
        never = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="never")
        drawn = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="drawn")
        drawn.draw()
        ledger.void("never")
        assert ledger.account("d").spent == Charge(Fraction(1, 10))
        with pytest.raises(UsageError, match="never drawn"):
            ledger.void("drawn")
        with pytest.raises(UsageError, match="voided"):
            never.draw()
        with pytest.raises(UsageError, match="voided"):
            ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="never")
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
                ledger.dataset("d").debit(claim, subject={}, idempotency_key="k")
        with pytest.raises(UsageError, match="'d'"):
            ledger.dataset("nothing").debit(TENTH, subject={}, idempotency_key="k")
        assert len(ledger.events()) == 2

    def test_a_tally_releases_through_it(self, ledger: Ledger) -> None:
        tally = hs.race(hs.EuclideanKernel(1, 1.0), rows=10, width=10, seed=1).add([[1.0]] * 20)
        function = tally.release(epsilon=0.1, budget=ledger.dataset("d", to="me"), idempotency_key="k")
        assert function.claim.epsilon == 0.1
        assert ledger.find("k") is not None
        with pytest.raises(AlreadyPublished):
            tally.release(epsilon=0.1, budget=ledger.dataset("d"), idempotency_key="k")
        with pytest.raises(BudgetExhausted):
            tally.release(epsilon=1.0, budget=ledger.dataset("d"))

    def test_large_bytes_are_staged_in_pieces(self, ledger: Ledger) -> None:
        payload = bytes(range(256)) * (1 << 17)
        debit = ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="k")
        debit.draw()
        debit.stage(payload)
        assert debit.staged == payload
        assert ledger.verify().holds

    def test_budget_changes_and_retirement_are_booked(self, ledger: Ledger) -> None:
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="a")
        assert ledger.change_budget("d", Charge(Fraction(2)), reason="board").remaining.epsilon == Fraction(
            19, 10
        )
        ledger.retire("d", reason="deleted")
        with pytest.raises(BudgetExhausted, match="retired"):
            ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="b")
        assert ledger.verify().holds


class TestSQLite(InSQLite, BudgetContract):
    def test_the_file_is_its_owners(self, ledger: Ledger, place: str) -> None:
        assert Path(place).stat().st_mode & 0o077 == 0

    def test_another_file_is_refused(self, tmp_path: Path) -> None:
        other = tmp_path / "notes.txt"
        other.write_text("not a database, whatever it is called" * 100)
        with pytest.raises(FileRefused, match="no SQLite database"):
            Ledger(other)
        with pytest.raises(UsageError, match="no ledger"):
            Ledger(tmp_path / "missing.db")
        with pytest.raises(UsageError, match="outlive"):
            Ledger.create("sqlite://")


class TestPostgreSQL(InPostgreSQL, BudgetContract):
    def test_a_connection_lost_in_a_transaction_spends_nothing(self, ledger: Ledger, place: str) -> None:
        reported: list[Exception] = []

        def debit() -> None:
            try:
                ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="k")
            except LedgerUnavailable as error:
                reported.append(error)

        with connect(place).writing() as holder:
            holder.exec_driver_sql("SELECT * FROM hushsum_ledger FOR UPDATE")
            thread = threading.Thread(target=debit)
            thread.start()
            victim = None
            while victim is None and thread.is_alive():
                time.sleep(0.01)
                # A transaction sees the activity as it was when it first looked.
                holder.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
                victim = holder.exec_driver_sql(
                    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                    "AND datname = current_database()"
                ).scalar()
            assert victim is not None
            holder.exec_driver_sql(f"SELECT pg_terminate_backend({victim})")
            thread.join(60)
        assert len(reported) == 1
        assert "same key" in str(reported[0])
        assert ledger.account("d").spent == Charge()
        ledger.dataset("d").debit(TENTH, subject={}, idempotency_key="k")
        assert ledger.account("d").spent == Charge(Fraction(1, 10))

    def test_an_unreachable_server_is_reported_without_its_address(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerUnavailable) as reported:
            Ledger(f"postgresql://secret-user@/nothing?host={tmp_path}")
        assert "secret-user" not in str(reported.value)
