"""An interrupt before the command has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.cli_process import COMMAND, environment

INTERRUPTING = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"


def interrupted(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command that is interrupted while the package imports NumPy."""
    (folder / "numpy.py").write_text(INTERRUPTING)
    known = environment()
    path = os.pathsep.join([str(folder), known["PYTHONPATH"]])
    return subprocess.run(
        command,
        env={**known, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=_heed_interrupts,
    )


def _heed_interrupts() -> None:
    """What was started in the background of a shell ignores interrupts, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_among_the_imports_is_one_word(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, [*COMMAND, "--version"])
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_a_program_that_imports_the_package_keeps_its_own_interrupts(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, [sys.executable, "-c", "from hushsum import race"])
    assert "KeyboardInterrupt" in ended.stderr
