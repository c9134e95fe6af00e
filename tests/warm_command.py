"""The command ``hushsum`` with its imports behind it, for tests that run it many times.

Starting an interpreter and importing SciPy and scikit-learn takes longer than most commands do. A server that
has imported them forks for every command, which then has arguments, a folder, an environment, streams and an
exit code of its own, as a command has. What is about starting, signals or kills runs the real one.

`tests.command_sender` is the little program that passes a command on to the server.
"""

from __future__ import annotations

import atexit
import marshal
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests import command_sender
from tests.command_sender import LENGTH, STREAMS
from tests.forked import fork_workers, processes

_WATCH_SECONDS = 1.0


@contextmanager
def warm_command() -> Iterator[Path]:
    """The path of an executable that is ``hushsum`` as it is imported here."""
    with tempfile.TemporaryDirectory(prefix="hush") as folder:
        address, command = Path(folder) / "socket", Path(folder) / "hushsum"
        command.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -I -S "{command_sender.__file__}" "{address}" "$0" "$@"\n'
        )
        command.chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen(64)
            # Forked from the server that has all imports already.
            server = processes().Process(target=_serve, args=(listener,))
            server.start()
        try:
            yield command
        finally:
            server.kill()
            server.join()


def _serve(listener: socket.socket) -> None:
    parent = os.getppid()
    listener.settimeout(_WATCH_SECONDS)
    while os.getppid() == parent:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                connection.settimeout(None)
                _obey(connection)
            connection.close()


def _obey(connection: socket.socket) -> None:
    head, streams, _, _ = socket.recv_fds(connection, LENGTH.size, STREAMS)
    with connection.makefile("rb") as sent:
        arguments, folder, environment = marshal.loads(sent.read(LENGTH.unpack(head)[0]))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # A process of multiprocessing has none.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    code: object = 1
    end = os._exit
    # After a refusal a command ends at once, and the sender would not hear how.
    setattr(os, "_exit", sys.exit)  # noqa: B010  (mypy knows that it never returns)
    try:
        from hushsum.cli.main import run

        fork_workers()
        run()
    except SystemExit as ended:
        code = ended.code
    finally:
        atexit._run_exitfuncs()
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        connection.sendall(bytes([code if isinstance(code, int) else 1]))
        end(0)


def _end_with(connection: socket.socket) -> None:
    """Who ends the program that requested, such as a service in the background, ends the command."""
    with suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)
