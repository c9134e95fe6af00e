"""The ledger on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.e2e.cli_process import Ended, Shell
from tests.e2e.conftest import RECORDS
from tests.ledger_fixtures import postgres, server, state
from tests.shown_numbers import shows_number

__all__ = ["postgres", "server", "state"]

BOOK = ("--ledger", "book.db")
DATASET = (*BOOK, "--dataset", "d")


def release(shell: Shell, epsilon: str, output: str, *more: str) -> Ended:
    return shell.run("release", "ok.tally", "--epsilon", epsilon, *DATASET, "-o", output, *more)


@pytest.fixture
def booked(quick: Shell) -> Shell:
    quick.ok("ledger", "init", *DATASET, "--epsilon", "1")
    return quick


def test_a_budget_is_spent_reported_and_exhausted(booked: Shell) -> None:
    first = release(booked, "0.6", "a.hush", "--to", "the press")
    assert first.code == 0
    assert "ε 0.4 left of ε 1" in first.text
    refused = release(booked, "0.6", "b.hush")
    assert refused.code == 3
    assert refused.text == ""
    assert refused.err.count("\n") == 1
    assert "ε 0.4 left" in refused.err
    assert not (booked.folder / "b.hush").exists()
    status = booked.ok("ledger", "status", *DATASET)
    assert "█" * 24 + "░" * 16 + "  60 % spent" in status.text
    reported = booked.ok("ledger", "status", *DATASET, "--json").json
    assert reported["remaining"]["epsilon"] == "2/5"
    assert reported["largest_pure_epsilon"] == 0.4
    assert release(booked, "0.4", "c.hush").code == 0
    assert "exhausted" in booked.ok("ledger", "status", *BOOK).text


def test_the_same_command_again_spends_nothing(booked: Shell) -> None:
    first = release(booked, "0.3", "a.hush", "--json")
    again = release(booked, "0.3", "a.hush", "--json")
    assert (first.json["ledger_record"]["again"], again.json["ledger_record"]["again"]) == (False, True)
    assert again.json["ledger_record"]["remaining"]["epsilon"] == "7/10"
    (booked.folder / "a.hush").unlink()
    gone = release(booked, "0.3", "a.hush")
    assert gone.code == 2
    assert "published already" in gone.err
    assert release(booked, "0.3", "a.hush", "--idempotency-key", "second").code == 0
    assert [each["idempotency_key"] for each in booked.ok("ledger", "history", *DATASET, "--json").json][
        1
    ] == "second"


def test_another_tally_to_the_same_place_is_another_release(booked: Shell) -> None:
    assert release(booked, "0.3", "a.hush").code == 0
    shutil.copy(booked.folder / "one.tally", booked.folder / "ok.tally")
    assert release(booked, "0.3", "a.hush").code == 0
    assert booked.ok("ledger", "status", *DATASET, "--json").json["spent"]["epsilon"] == "3/5"


def test_a_release_to_a_pipe_is_booked(booked: Shell) -> None:
    real = Shell(booked.folder)
    piped = release(real, "0.25", "-")
    assert piped.code == 0
    assert piped.out.startswith(b"\x89HUSH")
    assert "ε 0.75 left" in piped.err
    assert release(real, "0.25", "-").code == 2


def test_seeded_noise_and_half_a_booking_are_refused(booked: Shell) -> None:
    seeded = release(booked, "0.1", "a.hush", "--insecure-noise-seed", "1")
    assert seeded.code == 2
    assert "protects nobody" in seeded.err
    for half in (BOOK, ("--dataset", "d"), ("--idempotency-key", "k")):
        ended = booked.run("release", "ok.tally", "--epsilon", "0.1", *half, "-o", "a.hush")
        assert ended.code == 2
    assert not (booked.folder / "a.hush").exists()
    assert booked.ok("ledger", "history", *DATASET, "--json").json == []


def test_a_report_says_what_was_released_to_whom(booked: Shell) -> None:
    release(booked, "0.25", "a.hush", "--to", "the <press>")
    booked.ok("ledger", "export", *DATASET, "-o", "report.md")
    text = (booked.folder / "report.md").read_text()
    assert "e^0.25 times" in text
    assert "to: the \\<press\\>" in text
    booked.ok("ledger", "export", *DATASET, "-o", "report.json")
    report = json.loads((booked.folder / "report.json").read_text())
    assert report["releases"][0]["to"] == "the <press>"
    assert report["releases"][0]["step"] == "published"
    assert booked.run("ledger", "export", *DATASET, "-o", "report.pdf").code == 2
    assert not shows_number(text + json.dumps(report), RECORDS)


def test_verify_and_receipts(booked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    release(booked, "0.25", "a.hush")
    booked.ok("ledger", "receipt", *BOOK, "-o", "receipt.json")
    shutil.copy(booked.folder / "book.db", booked.folder / "backup.db")
    release(booked, "0.25", "b.hush")
    booked.ok("ledger", "receipt", *BOOK, "-o", "newer.json")
    booked.ok("ledger", "verify", *BOOK, "--receipt", "receipt.json", "--receipt", "newer.json")
    shutil.copy(booked.folder / "backup.db", booked.folder / "book.db")
    monkeypatch.setenv("HUSHSUM_STATE", str(booked.folder / "elsewhere"))
    assert booked.run("ledger", "verify", *BOOK, "--receipt", "receipt.json").code == 5, "the guard beside it"
    (booked.folder / "book.db.rollback_guard").unlink()
    booked.ok("ledger", "verify", *BOOK, "--receipt", "receipt.json")
    found = booked.run("ledger", "verify", *BOOK, "--receipt", "newer.json", "--json")
    assert found.code == 5
    assert found.json["holds"] is False
    assert booked.run("ledger", "verify", *BOOK, "--receipt", "ok.csv").code == 5


def test_a_restored_backup_gives_no_budget_back(booked: Shell) -> None:
    shutil.copy(booked.folder / "book.db", booked.folder / "backup.db")
    assert release(booked, "0.9", "a.hush").code == 0
    shutil.copy(booked.folder / "backup.db", booked.folder / "book.db")
    refused = release(booked, "0.9", "b.hush")
    assert refused.code == 5
    assert "accept-restore" in refused.err
    assert "WARNING" in booked.ok("ledger", "status", *BOOK).err
    booked.ok("ledger", "accept-restore", *BOOK, "--reason", "disk failure")
    assert release(booked, "0.9", "b.hush").code == 3
    booked.ok("ledger", "write-off", *DATASET, "--epsilon", "0.9", "--reason", "release of a.hush")
    assert release(booked, "0.9", "b.hush").code == 3
    assert release(booked, "0.1", "b.hush").code == 0
    assert not (booked.folder / "c.hush").exists()
    booked.ok("ledger", "verify", *BOOK)


def test_parts_add_up_only_within_themselves(quick: Shell) -> None:
    quick.ok("ledger", "init", *DATASET, "--epsilon", "1", "--partition", "north,south")
    for part in ("north", "south"):
        assert release(quick, "0.8", f"{part}.hush", "--part", part).code == 0
    assert release(quick, "0.3", "x.hush", "--part", "north").code == 3
    assert release(quick, "0.2", "x.hush").code == 0
    assert release(quick, "0.1", "y.hush", "--part", "west").code in (2, 3)


def test_parts_under_replace_cost_two_steps(quick: Shell) -> None:
    init = ("--epsilon", "1", "--relation", "replace", "--partition", "north,south")
    quick.ok("ledger", "init", *DATASET, *init)
    requested = [("1", "north"), ("0.5", "north"), ("0.5", "south"), ("0.1", "north")]
    codes = [
        release(quick, epsilon, f"{i}.hush", "--part", part).code
        for i, (epsilon, part) in enumerate(requested)
    ]
    assert codes == [3, 0, 0, 3]


def test_care_commands(booked: Shell) -> None:
    booked.ok("ledger", "set-budget", *DATASET, "--epsilon", "2", "--reason", "board")
    assert release(booked, "1.5", "a.hush").code == 0
    booked.ok("ledger", "upgrade", *BOOK)
    booked.ok("ledger", "retire", *DATASET, "--reason", "done")
    assert release(booked, "0.1", "b.hush").code == 3
    assert booked.run("ledger", "void", "nothing", *BOOK).code == 2
    assert booked.run("ledger", "init", *DATASET, "--epsilon", "1").code == 2


def test_a_missing_or_foreign_ledger_is_one_sentence(quick: Shell) -> None:
    assert quick.run("ledger", "status", *BOOK).code == 2
    assert quick.run("ledger", "status", "--ledger", "ok.csv").code == 5
    assert quick.run("ledger", "status", "--ledger", "mysql://x/y").code == 2
    assert not (quick.folder / "book.db").exists()


def test_a_paid_choice_is_booked(booked: Shell) -> None:
    ask = (
        "choose",
        "bounds",
        "ok.csv",
        "--columns",
        "a",
        "--within",
        "-100:100",
        "--epsilon",
        "0.6",
        *DATASET,
    )
    chosen = booked.ok(*ask, "--idempotency-key", "bounds", "--json").json
    assert chosen["claim"]["epsilon"] == 0.6
    assert booked.ok("ledger", "status", *DATASET, "--json").json["spent"]["epsilon"] == "3/5"
    assert booked.run(*ask, "--idempotency-key", "bounds").code == 2
    assert booked.run(*ask, "--idempotency-key", "more").code == 3
    entry = booked.ok("ledger", "history", *DATASET, "--json").json[0]
    assert (entry["idempotency_key"], entry["step"]) == ("bounds", "published")


def test_on_postgresql(quick: Shell, postgres: str, tmp_path: Path) -> None:
    book = ("--ledger", postgres, "--dataset", "d")
    quick.ok("ledger", "init", *book, "--rho", "0.5", "--delta", "1e-6")
    quick.ok("release", "ok.tally", "--rho", "0.4", *book, "-o", "a.hush")
    refused = quick.run("release", "ok.tally", "--epsilon", "0.5", *book, "-o", "b.hush")
    assert refused.code == 3
    assert "ρ 0.1 left" in refused.err
    quick.ok("release", "ok.tally", "--epsilon", "0.4", *book, "-o", "c.hush")
    status = quick.ok("ledger", "status", *book, "--json").json
    assert status["spent"]["rho"] == "12/25"
    assert 4 < status["spent_epsilon"] < 6
    quick.ok("ledger", "verify", "--ledger", postgres)
