"""Jobs in a service: requests as JSON, submitted with an idempotency key, and waited for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from hushsum.client.http_client import Connection, error_of
from hushsum.errors import ServiceRefused
from hushsum.records.bounds import Bounds

_POLL_SECONDS = 0.2


def submit_job(
    connection: Connection, path: str, request: dict[str, Any], idempotency_key: str | None
) -> str:
    """Send a request that becomes a job; returns the job's id. Without a key it gets a new one."""
    headers = {"idempotency-key": idempotency_key or secrets.token_hex(16)}
    return str(connection.json("POST", path, json=request, headers=headers)["id"])


def wait_for_job(connection: Connection, job: str, *, timeout: float = 3600.0) -> dict[str, Any]:
    """Wait for a job; returns its result.

    Raises
    ------
    HushsumError
        the error that the job failed with.
    """
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        response = connection.json("GET", f"/jobs/{job}")
        if response["state"] == "done":
            result: dict[str, Any] = response["result"]
            return result
        if response["state"] in ("failed", "cancelled"):
            raise error_of(response["problem"])
        time.sleep(_POLL_SECONDS)
    raise ServiceRefused(
        rule=f"the job {job} has not finished in {timeout:g} seconds", remedy="wait for it again"
    )


def request_as_json(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request whose bounds are plain numbers in lists, in whichever form the library takes them."""
    bounds = request.get("bounds")
    return {**request, **({} if bounds is None else {"bounds": _plain(bounds)})}


def _plain(bounds: Any) -> Any:
    if isinstance(bounds, Bounds):
        return bounds.as_json()
    if isinstance(bounds, Mapping):
        return {name: _plain(pair) for name, pair in bounds.items()}
    if isinstance(bounds, np.ndarray | np.generic):
        return bounds.tolist()
    return [_plain(each) for each in bounds] if isinstance(bounds, list | tuple) else bounds
