"""Processes that calculate, forked from a server process that has imported everything they need.

``python -m hushsum.service.compute.fork_server`` has one end of a socket pair as standard input. Each message
on it brings a further socket: the server forks a process that answers requests on that socket, one after the
other. When the other end of such a socket is closed, the server kills its process, whatever it is doing; when
standard input ends, it kills all of them and exits. So nothing outlives the service, and whoever waits for a
calculation ends it by closing a socket.

A process sends one byte when it is ready. A request is JSON and bytes, and so is its answer. Error messages
that are not the library's own are not passed on, since they may quote data.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import struct
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from hushsum.errors import HushsumError
from hushsum.service.logs import described

# A request for a process: its niceness and its memory.
FORK: Final = struct.Struct("!iQ")
# Before every request and answer: the lengths of its JSON and of its bytes.
FRAME: Final = struct.Struct("!QQ")
READY: Final = b"!"
_REAP_MILLISECONDS: Final = 200


def main(descriptor: int = 0) -> None:
    """Fork processes until the socket of this descriptor ends."""
    # Everything is imported once, here. One thread for each calculation, which limits its processor time.
    from . import calculations  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=descriptor)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    children: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready, _ in poll.poll(_REAP_MILLISECONDS if children else None):
            if ready != control.fileno():
                # Its other end was closed.
                pid, link = children.pop(ready)
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                poll.unregister(ready)
                link.close()
                continue
            message, sent, _, _ = socket.recv_fds(control, FORK.size, 1)
            if len(message) < FORK.size or not sent:
                for pid, _ in children.values():
                    os.kill(pid, signal.SIGKILL)
                os._exit(0)
            link = socket.socket(fileno=sent[0])
            pid = os.fork()
            if pid == 0:
                try:
                    # A copy of another process's socket would hide that process's end from the service.
                    for _, other in children.values():
                        other.close()
                    control.close()
                    _calculate_forever(link, *FORK.unpack(message))
                finally:
                    os._exit(1)
            children[link.fileno()] = pid, link
            poll.register(link, 0)
        for key, (pid, link) in list(children.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                # It has died; the service notices when the last copy of its socket is closed.
                del children[key]
                poll.unregister(key)
                link.close()


def encoded(about: dict[str, Any], body: bytes | bytearray) -> list[bytes | bytearray]:
    """A request or an answer, which may have numbers of numpy, as pieces to send one after the other."""
    text = json.dumps(about, default=lambda number: number.item()).encode()
    return [FRAME.pack(len(text), len(body)), text, body]


def _calculate_forever(link: socket.socket, niceness: int, memory: int) -> None:
    from hushsum.service.jobs.worker import limit_memory

    # Some service managers forbid it.
    with suppress(OSError):
        os.nice(niceness)
    limit_memory(memory)
    with link, link.makefile("rb") as stream:
        link.sendall(READY)
        while True:
            head = stream.read(FRAME.size)
            if len(head) < FRAME.size:
                return
            length, size = FRAME.unpack(head)
            request = json.loads(stream.read(length))
            for piece in _answered(request, stream.read(size)):
                link.sendall(piece)


def _answered(request: dict[str, Any], body: bytes) -> list[bytes | bytearray]:
    from .calculations import CALCULATIONS

    start = time.process_time()
    result: dict[str, Any]
    try:
        for name in request["extensions"]:
            import_module(name)
        found, blob = CALCULATIONS[request["calculation"]](request["about"], body)
        result = {"result": found}
    except HushsumError as error:
        result, blob = {"refused": error.kind, "error": error.as_json()}, b""
    except Exception as error:
        result, blob = {"failed": described(error)}, b""
    return encoded({**result, "seconds": time.process_time() - start}, blob)


if __name__ == "__main__":
    main()
