"""Requests to a service; its problem responses are raised as errors of Hushsum."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hushsum.errors import HushsumError, ServiceRefused, error_from_json

if TYPE_CHECKING:
    import httpx

_PREFIX = "urn:hushsum:problem:"
_ATTEMPTS = 4
_LONGEST_PAUSE = 5.0


class Connection:
    """One connection pool to one service. Safe to share between threads."""

    def __init__(self, client: httpx.Client, url: str) -> None:
        self._client = client
        self.url = url
        # For callers that do not close it themselves.
        weakref.finalize(self, client.close)

    def request(self, method: str, path: str, *, again: bool = False, **options: Any) -> httpx.Response:
        """The response of the service; with ``again`` the request is repeated while the service is busy.

        Raises
        ------
        ServiceRefused
            if it cannot be reached or refuses; another error of Hushsum where the problem type names one.
        """
        import httpx

        for attempt in range(_ATTEMPTS):
            try:
                answer = self._client.request(method, path, **options)
            except httpx.TransportError as error:
                raise ServiceRefused(
                    rule=f"the service at {self.url} cannot be reached ({type(error).__name__})",
                    remedy="check the address and whether it runs",
                ) from None
            busy = answer.status_code in (429, 503) and again and attempt + 1 < _ATTEMPTS
            if not busy:
                break
            time.sleep(min(_LONGEST_PAUSE, float(answer.headers.get("retry-after", "1"))))
        if answer.status_code >= 400:
            raise error_of(_problem(answer))
        return answer

    def json(self, method: str, path: str, **options: Any) -> Any:
        """The JSON that the service returns; GET requests are repeated while it is busy."""
        return self.request(method, path, again=method == "GET", **options).json()

    def object(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The JSON object that the service returns."""
        return dict(self.json(method, path, **options))

    def objects(self, method: str, path: str, **options: Any) -> list[dict[str, Any]]:
        """The JSON array of objects that the service returns."""
        return list(self.json(method, path, **options))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def error_of(problem: Mapping[str, Any]) -> HushsumError:
    """The error that a local call would have raised for this problem."""
    kind = str(problem.get("type", "")).removeprefix(_PREFIX)
    about = problem.get("error")
    if isinstance(about, Mapping):
        return error_from_json(kind, about)
    detail = str(problem.get("detail", "the service refused"))
    faults = problem.get("faults") or []
    if faults:
        detail += ": " + ", ".join(f"{each['at']} ({each['rule']})" for each in faults)
    return error_from_json(kind, {"rule": detail})


def _problem(answer: httpx.Response) -> Mapping[str, Any]:
    if answer.headers.get("content-type", "").startswith("application/problem+json"):
        response: Mapping[str, Any] = answer.json()
        return response
    return {"detail": f"the response with status {answer.status_code} does not come from a Hushsum service"}
