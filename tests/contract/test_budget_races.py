"""Many processes at one budget get exactly what it has."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from hushsum.ledger import Charge, DatasetTerms, Ledger
from tests.contract.budget_databases import BudgetPlace, InPostgreSQL, InSQLite
from tests.forked import processes
from tests.ledger_fixtures import state
from tests.ledger_workers import GRANTED, REFUSED, debit_together, release_together, start

__all__ = ["state"]


class RaceContract(BudgetPlace):
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


class TestSQLite(InSQLite, RaceContract):
    pass


class TestPostgreSQL(InPostgreSQL, RaceContract):
    pass
