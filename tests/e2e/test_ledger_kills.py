"""``hushsum release --ledger`` killed anywhere, then repeated: one debit, one result, and it ends well."""

from __future__ import annotations

import hashlib
import random
import signal
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from tests.ledger_fixtures import postgres, server, state
from tests.ledger_workers import command, command_with_limit, start

import hushsum as hs
from hushsum.ledger import Charge, DatasetTerms, Kind, Ledger

__all__ = ["postgres", "server", "state"]

KILLED = -signal.SIGKILL
SPENT = Fraction(1, 100)


@dataclass
class Desk:
    """A folder with a tally, and a ledger somewhere."""

    folder: Path
    place: str
    runs: int = 0

    def arguments(self, name: str) -> list[str]:
        where = ["--ledger", self.place, "--dataset", "d", "-o", name]
        return ["release", "small.tally", "--epsilon", "0.01", *where, "--yes"]

    def run(self, name: str, kill_at: int | None = None) -> int | None:
        process = start(command, self.arguments(name), str(self.folder), kill_at)
        process.join(600)
        return process.exitcode

    def digest(self, name: str) -> str | None:
        path = self.folder / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def repeat_until_done(self, name: str) -> None:
        """The same command once more; what a reader may have seen before must not change."""
        seen = self.digest(name)
        assert self.run(name) == 0
        self.runs += 1
        assert seen in (None, self.digest(name)), "two different results for one debit"

    def check(self) -> None:
        """Every release was paid once, published once, and its file is the one in the book."""
        ledger = Ledger(self.place)
        entries = ledger.history("d")
        assert len(entries) == self.runs
        assert ledger.account("d").spent == Charge(SPENT * self.runs)
        for entry in entries:
            assert entry.step is Kind.PUBLISHED
            assert entry.sha256 == self.digest(str(entry.subject["output"]))
        assert ledger.verify().holds


def desk(folder: Path, place: str) -> Desk:
    tally = hs.race(hs.EuclideanKernel(1, 1.0), rows=20, width=20, seed=1)
    tally.add([[1.0], [2.0]] * 50).save(folder / "small.tally")
    Ledger.create(place).create_dataset("d", DatasetTerms.of(epsilon=100.0))
    return Desk(folder, place)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Desk:
    return desk(tmp_path, str(tmp_path / "book.db"))


@pytest.fixture
def on_postgres(tmp_path: Path, postgres: str) -> Desk:
    return desk(tmp_path, postgres)


def kill_everywhere(desk: Desk, step: int) -> int:
    """Kill at every ``step``-th touch of a file, from the first to the last; how many kills that were."""
    for kills, moment in enumerate(range(0, 10_000, step)):
        name = f"at{moment}.hush"
        code = desk.run(name, moment)
        if code == 0:
            desk.runs += 1
            return kills
        assert code == KILLED
        desk.repeat_until_done(name)
    raise AssertionError("the command never ended")


def kill_at_random(desk: Desk, kills: int) -> None:
    """Kill after random times, over about as long as the command takes."""
    generator = random.Random(1)
    for i in range(kills):
        name = f"random{i}.hush"
        process = start(command, desk.arguments(name), str(desk.folder))
        process.join(generator.uniform(0.02, 0.5))
        process.kill()
        process.join(60)
        assert process.exitcode in (0, KILLED)
        desk.repeat_until_done(name)


def test_killed_at_some_touches_of_files_on_sqlite(on_sqlite: Desk) -> None:
    assert kill_everywhere(on_sqlite, 5) >= 5
    on_sqlite.check()


def test_killed_at_random_on_postgresql(on_postgres: Desk) -> None:
    kill_at_random(on_postgres, 6)
    on_postgres.check()


@pytest.mark.slow
def test_killed_at_every_touch_of_a_file_on_sqlite(on_sqlite: Desk) -> None:
    assert kill_everywhere(on_sqlite, 1) >= 25
    on_sqlite.check()


@pytest.mark.slow
def test_killed_a_hundred_times_at_random_on_sqlite(on_sqlite: Desk) -> None:
    kill_at_random(on_sqlite, 100)
    on_sqlite.check()


@pytest.mark.slow
def test_killed_a_hundred_times_at_random_on_postgresql(on_postgres: Desk) -> None:
    kill_at_random(on_postgres, 100)
    on_postgres.check()


def test_a_full_disk_loses_nothing(on_sqlite: Desk) -> None:
    """No file may grow beyond a limit, from hardly a byte to all but the last pages."""
    size = Path(on_sqlite.place).stat().st_size
    failures = 0
    for i, largest in enumerate([100, 2000, size, size + 4096, size + 8192]):
        name = f"full{i}.hush"
        process = start(command_with_limit, on_sqlite.arguments(name), str(on_sqlite.folder), largest)
        process.join(600)
        assert process.exitcode in (0, 1)
        failures += process.exitcode == 1
        if process.exitcode == 1:
            assert on_sqlite.digest(name) is None
        on_sqlite.repeat_until_done(name)
    assert failures >= 3
    on_sqlite.check()
    assert not list(on_sqlite.folder.glob(".*.hush*")), "unfinished files were left behind"
