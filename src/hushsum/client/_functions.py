"""Queries of a function in a service: points and answers as Arrow streams, in batches."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hushsum import _html
from hushsum._types import Floats, PathOrFile
from hushsum.errors import DataRefused, FileRefused, SecretRefused, ServiceRefused, UsageError
from hushsum.files import atomic_file
from hushsum.kernels import Kernel, kernel_from_json
from hushsum.privacy import Claim, Statement
from hushsum.records import Bounds, as_sets, pyarrow, read_stream
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

from ._connection import Connection, open_connection

if TYPE_CHECKING:
    from hushsum.models import PrivateModel


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
