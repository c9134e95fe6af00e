"""A service as the owner of a token sees it: its datasets, and functions that it evaluates.

Problem responses of the service are raised as errors of Hushsum. Points and answers travel as Arrow streams.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from io import BytesIO, TextIOBase
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from hushsum import _html
from hushsum._types import Floats, PathOrFile
from hushsum.declaration import parameters_of
from hushsum.errors import (
    Argument,
    DataRefused,
    FileRefused,
    HushsumError,
    SecretRefused,
    ServiceRefused,
    UsageError,
    error_from_json,
    shown,
)
from hushsum.files import atomic_file
from hushsum.kernels import Kernel, kernel_from_json
from hushsum.operations import RecordFiles
from hushsum.planning import KernelSpec, MethodSpec, PlanRequest, TableSpec
from hushsum.privacy import Claim, ReleaseRequest, Statement
from hushsum.records import Bounds, CellFormat, as_sets, as_table, is_frame, pyarrow, read_stream
from hushsum.releases import (
    COMMON_FACTS,
    Answers,
    Detail,
    Presented,
    ReleasedFunction,
    check_question,
    load_function,
    query_points,
)
from hushsum.streams import StreamRequest
from hushsum.version import PRODUCER

if TYPE_CHECKING:
    import httpx

    from hushsum.models import PrivateModel

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


AT_A_TIME: Final = 100_000
# Points per request; more points are sent in several requests. By a link a service accepts 10,000 by default.
_BY_LINK_AT_A_TIME: Final = 5_000

_ARROW: Final = "application/vnd.apache.arrow.stream"
_SHARED: Final = "/shared/"


def values_of(Q: object, dim: int, columns: Sequence[str] | None) -> Floats:
    """Points as numbers, shape (n, dim), checked as a local function checks them."""
    points = query_points(Q, dim=dim, columns=columns)
    assert isinstance(points, np.ndarray)
    return points


def table_of(values: Floats, columns: Sequence[str] | None) -> Any:
    """Points as an Arrow table with the names that the function knows."""
    pa = pyarrow()
    dim = values.shape[1]
    if columns is not None and len(columns) == dim:
        return pa.table({name: values[:, i] for i, name in enumerate(columns)})
    name = "points" if columns is None else columns[0]
    return pa.table({name: pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), dim)})


def _array(column: Any) -> NDArray[Any]:
    pa = pyarrow()
    if pa.types.is_fixed_size_list(column.type):
        return np.asarray(column.combine_chunks().flatten().to_numpy()).reshape(-1, column.type.list_size)
    if pa.types.is_string(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    values: NDArray[Any] = column.to_numpy()
    return values


class _Remote:
    """The common part of a function and a model of a service."""

    def __init__(self, connection: Connection, response: Mapping[str, Any], path: str = "") -> None:
        self._connection = connection
        self.id: str = response["id"]
        self._path = path or f"/functions/{self.id}"
        self.name: str = response["name"]
        self.sha256: str = response["sha256"]
        claim = response["facts"]["claim"]
        self._claim: Claim = Claim.from_json({**claim, **claim["exact"]})

    @classmethod
    def find(cls, connection: Connection, id: str) -> Self:
        """The one with this id."""
        return cls(connection, connection.json("GET", f"/functions/{id}"))

    def __reduce__(self) -> NoReturn:
        rule = "a remote function or model holds a token and must not be pickled, because pickles travel"
        raise SecretRefused(rule, remedy="take its local(), or connect again")

    def save(self, target: PathOrFile) -> None:
        """Write it to a ``.hush`` file, for those whom its owner allows it.

        Raises
        ------
        ServiceRefused
            if the owner did not, or it is a model in exact mode, which has no file.
        """
        data = self._file()
        if isinstance(target, str | os.PathLike):
            with atomic_file(Path(target)) as stream:
                stream.write(data)
        else:
            target.write(data)

    def _file(self) -> bytes:
        """The bytes of its file, checked against the digest of the release."""
        data = self._connection.request("GET", f"{self._path}/file", again=True).content
        if hashlib.sha256(data).hexdigest() != self.sha256:
            rule = "the downloaded file is not the one that was released"
            raise FileRefused(rule, remedy="report it to the service's administrator")
        return data

    def _answers(self, points: Any, request: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """Every answer at the points of an Arrow table, by name."""
        size = _BY_LINK_AT_A_TIME if self._path.startswith(_SHARED) else AT_A_TIME
        pieces = [
            self._answers_at_once(points.slice(start, size), request)
            for start in range(0, points.num_rows, size)
        ]
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def _answers_at_once(self, points: Any, request: dict[str, Any]) -> dict[str, NDArray[Any]]:
        sink = io.BytesIO()
        with pyarrow("ipc").new_stream(sink, points.schema) as stream:
            stream.write_table(points)
        headers = {"content-type": _ARROW, "accept": _ARROW}
        sent = {"params": request, "content": sink.getvalue(), "headers": headers}
        answer = self._connection.request("POST", f"{self._path}/query", again=True, **sent)
        try:
            table = read_stream(answer.content, most_rows=points.num_rows, name="the response")
            if table.num_rows != points.num_rows:
                raise DataRefused("the response has another number of rows than the query")
            return {name: _array(table.column(name)) for name in table.column_names}
        except DataRefused:
            rule = f"the response of {self._connection.url} is not one of Hushsum"
            raise ServiceRefused(rule, remedy="check the address and its version") from None


class RemoteFunction(_Remote, Presented):
    """A released function of a service: a :class:`hushsum.ReleasedFunction` that the service
    evaluates.

    A query spends nothing. Answers equal those of the local function bit for bit, since points are sent in
    double precision.

    Attributes
    ----------
    id, name, sha256 : str
    claim : Claim
        The privacy claim of the release.
    kernel : Kernel
        The similarity whose sums it answers.
    count, count_stderr : float
        The estimated number of records, and its standard error.
    dim : int or None
        The number of columns of a query; None where records are sets.
    bounds : Bounds or None
        The declared box that records were clipped to; None if not declared.
    columns : tuple of str, or None
        The names of the columns, if they were declared.
    producer : str
        Which version of Hushsum made it.
    statement : Statement
        What its owner stated with it.
    """

    def __init__(self, connection: Connection, response: Mapping[str, Any], path: str = "") -> None:
        super().__init__(connection, response, path)
        facts = response["facts"]
        self.claim: Claim = self._claim
        self.kernel: Kernel = kernel_from_json(facts["kernel"])
        self.count: float = facts["estimated_count"]["value"]
        self.count_stderr: float = facts["estimated_count"]["stderr"]
        self.dim: int | None = self.kernel.dim
        self.bounds: Bounds | None = None if facts["bounds"] is None else Bounds.from_json(facts["bounds"])
        self.producer: str = facts["producer"]
        self.statement = Statement.from_json(facts.get("statement", {}))
        common = (*COMMON_FACTS, "source", "size")
        self._details = {name: value for name, value in facts.items() if name not in common}
        self.columns: tuple[str, ...] | None = None if facts["columns"] is None else tuple(facts["columns"])

    def __repr__(self) -> str:
        url = self._connection.url
        return f"RemoteFunction({self.name!r}, {self.kernel!r}, at={url!r}, claim={self.claim!r})"

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._query(Q, of="mean", only="value")["value"]

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        return self._query(Q, of="sum", only="value")["value"]

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``."""
        check_question(of, level)
        points = query_points(Q, dim=self.dim, columns=self.columns)
        if simultaneous and len(points) > AT_A_TIME:
            rule = f"is for at most {AT_A_TIME} queries of a remote function"
            raise UsageError("simultaneous", rule, got=f"{len(points)}", remedy="take f.local()")
        together = {"simultaneous": "true"} if simultaneous else {}
        parts = self._query(points, of=of, level=level, **together)
        value, stderr, bound = parts["value"], parts["stderr"], parts["bound"]
        return Answers(value, stderr, parts["lower"], parts["upper"], bound, level, points, simultaneous)

    def details(self) -> tuple[Detail, ...]:
        """Where the function is, and what the service says of its kind."""
        return (
            Detail("name", self.name, f"{self.name}, at {self._connection.url}", label="service"),
            *(
                Detail(name, value, None if value is None or isinstance(value, dict) else str(value))
                for name, value in self._details.items()
            ),
        )

    def _repr_html_(self) -> str:
        """The claim in words and the facts; no picture, which would query the service."""
        about = self.describe()
        sentence = _html.paragraph(about.claim.sentence())
        return _html.block("Remote function", sentence, _html.facts(about.facts()))

    def local(self) -> ReleasedFunction:
        """The function itself, which needs the service no more; for those whom its owner allows it."""
        return load_function(io.BytesIO(self._file()))

    def nonnegative(self) -> ReleasedFunction:
        """The version that is never negative, of the function itself: see :meth:`local`."""
        return self.local().nonnegative()

    def _query(self, Q: object, **request: Any) -> dict[str, Floats]:
        """Which values a function takes is checked by the service."""
        if self.dim is not None:
            return self._answers(table_of(values_of(Q, self.dim, self.columns), self.columns), request)
        pa, sets = pyarrow(), as_sets(Q)
        listed = pa.LargeListArray.from_arrays(pa.array(sets.indptr), pa.array(sets.values))
        return self._answers(pa.table({"set": listed}), request)


class RemoteModel(_Remote):
    """A released model that the service evaluates; it predicts as a local model does.

    A query spends nothing. A method that the model does not have raises :class:`UsageError`.

    Attributes
    ----------
    id, name, sha256 : str
    kind : str
        What ``hushsum fit`` calls it.
    claim_ : Claim
        What its release promises.
    facts : dict
        Everything public about it: columns, bounds, parameters, which answers it gives.
    feature_names_in_ : array of str
    n_features_in_ : int
    classes_ : array, or None for a model without classes
    """

    def __init__(self, connection: Connection, response: Mapping[str, Any], path: str = "") -> None:
        super().__init__(connection, response, path)
        self.facts: dict[str, Any] = dict(response["facts"]["model"])
        self.kind: str = self.facts["kind"]
        self.claim_: Claim = self._claim
        self.feature_names_in_: NDArray[Any] = np.array(self.facts["features"], dtype=object)
        self.n_features_in_: int = len(self.facts["features"])
        classes = self.facts["classes"]
        self.classes_: NDArray[Any] | None = None if classes is None else np.array(classes)

    def __repr__(self) -> str:
        url = self._connection.url
        return f"RemoteModel({self.name!r}, {self.kind!r}, at={url!r}, claim={self.claim_!r})"

    def predict(self, X: object) -> NDArray[Any]:
        """The prediction at each point: a class, a number, or what the kind of model says."""
        return self._part(X, "prediction")

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class at each point, shape (n_queries, n_classes)."""
        return self._part(X, "probability")

    def decision_function(self, X: object) -> Floats:
        """Decision values, shape (n_queries,), or (n_queries, n_classes) for more than two classes."""
        values = self._part(X, "decision")
        return values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values

    def score_samples(self, X: object) -> Floats:
        """The logarithm of a density, or the score of an outlier detector, shape (n_queries,)."""
        return self._part(X, "score")

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """Values with standard errors and intervals, for a model that knows them."""
        self._check("value")
        points = self._points(X)
        parts = self._query(points, level)
        bound = np.full(len(parts["value"]), np.nan)
        return Answers(parts["value"], parts["stderr"], parts["lower"], parts["upper"], bound, level, points)

    def local(self) -> PrivateModel:
        """The model itself, which needs the service no more; for those whom its owner allows it."""
        from hushsum.models import load_model

        return load_model(io.BytesIO(self._file()))

    def _part(self, X: object, name: str) -> NDArray[Any]:
        self._check(name)
        return self._query(X, 0.95)[name]

    def _check(self, name: str) -> None:
        if name not in self.facts["answers"]:
            rule = f"a {self.kind} model gives no {name}"
            raise UsageError(rule, remedy=f"it gives {', '.join(self.facts['answers'])}")

    def _points(self, X: object) -> Floats:
        return values_of(X, self.n_features_in_, self.facts["features"])

    def _query(self, X: object, level: float) -> dict[str, NDArray[Any]]:
        values = self._points(X)
        if not np.isfinite(values).all():
            raise DataRefused("X must be finite", got="NaN or infinity", remedy="leave those points out")
        table = table_of(values, self.facts["features"])
        return self._answers(table, {"of": "predict", "level": level})


def remote(
    connection: Connection, response: Mapping[str, Any], path: str = ""
) -> RemoteFunction | RemoteModel:
    """The function or the model that a service describes."""
    kind = RemoteModel if "model" in response["facts"] else RemoteFunction
    return kind(connection, response, path)


def open_link(url: str, *, timeout: float = 60.0) -> RemoteFunction | RemoteModel:
    """The function or the model behind a shared link, for whoever has the link.

    Parameters
    ----------
    url : str
        The link, as its owner sent it: ``https://sums.example.org/shared/…``. Who has it may query the
        function until the owner revokes it, so treat it as you would a password.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    UsageError
        if it is no such link, or ``hushsum[service]`` is not installed.
    ServiceRefused
        if the service cannot be reached, or the link was revoked or has expired.
    """
    root, found, key = url.partition(_SHARED)
    key = key.removesuffix("/embed").rstrip("/")
    if not found or not key or not key.replace("-", "").replace("_", "").isalnum() or not key.isascii():
        rule = "must be a shared link such as https://sums.example.org/shared/…"
        raise UsageError("url", rule, remedy="copy it whole")
    connection = open_connection(root, timeout=timeout)
    path = f"{_SHARED}{key}"
    response = {"id": "", **connection.object("GET", f"{path}/function")}
    return remote(connection, response, path)


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
