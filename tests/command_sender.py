"""Passes a command on to the server of `tests.warm_command`, and exits with its code.

It runs for every command of many tests, so that it imports little.
"""

from __future__ import annotations

import marshal
import os
import socket
import struct
import sys

STREAMS = 3
LENGTH = struct.Struct("!I")


def send(address: str, arguments: list[str]) -> int:
    """Send arguments, folder, environment and streams; wait for the exit code."""
    payload = marshal.dumps((arguments, os.getcwd(), dict(os.environ)))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [LENGTH.pack(len(payload))], list(range(STREAMS)))
        connection.sendall(payload)
        answer = connection.recv(1)
    return answer[0] if answer else 1


if __name__ == "__main__":
    # Nothing is left to clean up, and the interpreter takes its time for it.
    os._exit(send(sys.argv[1], sys.argv[2:]))
