"""Signals that end a command at once, cleanly, also while it waits for a pipe."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED = 130
TERMINATED = 143

_received: list[int] = []


def end_on_signals() -> None:
    """Leave through exceptions on SIGINT and SIGTERM, so that unfinished files are removed."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)


def exit_if_interrupted() -> None:
    """Leave if a signal has come whose exception was lost, as happens inside other packages' imports."""
    if _received:
        _raise(_received[0])


@contextmanager
def signals_at_progress() -> Iterator[None]:
    """Let the first signal of the block wait until `exit_if_interrupted` is called; a second one does not."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        if _received:
            _leave(number, frame)
        _received.append(number)

    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def was_interrupted() -> bool:
    """Whether SIGINT has come."""
    return signal.SIGINT in _received


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    _received.append(number)
    _raise(number)


def _raise(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(TERMINATED)


@contextmanager
def interruptible_input() -> Iterator[None]:
    """Let a signal end a read of standard input.

    The CSV reader waits for its own thread, outside the interpreter, where a signal would not be noticed
    before the next byte comes. That thread waits here for the signal too.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BufferedReader(_Input(sys.stdin.fileno(), reading)))
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(old)
        sys.stdin = before


class _Input(io.RawIOBase):
    """A file descriptor that ends with an error as soon as another one has something to read."""

    def __init__(self, descriptor: int, signals: int) -> None:
        self._descriptor = descriptor
        self._signals = signals

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        ready, _, _ = select.select([self._descriptor, self._signals], [], [])
        if self._signals in ready:
            raise InterruptedError
        data = os.read(self._descriptor, len(buffer))
        buffer[: len(data)] = data
        return len(data)
