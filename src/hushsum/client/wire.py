"""Requests to a service, and its refusals as the errors they are."""

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


class Wire:
    """One connection pool to one service. Safe to share between threads."""

    def __init__(self, client: httpx.Client, url: str) -> None:
        self._client = client
        self.url = url
        # Also for those who do not close it themselves.
        weakref.finalize(self, client.close)

    def request(self, method: str, path: str, *, again: bool = False, **options: Any) -> httpx.Response:
        """The answer of the service; ``again`` asks once more where it says that it is busy.

        Raises
        ------
        ServiceRefused
            if it cannot be reached or refuses; other errors of Hushsum where the refusal is one of them.
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
        """The JSON that the service answers; reading is repeated where it is busy."""
        return self.request(method, path, again=method == "GET", **options).json()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def error_of(problem: Mapping[str, Any]) -> HushsumError:
    """A problem as the error that a local call would have raised."""
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
        told: Mapping[str, Any] = answer.json()
        return told
    return {"detail": f"the answer {answer.status_code} does not come from a service of Hushsum"}
