"""Processes that start in milliseconds, forked from a server that has all imports.

Starting an interpreter and importing what a service needs takes three seconds of processor time, longer than
most tests do. A forked process has arguments, a folder, an environment, streams and an exit code of its own.
What is about starting itself runs the real command.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path


@cache
def processes() -> ForkServerContext:
    """The context, with its server; there is one in a process, so everything is imported there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.preloaded"])
    before = os.environ.get("PYTHONPATH")
    # The server does not get the path of this interpreter in any other way.
    os.environ["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return context


class ForkedCommand:
    """``hushsum`` with these arguments in the background, with the methods of ``subprocess.Popen``."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        largest: int | None = None,
    ) -> None:
        given = (list(arguments), str(folder), dict(environment), str(log), largest)
        self._process = processes().Process(target=_command, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code, or None as long as it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; its exit code."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("hushsum", timeout or 0.0)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()


def _command(
    arguments: list[str], folder: str, environment: dict[str, str], log: str, largest: int | None
) -> None:
    from hushsum.cli.main import run

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with open(log, "ab") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    sys.argv = ["hushsum", *arguments]
    run()
