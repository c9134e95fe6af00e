"""The chain's bytes, the schema's history, rollback guards and keys."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import hushsum.ledger
from hushsum.errors import FileRefused, LedgerUnavailable, UsageError
from hushsum.files import state_folder
from hushsum.ledger import (
    REVISION,
    VERSION_TABLE,
    DatasetTerms,
    Ledger,
    Receipt,
    Watermark,
    WatermarkGuard,
    connect,
    metadata,
)
from hushsum.operations import release_key
from tests.ledger_fixtures import claim_of


def test_a_hash_can_be_recomputed_from_the_documented_bytes(sqlite: str) -> None:
    ledger = Ledger.create(sqlite)
    ledger.create_dataset("ä", DatasetTerms.of(epsilon=1))
    previous = "0" * 64
    for event in ledger.events():
        said = {**event.as_json(), "ledger": ledger.id}
        assert said.pop("hash") == event.hash
        assert said["previous"] == previous
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert hashlib.sha256(text.encode()).hexdigest() == event.hash
        previous = event.hash


def test_the_migrations_make_what_the_code_reads(sqlite: str) -> None:
    Ledger.create(sqlite)
    scripts = ScriptDirectory(str(Path(hushsum.ledger.__file__).parent / "migrations"))
    assert scripts.get_current_head() == REVISION
    with connect(sqlite).reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        changes = compare_metadata(context, metadata)
    structural = [each for each in changes if each[0] in ("add_table", "add_column", "remove_column")]
    assert structural == []


def test_a_command_without_a_ledger_loads_no_database() -> None:
    code = (
        "import sys, hushsum.cli.main; hushsum.cli.main.application(); "
        "sys.exit(bool({'sqlalchemy', 'alembic', 'psycopg', 'dp_accounting'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_step_of_a_release_reads_the_whole_history(sqlite: str) -> None:
    ledger = Ledger.create(sqlite)
    ledger.create_dataset("d", DatasetTerms.of(epsilon=1))
    requested: list[tuple[str, tuple[object, ...]]] = []

    @sa.event.listens_for(ledger._database._engine, "before_cursor_execute")
    def note(
        connection: sa.Connection,
        cursor: object,
        statement: str,
        parameters: tuple[object, ...],
        context: object,
        many: bool,
    ) -> None:
        if statement.startswith("SELECT"):
            requested.append((statement, parameters))

    debit = ledger.dataset("d").debit(claim_of(epsilon=0.1), subject={}, idempotency_key="k")
    debit.draw()
    debit.stage(b"x")
    debit.publish()
    assert len(requested) > 8
    with sqlite3.connect(sqlite) as connection:
        for statement, parameters in requested:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
            assert not [each for each in plan if "SCAN hushsum_events" in each[3]], statement
    connection.close()


def logical_content(path: Path) -> list[str] | None:
    """Every row and definition of a database; None if its pages or indexes are damaged."""
    connection = sqlite3.connect(path)
    try:
        if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            return None
        return list(connection.iterdump())
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    finally:
        connection.close()


def test_a_flipped_bit_is_noticed_or_changes_nothing(sqlite: str, tmp_path: Path) -> None:
    """Of every page: the chain covers the events; indexes, triggers and the head are covered by the rest."""
    ledger = Ledger.create(sqlite)
    ledger.create_dataset("d", DatasetTerms.of(epsilon=1))
    for key in ("a", "b"):
        debit = ledger.dataset("d").debit(claim_of(epsilon=0.1), subject={}, idempotency_key=key)
        debit.draw()
        debit.stage(bytes(3000))
    debit.publish()
    whole = Path(sqlite).read_bytes()
    copy = tmp_path / "copy.db"
    shutil.copy(f"{sqlite}.rollback_guard", f"{copy}.rollback_guard")
    before = logical_content(Path(sqlite))
    chance, noticed = random.Random(5), 0
    for place in range(0, len(whole), 397):
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        copy.write_bytes(changed)
        try:
            holds = Ledger(copy, damaged=True).verify().holds
        except FileRefused:
            holds = False
        noticed += not holds
        # Pages have bytes that nothing uses.
        assert not holds or logical_content(copy) == before, place
    assert noticed > 20


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER hushsum_events_no_update",
        "DROP INDEX hushsum_events_key_step",
        "CREATE TRIGGER hushsum_events_no_update BEFORE UPDATE ON hushsum_events BEGIN SELECT 1; END",
    ],
)
def test_verify_notices_what_no_longer_protects_the_events(sqlite: str, statement: str) -> None:
    ledger = Ledger.create(sqlite)
    assert ledger.verify().holds
    with sqlite3.connect(sqlite) as connection:
        if statement.startswith("CREATE"):
            connection.execute("DROP TRIGGER hushsum_events_no_update")
        connection.execute(statement)
    connection.close()
    assert "trigger" in (ledger.verify().problem or "")


def test_a_guard_only_moves_forward_unless_reset(tmp_path: Path) -> None:
    guard = WatermarkGuard.in_file(tmp_path / "a" / "guard.json")
    guard.prepare()
    assert guard.known() is None
    for sequence in (5, 3):
        guard.note(Watermark(Receipt("x", sequence, f"{sequence}")))
    assert guard.known() == Watermark(Receipt("x", 5, "5"))
    guard.note(Watermark(Receipt("y", 9, "9")))
    assert guard.known() == Watermark(Receipt("x", 5, "5")), "of another ledger"
    accepted = Watermark(Receipt("x", 4, "4"), Receipt("x", 3, "r"))
    guard.note(accepted)
    assert guard.known() == accepted, "later, although its number is smaller"
    guard.reset(Watermark(Receipt("x", 2, "2")))
    assert guard.known() == Watermark(Receipt("x", 2, "2"))
    for text in (b"{", b"\xff", b'{"ledger": "x", "sequence": 1, "hash": "y", "restore": 3}'):
        (tmp_path / "a" / "guard.json").write_bytes(text)
        with pytest.raises(FileRefused, match="damaged"):
            guard.known()


def test_nothing_is_booked_where_no_guard_can_be_kept(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(sqlite)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "file"))
    again = Ledger(sqlite)
    with pytest.raises(LedgerUnavailable, match="HUSHSUM_STATE"):
        again.create_dataset("d", DatasetTerms.of(epsilon=1))
    assert ledger.datasets() == []


def test_a_ledger_is_not_made_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must exist to make a ledger in it"):
        Ledger.create(tmp_path / "ledgers" / "town.db", state=tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


def test_the_state_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert str(state_folder()) == os.environ["HUSHSUM_STATE"]
    monkeypatch.delenv("HUSHSUM_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "hushsum"


def test_a_key_follows_the_tally_and_the_command_and_is_no_plain_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = tmp_path / "a.tally"
    tally.write_bytes(b"counts")
    key = release_key(str(tally), "d", 1)
    assert key == release_key(str(tally), "d", 1)
    assert key != release_key(str(tally), "d", 2)
    assert (state_folder() / "release.key").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "elsewhere"))
    assert key != release_key(str(tally), "d", 1), "anybody could test guesses about the records"
    tally.write_bytes(b"other counts")
    assert key != release_key(str(tally), "d", 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ledger":"x","sequence":"1","hash":"y"}', "null"])
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(FileRefused, match="not a receipt"):
        Receipt.from_text(text)
