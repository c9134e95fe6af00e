"""``hushsum serve``."""

from __future__ import annotations

from importlib.util import find_spec

from hushsum.declaration import setting
from hushsum.errors import UsageError

NEEDED = ("fastapi", "uvicorn", "pydantic", "prometheus_client")


def serve(
    host: str | None = setting(None, "Address to listen on. [default: 127.0.0.1]"),
    port: int | None = setting(None, "Port to listen on. [default: 8000]"),
    database: str | None = setting(
        None, "SQLite file, or PostgreSQL URL. [default: in the folder]", metavar="PATH|URL"
    ),
    folder: str | None = setting(None, "For uploads, tallies and functions. [default: hushsum-service]"),
) -> None:
    """Run the service: owners upload and release, analysts query, over HTTP and with a web page.

    The first start prints an administrator's token, once. Everything else is set by HUSHSUM_* variables.

    hushsum serve --port 8000
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise UsageError("the service needs more packages", remedy="install hushsum[service]")
    from hushsum.service.run import serve as run
    from hushsum.service.settings import Settings

    run(Settings.from_environment(host=host, port=port, database=database, folder=folder))
