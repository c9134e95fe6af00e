"""Signals, terminals and pipes that close."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time

import pytest
from tests.e2e.cli_process import COMMAND, Shell, environment


@pytest.mark.parametrize(
    ("number", "code", "delay"),
    [
        (signal.SIGINT, 130, 0.0),
        (signal.SIGINT, 130, 1.5),
        (signal.SIGTERM, 143, 0.0),
        (signal.SIGTERM, 143, 0.3),
    ],
)
def test_an_interrupted_tally_leaves_nothing(
    shell: Shell, number: signal.Signals, code: int, delay: float
) -> None:
    before = shell.files()
    arguments = ["tally", "-", "--bandwidth", "1", "-o", "x.tally"]
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.folder,
        env=environment(),
    )
    assert process.stdin is not None
    # Far more than the pipe holds: when the last byte is taken, reading has begun. Standard input stays open,
    # so that the command waits for more of it.
    process.stdin.write(b"a,b\n" + b"1.5,2.5\n" * 400_000)
    process.stdin.flush()
    time.sleep(delay)
    process.send_signal(number)
    assert process.wait(timeout=300) == code
    out, err = process.communicate()
    assert out == b""
    assert err.decode() == ("interrupted\n" if number == signal.SIGINT else "")
    assert shell.files() == before


@pytest.mark.parametrize("answer", ["n", "y"])
def test_a_terminal_is_asked(shell: Shell, answer: str) -> None:
    said, code = _on_a_terminal(shell, answer, "release", "ok.tally", "--epsilon", "1", "-o", "t.hush")
    assert said.index("no answer is more than e^1") < said.index("Release it?")
    assert (shell.folder / "t.hush").exists() == (answer == "y")
    assert code == (0 if answer == "y" else 1)
    assert ("Nothing was released" in said) == (answer == "n")


def test_a_terminal_is_told_of_what_is_replaced(shell: Shell) -> None:
    arguments = ("release", "ok.tally", "--epsilon", "1", "-o", "ok.hush")
    before = (shell.folder / "ok.hush").read_bytes()
    said, code = _on_a_terminal(shell, "n", *arguments)
    assert "'ok.hush' exists and will be replaced. Releasing again spends again." in said
    assert (code, (shell.folder / "ok.hush").read_bytes()) == (1, before)
    said, code = _on_a_terminal(shell, "y", *arguments)
    assert said.count("no answer is more than") == 1
    assert (shell.folder / "ok.hush").read_bytes() != before


def test_yes_answers_for_a_terminal(shell: Shell) -> None:
    arguments = ("release", "ok.tally", "--epsilon", "1", "--yes", "-o", "t.hush")
    said, code = _on_a_terminal(shell, "", *arguments)
    assert (code, "Release it?" in said) == (0, False)
    assert (shell.folder / "t.hush").exists()


def test_a_terminal_gets_no_binary_file(shell: Shell) -> None:
    said, code = _on_a_terminal(shell, "", "release", "ok.tally", "--epsilon", "1", "-o", "-")
    assert code == 2
    assert "binary" in said


@pytest.mark.parametrize(
    "arguments",
    [("query", "one.hush", "--points", "many.csv"), ("show", "ok.hush"), ("show", "ok.hush", "--json")],
)
def test_a_reader_that_leaves(shell: Shell, arguments: tuple[str, ...]) -> None:
    (shell.folder / "many.csv").write_text("a\n" + "0.5\n" * 50_000)
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [*COMMAND, *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=shell.folder,
        env=environment(),
        check=False,
    )
    os.close(write)
    assert ended.stderr == b""
    assert ended.returncode == 141


def _on_a_terminal(shell: Shell, answer: str, *arguments: str) -> tuple[str, int]:
    """Run with a terminal for all three streams, type an answer, and return what was on the screen."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [*shell.command, *arguments],
        stdin=side,
        stdout=side,
        stderr=side,
        cwd=shell.folder,
        env=environment(TERM="dumb"),
    )
    os.close(side)
    if answer:
        os.write(main, answer.encode() + b"\n")
    screen = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:
            break
        if not piece:
            break
        screen += piece
    os.close(main)
    return screen.decode(), process.wait(timeout=300)
