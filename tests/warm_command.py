"""The command ``hushsum`` with its imports behind it, for tests that run it many times.

Starting an interpreter and importing SciPy and scikit-learn takes longer than most commands do. One process
imports them once and forks for every command, which then has arguments, a folder, an environment, streams
and an exit code of its own, as a command has. What is about starting, signals or kills runs the real one.

This file is also that process, and the little program that passes a command on to it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_STREAMS = 3
_LENGTH = struct.Struct("!I")
_WATCH_SECONDS = 1.0
LATER = (
    "alembic.command",
    "cryptography.hazmat.primitives.ciphers.aead",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "rich.progress",
    "rich.table",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
    "sklearn.base",
    "sqlalchemy.orm",
)
"""What commands import when they need it."""


@contextmanager
def warm_command(source: Path) -> Iterator[Path]:
    """The path of an executable that is ``hushsum`` as it stands under ``source``."""
    with tempfile.TemporaryDirectory(prefix="hush") as folder:
        address, command = Path(folder) / "socket", Path(folder) / "hushsum"
        command.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -I -S "{__file__}" ask "{address}" "$0" "$@"\n'
        )
        command.chmod(0o755)
        path = os.pathsep.join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
        server = subprocess.Popen(
            [sys.executable, __file__, "serve", str(address), str(os.getpid())],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert server.stdout is not None
        with server.stdout as ready:
            assert ready.readline() == b"ready\n"
        try:
            yield command
        finally:
            server.kill()
            server.wait()


def _serve(address: str, parent: int) -> None:
    import gc
    import importlib
    import pkgutil

    import hushsum

    for module in pkgutil.walk_packages(hushsum.__path__, "hushsum."):
        if not module.name.startswith("hushsum.service") and not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)
    # What is never collected is not touched by a collector, and so not copied in every fork.
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    listener.settimeout(_WATCH_SECONDS)
    os.write(1, b"ready\n")
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
    import atexit
    import threading

    head, streams, _, _ = socket.recv_fds(connection, _LENGTH.size, _STREAMS)
    with connection.makefile("rb") as sent:
        requested = json.loads(sent.read(_LENGTH.unpack(head)[0]))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(requested["folder"])
    os.environ.clear()
    os.environ.update(requested["environment"])
    sys.argv = requested["arguments"]
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    code: object = 1
    end = os._exit
    # After a refusal a command ends at once, and the asker would not hear how.
    setattr(os, "_exit", sys.exit)  # noqa: B010  (mypy knows that it never returns)
    try:
        from hushsum.cli.main import run

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


def _ask(address: str, arguments: list[str]) -> int:
    requested = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    payload = json.dumps(requested).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [_LENGTH.pack(len(payload))], list(range(_STREAMS)))
        connection.sendall(payload)
        answer = connection.recv(1)
    return answer[0] if answer else 1


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(_ask(sys.argv[2], sys.argv[3:]))
