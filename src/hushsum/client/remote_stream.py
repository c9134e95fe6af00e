"""A stream in a service: uploads are counted over time, and every step releases a function."""

from __future__ import annotations

from typing import Any

from hushsum.client.http_client import Connection
from hushsum.client.remote_function import RemoteFunction
from hushsum.client.remote_jobs import submit_job, wait_for_job
from hushsum.errors import UsageError


class RemoteStream:
    """A stream of a dataset, whose claim is paid. Made by :meth:`RemoteDataset.stream`.

    Attributes
    ----------
    id, name : str
    steps : int
        The horizon: how many steps the claim covers.
    claim : dict
        What all steps together promise.
    """

    def __init__(self, connection: Connection, path: str, response: dict[str, Any]) -> None:
        self._connection = connection
        self._path = path
        self.id: str = response["id"]
        self.name: str = response["name"]
        self.steps: int = response["steps"]
        self.claim: dict[str, Any] = response["claim"]

    def __repr__(self) -> str:
        return f"<RemoteStream {self.name!r} {self.id} steps={self.steps}>"

    def step(self, *uploads: str, idempotency_key: str | None = None) -> RemoteFunction:
        """Count uploads, release the next step, and wait for it. Nothing is spent.

        Call it at fixed times, also without uploads: when a step is released must not depend on the records.

        Parameters
        ----------
        *uploads : str
            What :meth:`RemoteDataset.upload` returned; each is counted once, and deleted then.
        idempotency_key : str, optional
            The name of this step, so that a retry returns it and takes no second one; by default a new one.

        Raises
        ------
        UsageError
            if an upload was counted before, or all steps are taken.
        """
        request = {"uploads": list(uploads)}
        job = submit_job(self._connection, f"{self._path}/{self.id}/steps", request, idempotency_key)
        function = wait_for_job(self._connection, job)["function"]
        return RemoteFunction(self._connection, self._connection.json("GET", f"/functions/{function}"))

    def functions(self) -> list[RemoteFunction]:
        """The functions of the steps so far, in their order."""
        listed = self._connection.objects("GET", self._path)
        found = next((each["functions"] for each in listed if each["id"] == self.id), None)
        if found is None:
            raise UsageError(rule=f"the stream {self.id} does not exist any more")
        return [
            RemoteFunction(self._connection, self._connection.json("GET", f"/functions/{each}"))
            for each in found
        ]
