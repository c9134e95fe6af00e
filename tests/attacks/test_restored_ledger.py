"""A backup of the ledger, put back here or on a new machine, must not give budget back."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from hushsum.errors import BudgetExhausted, FileRefused
from hushsum.ledger import Charge, DatasetTerms, Ledger, connect
from tests.in_process_service import Town
from tests.ledger_fixtures import claim_of, postgres, server  # noqa: F401

HALF = claim_of(epsilon=0.5)
SUBJECT: dict[str, object] = {}


class Machine:
    """A machine that uses a ledger: its own state folder, and the volume with the data."""

    def __init__(self, folder: Path, name: str, volume: str = "volume") -> None:
        self.state = folder / name
        self.volume = folder / volume
        self.volume.mkdir(exist_ok=True)
        self.place = self.volume / "ledger.db"

    def ledger(self) -> Ledger:
        return Ledger(self.place, state=self.state)

    def spend(self, key: str) -> None:
        self.ledger().dataset("town").debit(HALF, subject=SUBJECT, idempotency_key=key)


@pytest.fixture
def first(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, "first")
    ledger = Ledger.create(machine.place, state=machine.state)
    ledger.create_dataset("town", DatasetTerms.of(epsilon=1.0))
    return machine


def test_a_backup_restored_on_a_new_machine_spends_nothing_twice(first: Machine, tmp_path: Path) -> None:
    first.spend("a")
    shutil.copy(first.place, tmp_path / "backup.db")
    first.spend("b")
    second = Machine(tmp_path, "second", "new volume")
    shutil.copy(tmp_path / "backup.db", second.place)
    ledger = second.ledger()
    with pytest.raises(FileRefused, match="no rollback guard"):
        second.spend("c")
    assert "accept-restore" in (ledger.rollback_problem() or "")
    assert ledger.account("town").remaining == Charge(Fraction(1, 2)), "reading goes on"
    assert Ledger.create(second.place, state=second.state).rollback_problem() is not None
    assert ledger.accept_restore(reason="the disk failed") == ["town"]
    with pytest.raises(BudgetExhausted, match="frozen"):
        second.spend("c")
    ledger.write_off("town", Charge(Fraction(1, 2)), reason="b, from the mail archive")
    with pytest.raises(BudgetExhausted):
        second.spend("c")
    assert ledger.verify().holds


def test_a_new_container_with_the_old_volume_continues(first: Machine, tmp_path: Path) -> None:
    first.spend("a")
    shutil.copy(first.place, tmp_path / "backup.db")
    replacement = Machine(tmp_path, "replacement")
    replacement.spend("b")
    another = Machine(tmp_path, "another")
    shutil.copy(tmp_path / "backup.db", first.place)
    for machine in (first, replacement, another):
        with pytest.raises(FileRefused, match="rollback guard names event"):
            machine.spend("c")


def test_the_state_of_a_machine_can_be_lost_and_the_guard_cannot(first: Machine) -> None:
    beside = first.volume / "ledger.db.rollback_guard"
    shutil.rmtree(first.state)
    first.spend("a")
    assert list(first.state.rglob("*.json")), "it comes back"
    assert beside.stat().st_mode & 0o077 == 0
    # Another machine may have written more than this one knows, and the database may be older than that.
    beside.unlink()
    with pytest.raises(FileRefused, match="no rollback guard"):
        first.spend("b")
    first.ledger().accept_restore(reason="deleted by mistake")
    first.ledger().write_off("town", Charge(Fraction(0)), reason="nothing is missing")
    first.spend("b")


def test_what_cannot_be_noticed_is_a_copy_of_everything(first: Machine, tmp_path: Path) -> None:
    # Said in the documentation: receipts kept elsewhere are the only remedy.
    first.spend("a")
    receipt = first.ledger().receipt()
    shutil.copytree(first.volume, tmp_path / "copy")
    first.spend("b")
    newer = first.ledger().receipt()
    second = Machine(tmp_path, "second", "copy")
    assert second.ledger().rollback_problem() is None
    assert second.ledger().verify(receipt).holds
    assert not second.ledger().verify(newer).holds


def test_a_lost_database_is_not_replaced_by_a_new_budget(first: Machine, tmp_path: Path) -> None:
    first.spend("a")
    shutil.move(first.place, tmp_path / "elsewhere.db")
    with pytest.raises(FileRefused, match="was lost"):
        Ledger.create(first.place, state=first.state)
    assert not first.place.exists()
    shutil.move(tmp_path / "elsewhere.db", first.place)
    first.spend("b")
    other = Machine(tmp_path, "first", "other volume")
    stranger = Ledger.create(other.place, state=other.state)
    stranger.create_dataset("town", DatasetTerms.of(epsilon=1.0))
    shutil.copy(other.place, first.place)
    with pytest.raises(FileRefused, match="another one"):
        first.spend("c")


def test_a_damaged_guard_books_nothing(first: Machine) -> None:
    (first.volume / "ledger.db.rollback_guard").write_text("{")
    with pytest.raises(FileRefused, match="damaged"):
        first.spend("a")
    assert "damaged" in (first.ledger().rollback_problem() or "")
    first.ledger().accept_restore(reason="compared with the auditor's receipt")
    assert first.ledger().rollback_problem() is None


def test_a_restore_is_accepted_once_for_all_machines(first: Machine, tmp_path: Path) -> None:
    second = Machine(tmp_path, "second")
    first.spend("a")
    backup = tmp_path / "backup.db"
    shutil.copy(first.place, backup)
    second.spend("b")
    first.ledger().write_off("town", Charge(Fraction(0)), reason="an event that the backup lacks")
    shutil.copy(backup, first.place)
    assert first.ledger().rollback_problem() is not None
    second.ledger().accept_restore(reason="the disk failed")
    accepted = tmp_path / "accepted.db"
    shutil.copy(first.place, accepted)
    assert first.ledger().rollback_problem() is None, "its own guard was replaced by the acceptance"
    assert first.ledger().verify().holds
    first.ledger().write_off("town", Charge(Fraction(1, 2)), reason="b")
    # A second restore is another loss, which nobody has accepted: to after the first, and to before it.
    for older in (accepted, backup):
        shutil.copy(older, first.place)
        for machine in (first, second, Machine(tmp_path, "third")):
            assert machine.ledger().rollback_problem() is not None


def test_a_service_with_a_restored_database_answers_and_books_nothing(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset()
    function = town.function(dataset)
    tally = town.tally(dataset)
    database = Path(town.settings.place)
    shutil.rmtree(tmp_path / "state")
    database.with_name(database.name + ".rollback_guard").unlink()
    # The same people, on a machine that has nothing but the restored database and the files.
    restored = Town(tmp_path / "new machine", like=town)
    state = restored.ask(None, "GET", "/readyz")
    assert state.status_code == 503
    assert "restored backup" in state.json()["reasons"][0]
    points = {"points": [[0.0, 0.0]]}
    assert restored.ok("olga", "POST", f"/functions/{function}/query", json=points)["value"]
    requested = restored.confirmed(dataset, tally)
    headers = {"idempotency-key": "later"}
    path = f"/datasets/{dataset}/releases"
    refused = restored.refused("olga", "POST", path, 503, json=requested, headers=headers)
    assert refused["type"].endswith("restore-not-accepted")
    restored.refused("olga", "POST", "/datasets", 503, json={"name": "other", "epsilon": 1.0})
    restored.refused("olga", "DELETE", f"/datasets/{dataset}", 503)
    why = {"reason": "the volume was lost"}
    restored.refused("olga", "POST", "/ledger/restores", 403, json=why)
    assert restored.ok("admin", "GET", "/ledger")["problem"]
    assert restored.ok("admin", "POST", "/ledger/restores", 201, json=why) == {"frozen": 1}
    restored.refused("admin", "POST", "/ledger/restores", 422, json=why)
    assert restored.ok(None, "GET", "/readyz")["status"] == "ok"
    restored.refused("olga", "POST", path, 409, json=requested, headers=headers)
    charge = {"epsilon": 0.25, "reason": "unknown"}
    restored.refused("otto", "POST", f"/datasets/{dataset}/write-offs", 404, json=charge)
    reported = restored.ok("olga", "POST", f"/datasets/{dataset}/write-offs", 201, json=charge)
    assert reported["budget"]["state"] == "open"
    assert restored.job(path, restored.confirmed(dataset, tally))["state"] == "done"
    assert restored.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "5/4"


@pytest.mark.parametrize("kind", ["debited", "drawn"])
def test_a_service_notices_a_hole_in_its_ledger(town: Town, kind: str) -> None:
    dataset = town.dataset()
    tally = town.tally(dataset)
    function = town.function(dataset)
    requested = town.confirmed(dataset, tally)
    assert town.ok(None, "GET", "/readyz")["status"] == "ok"
    with connect(town.settings.place).writing() as connection:
        connection.exec_driver_sql("DROP TRIGGER hushsum_events_no_delete")
        connection.exec_driver_sql(f"DELETE FROM hushsum_events WHERE kind = '{kind}'")
    state = town.ask(None, "GET", "/readyz")
    assert state.status_code == 503
    assert "events were removed" in state.json()["reasons"][0]
    headers = {"idempotency-key": "later"}
    path = f"/datasets/{dataset}/releases"
    town.refused("olga", "POST", path, 503, json=requested, headers=headers)
    town.refused("olga", "POST", "/datasets", 503, json={"name": "other", "epsilon": 1.0})
    if kind == "debited":
        town.refused("olga", "GET", f"/datasets/{dataset}", 503)
        town.refused("olga", "GET", "/datasets", 503)
    town.refused("admin", "POST", "/ledger/restores", 503, json={"reason": "it is not a restore"})
    points = {"points": [[0.0, 0.0]]}
    assert town.ok("olga", "POST", f"/functions/{function}/query", json=points)["value"]


@pytest.mark.slow
def test_two_replicas_on_postgresql(postgres: str, tmp_path: Path) -> None:  # noqa: F811
    shared = tmp_path / "folder" / "rollback_guard.json"
    replicas = [Ledger.create(postgres, state=tmp_path / name, guard=shared) for name in ("first", "second")]
    replicas[0].create_dataset("town", DatasetTerms.of(epsilon=1.0))
    for number, each in enumerate(replicas):
        each.dataset("town").debit(HALF, subject=SUBJECT, idempotency_key=f"{number}")
    lonely = Ledger(postgres, state=tmp_path / "third")
    assert lonely.rollback_problem() is not None, "neither folder nor state"
    joined = Ledger(postgres, state=tmp_path / "third", guard=shared)
    assert joined.rollback_problem() is None
    with joined._database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE hushsum_events DISABLE TRIGGER ALL")
        connection.exec_driver_sql("DELETE FROM hushsum_events WHERE sequence = 4")
        connection.exec_driver_sql(
            "UPDATE hushsum_ledger SET sequence = 3, hash = e.hash FROM hushsum_events e WHERE e.sequence = 3"
        )
        connection.exec_driver_sql("ALTER TABLE hushsum_events ENABLE TRIGGER ALL")
    for each in (*replicas, joined):
        assert each.rollback_problem() is not None
    replicas[0].accept_restore(reason="restored")
    assert [each.rollback_problem() for each in (*replicas, joined)] == [None] * 3
