"""The process that decodes Parquet and Arrow files: started when first needed, replaced when it dies."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from hushsum.errors import UsageError
from hushsum.records import columnar_worker
from hushsum.records.columnar_worker import HEADER

_MOST_BYTES: Final = 1 << 30
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
"""Environment variables for the process; it has no use for keys and tokens, which others may contain."""

_LIMITS: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class DecoderDied(Exception):
    """The process that read a file died, or sent what it should not."""


class Decoder:
    """A connection to a process that reads one file; see `hushsum.records.columnar_worker`."""

    def __init__(self) -> None:
        for _ in range(2):
            self._socket = _connect()
            try:
                self.receive()
                return
            except DecoderDied:
                # The program that forks had ended, being idle, when the connection reached it.
                self.close()
                _forget()
        raise UsageError(
            rule="no process can be started to decode files in", remedy="check the limits of this system"
        )

    def send(self, **content: object) -> None:
        """Send JSON."""
        data = json.dumps(content).encode()
        # If it has died, receiving finds that out.
        with suppress(OSError):
            self._socket.sendall(HEADER.pack(b"j", len(data), 0.0) + data)

    def receive(self) -> tuple[bytes, bytearray, float]:
        """The kind of the next message, its content and the progress; DecoderDied if there is none."""
        kind, size, progress = HEADER.unpack(self._exactly(HEADER.size))
        if size > _MOST_BYTES or not 0.0 <= progress <= 1.0:
            raise DecoderDied
        return kind, self._exactly(size), progress

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            try:
                count = self._socket.recv_into(view[at:])
            except OSError:
                count = 0
            if not count:
                raise DecoderDied
            at += count
        return data

    def close(self) -> None:
        """End the connection and with it the process."""
        self._socket.close()


_lock = threading.Lock()
_running: tuple[int, subprocess.Popen[bytes], socket.socket] | None = None


def _connect() -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        for _ in range(2):
            with _lock:
                control = _control()
                try:
                    socket.send_fds(control, [b"f"], [theirs.fileno()])
                    return ours
                except OSError:
                    pass
            _forget()
    ours.close()
    raise UsageError(
        rule="no process can be started to decode files in", remedy="check the limits of this system"
    )


def _control() -> socket.socket:
    """The socket of the program that forks, which is started if it does not run."""
    global _running
    if _running is not None and _running[0] == os.getpid() and _running[1].poll() is None:
        return _running[2]
    if _running is not None:
        # It ended, being idle, or belongs to a parent, which has its own copy of the socket.
        _running[2].close()
        _running = None
    if not sys.executable:
        raise UsageError(
            rule="Parquet and Arrow files need a Python program to decode them in", remedy="give CSV instead"
        )
    control, theirs = socket.socketpair()
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(Path(columnar_worker.__file__)), json.dumps(sys.path)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**environment, **_LIMITS},
            start_new_session=True,
        )
    _running = (os.getpid(), process, control)
    return control


@atexit.register
def _forget() -> None:
    """End the program that forks, unless it belongs to a parent of this process."""
    global _running
    with _lock:
        if _running is not None and _running[0] == os.getpid():
            _running[1].kill()
            _running[1].wait()
        if _running is not None:
            _running[2].close()
        _running = None
