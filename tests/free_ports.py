"""Ports for servers that tests start.

The system gives ports of the ephemeral range to outgoing connections, of other tests too. A port of that
range that was free a moment ago, or that a server has just left, may be taken when the server starts.
"""

from __future__ import annotations

import random
import socket

FIRST, LAST = 10_000, 32_000
_chance = random.SystemRandom()
_given: set[int] = set()


def free_port() -> int:
    """A port below the ephemeral range that nobody listens at, and that was not returned before."""
    for _ in range(1000):
        port = _chance.randrange(FIRST, LAST)
        if port in _given:
            continue
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise AssertionError("no port is free")
