"""Requests to a provider: no redirects, a deadline, and no more bytes than expected."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import httpx

from hushsum.service.http.oidc.sign_in_errors import unavailable

_SILENCE_SECONDS: Final = 5.0
_DEADLINE_SECONDS: Final = 10.0
_MOST_BYTES: Final = 256 * 1024


def fetch(
    method: str, url: str, *, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object of a provider's response.

    Redirects are not followed: the addresses are those that the issuer publishes, and another host would
    receive the client's secret. Compressed responses are refused, since a small one may expand without limit.

    Raises
    ------
    Refusal
        503 if there is no response in time, or it is too long, redirected, or not a JSON object.
    """
    sent_headers = {"accept": "application/json", "accept-encoding": "identity", **(headers or {})}
    deadline = time.monotonic() + _DEADLINE_SECONDS
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=_SILENCE_SECONDS, follow_redirects=False) as client,
            client.stream(method, url, data=form, headers=sent_headers) as answer,
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
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise unavailable("answered with something that is not JSON") from None
    if not isinstance(found, dict):
        raise unavailable("answered with something that is not an object")
    return answer.status_code, found
