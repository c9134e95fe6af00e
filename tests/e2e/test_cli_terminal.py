"""What a person sees on a terminal: questions and warnings stand on the screen while the command waits."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyte
import pytest
from tests.e2e.cli_process import COMMAND, environment

QUESTION = "[y/N]:"
PROMISE = ("--epsilon", "1")
POINTS = ("points.csv", "--columns", "a,b")
_COLUMNS, _LINES = 100, 40
_REDRAWS = 12
"""A bar is drawn ten times a second: after so many pieces of output, or none for a while, it would show."""
_SILENCE = 0.7
_PATIENCE = 60.0


class Terminal:
    """A command on a pseudo-terminal, and the screen as a person sees it."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._screen = pyte.Screen(_COLUMNS, _LINES)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    @property
    def cursor(self) -> tuple[int, int]:
        return self._screen.cursor.y, self._screen.cursor.x

    def read(self, seconds: float) -> bool:
        """Show what comes next; whether anything came."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._descriptor, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self._stream.feed(data)
        return bool(data)

    def until(self, shown: Callable[[], bool]) -> None:
        """Read until the screen shows it, and then on, so that what is drawn over it is noticed."""
        given_up = time.monotonic() + _PATIENCE
        while not shown():
            assert self.read(_PATIENCE), "\n".join(self.lines)
            assert time.monotonic() < given_up, "\n".join(self.lines)
        for _ in range(_REDRAWS):
            if not self.read(_SILENCE):
                break

    def write(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def end(self) -> int:
        while self.read(_PATIENCE):
            pass
        return self.process.wait()


@contextmanager
def on_terminal(folder: Path, command: Sequence[str | Path], *arguments: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment(TERM="xterm", COLUMNS=str(_COLUMNS), LINES=str(_LINES)),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    random = np.random.default_rng(0)
    points = random.normal([1.0, -2.0], 0.5, (20_000, 2)).round(3)
    np.savetxt(folder / "points.csv", points, delimiter=",", header="a,b", comments="", fmt="%.3f")
    for name in ("in", "out"):
        (folder / name).mkdir()
    return folder


BOX = ("--bounds", "-5:5,-5:5", "--bandwidth", "1")
DAILY = ("--every", "day", "--horizon", "3", "--once")
ASKING = [
    ("release", *POINTS, *BOX, *PROMISE, "-o", "x.hush"),
    ("heatmap", *POINTS, *BOX, *PROMISE, "--plane", "-o", "x.png"),
    ("fit", "density", *POINTS, "--bounds", "-5:5", *PROMISE, "-o", "x.hush"),
    ("synthesize", "points.csv", "--number", "a=-5:5:20", "--number", "b=-5:5:20", *PROMISE, "-o", "x.csv"),
    ("choose", "bounds", *POINTS, "--within", "-10:10", *PROMISE),
    ("watch", "in", *POINTS[1:], *BOX, *PROMISE, *DAILY, "--state", "x.stream", "-o", "out"),
]


@pytest.mark.parametrize("arguments", ASKING, ids=lambda each: str(each[0]))
def test_the_question_stays_on_the_screen(folder: Path, arguments: tuple[str, ...]) -> None:
    with on_terminal(folder, COMMAND, *arguments) as terminal:
        terminal.until(lambda: any(QUESTION in line for line in terminal.lines))
        asked = [i for i, line in enumerate(terminal.lines) if line.endswith(QUESTION)]
        assert len(asked) == 1, "\n".join(terminal.lines)
        row, column = terminal.cursor
        assert row == asked[0]
        assert column > len(terminal.lines[row]) - 1
        assert any("e^1" in line for line in terminal.lines[: row + 1]), "\n".join(terminal.lines)
        assert not any("%" in line for line in terminal.lines), "a bar is left on the screen"
        terminal.write("n\n")
        assert terminal.end() == 1
        assert any(line.endswith("and nothing was spent.") for line in terminal.lines)
    assert not list(folder.glob("x.*"))


def test_an_interruption_at_the_question_spends_nothing(folder: Path) -> None:
    with on_terminal(folder, COMMAND, *ASKING[0]) as terminal:
        terminal.until(lambda: any(QUESTION in line for line in terminal.lines))
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
        assert any(line.endswith("interrupted; nothing was spent") for line in terminal.lines)


@pytest.mark.parametrize("command", ["release", "heatmap"])
def test_a_warning_has_lines_of_its_own(folder: Path, command: str) -> None:
    wide = ("--bounds", "-5:5,-5:5", "--bandwidth", "100", *PROMISE)
    output = ("--plane", "-o", "w.png") if command == "heatmap" else ("-o", "w.hush")
    with on_terminal(folder, COMMAND, command, *POINTS, *wide, *output) as terminal:
        terminal.until(lambda: any(QUESTION in line for line in terminal.lines))
        [warned] = [line for line in terminal.lines if "WARNING" in line]
        assert warned.startswith("WARNING: the bandwidth is larger than the declared range of every column")
        terminal.write("n\n")
        assert terminal.end() == 1
