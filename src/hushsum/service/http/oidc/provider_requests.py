"""Requests to a provider: no redirects, a deadline, and no more bytes than expected."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import httpx

from hushsum.service.http.oidc.refusals import unavailable

_SILENCE_SECONDS: Final = 5.0
_DEADLINE_SECONDS: Final = 10.0
_MOST_BYTES: Final = 256 * 1024


def fetch(
    method: str, url: str, *, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object that a provider answers.

    Redirects are not followed: the addresses are those that the issuer publishes, and another host would be
    told the client's secret. Compressed answers are refused, since a small one may unfold without end.

    Raises
    ------
    Refusal
        503 if there is no answer in time, or one that is too long, redirected, or no JSON object.
    """
    asked = {"accept": "application/json", "accept-encoding": "identity", **(headers or {})}
    deadline = time.monotonic() + _DEADLINE_SECONDS
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=_SILENCE_SECONDS, follow_redirects=False) as client,
            client.stream(method, url, data=form, headers=asked) as answer,
        ):
            if answer.is_redirect:
                raise unavailable("answered with a redirect")
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise unavailable("answered compressed")
            for piece in answer.iter_raw():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise unavailable("answered with too much")
                if time.monotonic() > deadline:
                    raise unavailable("answered too slowly")
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        raise unavailable("cannot be reached") from None
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        raise unavailable("answered with something that is not JSON") from None
    if not isinstance(told, dict):
        raise unavailable("answered with something that is not an object")
    return answer.status_code, told
