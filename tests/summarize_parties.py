"""Owners and curators of the command line as processes, forked from a server that has all imports."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hushsum.cli.main
from hushsum.errors import FileRefused
from hushsum.files import unpack
from hushsum.parties import Identity
from tests.forked import processes
from tests.free_ports import free_port

_PATIENCE = 300.0


def _command(arguments: list[str], folder: str, log: str, state: str) -> None:
    os.chdir(folder)
    os.environ["HUSHSUM_STATE"] = state
    for number, name in ((1, f"{log}.out"), (2, f"{log}.err")):
        with open(name, "wb") as stream:
            os.dup2(stream.fileno(), number)
    sys.argv = ["hushsum", *arguments]
    hushsum.cli.main.run()


@dataclass
class Party:
    """A running command."""

    process: ForkServerProcess
    log: Path

    @property
    def out(self) -> str:
        return Path(f"{self.log}.out").read_text()

    @property
    def err(self) -> str:
        return Path(f"{self.log}.err").read_text()

    def ended(self) -> int | None:
        """Its exit code, when it has ended."""
        self.process.join(_PATIENCE)
        assert self.process.exitcode is not None, self.err
        assert "Traceback" not in self.err
        return self.process.exitcode

    def json(self) -> Any:
        assert self.ended() == 0, self.err
        return json.loads(self.out)

    def kill(self) -> None:
        self.process.kill()
        self.process.join(_PATIENCE)


def wait_for(condition: Callable[[], bool]) -> None:
    """Until something has happened in another process; fails if it does not."""
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


@dataclass
class Market:
    """A folder with owners' records, a validation set and everybody's keys."""

    folder: Path
    owners: int
    keys: list[Identity] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    parties: list[Party] = field(default_factory=list)
    begun: int = 0

    def __post_init__(self) -> None:
        for i in range(self.owners):
            np.savetxt(
                self.folder / f"o{i}.csv", self.records(i), delimiter=",", header="a,b,label", comments=""
            )
            self.keys.append(Identity.create(self.folder / f"o{i}.key"))
        target = np.random.default_rng(99).normal([1.0, 0.0], 0.5, (150, 2))
        np.savetxt(self.folder / "v.csv", target, delimiter=",", header="a,b", comments="")
        self.curator_key = Identity.create(self.folder / "curator.key")

    def records(self, i: int) -> NDArray[np.float64]:
        """What owner i holds: two columns, and a label."""
        random = np.random.default_rng(i)
        points = random.normal([i - 1.0, 0.0], 1.0, (400, 2))
        return np.round(np.column_stack([points, np.full(400, i)]), 6)

    def run(self, *arguments: str) -> Party:
        """Start a command."""
        self.begun += 1
        log = self.folder / f"log{self.begun}"
        for name in ("out", "err"):
            Path(f"{log}.{name}").touch()
        state = os.environ["HUSHSUM_STATE"]
        process = processes().Process(
            target=_command, args=(list(arguments), str(self.folder), str(log), state), daemon=True
        )
        process.start()
        self.parties.append(Party(process, log))
        return self.parties[-1]

    def owner(self, i: int, *more: str) -> Party:
        """Owner i, looking for the curator."""
        curator = f"127.0.0.1:{self.port}@{self.curator_key.fingerprint}"
        who = ("--curator", curator, "--key", f"o{i}.key")
        party = self.run("summarize", "owner", f"o{i}.csv", *who, "--json", *more)
        wait_for(lambda: self.looks(party) or party.process.exitcode is not None)
        assert self.looks(party), party.err
        return party

    @staticmethod
    def looks(party: Party) -> bool:
        """Whether an owner has connected, or tried to."""
        return any(word in party.err for word in ("trying again", "joined", "resumed"))

    def curator(self, *more: str, key: str = "curator.key") -> Party:
        """A small run with all owners."""
        owners = [part for key in self.keys for part in ("--owner", key.fingerprint)]
        who = (*owners, "--listen", f"127.0.0.1:{self.port}", "--key", key)
        what_for = ("--validation", "v.csv", "--carry", "label")
        what = ("--size", "60", "--rounds", "6", "--epsilon", "4", "--delta", "1e-5", "--bandwidth", "1")
        how = ("--features", "40", "--pace", "0.05", "-o", "s.parquet", "--json")
        return self.run("summarize", "curator", *who, *what_for, *what, *how, *more)

    def step(self, state: str = "s.parquet.summarize") -> int:
        """The last step that the curator has stored."""
        path = self.folder / state / "state"
        try:
            return int(unpack(path.read_bytes(), "curator")[1]["step"])
        except (FileNotFoundError, FileRefused):
            return 0

    def went_beyond(self, step: int) -> bool:
        """Whether the curator has stored a later step."""
        return self.step() > step

    def end(self) -> None:
        for party in self.parties:
            if party.process.exitcode is None:
                party.kill()


@contextmanager
def market(folder: Path, owners: int) -> Iterator[Market]:
    made = Market(folder, owners)
    try:
        yield made
    finally:
        made.end()
