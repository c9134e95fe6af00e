"""Requests to a service; its problem responses are raised as errors of Hushsum."""

from __future__ import annotations

import secrets
import time
import weakref
from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from hushsum.declaration import parameters_of
from hushsum.errors import Argument, HushsumError, ServiceRefused, UsageError, error_from_json
from hushsum.records import Bounds
from hushsum.version import PRODUCER

if TYPE_CHECKING:
    import httpx


_PREFIX = "urn:hushsum:problem:"
_ATTEMPTS = 4
_LONGEST_PAUSE = 5.0
_POLL_SECONDS = 0.2


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
                rule = f"the service at {self.url} cannot be reached ({type(error).__name__})"
                raise ServiceRefused(rule, remedy="check the address and whether it runs") from None
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

    def submit(self, path: str, request: dict[str, Any], idempotency_key: str | None) -> str:
        """Send a request that becomes a job; returns the job's id. Without a key it gets a new one."""
        headers = {"idempotency-key": idempotency_key or secrets.token_hex(16)}
        return str(self.json("POST", path, json=request, headers=headers)["id"])

    def done(self, path: str, request: dict[str, Any], idempotency_key: str | None) -> dict[str, Any]:
        """Send a request that becomes a job, and wait for it; returns its result."""
        return self.wait(self.submit(path, request, idempotency_key))

    def wait(self, job: str, *, timeout: float = 3600.0) -> dict[str, Any]:
        """Wait for a job; returns its result.

        Raises
        ------
        HushsumError
            the error that the job failed with.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            response = self.json("GET", f"/jobs/{job}")
            if response["state"] == "done":
                return dict(response["result"])
            if response["state"] in ("failed", "cancelled"):
                raise error_of(response["problem"])
            time.sleep(_POLL_SECONDS)
        rule = f"the job {job} has not finished in {timeout:g} seconds"
        raise ServiceRefused(rule, remedy="wait for it again")

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
        return dict(answer.json())
    return {"detail": f"the response with status {answer.status_code} does not come from a Hushsum service"}


_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def open_connection(
    url: str, *, timeout: float, token: str | None = None, allow_plain_http: bool = False
) -> Connection:
    """A connection to a service, with a token or without.

    Raises
    ------
    UsageError
        if the address is no such one, or ``hushsum[service]`` is not installed.
    """
    if find_spec("httpx") is None:
        raise UsageError("the client needs another package", remedy="install hushsum[service]")
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        rule = "must be an address such as https://sums.example.org"
        raise UsageError("url", rule, remedy="give the service's")
    if parsed.scheme == "http" and parsed.host not in _LOCAL_HOSTS and not allow_plain_http:
        rule = "must begin with https://, because a token must not travel unencrypted to another machine"
        remedy = ("use https://, or ", Argument("allow_plain_http", True), " on a network of your own")
        raise UsageError("url", rule, got="http://", remedy=remedy)
    authorization = {} if token is None else {"authorization": f"Bearer {token}"}
    client = httpx.Client(
        base_url=parsed,
        timeout=timeout,
        headers={**authorization, "user-agent": PRODUCER},
        # A service never redirects; a token must not follow somebody who does.
        follow_redirects=False,
    )
    return Connection(client, str(parsed))


def stated(given: Mapping[str, Any], *requests: Any, own: Sequence[str] = ()) -> dict[str, Any]:
    """The canonical JSON of the arguments of a call: what the requests declare and differs from the default,
    and what only the service knows, which are its ``own`` names.

    Raises
    ------
    UsageError
        for a name that none of them declares, or a value that is not allowed.
    """
    declared = {each.name: each for one in requests for each in parameters_of(one) if each.group is not None}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in own:
            found |= {name: value} if value else {}
            continue
        if name not in declared:
            raise UsageError(name, f"must be one of {', '.join((*own, *declared))}", got="another name")
        parameter = declared[name]
        made = plain(value)
        if made is None or made == parameter.default:
            continue
        parameter.check(made, of_model=False)
        found[name] = [made] if parameter.several and not isinstance(made, list) else made
    return found


def plain(value: Any) -> Any:
    """A value as JSON has it, in whichever form the library takes it."""
    if isinstance(value, Bounds):
        return value.as_json()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Enum):
        return value.value
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value
