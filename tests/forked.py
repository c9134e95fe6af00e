"""Processes that start in milliseconds, forked from a server that has all imports.

Starting an interpreter and importing what a service needs takes three seconds of processor time, longer than
most tests do. A forked process has arguments, a folder, an environment, streams and an exit code of its own.
What is about starting itself runs the real command.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

_FORKED_WORKERS = 4
_fork_servers: list[int] = []


@cache
def processes() -> ForkServerContext:
    """The context, with its server; there is one in a process, so everything is imported there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.preloaded_imports"])
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
    fork_workers()
    run()


def fork_server_of_tests() -> tuple[socket.socket, object]:
    """In place of `compute_pool.start_fork_server`: a fork of the server that has everything imported."""
    ours, theirs = socket.socketpair()
    process = processes().Process(target=_serve_forks, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    assert process.pid is not None
    _fork_servers.append(process.pid)
    return ours, process


def fork_server_pid() -> int:
    """The process that the processes of calculations were forked from."""
    return _fork_servers[-1]


def _serve_forks(control: socket.socket) -> None:
    from hushsum.service.compute import fork_server

    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    fork_server.main(control.detach())


def fork_workers() -> None:
    """Let the service of this process use workers that are forked here: each would import the library for two
    seconds.

    They are forked before the service starts, while there is one thread and no open database, and wait for
    their settings. A fork of the running service would inherit locks that its other threads hold, and what
    SQLite knows of open files. Where all are used up, the real command is started.
    """
    from hushsum.service.http import compute_pool
    from hushsum.service.jobs import worker, worker_pool

    waiting = [ForkedWorker(worker.main) for _ in range(_FORKED_WORKERS)] if "serve" in sys.argv[1:2] else []

    def popen(command: Sequence[str], **options: Any) -> ForkedWorker | subprocess.Popen[bytes]:
        return waiting.pop() if waiting else subprocess.Popen(command, **options)

    class Forking:
        Popen = staticmethod(popen)
        PIPE, DEVNULL, TimeoutExpired = subprocess.PIPE, subprocess.DEVNULL, subprocess.TimeoutExpired

    setattr(worker_pool, "subprocess", Forking)  # noqa: B010  (mypy knows that it is a module)
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        ours.close()
        _serve_forks(theirs)
    theirs.close()
    prepared = [(ours, pid)]
    started = compute_pool.start_fork_server

    def start_fork_server() -> tuple[socket.socket, object]:
        return prepared.pop() if prepared else started()

    setattr(compute_pool, "start_fork_server", start_fork_server)  # noqa: B010


class ForkedWorker:
    """A process of a service, with what `hushsum.service.jobs.worker_pool` uses of ``subprocess.Popen``."""

    def __init__(self, main: Callable[[], None]) -> None:
        given, kept = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _become_worker(given)
                main()
            finally:
                os._exit(1)
        os.close(given)
        self.stdin = os.fdopen(kept, "wb")

    def poll(self) -> int | None:
        if self.returncode is None:
            self._take(os.WNOHANG)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        limit = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if limit is not None and time.monotonic() > limit:
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            time.sleep(0.005)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def _take(self, options: int) -> None:
        ended, status = os.waitpid(self.pid, options)
        if ended:
            self.returncode = os.waitstatus_to_exitcode(status)


def _become_worker(given: int) -> None:
    """What ``subprocess.Popen`` does before it starts a program."""
    os.setsid()
    os.dup2(given, 0)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    # Also the pipes of other workers, whose ends they would not notice otherwise.
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
