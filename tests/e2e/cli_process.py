"""The command line as strangers meet it: a process with arguments, pipes and an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hushsum

COMMAND = [sys.executable, "-m", "hushsum"]
SOURCE = Path(hushsum.__file__).parent.parent


def environment(**extra: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if name != "HUSHSUM_DEBUG"}
    path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**known, "PYTHONPATH": path, "COLUMNS": "100", **extra}


@dataclass(frozen=True)
class Ended:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands in one folder, and refuses tracebacks in whatever they print."""

    def __init__(self, folder: Path, command: Sequence[str | Path] = COMMAND) -> None:
        self.folder = folder
        self.command = command

    def run(self, *arguments: str, stdin: bytes = b"", **extra: str) -> Ended:
        ended = subprocess.run(
            [*self.command, *arguments],
            input=stdin,
            capture_output=True,
            cwd=self.folder,
            env=environment(**extra),
            timeout=600,
            check=False,
        )
        err = ended.stderr.decode()
        assert "Traceback" not in err + ended.stdout.decode(errors="replace")
        return Ended(ended.returncode, ended.stdout, err)

    def ok(self, *arguments: str, stdin: bytes = b"") -> Ended:
        ended = self.run(*arguments, stdin=stdin)
        assert ended.code == 0, ended.err
        return ended

    def refused(self, code: int, *arguments: str, stdin: bytes = b"") -> str:
        """One sentence on standard error, nothing on standard output, no new file; returns the sentence."""
        before = self.files()
        ended = self.run(*arguments, stdin=stdin)
        self.check_refusal(ended, code, before)
        return ended.err.strip()

    def check_refusal(self, ended: Ended, code: int, before: set[str]) -> None:
        assert ended.code == code, (ended.code, ended.err)
        assert ended.out == b""
        assert self.files() == before
        lines = ended.err.strip().splitlines()
        assert len(lines) == 1, lines
        assert lines[0].startswith("hushsum: ")

    def files(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
