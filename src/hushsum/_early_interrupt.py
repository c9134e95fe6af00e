"""An interrupt while the command line is still being imported ends it in one word.

The package is imported before any line of the command can run, and that is the first third of a second.
Nothing is open then, so leaving at once is clean. `hushsum.cli.interrupts` takes over when the command runs.
A program that merely imports Hushsum is left alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130


def is_the_command(arguments: Sequence[str]) -> bool:
    """Whether an interpreter was started with these arguments to run ``hushsum`` or ``python -m hushsum``.

    >>> is_the_command(["python", "/usr/bin/hushsum", "demo"]), is_the_command(["python", "mine.py"])
    (True, False)
    """
    return list(arguments[1:3]) == ["-m", "hushsum"] or (
        len(arguments) > 1 and os.path.basename(arguments[1]) == "hushsum"
    )


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


if is_the_command(sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)
