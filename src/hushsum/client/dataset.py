"""A dataset in a service: uploads, tallies, plans, releases and models of its owner."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from hushsum.client.http_client import Connection, error_of
from hushsum.client.remote_function import RemoteFunction
from hushsum.client.remote_model import RemoteModel
from hushsum.errors import Argument, ServiceRefused, UsageError
from hushsum.privacy.release_request import DEFAULT_COUNT_SHARE, ReleaseRequest

_FORMATS: Final = {
    ".csv.gz": "csv.gz",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".tally": "tally",
}
_PIECE = 1 << 20
_LOOK_EVERY = 0.2


class RemoteDataset:
    """A dataset of the owner. Records can be uploaded, not downloaded."""

    def __init__(self, connection: Connection, response: dict[str, Any]) -> None:
        self._connection = connection
        self.id: str = response["id"]
        self.name: str = response["name"]
        self._path = f"/datasets/{self.id}"

    def __repr__(self) -> str:
        return f"<RemoteDataset {self.name!r} {self.id}>"

    def budget(self) -> dict[str, Any]:
        """The state of the dataset's budget."""
        response: dict[str, Any] = self._connection.json("GET", self._path)["budget"]
        return response

    def ledger(self) -> dict[str, Any]:
        """Its releases, and a receipt to keep elsewhere."""
        return self._connection.object("GET", f"{self._path}/ledger")

    def uploads(self) -> list[dict[str, Any]]:
        """The uploads, and whether each is still stored."""
        return self._connection.objects("GET", f"{self._path}/uploads")

    def tallies(self) -> list[dict[str, Any]]:
        """The public descriptions of the tallies, without their counts."""
        return self._connection.objects("GET", f"{self._path}/tallies")

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs of the dataset, oldest first."""
        return self._connection.objects("GET", f"{self._path}/jobs")

    def delete_upload(self, upload: str) -> None:
        """Delete an upload that was not counted."""
        self._connection.request("DELETE", f"{self._path}/uploads/{upload}")

    def delete_tally(self, tally: str) -> None:
        """Delete a tally; what was released from it stays public and spent."""
        self._connection.request("DELETE", f"{self._path}/tallies/{tally}")

    def delete(self) -> None:
        """Delete the dataset with its uploads, tallies and models in exact mode, and retire its budget.

        The ledger keeps its history, and functions that were released stay public.
        """
        self._connection.request("DELETE", self._path)

    def write_off(self, reason: str, **charge: float) -> dict[str, Any]:
        """Charge ``epsilon``, ``delta`` or ``rho`` that was spent outside the ledger or lost from it, and
        reopen the dataset if a restore has frozen it; returns its budget.
        """
        request = {"reason": reason, **charge}
        response: dict[str, Any] = self._connection.json("POST", f"{self._path}/write-offs", json=request)[
            "budget"
        ]
        return response

    def upload(self, source: str | Path | IO[bytes], *, format: str | None = None) -> str:
        """Send a file of records or a ``.tally`` file; returns its id. It is deleted once it is counted."""
        with _opened(source) as (stream, name):
            kind = format or _format(name)
            made = self._connection.json(
                "POST", f"{self._path}/uploads", params={"format": kind}, content=_pieces(stream)
            )
        return str(made["id"])

    def tally(self, upload: str, *, idempotency_key: str | None = None, **request: Any) -> str:
        """Count an upload into a confidential tally, which stays in the service; returns its id.

        With ``public``, an upload of public rows, these decide bandwidth and bounds where they are not given.
        """
        job = self._submit("tallies", {"upload": upload, **request}, idempotency_key)
        return str(self.wait(job)["tally"])

    def plan(self, **request: Any) -> dict[str, Any]:
        """The predicted error of each release option; see :func:`hushsum.plan`."""
        epsilon = request.get("epsilon")
        if isinstance(epsilon, int | float):
            request["epsilon"] = [epsilon]
        return self._connection.object("POST", f"{self._path}/plans", json=request)

    def claim(self, tally: str, name: str, *, public: str | None = None, **request: Any) -> dict[str, Any]:
        """What a release would claim and cost. Nothing is spent; parameters as for :meth:`release`."""
        return self._claim(
            {"tally": tally, "name": name, "public": public, **ReleaseRequest(**request).as_json()}
        )

    def _claim(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._connection.object("POST", f"{self._path}/claims", json=body)

    def release(
        self,
        tally: str,
        name: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        unit: str | None = None,
        mechanism: str | None = None,
        rows: int | str = "auto",
        count_share: float = DEFAULT_COUNT_SHARE,
        rounded: bool | None = None,
        population: int | None = None,
        allow_large_delta: bool = False,
        public: str | None = None,
        idempotency_key: str | None = None,
    ) -> RemoteFunction:
        """Release a tally's function, and wait for it. This spends; the same key never spends twice.

        Parameters
        ----------
        tally : str
            What :meth:`tally` returned.
        name : str
            The name of the function.
        epsilon, delta, rho, relation, unit, mechanism, rows, count_share, rounded, population, \
allow_large_delta
            As for ``Tally.release``. The budget is that of this dataset.
        public : str, optional
            What :meth:`upload` returned for a file of public rows like the records, which the function is
            combined with by their variances. The claim states the assumption that they are public.
        idempotency_key : str, optional
            The name of this attempt, so that a retry does not spend again; by default a new one.

        Raises
        ------
        BudgetExhausted
            if the remaining budget is too small.
        """
        request = ReleaseRequest(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            relation=relation,
            unit=unit,
            mechanism=mechanism,
            rows=rows,
            count_share=count_share,
            rounded=rounded,
            population=population,
            allow_large_delta=allow_large_delta,
        )
        body = {"tally": tally, "name": name, "public": public, **request.as_json()}
        job = self._submit("releases", {**body, "confirm": self._claim(body)["confirm"]}, idempotency_key)
        found = self._connection.json("GET", f"/functions/{self.wait(job)['function']}")
        return RemoteFunction(self._connection, found)

    def model_claim(self, upload: str, name: str, *, model: str, **terms: Any) -> dict[str, Any]:
        """What a model would claim and cost and, with ``records=``, its predicted error. Spends nothing."""
        request = {"upload": upload, "name": name, "model": model, **terms}
        return self._connection.object("POST", f"{self._path}/models/claims", json=request)

    def fit(
        self, upload: str, name: str, *, model: str, idempotency_key: str | None = None, **terms: Any
    ) -> RemoteModel:
        """Fit a model on an upload, release it, and wait for it. The upload is deleted then.

        This spends; the same ``idempotency_key`` never spends twice.

        Parameters
        ----------
        upload : str
            What :meth:`upload` returned.
        name : str
            The name of the model.
        model : str
            Its kind, as ``hushsum fit`` and :meth:`Service.model_kinds` call it.
        **terms
            ``columns``, ``bounds`` and ``epsilon``; ``delta``; ``target`` and, for labels, ``classes``, as
            text; ``seed``; ``settings``, a dictionary of the model's own parameters; and ``public``, an
            upload of public rows that decide the bounds, and settings that may be ``"public"``, where these
            are not given.

        Raises
        ------
        BudgetExhausted
            if the remaining budget is too small.
        DataRefused, UsageError
            if the records or the parameters do not suit the model.
        """
        request = {"upload": upload, "name": name, "model": model, **terms}
        confirm = self.model_claim(**request)["confirm"]
        job = self._submit("models", {**request, "confirm": confirm}, idempotency_key)
        response = self._connection.json("GET", f"/functions/{self.wait(job)['function']}")
        return RemoteModel(self._connection, response)

    def grant(self, function: RemoteFunction | RemoteModel, analyst: str, *, download: bool = False) -> None:
        """Let an analyst query a function and, with ``download=True``, download it."""
        self._connection.json(
            "PUT", f"/functions/{function.id}/grants/{analyst}", json={"download": download}
        )

    def share(
        self,
        function: RemoteFunction | RemoteModel,
        *,
        label: str = "",
        origins: Sequence[str] = (),
        download: bool = False,
        days: int | None = None,
    ) -> dict[str, Any]:
        """Make a link by which anybody may query a function; its ``path`` is returned only here.

        Parameters
        ----------
        function : RemoteFunction or RemoteModel
            One of the owner's; not a model in exact mode.
        label : str
            For the owner and the log.
        origins : sequence of str
            Sites that may embed it in a frame, such as ``"https://www.example.org"``.
        download : bool
            Whether the link also leads to the ``.hush`` file.
        days : int, optional
            When it expires; by default it works until it is revoked.
        """
        request = {"label": label, "origins": list(origins), "download": download, "days": days}
        return self._connection.object("POST", f"/functions/{function.id}/shares", json=request)

    def shares(self, function: RemoteFunction | RemoteModel) -> list[dict[str, Any]]:
        """The links of a function, without their keys."""
        return self._connection.objects("GET", f"/functions/{function.id}/shares")

    def wait(self, job: str, *, timeout: float = 3600.0) -> dict[str, Any]:
        """Wait for a job; returns its result.

        Raises
        ------
        HushsumError
            the error that the job failed with.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            response = self._connection.json("GET", f"/jobs/{job}")
            if response["state"] == "done":
                result: dict[str, Any] = response["result"]
                return result
            if response["state"] in ("failed", "cancelled"):
                raise error_of(response["problem"])
            time.sleep(_LOOK_EVERY)
        raise ServiceRefused(
            rule=f"the job {job} has not finished in {timeout:g} seconds", remedy="wait for it again"
        )

    def _submit(self, what: str, request: dict[str, Any], idempotency_key: str | None) -> str:
        headers = {"idempotency-key": idempotency_key or secrets.token_hex(16)}
        return str(self._connection.json("POST", f"{self._path}/{what}", json=request, headers=headers)["id"])


@contextmanager
def _opened(source: str | Path | IO[bytes]) -> Iterator[tuple[IO[bytes], str]]:
    if isinstance(source, str | Path):
        try:
            stream = open(source, "rb")  # noqa: SIM115
        except FileNotFoundError:
            raise UsageError(
                parameter="source",
                rule="must be an existing file",
                got=f"{str(source)!r}",
                remedy="check the path",
            ) from None
        with stream:
            yield stream, str(source)
    else:
        yield source, str(getattr(source, "name", ""))


def _format(name: str) -> str:
    known: Sequence[str] = [format for suffix, format in _FORMATS.items() if name.endswith(suffix)]
    if not known:
        raise UsageError(
            parameter="format",
            rule="must be given for a file without a known suffix",
            remedy=("give ", Argument("format", "csv")),
        )
    return known[0]


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece
