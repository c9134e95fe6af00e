"""``hushsum fit --ledger`` killed anywhere, then repeated: one debit, one result, and it ends well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.e2e.test_ledger_kills import Desk, kill_everywhere
from tests.ledger_fixtures import state

from hushsum.ledger import DatasetTerms, Ledger

__all__ = ["state"]


class FittingDesk(Desk):
    """A folder with records, and a ledger somewhere."""

    def arguments(self, name: str) -> list[str]:
        where = ["--ledger", self.place, "--dataset", "d", "-o", name]
        small = ["--rows", "20", "--width", "20"]
        return ["fit", "neighbors", "records.csv", "--epsilon", "0.01", *small, *where, "--yes"]


@pytest.fixture
def fitting(tmp_path: Path) -> FittingDesk:
    points = np.random.default_rng(0).normal(0.0, 0.3, (200, 2))
    np.savetxt(tmp_path / "records.csv", points, delimiter=",", header="a,b", comments="")
    place = str(tmp_path / "book.db")
    Ledger.create(place).create_dataset("d", DatasetTerms.of(epsilon=100.0))
    return FittingDesk(tmp_path, place)


def test_killed_at_some_touches_of_files(fitting: FittingDesk) -> None:
    assert kill_everywhere(fitting, 19) >= 5
    fitting.check()


@pytest.mark.slow
def test_killed_at_every_touch_of_a_file(fitting: FittingDesk) -> None:
    assert kill_everywhere(fitting, 1) >= 25
    fitting.check()
