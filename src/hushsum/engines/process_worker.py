"""A worker process: counts the parts that arrive on a socket; see :mod:`hushsum.engines.processes`.

A message is a length of eight bytes and a pickle, exchanged with the process that started this one alone.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import socket
import struct
import sys
import threading
from typing import Any, Final

LENGTH: Final = struct.Struct("<Q")


def send(peer: socket.socket, content: bytes) -> None:
    """Send one message; raises OSError if the other side is gone."""
    peer.sendall(LENGTH.pack(len(content)))
    peer.sendall(content)


def receive(peer: socket.socket) -> bytes | None:
    """The next message; None if the other side is gone."""
    head = _exactly(peer, LENGTH.size)
    return None if head is None else _exactly(peer, LENGTH.unpack(head)[0])


def _exactly(peer: socket.socket, size: int) -> bytes | None:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        try:
            count = peer.recv_into(view[at:])
        except OSError:
            count = 0
        if not count:
            return None
        at += count
    return bytes(data)


def main() -> None:
    """Count what arrives on standard input, which is a socket, until its other end is closed."""
    sys.path[:] = json.loads(sys.argv[1])
    peer = socket.socket(fileno=os.dup(0))
    tasks: queue.Queue[bytes] = queue.Queue()

    def take() -> None:
        # In a thread of its own, so that the end of the driver ends this process in the middle of a part.
        while (message := receive(peer)) is not None:
            tasks.put(message)
        os._exit(0)

    threading.Thread(target=take, daemon=True).start()
    while True:
        task, part = _opened(tasks.get())
        send(peer, task.count(part))


def _opened(message: bytes) -> tuple[Any, Any]:
    task, part = pickle.loads(message)
    return task, part


if __name__ == "__main__":
    main()
