"""Requests to a service; its problem responses are raised as errors of Hushsum."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hushsum.errors import (
    AlreadyPublished,
    BudgetExhausted,
    ClaimError,
    DataRefused,
    FileRefused,
    HushsumError,
    LedgerUnavailable,
    QuestionsSpent,
    ServiceRefused,
    UsageError,
)

if TYPE_CHECKING:
    import httpx

_ERRORS: Final[dict[str, type[HushsumError]]] = {
    "budget-exhausted": BudgetExhausted,
    "ledger-unavailable": LedgerUnavailable,
    "questions-spent": QuestionsSpent,
    "claim-refused": ClaimError,
    "file-refused": FileRefused,
    "data-refused": DataRefused,
    "parameter-refused": UsageError,
    "request-refused": UsageError,
    "not-confirmed": UsageError,
}
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
                    f"the service at {self.url} cannot be reached ({type(error).__name__}); "
                    "check the address and whether it runs"
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
    detail = str(problem.get("detail", "the service refused"))
    if kind == "already-published":
        return AlreadyPublished(detail, "")
    faults = problem.get("faults") or []
    if faults:
        detail += ": " + ", ".join(f"{each['at']} ({each['rule']})" for each in faults)
    return _ERRORS.get(kind, ServiceRefused)(detail)


def _problem(answer: httpx.Response) -> Mapping[str, Any]:
    if answer.headers.get("content-type", "").startswith("application/problem+json"):
        response: Mapping[str, Any] = answer.json()
        return response
    return {"detail": f"the response with status {answer.status_code} does not come from a Hushsum service"}
