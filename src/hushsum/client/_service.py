"""A service, as the owner of a token uses it, and its datasets: uploads, tallies, releases and models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO, TextIOBase
from pathlib import Path, PurePath
from typing import IO, Any, Final, TypeVar
from urllib.parse import quote

from hushsum.errors import Argument, UsageError, shown
from hushsum.operations import RecordFiles
from hushsum.planning import KernelSpec, MethodSpec, PlanRequest, TableSpec
from hushsum.privacy import ReleaseRequest
from hushsum.records import CellFormat, as_table, is_frame, pyarrow
from hushsum.streams import StreamRequest

from ._connection import Connection, open_connection, plain, stated
from ._functions import RemoteFunction, RemoteModel, remote


def connect(url: str, token: str, *, timeout: float = 60.0, allow_plain_http: bool = False) -> Service:
    """A service that was started with ``hushsum serve``, as somebody with a token sees it.

    Parameters
    ----------
    url : str
        Where it listens, such as ``https://sums.example.org``.
    token : str
        From an administrator of the service. It is kept in memory and sent in a header.
    timeout : float
        Seconds to wait for an answer.
    allow_plain_http : bool
        Send the token without encryption to another machine. Only for networks that nobody else can read.

    Raises
    ------
    UsageError
        if the address is no such one, or ``hushsum[service]`` is not installed.
    ServiceRefused
        if the service cannot be reached, or does not know the token.
    """
    if not token.isascii() or not token.isprintable() or not token:
        raise UsageError("token", "must be the text that an administrator gave", remedy="copy it whole")
    return Service(open_connection(url, timeout=timeout, token=token, allow_plain_http=allow_plain_http))


class Service:
    """A service as the owner of a token sees it. Made by :func:`hushsum.connect`.

    The service decides what a token may do: an analyst queries functions that were granted, an owner has
    datasets besides, an administrator lets people in and sees neither. Every call is one request or a few; it
    raises what the service reports, as the same errors that the library raises.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.me: dict[str, Any] = connection.json("GET", "/me")
        """The account that the token belongs to, and its scopes."""

    def __repr__(self) -> str:
        return f"<Service {self._connection.url} as {self.me['name']!r}, {self.me['role']}>"

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def functions(self) -> list[RemoteFunction]:
        """The functions that this token may query, oldest first; models are listed by :meth:`models`."""
        return [each for each in self._listed() if isinstance(each, RemoteFunction)]

    def function(self, name: str) -> RemoteFunction:
        """The function with this id, or the newest with this name.

        Raises
        ------
        UsageError
            if there is none that this token may query.
        """
        return _named(name, self.functions(), "function")[-1]

    def models(self) -> list[RemoteModel]:
        """The models that this token may query, oldest first."""
        return [each for each in self._listed() if isinstance(each, RemoteModel)]

    def _listed(self) -> list[RemoteFunction | RemoteModel]:
        return [remote(self._connection, each) for each in self._connection.json("GET", "/functions")]

    def model(self, name: str) -> RemoteModel:
        """The model with this id, or the newest with this name.

        Raises
        ------
        UsageError
            if there is none that this token may query.
        """
        return _named(name, self.models(), "model")[-1]

    def model_kinds(self) -> list[dict[str, Any]]:
        """The models that can be fitted in this service, and the settings of each."""
        return self._connection.objects("GET", "/models")

    def datasets(self) -> list[RemoteDataset]:
        """The owner's datasets, oldest first."""
        return [RemoteDataset(self._connection, each) for each in self._connection.json("GET", "/datasets")]

    def dataset(self, name: str) -> RemoteDataset:
        """The owner's dataset with this id or name."""
        return _named(name, self.datasets(), "dataset")[0]

    def create_dataset(self, name: str, **terms: Any) -> RemoteDataset:
        """A dataset and its budget; ``terms`` are those of ``DatasetTerms.of``, such as ``epsilon=2.0``."""
        made = self._connection.object("POST", "/datasets", json={"name": name, **terms})
        return RemoteDataset(self._connection, made)

    def revoke_share(self, share: str) -> None:
        """Revoke a link at once: one of this owner's or, as an administrator, any; by its id."""
        self._connection.request("DELETE", f"/shares/{share}")

    def create_sample(self) -> dict[str, Any]:
        """A dataset of made-up records with its upload, and what its owner would declare of them."""
        return self._connection.object("POST", "/datasets/samples")

    def usage(self) -> dict[str, Any]:
        """The use of each quota of this account: bytes, cells of tallies, jobs and tokens."""
        return self._connection.object("GET", "/usage")

    def sign_out(self) -> None:
        """Revoke the token in use and the tokens that it issued, and close the connections."""
        self._connection.request("DELETE", f"/tokens/{self.me['token']}")
        self.close()

    def cancel(self, job: str) -> dict[str, Any]:
        """Cancel long work before it has spent anything.

        Raises
        ------
        ServiceRefused
            if it has finished, or is being paid for.
        """
        return self._connection.object("DELETE", f"/jobs/{job}")

    def accept_restore(self, reason: str) -> int:
        """Accept, as an administrator, a ledger that may be a restored backup; returns how many datasets
        were frozen. The owner of each opens it with :meth:`RemoteDataset.write_off`.
        """
        return int(self._connection.json("POST", "/ledger/restores", json={"reason": reason})["frozen"])

    def create_account(self, name: str, role: str, **terms: Any) -> str:
        """Create an account as an administrator, and a token for it, which is returned only here."""
        account = self._connection.json("POST", "/accounts", json={"name": name, "role": role})
        made = self._connection.json("POST", f"/accounts/{account['id']}/tokens", json=terms)
        return str(made["secret"])

    def link(self, name: str, subject: str) -> None:
        """Let a person at the sign-in provider sign in to the account of this name, as an administrator.

        ``subject`` is that person's identity at the provider: a verified email address, unless the service
        uses another claim.
        """
        found = [each["id"] for each in self._connection.json("GET", "/accounts") if each["name"] == name]
        if not found:
            raise UsageError("name", "must be that of an account", remedy="create it first")
        self._connection.json("POST", f"/accounts/{found[0]}/identity", json={"subject": subject})


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
        return dict(self._connection.json("GET", self._path)["budget"])

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
        return dict(self._connection.json("POST", f"{self._path}/write-offs", json=request)["budget"])

    def upload(self, source: Any, *, format: str | None = None) -> str:
        """Send a file of records or a ``.tally`` file; returns its id. It is deleted once it is counted.

        Parameters
        ----------
        source : str, path-like, binary file or frame
            A frame of pandas, Polars, PyArrow or DuckDB is sent as an Arrow file, made in memory, without its
            index.
        format : {"csv", "csv.gz", "parquet", "arrow", "xlsx", "tally"}, optional
            By default by the suffix of the file's name. How cells of a CSV file are written is declared where
            they are counted: ``decimal`` and ``encoding`` of :meth:`tally`, :meth:`fit` and :meth:`stream`.

        Raises
        ------
        UsageError
            The source is none of these, or its format is not known.
        DataRefused
            A column of the frame has values of several types.
        """
        with opened_source(source) as (stream, name):
            kind = format or format_of(name)
            called = PurePath(name).name if name.isprintable() else ""
            made = self._connection.json(
                "POST",
                f"{self._path}/uploads",
                params={"format": kind, **({"name": called[-255:]} if called else {})},
                # A megabyte at a time.
                content=iter(partial(stream.read, _PIECE), b""),
            )
        return str(made["id"])

    def tally(self, upload: str, *, idempotency_key: str | None = None, **count: Any) -> str:
        """Count an upload into a confidential tally, which stays in the service; returns its id.

        ``count`` are the parameters of ``hushsum tally``: ``columns``, ``bounds`` (one pair for
        all columns, a list of pairs, or a dictionary by column name), ``kernel``, ``bandwidth``, ``method``;
        and how cells are written: ``decimal=","``, ``encoding``, ``dates``, ``date_format``. With ``public``,
        an upload of public rows, these decide bandwidth and bounds where they are not given; with
        ``allow_clipping=True`` records that mostly lie outside the bounds are counted all the same.
        """
        request = stated(count, RecordFiles, KernelSpec, TableSpec, own=_OWN[:2]) | {"upload": upload}
        return str(self._connection.done(f"{self._path}/tallies", request, idempotency_key)["tally"])

    def plan(self, **request: Any) -> dict[str, Any]:
        """The predicted error of each release option; see :func:`hushsum.plan`.

        With ``tally`` for releasing that one; ``public`` is an upload of public rows.
        """
        body = stated(request, PlanRequest, CellFormat, own=("tally", "public"))
        return self._connection.object("POST", f"{self._path}/plans", json=body)

    def claim(self, source: Any, name: str, **request: Any) -> dict[str, Any]:
        """The claim and the cost of a release and, for an upload, the method that is planned.

        Nothing is spent; parameters as for :meth:`release`.
        """
        return self._claim("", self._release_request(source, name, request))

    def _release_request(self, source: Any, name: str, request: dict[str, Any]) -> dict[str, Any]:
        id = source if isinstance(source, str) and _STORED.fullmatch(source) else self.upload(source)
        of_tally = id.startswith("ta_")
        requests = (CellFormat,) if of_tally else (RecordFiles, KernelSpec, MethodSpec)
        body = stated(request, ReleaseRequest, *requests, own=_OWN)
        return body | {"tally" if of_tally else "upload": id, "name": name}

    def _claim(self, of: str, body: dict[str, Any], idempotency_key: str | None = None) -> dict[str, Any]:
        """The claim of a request; with the key of a request that is repeated, also if what is left of the
        budget would not suffice for another one.
        """
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        return self._connection.object("POST", f"{self._path}/{of}claims", json=body, headers=headers)

    def _spent(
        self, where: str, body: dict[str, Any], idempotency_key: str | None, *, of: str = ""
    ) -> dict[str, Any]:
        """Confirm the claim of a request, send it, and wait for its job; the result of the job."""
        body = {**body, "confirm": self._claim(of, body, idempotency_key)["confirm"]}
        return self._connection.done(f"{self._path}/{where}", body, idempotency_key)

    def release(
        self, source: Any, name: str, *, idempotency_key: str | None = None, **request: Any
    ) -> RemoteFunction:
        """Release records, or a tally, and wait for the function. This spends, with one key only once.

        Parameters
        ----------
        source : str, path-like, binary file or frame
            What :meth:`upload` or :meth:`tally` returned; a file or a frame is uploaded first. To repeat a
            request with its key, upload first: another upload makes another request.
        name : str
            The name of the function.
        idempotency_key : str, optional
            The name of this attempt, so that a retry does not spend again; by default a new one.
        **request
            Of a tally the parameters of ``Tally.release``; of records those of ``hushsum release``:
            ``columns``, ``bounds``, ``bandwidth``, ``kernel``, ``method``, ``records``, ``unit_column``,
            ``epsilon`` and so on; ``decimal``, ``encoding`` and so on say how cells of the files are written.
            Records are planned, counted and released by the method with the smallest predicted error, unless
            ``method`` names one. The budget is that of this dataset. ``public`` is what :meth:`upload`
            returned for a file of public rows like the records, which the function is combined with by their
            variances; the claim states the assumption that they are public. With ``allow_clipping=True``
            records that mostly lie outside the bounds are released all the same; with
            ``stop_at_warnings=True`` a release whose count gives warnings is refused before it spends.

        Raises
        ------
        BudgetExhausted
            if the remaining budget is too small.
        """
        done = self._spent("releases", self._release_request(source, name, request), idempotency_key)
        return RemoteFunction.find(self._connection, done["function"])

    def model_claim(self, upload: str, name: str, *, model: str, **terms: Any) -> dict[str, Any]:
        """The claim and the cost of a model and, with ``records=``, its predicted error. Spends nothing."""
        request = {"upload": upload, "name": name, "model": model, **plain(terms)}
        return self._claim("models/", request)

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
            are not given. ``decimal``, ``encoding``, ``dates`` and ``date_format`` say how cells of the files
            are written.

        Raises
        ------
        BudgetExhausted
            if the remaining budget is too small.
        DataRefused, UsageError
            if the records or the parameters do not suit the model.
        """
        request = {"upload": upload, "name": name, "model": model, **plain(terms)}
        done = self._spent("models", request, idempotency_key, of="models/")
        return RemoteModel.find(self._connection, done["function"])

    def stream_claim(self, name: str, **request: Any) -> dict[str, Any]:
        """The claim and the cost of a stream, once for all of its steps, and the noise of its last step in
        units of one release. Nothing is spent; parameters as for :meth:`stream`.
        """
        return self._claim("streams/", _stream_request(name, request))

    def stream(self, name: str, *, idempotency_key: str | None = None, **request: Any) -> RemoteStream:
        """Start a stream: uploads are counted over time, and each step releases a function. This spends once,
        for all steps; the same key never spends twice.

        Parameters
        ----------
        name : str
            The name of the functions of its steps.
        idempotency_key : str, optional
            The name of this attempt, so that a retry does not spend again; by default a new one.
        **request
            ``horizon``, ``window``, ``decay``, ``epsilon`` and so on, as for :func:`hushsum.stream`; and what
            is counted of every upload, as for :meth:`tally`: ``columns``, ``kernel``, ``bandwidth``,
            ``bounds``, ``method``, ``max_per_unit`` and so on. The budget is that of this dataset.

        Raises
        ------
        BudgetExhausted
            if the remaining budget is too small.
        """
        body = _stream_request(name, request)
        id = self._spent("streams", body, idempotency_key, of="streams/")["stream"]
        return next(each for each in self.streams() if each.id == id)

    def streams(self) -> list[RemoteStream]:
        """The streams of the dataset, oldest first."""
        path = f"{self._path}/streams"
        return [RemoteStream(self._connection, path, each) for each in self._connection.objects("GET", path)]

    def grant(self, function: RemoteFunction | RemoteModel, analyst: str, *, download: bool = False) -> None:
        """Let an analyst, by account name, query a function and, with ``download=True``, download it.

        Raises
        ------
        UsageError
            if no analyst has an account of this name.
        """
        path = f"/functions/{function.id}/grants/{quote(analyst, safe='')}"
        self._connection.json("PUT", path, json={"download": download})

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
        return self._connection.wait(job, timeout=timeout)


# The id of a tally or of an upload.
_STORED: Final = re.compile(r"(ta|up)_[0-9a-f]{16}")
# Parameters of a release that only the service has.
_OWN: Final = ("public", "allow_clipping", "stop_at_warnings")


def _stream_request(name: str, request: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, **stated(request, StreamRequest, RecordFiles, KernelSpec, TableSpec)}


class RemoteStream:
    """A stream of a dataset, whose claim is paid. Made by :meth:`RemoteDataset.stream`.

    Attributes
    ----------
    id, name : str
    horizon : int or None
        How many steps the claim covers; None for all that there will ever be.
    claim : dict
        What all steps together promise.
    """

    def __init__(self, connection: Connection, path: str, response: dict[str, Any]) -> None:
        self._connection = connection
        self._path = path
        self.id: str = response["id"]
        self.name: str = response["name"]
        self.horizon: int | None = response["horizon"]
        self.claim: dict[str, Any] = response["claim"]

    def __repr__(self) -> str:
        return f"<RemoteStream {self.name!r} {self.id} horizon={self.horizon}>"

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
        done = self._connection.done(f"{self._path}/{self.id}/steps", request, idempotency_key)
        return RemoteFunction.find(self._connection, done["function"])

    def functions(self) -> list[RemoteFunction]:
        """The functions of the steps so far, in their order."""
        listed = self._connection.objects("GET", self._path)
        found = next((each["functions"] for each in listed if each["id"] == self.id), None)
        if found is None:
            raise UsageError(f"the stream {self.id} does not exist any more")
        return [RemoteFunction.find(self._connection, each) for each in found]


_FORMATS: Final = ("csv.gz", "csv", "parquet", "arrow", "xlsx", "tally")
# Suffixes of files that are not called like their format.
_SUFFIXES: Final = {"pq": "parquet", "feather": "arrow", "ipc": "arrow"}
_PIECE: Final = 1 << 20


@contextmanager
def opened_source(source: Any) -> Iterator[tuple[IO[bytes], str]]:
    """The bytes to send, and a name whose suffix tells their format, or none."""
    if is_frame(source):
        stream = BytesIO()
        table = as_table(source)
        with pyarrow("ipc").new_file(stream, table.schema) as writer:
            writer.write_table(table)
        stream.seek(0)
        yield stream, ".arrow"
        return
    if isinstance(source, str | Path):
        if not Path(source).exists():
            raise UsageError("source", "must be an existing file", got=f"{str(source)!r}")
        with open(source, "rb") as file:
            yield file, str(source)
    else:
        if not hasattr(source, "read") or isinstance(source, TextIOBase):
            rule = "must be the path of a file, a file that was opened in binary mode, or a frame"
            got = "a file of text" if isinstance(source, TextIOBase) else shown(source)
            raise UsageError("source", rule, got=got, remedy="give the path, or a frame with named columns")
        yield source, str(getattr(source, "name", ""))


def format_of(name: str) -> str:
    """The format of a file, by its suffix."""
    for suffix in (*_FORMATS, *_SUFFIXES):
        if name.endswith(f".{suffix}"):
            return _SUFFIXES.get(suffix, suffix)
    rule = "must be given for a file without a known suffix"
    raise UsageError("format", rule, remedy=("give ", Argument("format", "csv")))


R = TypeVar("R", RemoteFunction, RemoteModel, RemoteDataset)


def _named(name: str, listed: Sequence[R], kind: str) -> list[R]:
    """The listed objects with this id or name, oldest first. There is at least one."""
    found = [each for each in listed if name in (each.id, each.name)]
    if not found:
        rule = "must be one that this token may use"
        raise UsageError(kind, rule, remedy="see functions(), models() and datasets()")
    return found
