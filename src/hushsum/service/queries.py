"""Queries: the functions in memory, the points in JSON or Arrow, their answers, and the encoding of these."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from pydantic_core import to_json

from hushsum.errors import DataRefused, FileRefused, HushsumError, UsageError
from hushsum.operations import AnsweringModel, ExactModel
from hushsum.records import pyarrow, read_stream
from hushsum.releases import Bundle, ReleasedFunction, load_released

from .schemas import QueryParameters, QueryRequest, SetQueryRequest
from .settings import Settings
from .store import AnswerGuard

# Whatever the service answers queries of.
Queryable = ReleasedFunction | AnsweringModel | ExactModel


@dataclass(frozen=True, slots=True)
class HeavyFunction:
    """A released function that takes long to load: it is answered in compute processes only.

    ``dim`` is the number of numbers of a point; None for sets.
    """

    dim: int | None


F = TypeVar("F", bound="Queryable | HeavyFunction")


class FunctionCache:
    """Released functions and models by id. They are immutable, so an entry never becomes stale."""

    def __init__(self, guard: Callable[[str, int], AnswerGuard], size: int = 32) -> None:
        self._guard = guard
        self._size = size
        self._lock = threading.Lock()
        self._functions: OrderedDict[str, Queryable | HeavyFunction] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}

    def get(self, id: str) -> Queryable | HeavyFunction | None:
        """A function that is in the cache, or None."""
        with self._lock:
            found = self._functions.get(id)
            if found is not None:
                self._functions.move_to_end(id)
            return found

    def newest(self) -> ReleasedFunction | None:
        """The function that was queried last, if it is in memory and not a model."""
        with self._lock:
            found = next(reversed(self._functions.values()), None)
        return found if isinstance(found, ReleasedFunction) else None

    def put(self, id: str, function: F) -> F:
        """Store a function, or that it is not loaded here, and return it."""
        with self._lock:
            self._functions[id] = function
            while len(self._functions) > self._size:
                self._functions.popitem(last=False)
        return function

    def load(self, id: str, settings: Settings) -> Queryable | HeavyFunction:
        """A function, loaded from its files if it is not in the cache; each at most once at a time, since
        two that have the same model in exact mode open would wait for each other.

        Raises
        ------
        FileRefused
            if its files are missing or were replaced by older copies.
        """
        with self._lock:
            loading = self._loading.setdefault(id, threading.Lock())
        with loading:
            found = self.get(id)
            if found is None:
                found = self.put(id, self._opened(id, settings))
        with self._lock:
            self._loading.pop(id, None)
        return found

    def _opened(self, id: str, settings: Settings) -> Queryable:
        if is_exact(id, settings):
            place, key = settings.path("served", id), settings.tally_key()
            return ExactModel.reopened(place, encryption_key=key, rollback_guard=partial(self._guard, id))
        function = released_function(function_path(id, settings))
        answer_once(function)
        return function

    def remove(self, id: str) -> None:
        """Remove a function from the cache."""
        with self._lock:
            self._functions.pop(id, None)


def is_exact(id: str, settings: Settings) -> bool:
    """Whether it is a model in exact mode, whose records the service keeps."""
    return settings.path("served", id).with_suffix(".secret").exists()


def function_path(id: str, settings: Settings) -> str:
    """The file of a released function or model."""
    return str(settings.path("functions", f"{id}.hush"))


def released_function(path: str) -> ReleasedFunction | AnsweringModel:
    """A released function or model.

    Raises
    ------
    FileRefused
        if its file is missing or damaged.
    """
    try:
        found = load_released(path)
    except UsageError:
        raise FileRefused("the function's file is missing from the service", remedy="restore it") from None
    if isinstance(found, Bundle):
        return AnsweringModel.of(found)
    assert isinstance(found, ReleasedFunction)
    return found


def answer_once(function: ReleasedFunction | AnsweringModel) -> bool:
    """Answer one point, since some functions prepare tables at their first query; False if it is refused."""
    points: Any = np.zeros((1, function.dim)) if function.dim is not None else [[]]
    try:
        if isinstance(function, AnsweringModel):
            function.answers(points)
        else:
            function.query(points)
    except HushsumError:
        return False
    return True


# The longest number that Python writes has 24 characters; the rest is for separators and spaces.
BYTES_PER_NUMBER: Final = 32

BYTES_PER_POINT: Final = 16
# For what stands around the points.
BYTES_AROUND: Final = 1024

# The limit for all sets of one query together.
MOST_MEMBERS: Final = 1 << 22


def largest_json(dim: int, points: int) -> int:
    """The size of the longest body that this number of points of ``dim`` numbers can need."""
    return BYTES_AROUND + points * (BYTES_PER_POINT + BYTES_PER_NUMBER * dim)


def dense_points(body: bytes | bytearray, *, dim: int, most: int) -> NDArray[np.float64]:
    """The points of ``{"points": [[1.0, 2.0], …]}``.

    Parameters
    ----------
    body : bytes
        The whole body.
    dim : int
        Numbers per point.
    most : int
        Points that are accepted.

    Returns
    -------
    array of shape (n_points, dim)

    Raises
    ------
    DataRefused
        if the body is not that, or has too many points.

    Examples
    --------
    >>> dense_points(b'{"points": [[1, 2.5], [-3e1, 0]]}', dim=2, most=10)
    array([[  1. ,   2.5],
           [-30. ,   0. ]])
    """
    wrong = DataRefused(f"points must be rows of {dim} numbers for this function", remedy="correct them")
    rows = _rows(body, QueryRequest, most, dim * most, wrong)
    if any(len(row) != dim for row in rows):
        raise wrong
    return np.array(rows, np.float64).reshape(-1, dim)


def set_points(body: bytes | bytearray, *, most: int) -> Any:
    """The points of ``{"points": [[3, 5], [], …]}``, which are sets of integers, as an Arrow table.

    Raises
    ------
    DataRefused
        if the body is not that, or has too many points.

    Examples
    --------
    >>> set_points(b'{"points": [[3, 5], []]}', most=10).column("set").to_pylist()
    [[3, 5], []]
    """
    pa = pyarrow()
    many = DataRefused(
        f"the sets of a query must have at most {MOST_MEMBERS} members", remedy="send several queries"
    )
    if body.count(b",") > MOST_MEMBERS + most:
        raise many
    wrong = DataRefused("points must be lists of integers for this function", remedy="correct them")
    rows = _rows(body, SetQueryRequest, most, MOST_MEMBERS + most, wrong)
    try:
        return pa.table({"set": pa.array(rows, pa.list_(pa.int64()))})
    except OverflowError:
        raise wrong from None


def _rows(
    body: bytes | bytearray,
    form: type[QueryRequest | SetQueryRequest],
    most: int,
    most_numbers: int,
    wrong: DataRefused,
) -> list[list[Any]]:
    """The rows of a body. Bodies that hold too much are refused before anything is built of them."""
    if body.count(b"[") > most + 1:
        raise DataRefused(f"a query must have 1 to {most} points", got="more", remedy="send several queries")
    if body.count(b",") > most_numbers:
        raise wrong
    # No further name and no text: else a name might be there twice.
    if body.count(b'"') != 2:
        rule = "the body must be a JSON object with points alone"
        raise DataRefused(rule, remedy='send {"points": [[...], ...]}')
    try:
        return form.model_validate_json(body).points
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
            raise wrong from None
    raise DataRefused("the body cannot be read as JSON", remedy='send {"points": [[...], ...]}')


ARROW: Final = "application/vnd.apache.arrow.stream"
JSON: Final = "application/json"
PARTS: Final = ("value", "stderr", "lower", "upper", "bound")
PREDICT: Final = "predict"
_ARROW_AROUND: Final = 1 << 16
_ARROW_PER_COLUMN: Final = 1 << 10
# The widest number has 16 bytes, and one bit marks whether it is null.
_ARROW_PER_NUMBER: Final = 17


def largest_body(
    function: Queryable | HeavyFunction, request_type: str, settings: Settings, *, most: int
) -> int:
    """The largest body that ``most`` points of this function can need; a larger one is refused before it is
    read.
    """
    dim, points = function.dim, most
    if dim is None:
        return settings.max_query_bytes
    if request_type == ARROW:
        needed = _ARROW_AROUND + dim * (_ARROW_PER_COLUMN + points * _ARROW_PER_NUMBER)
    else:
        needed = largest_json(dim, points)
    return min(needed, settings.max_query_bytes)


def read_points(body: bytes | bytearray, *, dim: int | None, request_type: str, most: int) -> Any:
    """The points of a query of a function: an array, or an Arrow table.

    Raises
    ------
    DataRefused
        if the body has no points, too many, or points of the wrong kind.
    """
    if request_type == ARROW:
        points = read_stream(bytes(body), most_rows=most)
    else:
        points = set_points(body, most=most) if dim is None else dense_points(body, dim=dim, most=most)
    if not 0 < len(points) <= most:
        rule = f"a query must have 1 to {most} points"
        raise DataRefused(rule, got=len(points), remedy="send several queries")
    return points


def answer(function: Queryable, points: Any, asked: QueryParameters, response_type: str) -> bytes:
    """The encoded answers at points; unless ``of`` is given, predictions of a model, else means.

    Raises
    ------
    DataRefused
        if the points are not of this function.
    UsageError
        if the parameters do not fit the function.
    """
    model = isinstance(function, AnsweringModel | ExactModel)
    of, level = asked.of or (PREDICT if model else "mean"), asked.level
    together = asked.simultaneous == "true"
    for name in ("simultaneous", "nonnegative"):
        if model and getattr(asked, name) == "true":
            raise UsageError(name, "is for functions", got="it for a model")
    if model != (of == PREDICT) or (model and asked.only):
        takes = (
            "only of=predict, since it is a model" if model else "of=mean or of=sum, since it is not a model"
        )
        raise UsageError(f"this function takes {takes}")
    parts: dict[str, NDArray[Any]]
    if isinstance(function, AnsweringModel | ExactModel):
        parts = function.answers(points, level=level)
    else:
        shown = function.nonnegative() if asked.nonnegative == "true" else function
        if asked.only:
            parts = {"value": shown(points) if of == "mean" else shown.sum(points)}
        else:
            answers = shown.query(points, of=of, level=level, simultaneous=together)
            parts = {name: getattr(answers, name) for name in PARTS}
    if response_type == ARROW:
        return _as_arrow(parts, of, level)
    # Numbers that are not finite become null.
    listed = {name: values.tolist() for name, values in parts.items()}
    return to_json({"of": of, "level": level, **listed}, inf_nan_mode="null")


def _as_arrow(parts: dict[str, NDArray[Any]], of: str, level: float) -> bytes:
    pa, ipc = pyarrow(), pyarrow("ipc")
    columns = {name: _column(values) for name, values in parts.items()}
    table = pa.table(columns).replace_schema_metadata({"of": of, "level": repr(level)})
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def _column(values: NDArray[Any]) -> Any:
    pa = pyarrow()
    if values.ndim == 1:
        return pa.array(values.tolist() if values.dtype.kind in "UO" else values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
