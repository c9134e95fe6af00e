"""``hushsum watch --once`` killed anywhere, then repeated: every file counted once, no step drawn twice."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.e2e.test_ledger_kills import KILLED
from tests.ledger_fixtures import state
from tests.ledger_workers import command, start

import hushsum as hs
from hushsum.ledger import DatasetTerms, Ledger
from hushsum.releases import NoisyTable

__all__ = ["state"]

STEPS = 4000
RECORDS = 50


@dataclass
class Follower:
    """A folder in which a file appears before every run, and a ledger."""

    folder: Path
    files: int = 0
    published: dict[str, str] = field(default_factory=dict)

    def run(self, kill_at: int | None = None) -> int | None:
        arguments = [
            "watch",
            "in",
            "-o",
            "out",
            "--state",
            "a.stream",
            "--every",
            "1s",
            "--horizon",
            f"{STEPS}",
        ]
        arguments += ["--columns", "x", "--bounds", "0:1", "--method", "grid", "--kernel", "gaussian"]
        arguments += ["--bandwidth", "0.1", "--epsilon", "200", "--delta", "1e-6", "--once", "--yes"]
        arguments += ["--ledger", "book.db", "--dataset", "d"]
        process = start(command, arguments, str(self.folder), kill_at)
        process.join(600)
        return process.exitcode

    def put(self) -> None:
        self.files += 1
        text = "x\n" + f"0.{self.files:04}\n" * RECORDS
        (self.folder / "in" / f"{self.files}.csv").write_text(text)

    def look(self) -> None:
        """What a reader may have seen does not change."""
        for path in sorted((self.folder / "out").glob("step-*.hush")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            assert self.published.setdefault(path.name, digest) == digest, "a step was drawn twice"

    def check(self) -> None:
        """The claim was paid once, all files were counted once, and no step is missing."""
        entries = Ledger(str(self.folder / "book.db")).history("d")
        assert len(entries) == 1
        latest = hs.load(self.folder / "out" / "latest.hush")
        assert isinstance(latest, NoisyTable)
        assert abs(latest.count - RECORDS * self.files) < 20
        assert latest.stream_step is not None
        assert len(self.published) == latest.stream_step.step


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    Ledger.create(str(tmp_path / "book.db")).create_dataset("d", DatasetTerms.of(epsilon=200.0, delta=1e-6))
    return Follower(tmp_path)


def kill_everywhere(follower: Follower, step: int) -> int:
    """Kill the start and then a run with a new file at every ``step``-th touch of a file."""
    for kills, moment in enumerate(range(0, 10_000, step)):
        follower.put()
        time.sleep(1.0)
        code = follower.run(moment)
        follower.look()
        if code == 0:
            return kills
        assert code == KILLED
        assert follower.run() == 0
        follower.look()
    raise AssertionError("the command never ended")


def test_killed_at_some_touches_of_files(follower: Follower) -> None:
    assert kill_everywhere(follower, 7) >= 3
    follower.check()


@pytest.mark.slow
def test_killed_at_every_touch_of_a_file(follower: Follower) -> None:
    assert kill_everywhere(follower, 1) >= 15
    follower.check()
