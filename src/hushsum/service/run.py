"""Run the service until it is told to stop."""

from __future__ import annotations

import logging

from hushsum.service.app import create_app
from hushsum.service.logs import say, start_logs
from hushsum.service.settings import Settings

_MOST_AT_ONCE = 1000
_KEEP_ALIVE_SECONDS = 75


def serve(settings: Settings) -> None:
    """Serve on the settings' host and port; blocks until SIGINT or SIGTERM.

    Raises
    ------
    UsageError, LedgerUnavailable, FileRefused
        if the folder or the database cannot be used.
    """
    import uvicorn

    start_logs(settings.log_level)
    app = create_app(settings)
    say("serving", host=settings.host, port=settings.port, level=logging.INFO)
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
