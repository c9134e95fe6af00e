"""Structured logs: one JSON object per line, with request ids, never data."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("hushsum.service")
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)


class JsonLines(logging.Formatter):
    """A record of the log as one line. Messages of exceptions are left out: they may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname, "event": record.getMessage()}
        line.update(getattr(record, "facts", {}))
        if record.exc_info and record.exc_info[1] is not None:
            line.update(described(record.exc_info[1]))
        return _JSON.encode(line)


def described(error: BaseException) -> dict[str, Any]:
    """The class of an error and its traceback's files and lines; no message and no code."""
    places = traceback.extract_tb(error.__traceback__)[-8:]
    return {
        "error": type(error).__name__,
        "places": [f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}" for place in places],
    }


def log_event(event: str, *, level: int = logging.INFO, **facts: Any) -> None:
    """Write a line. ``facts`` are ids, routes and durations."""
    if LOGGER.isEnabledFor(level):
        # LOGGER.log would look up the calling line of code, which the log does not contain.
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, level, "", 0, event, (), None, extra={"facts": facts}))


def start_logs(level: str) -> None:
    """Send all logs of this process to standard error, as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(level)
    # Its messages quote the requested URL, which may contain anything.
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
