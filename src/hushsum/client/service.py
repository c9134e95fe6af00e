"""What somebody with a token may do in a service."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from hushsum.client.remote_function import RemoteFunction
from hushsum.client.remote_model import RemoteModel
from hushsum.client.wire import Wire, error_of
from hushsum.errors import ServiceRefused, UsageError
from hushsum.privacy.request import DEFAULT_COUNT_SHARE, ReleaseRequest

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


class Service:
    """A service as the owner of a token sees it. Made by :func:`hushsum.connect`.

    What a token may do is the service's to say: an analyst asks functions that were granted, an owner has
    datasets besides, an administrator lets people in and sees neither. Every call is one request or a few; it
    raises what the service told, as the same errors that the library raises.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.me: dict[str, Any] = wire.json("GET", "/me")
        """Who the token belongs to, and what it is good for."""

    def __repr__(self) -> str:
        return f"<Service {self._wire.url} as {self.me['name']!r}, {self.me['role']}>"

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def functions(self) -> list[RemoteFunction]:
        """The functions that may be asked, oldest first; models are among :meth:`models`."""
        listed = self._wire.json("GET", "/functions")
        return [RemoteFunction(self._wire, told) for told in listed if "model" not in told["facts"]]

    def function(self, name: str) -> RemoteFunction:
        """The function with this id, or the newest with this name.

        Raises
        ------
        UsageError
            if there is none that may be asked.
        """
        found = [each for each in self.functions() if name in (each.id, each.name)]
        if not found:
            raise UsageError("function must be one that this token may ask; see functions() and models()")
        return found[-1]

    def models(self) -> list[RemoteModel]:
        """The models that may be asked, oldest first."""
        listed = self._wire.json("GET", "/functions")
        return [RemoteModel(self._wire, told) for told in listed if "model" in told["facts"]]

    def model(self, name: str) -> RemoteModel:
        """The model with this id, or the newest with this name.

        Raises
        ------
        UsageError
            if there is none that may be asked.
        """
        found = [each for each in self.models() if name in (each.id, each.name)]
        if not found:
            raise UsageError("model must be one that this token may ask; see models()")
        return found[-1]

    def model_kinds(self) -> list[dict[str, Any]]:
        """The models that can be fitted in this service, and the settings of each."""
        told: list[dict[str, Any]] = self._wire.json("GET", "/models")
        return told

    def datasets(self) -> list[RemoteDataset]:
        """The owner's datasets, oldest first."""
        return [RemoteDataset(self._wire, each) for each in self._wire.json("GET", "/datasets")]

    def dataset(self, name: str) -> RemoteDataset:
        """The owner's dataset with this id or name."""
        found = [each for each in self.datasets() if name in (each.id, each.name)]
        if not found:
            raise UsageError("dataset must be one of this owner's; see datasets()")
        return found[0]

    def create_dataset(self, name: str, **terms: Any) -> RemoteDataset:
        """A dataset and its budget; ``terms`` are those of ``DatasetTerms.of``, such as ``epsilon=2.0``."""
        return RemoteDataset(self._wire, self._wire.json("POST", "/datasets", json={"name": name, **terms}))

    def let_in(self, name: str, role: str, **terms: Any) -> str:
        """Make an account as an administrator, and a token for it, which is told here once."""
        account = self._wire.json("POST", "/accounts", json={"name": name, "role": role})
        made = self._wire.json("POST", f"/accounts/{account['id']}/tokens", json=terms)
        return str(made["secret"])

    def link(self, name: str, subject: str) -> None:
        """Let a person at the sign-in provider into the account of this name, as an administrator.

        ``subject`` is what the provider says of that person: a verified email address, unless the service is
        set to another claim.
        """
        found = [each["id"] for each in self._wire.json("GET", "/accounts") if each["name"] == name]
        if not found:
            raise UsageError("name must be that of an account; let that person in first")
        self._wire.json("POST", f"/accounts/{found[0]}/identity", json={"subject": subject})


class RemoteDataset:
    """A dataset of the owner's. Records go in; nobody reads them back."""

    def __init__(self, wire: Wire, told: dict[str, Any]) -> None:
        self._wire = wire
        self.id: str = told["id"]
        self.name: str = told["name"]
        self._path = f"/datasets/{self.id}"

    def __repr__(self) -> str:
        return f"<RemoteDataset {self.name!r} {self.id}>"

    def budget(self) -> dict[str, Any]:
        """How the dataset stands in the ledger."""
        told: dict[str, Any] = self._wire.json("GET", self._path)["budget"]
        return told

    def ledger(self) -> dict[str, Any]:
        """Its releases, and a receipt to keep elsewhere."""
        told: dict[str, Any] = self._wire.json("GET", f"{self._path}/ledger")
        return told

    def upload(self, source: str | Path | IO[bytes], *, format: str | None = None) -> str:
        """Send a file of records or a ``.tally`` file; returns its id. It is deleted once it is counted."""
        with _opened(source) as (stream, name):
            kind = format or _format(name)
            made = self._wire.json(
                "POST", f"{self._path}/uploads", params={"format": kind}, content=_pieces(stream)
            )
        return str(made["id"])

    def tally(self, upload: str, *, idempotency_key: str | None = None, **asked: Any) -> str:
        """Count an upload into a confidential tally, which stays there; returns its id."""
        job = self._submit("tallies", {"upload": upload, **asked}, idempotency_key)
        return str(self.wait(job)["tally"])

    def plan(self, **asked: Any) -> dict[str, Any]:
        """The predicted error of each way to release; see :func:`hushsum.plan`."""
        epsilon = asked.get("epsilon")
        if isinstance(epsilon, int | float):
            asked["epsilon"] = [epsilon]
        told: dict[str, Any] = self._wire.json("POST", f"{self._path}/plans", json=asked)
        return told

    def claim(self, tally: str, name: str, **request: Any) -> dict[str, Any]:
        """What a release would claim and cost. Nothing is spent; parameters as for :meth:`release`."""
        return self._claim({"tally": tally, "name": name, **ReleaseRequest(**request).as_json()})

    def _claim(self, body: dict[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] = self._wire.json("POST", f"{self._path}/claims", json=body)
        return response

    def release(
        self,
        tally: str,
        name: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        mechanism: str | None = None,
        rows: int | str = "auto",
        count_share: float = DEFAULT_COUNT_SHARE,
        rounded: bool | None = None,
        population: int | None = None,
        allow_large_delta: bool = False,
        idempotency_key: str | None = None,
    ) -> RemoteFunction:
        """Release a tally's function, and wait for it. This spends; the same key never spends twice.

        Parameters
        ----------
        tally : str
            What :meth:`tally` returned.
        name : str
            The name of the function.
        epsilon, delta, rho, relation, mechanism, rows, count_share, rounded, population, allow_large_delta
            As for ``Tally.release``. The budget is that of this dataset.
        idempotency_key : str, optional
            The name of this attempt, so that a retry does not spend again; by default a new one.

        Raises
        ------
        BudgetExhausted
            if the ledger has not enough left.
        """
        request = ReleaseRequest(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            relation=relation,
            mechanism=mechanism,
            rows=rows,
            count_share=count_share,
            rounded=rounded,
            population=population,
            allow_large_delta=allow_large_delta,
        )
        body = {"tally": tally, "name": name, **request.as_json()}
        job = self._submit("releases", {**body, "confirm": self._claim(body)["confirm"]}, idempotency_key)
        found = self._wire.json("GET", f"/functions/{self.wait(job)['function']}")
        return RemoteFunction(self._wire, found)

    def model_claim(self, upload: str, name: str, *, model: str, **terms: Any) -> dict[str, Any]:
        """What a model would claim and cost and, with ``records=``, its predicted error. Spends nothing."""
        asked = {"upload": upload, "name": name, "model": model, **terms}
        told: dict[str, Any] = self._wire.json("POST", f"{self._path}/models/claims", json=asked)
        return told

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
            What the model shall be called.
        model : str
            Its kind, as ``hushsum fit`` and :meth:`Service.model_kinds` call it.
        **terms
            ``columns``, ``bounds`` and ``epsilon``; ``delta``; ``target`` and, for labels, ``classes``, as
            text; ``seed``; and ``settings``, a dictionary of the model's own parameters.

        Raises
        ------
        BudgetExhausted
            if the ledger has not enough left.
        DataRefused, UsageError
            if the records, or the terms, do not suit the model.
        """
        asked = {"upload": upload, "name": name, "model": model, **terms}
        confirm = self.model_claim(**asked)["confirm"]
        job = self._submit("models", {**asked, "confirm": confirm}, idempotency_key)
        told = self._wire.json("GET", f"/functions/{self.wait(job)['function']}")
        return RemoteModel(self._wire, told)

    def grant(self, function: RemoteFunction | RemoteModel, analyst: str, *, download: bool = False) -> None:
        """Let an analyst ask a function, and perhaps download it."""
        self._wire.json("PUT", f"/functions/{function.id}/grants/{analyst}", json={"download": download})

    def wait(self, job: str, *, timeout: float = 3600.0) -> dict[str, Any]:
        """The result of long work, once it is done.

        Raises
        ------
        HushsumError
            what went wrong there.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            told = self._wire.json("GET", f"/jobs/{job}")
            if told["state"] == "done":
                result: dict[str, Any] = told["result"]
                return result
            if told["state"] == "failed":
                raise error_of(told["problem"])
            time.sleep(_LOOK_EVERY)
        raise ServiceRefused(f"the job {job} has not ended in {timeout:g} seconds; wait for it again")

    def _submit(self, what: str, asked: dict[str, Any], idempotency_key: str | None) -> str:
        headers = {"idempotency-key": idempotency_key or secrets.token_hex(16)}
        return str(self._wire.json("POST", f"{self._path}/{what}", json=asked, headers=headers)["id"])


@contextmanager
def _opened(source: str | Path | IO[bytes]) -> Iterator[tuple[IO[bytes], str]]:
    if isinstance(source, str | Path):
        try:
            stream = open(source, "rb")  # noqa: SIM115
        except FileNotFoundError:
            raise UsageError(f"no file {str(source)!r}; check the path") from None
        with stream:
            yield stream, str(source)
    else:
        yield source, str(getattr(source, "name", ""))


def _format(name: str) -> str:
    known: Sequence[str] = [format for suffix, format in _FORMATS.items() if name.endswith(suffix)]
    if not known:
        raise UsageError("format must be given for a file without a known suffix; give format='csv'")
    return known[0]


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece
