from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.cli_process import Ended, Shell

from hushsum.cli.main import run

RECORDS = 2357
"""A number that occurs nowhere by chance, so that a printed count would be seen."""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, quick_command: Path) -> Path:
    """A folder with records, a tally and a released function, made once by the command line itself."""
    folder = tmp_path_factory.mktemp("made")
    random = np.random.default_rng(0)
    points = random.normal([1.0, -2.0], [1.0, 0.5], (RECORDS, 2))
    np.savetxt(folder / "ok.csv", points, delimiter=",", header="a,b", comments="")
    shell = Shell(folder, [quick_command])
    small = ("--bandwidth", "1", "--rows", "120", "--width", "200")
    shell.ok("tally", "ok.csv", "--columns", "a,b", *small, "-o", "ok.tally")
    shell.ok("tally", "ok.csv", "--columns", "a", *small, "--bounds", "-5:5", "-o", "one.tally")
    for name in ("ok", "one"):
        shell.ok("release", f"{name}.tally", "--epsilon", "1", "-o", f"{name}.hush")
    return folder


@pytest.fixture
def shell(made: Path, tmp_path: Path, quick_command: Path) -> Shell:
    """A fresh copy of that folder to work in."""
    folder = tmp_path / "work"
    shutil.copytree(made, folder)
    return Shell(folder, [quick_command])


class QuickShell(Shell):
    """The same commands without a new interpreter for each, for long lists of them."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        super().__init__(folder)
        self._monkeypatch = monkeypatch
        self._capture = capfdbinary
        monkeypatch.chdir(folder)
        monkeypatch.delenv("HUSHSUM_DEBUG", raising=False)

    def run(self, *arguments: str, stdin: bytes = b"", **extra: str) -> Ended:
        assert not stdin
        assert not extra
        self._monkeypatch.setattr(sys, "argv", ["hushsum", *arguments])
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with self._monkeypatch.context() as patch:
                # After a refusal the command does not wait for the interpreter; this one goes on.
                patch.setattr(os, "_exit", sys.exit)
                with pytest.raises(SystemExit) as ended:
                    run()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        out, err = self._capture.readouterr()
        assert isinstance(ended.value.code, int)
        assert b"Traceback" not in out + err
        return Ended(ended.value.code, out, err.decode())


@pytest.fixture
def quick(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> QuickShell:
    return QuickShell(shell.folder, monkeypatch, capfdbinary)
