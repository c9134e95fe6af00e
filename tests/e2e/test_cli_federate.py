"""``hushsum federate``: three sites and a server as processes, with ledgers, crashes, and refusals."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.cli_process import Shell, environment
from tests.forked import ForkedCommand
from tests.free_ports import free_port

import hushsum as hs

SITES = ("north", "south", "lake")


class Hospitals:
    """Three hospitals in one folder: records, tallies, keys, ledgers and terms."""

    def __init__(self, folder: Path, command: Path, counted: Path) -> None:
        self.folder = shutil.copytree(counted, folder, dirs_exist_ok=True)
        self.shell = Shell(folder, [command])
        self.port = free_port()
        self.running: list[ForkedCommand] = []
        self.prints: dict[str, str] = json.loads((counted / "prints.json").read_text())
        for name in SITES:
            self.shell.ok("ledger", "init", "--ledger", f"{name}.db", "--dataset", name, "--epsilon", "1.5")
        self.terms()

    def terms(self, *more: str, output: str = "run.terms") -> dict[str, Any]:
        sites = [part for name in SITES for part in ("--site", self.prints[name])]
        written = self.shell.ok(
            "federate", "terms", "north.tally", *sites, "--epsilon", "1", "-o", output, "--json", *more
        )
        read: dict[str, Any] = json.loads(written.out)
        return read

    def start(self, *arguments: str, log: str) -> ForkedCommand:
        path = self.folder / log
        command = ForkedCommand(arguments, folder=self.folder, environment=environment(), log=path)
        self.running.append(command)
        return command

    def server(self, log: str = "server.log", terms: str = "run.terms") -> ForkedCommand:
        where = ("--listen", f"127.0.0.1:{self.port}", "-o", "all.hush", "--patience", "120")
        return self.start("federate", "server", "--terms", terms, "--key", "server.key", *where, log=log)

    def site(self, name: str, log: str | None = None, terms: str = "run.terms") -> ForkedCommand:
        server = f"127.0.0.1:{self.port}@{self.prints['server']}"
        booked = ("--ledger", f"{name}.db", "--dataset", name)
        others = [part for each in SITES if each != name for part in ("--site", self.prints[each])]
        who = ("--terms", terms, "--key", f"{name}.key", "--server", server, *others)
        return self.start("federate", "site", f"{name}.tally", *who, *booked, log=log or f"{name}.log")

    def spent(self, name: str) -> list[dict[str, Any]]:
        """The entries of a site's ledger."""
        shown = self.shell.ok("ledger", "history", "--ledger", f"{name}.db", "--dataset", name, "--json")
        entries: list[dict[str, Any]] = json.loads(shown.out)
        return entries

    def wait_for(self, name: str) -> None:
        deadline = time.monotonic() + 120
        while not any(self.folder.glob(name)):
            assert time.monotonic() < deadline, name
            time.sleep(0.02)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory, quick_command: Path) -> Path:
    """A folder with the records, tallies and keys, which every test copies."""
    folder = tmp_path_factory.mktemp("counted")
    shell = Shell(folder, [quick_command])
    prints: dict[str, str] = {}
    for number, name in enumerate((*SITES, "server")):
        prints[name] = json.loads(shell.ok("federate", "keys", f"{name}.key", "--json").out)["fingerprint"]
        if name != "server":
            points = np.random.default_rng(number).normal(number, 1.0, (1500, 1))
            np.savetxt(folder / f"{name}.csv", points, header="x", comments="")
            tally = ("--bandwidth", "1", "--rows", "30", "--width", "40", "-o", f"{name}.tally")
            shell.ok("tally", f"{name}.csv", *tally)
    (folder / "prints.json").write_text(json.dumps(prints))
    return folder


@pytest.fixture
def hospitals(tmp_path: Path, quick_command: Path, counted: Path) -> Iterator[Hospitals]:
    made = Hospitals(tmp_path, quick_command, counted)
    yield made
    for each in made.running:
        if each.poll() is None:
            each.kill()


def test_three_sites_release_together_and_survive_a_crash_on_each_side(hospitals: Hospitals) -> None:
    first = hospitals.server()
    north = hospitals.site("north")
    hospitals.site("south")
    # North has sent its keys, and dies; so does the server, which holds them.
    hospitals.wait_for("all.hush.federate/*/keys." + hospitals.prints["north"])
    for each in (north, first):
        each.kill()
        each.wait(60)
    again = hospitals.server("server2.log")
    sites = [hospitals.site("north", "north2.log"), hospitals.site("lake")]
    assert again.wait(240) == 0, (hospitals.folder / "server2.log").read_text()
    assert [each.wait(120) for each in sites] == [0, 0]
    function: Any = hs.load(hospitals.folder / "all.hush")
    assert abs(function.count - 4500) < 10 * max(function.count_stderr, 1.0)
    assert function.claim.trust.parties == 3
    for name in SITES:
        entries = hospitals.spent(name)
        assert len(entries) == 1
        assert entries[0]["claim"]["trust"] == {
            "model": "secure aggregation", "parties": 3, "dropouts": 0, "colluding": 1,
        }  # fmt: skip


def test_a_site_refuses_before_anything_is_spent(hospitals: Hospitals) -> None:
    shell, server = hospitals.shell, f"127.0.0.1:{hospitals.port}@{hospitals.prints['server']}"
    who = ("--terms", "run.terms", "--key", "north.key", "--server", server)
    shell.ok("tally", "north.csv", "--bandwidth", "2", "--rows", "30", "--width", "40", "-o", "other.tally")
    booked = ("--ledger", "north.db", "--dataset", "north")
    assert "fingerprint" in shell.run("federate", "site", "other.tally", *who, *booked).err
    assert hospitals.terms(output="same.terms")["claim"]["trust"]["colluding"] == 1
    cheap = hospitals.terms("--colluding", "0", output="cheap.terms")
    assert cheap["claim"]["trust"]["colluding"] == 0
    sites = [part for name in SITES for part in ("--site", hospitals.prints[name])]
    shell.ok("federate", "terms", "north.tally", *sites, "--epsilon", "9", "-o", "nine.terms")
    nine = shell.run(
        "federate", "site", "north.tally", "--terms", "nine.terms", "--key", "north.key",
        "--server", server, *booked,
    )  # fmt: skip
    assert nine.code == 3
    assert hospitals.spent("north") == []
    taking_part = ("federate", "site", "north.tally", "--server", server, *booked)
    stranger = shell.refused(2, *taking_part, "--terms", "run.terms", "--key", "server.key")
    assert "--key must be the key of a site that the terms name" in stranger
    (hospitals.folder / "bent.terms").write_bytes((hospitals.folder / "run.terms").read_bytes()[:-1])
    bent = shell.refused(5, *taking_part, "--terms", "bent.terms", "--key", "north.key")
    assert "'bent.terms' holds no aggregation terms" in bent
    assert "FINGERPRINT" in shell.refused(
        2, "federate", "site", "north.tally", "--terms", "run.terms", "--key", "north.key",
        "--server", "127.0.0.1:1", *booked,
    )  # fmt: skip


def test_terms_with_another_key_are_refused_before_anything_is_spent(hospitals: Hospitals) -> None:
    """Who writes the terms could name keys of their own: the noise of all others would be known to them."""
    shell, prints = hospitals.shell, hospitals.prints
    server = f"127.0.0.1:{hospitals.port}@{prints['server']}"
    forged = json.loads(shell.ok("federate", "keys", "forged.key", "--json").out)["fingerprint"]
    named = [part for each in (prints["north"], prints["south"], forged) for part in ("--site", each)]
    shell.ok("federate", "terms", "north.tally", *named, "--epsilon", "1", "-o", "forged.terms")
    known = ("--site", prints["south"], "--site", prints["lake"])
    taking_part = (
        "federate", "site", "north.tally", "--key", "north.key", "--server", server,
        "--ledger", "north.db", "--dataset", "north",
    )  # fmt: skip
    said = shell.refused(2, *taking_part, "--terms", "forged.terms", *known)
    assert f"got also {forged[:12]}…, not {prints['lake'][:12]}…" in said
    fewer = shell.refused(2, *taking_part, "--terms", "run.terms", "--site", prints["south"])
    assert f"also {prints['lake'][:12]}…" in fewer
    more = shell.refused(2, *taking_part, "--terms", "run.terms", *known, "--site", forged)
    assert f"not {forged[:12]}…" in more
    assert hospitals.spent("north") == []
    assert not (hospitals.folder / "north.tally.federate").exists()
    shown = shell.ok("federate", "show", "forged.terms").out.decode()
    assert all(each in shown for each in (prints["north"], prints["south"], forged))
    assert "e^1 times" in shown
    read = json.loads(shell.ok("federate", "show", "run.terms", "--json").out)
    assert read["sites"] == sorted(prints[each] for each in SITES)
    assert "holds no aggregation terms" in shell.refused(5, "federate", "show", "north.key")


def test_a_ledger_entry_is_closed_although_the_site_crashed_after_its_debit(hospitals: Hospitals) -> None:
    from hushsum.operations import LedgerOptions
    from hushsum.parties.secure_aggregation import read_terms, site_spending

    terms = read_terms(str(hospitals.folder / "run.terms"))
    booked = LedgerOptions(str(hospitals.folder / "north.db"), "north")
    first, again = (site_spending(terms, booked, hospitals.prints["north"]) for _ in range(2))
    # A site that has sent nothing owes nothing, although it receives the message that the run has ended.
    again.settle(sent=False)
    assert hospitals.spent("north") == []
    assert first.staged_bytes(lambda: b"masked") == b"masked"
    again.settle(sent=False)
    again.settle(sent=True)
    assert [entry["step"] for entry in hospitals.spent("north")] == ["published"]
    fresh = site_spending(terms, None, hospitals.prints["north"])
    fresh.settle(sent=True)
