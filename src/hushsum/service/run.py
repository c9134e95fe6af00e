"""Run the service until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from importlib import import_module
from types import FrameType
from typing import cast

from hushsum.errors import Parameter, UsageError

from .http import create_app
from .logs import log_event, start_logs
from .settings import Settings

_KEEP_ALIVE_SECONDS = 75
_WAITING = 2048
_SWITCH_SECONDS = 0.001
# How long running requests may take when the service stops.
_LEAVE_SECONDS = 2


def serve(settings: Settings) -> None:
    """Serve on the settings' host and port; blocks until SIGINT or SIGTERM.

    Raises
    ------
    UsageError, LedgerUnavailable, FileRefused
        if the folder, the database or the port cannot be used.
    """
    import uvicorn

    from .http import GuardedConnections, available_connections

    start_logs(settings.log_level)
    app = create_app(settings)
    # uvicorn shuts down at the first signal, and then restores and calls the earlier handler.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, _end)
    place = _listen(settings.host, settings.port)
    log_event("serving", host=settings.host, port=settings.port, level=logging.INFO)
    guard = GuardedConnections(available_connections(), settings.connections_per_address, settings.proxies)

    class Server(uvicorn.Server):
        """uvicorn's server, which ends calculations first, so that nobody waits for them."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.context.stop_calculations()
            await super().shutdown(sockets)

    server = Server(
        uvicorn.Config(
            guard.counting(app),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=cast("type[asyncio.Protocol]", guard),
            ws="none",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_LEAVE_SECONDS,
        )
    )
    # The first queries need these; imported then, they would block all requests for a third of a second.
    # Imported objects stay alive: scanning them for garbage again would block requests for a tenth.
    for module in ("scipy.special", "pyarrow.ipc"):
        import_module(module)
    gc.collect()
    gc.freeze()
    # Threads that parse large queries hand the interpreter over to the event loop after a millisecond.
    sys.setswitchinterval(_SWITCH_SECONDS)
    server.run(sockets=[place])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_WAITING)
    except OSError:
        rule = f"the port {port} of {host!r} must be free, and the address must be this machine's"
        raise UsageError(rule, remedy=("choose another with ", Parameter("port"))) from None


def _end(number: int, frame: FrameType | None) -> None:
    # Without waiting for threads, which may wait for the database: what they write is written or not.
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
