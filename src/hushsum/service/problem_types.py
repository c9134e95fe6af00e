"""RFC 9457 problem details: the type, HTTP status and text that each error is reported with."""

from __future__ import annotations

import errno
from http import HTTPStatus
from typing import Any, Final

from hushsum.errors import SERVICE, HushsumError

MEDIA_TYPE: Final = "application/problem+json"
FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def problem(status: int, kind: str, detail: str, **extra: Any) -> dict[str, Any]:
    """A problem object. ``type`` is for programs; ``detail`` is a sentence for people."""
    return {
        "type": f"urn:hushsum:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **extra,
    }


def problem_of_error(error: Exception) -> dict[str, Any]:
    """The problem details of an error; of an unexpected one only its class, since its text may quote data."""
    if isinstance(error, HushsumError):
        return problem(error.status, error.kind, error.words(SERVICE), error=error.as_json())
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        return problem(507, "disk-full", "the service's disk is full; nothing was stored, try again later")
    if isinstance(error, MemoryError):
        return problem(503, "out-of-memory", "the service ran out of memory; send a smaller request")
    return problem(500, "unexpected", f"an unexpected error occurred ({type(error).__name__}); report it")
