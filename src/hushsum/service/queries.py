"""Queries: the functions in memory, the points in JSON or Arrow, their answers, and the encoding of these."""

from __future__ import annotations

import io
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, FileRefused, HushsumError, UsageError
from hushsum.operations import AnsweringModel, ExactModel
from hushsum.records import pyarrow, read_stream
from hushsum.releases import Bundle, ReleasedFunction, load_released
from hushsum.service.settings import Settings
from hushsum.service.store import AnswerGuard

Queryable = ReleasedFunction | AnsweringModel | ExactModel
"""Whatever the service answers queries of."""


@dataclass(frozen=True, slots=True)
class HeavyFunction:
    """A released function that takes long to load: it is answered in compute processes only.

    ``dim`` is the number of numbers of a point; None for sets.
    """

    dim: int | None


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

    def put(self, id: str, function: HeavyFunction) -> HeavyFunction:
        """Store that a function is not loaded here."""
        self._store(id, function)
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
                found = self._opened(id, settings)
                self._store(id, found)
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

    def _store(self, id: str, function: Queryable | HeavyFunction) -> None:
        with self._lock:
            self._functions[id] = function
            while len(self._functions) > self._size:
                self._functions.popitem(last=False)

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


BYTES_PER_NUMBER: Final = 32
"""The longest number that Python writes has 24 characters; the rest is for separators and spaces."""

BYTES_PER_POINT: Final = 16
BYTES_AROUND: Final = 1024
"""For what stands around the points, and the longest run of spaces between two of them."""

MOST_MEMBERS: Final = 1 << 22
"""The limit for all sets of one query together."""

_PIECE: Final = 1 << 14
"""Parsed in a millisecond, for which the interpreter lock is held."""
_SPACE: Final = rb"[ \t\r\n]*+"
_START: Final = re.compile(_SPACE + rb"\{" + _SPACE + rb'"points"' + _SPACE + rb":" + _SPACE + rb"\[")
_END: Final = re.compile(rb"\]" + _SPACE + rb"\}" + _SPACE + rb"\Z")
_NEXT: Final = re.compile(_SPACE + rb"," + _SPACE)
_SPACES: Final = re.compile(_SPACE)
_OF_FLOATS: Final = b"0123456789+-.eE,[] \t\r\n"
_OF_INTEGERS: Final = b"0123456789-,[] \t\r\n"


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
    found = _scan(body, _Rows(np.dtype(np.float64), _OF_FLOATS, most, dim))
    return found.numbers().reshape(-1, dim)


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
    found = _scan(body, _Rows(np.dtype(np.int64), _OF_INTEGERS, most, None))
    ends = np.cumsum([0, *found.lengths], dtype=np.int32)
    return pa.table({"set": pa.ListArray.from_arrays(pa.array(ends), pa.array(found.numbers()))})


@dataclass(slots=True)
class _Rows:
    """The numbers that were read, and how many each complete row has."""

    kind: np.dtype[Any]
    allowed: bytes
    most: int
    dim: int | None
    pieces: list[NDArray[Any]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    count: int = 0
    open: int = 0
    """Numbers of a row that is longer than a piece, so far."""

    def rows(self, text: bytes) -> None:
        """Read complete rows, with commas between them."""
        rows = self._parsed(text)
        if not all(type(row) is list for row in rows):
            raise self.refusal()
        lengths = list(map(len, rows))
        self._keep(chain.from_iterable(rows), sum(lengths))
        self._complete(lengths)

    def part(self, text: bytes, *, last: bool) -> None:
        """Read some numbers of a row that is longer than a piece."""
        numbers = self._parsed(text)
        self._keep(numbers, len(numbers))
        self.open += len(numbers)
        if self.dim is not None and self.open > self.dim:
            raise self.refusal()
        if last:
            self._complete([self.open])
            self.open = 0

    def numbers(self) -> NDArray[Any]:
        """All of them, in order."""
        return np.concatenate(self.pieces) if self.pieces else np.empty(0, self.kind)

    def refusal(self) -> DataRefused:
        """The error for rows that break the rule."""
        if self.dim is None:
            return DataRefused("points must be lists of integers for this function", remedy="correct them")
        return DataRefused(
            f"points must be rows of {self.dim} numbers for this function", remedy="correct them"
        )

    def _parsed(self, text: bytes) -> list[Any]:
        # Nothing but numbers can be written in these characters: no text, no true, no null, no NaN.
        if text.translate(None, self.allowed):
            raise self.refusal()
        try:
            parsed: list[Any] = json.loads(b"[" + text + b"]")
        except (ValueError, RecursionError):
            raise _not_json() from None
        return parsed

    def _keep(self, numbers: Iterable[Any], count: int) -> None:
        try:
            self.pieces.append(np.fromiter(numbers, self.kind, count))
        except (TypeError, ValueError, OverflowError):
            raise self.refusal() from None
        self.count += count
        if self.dim is None and self.count > MOST_MEMBERS:
            raise DataRefused(
                f"the sets of a query must have at most {MOST_MEMBERS} members", remedy="send several queries"
            )

    def _complete(self, lengths: list[int]) -> None:
        if self.dim is not None and any(length != self.dim for length in lengths):
            raise self.refusal()
        self.lengths += lengths
        if len(self.lengths) > self.most:
            raise DataRefused(
                f"a query must have 1 to {self.most} points", got="more", remedy="send several queries"
            )


def _scan(body: bytes | bytearray, into: _Rows) -> _Rows:
    """Walk through the array in pieces that end where a row ends, or in a long row between two numbers."""
    start = _START.match(body, 0, BYTES_AROUND)
    tail = max(len(body) - BYTES_AROUND, start.end() if start else 0)
    end = _END.search(body, tail)
    if start is None or end is None:
        raise DataRefused(
            "the body must be a JSON object with points alone", remedy='send {"points": [[...], ...]}'
        )
    at, stop = start.end(), end.start()
    if _only_space(body, at, stop):
        return into
    inside = False
    while True:
        limit = min(at + _PIECE, stop)
        if inside:
            close = body.find(b"]", at, limit)
            cut = close if close >= 0 else body.rfind(b",", at, limit)
            if cut < 0:
                raise _not_json()
            into.part(bytes(body[at:cut]), last=close >= 0)
            at, inside = cut + 1, close < 0
            if inside:
                continue
        else:
            close = body.rfind(b"]", at, limit)
            if close < 0:
                opening = body.find(b"[", at, limit)
                cut = body.rfind(b",", at, limit)
                if opening < 0 or cut < opening or body[at:opening].strip():
                    raise _not_json()
                into.part(bytes(body[opening + 1 : cut]), last=False)
                at, inside = cut + 1, True
                continue
            into.rows(bytes(body[at : close + 1]))
            at = close + 1
        if _only_space(body, at, stop):
            return into
        comma = _NEXT.match(body, at, min(at + BYTES_AROUND, stop))
        if comma is None:
            raise _not_json()
        at = comma.end()


def _only_space(body: bytes | bytearray, at: int, stop: int) -> bool:
    found = _SPACES.match(body, at, min(at + BYTES_AROUND, stop))
    return found is not None and found.end() == stop


def _not_json() -> DataRefused:
    return DataRefused("the body cannot be read as JSON", remedy='send {"points": [[...], ...]}')


ARROW: Final = "application/vnd.apache.arrow.stream"
JSON: Final = "application/json"
PARTS: Final = ("value", "stderr", "lower", "upper", "bound")
_JSON: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
PREDICT: Final = "predict"
_AT_A_TIME: Final = 1024
"""Numbers encoded per call, which holds the interpreter lock for a millisecond."""
_ARROW_AROUND: Final = 1 << 16
_ARROW_PER_COLUMN: Final = 1 << 10
_ARROW_PER_NUMBER: Final = 17
"""The widest number has 16 bytes, and one bit marks whether it is null."""


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


def answer(
    function: Queryable,
    body: bytes | bytearray,
    *,
    request_type: str,
    response_type: str,
    of: str | None,
    level: float,
    only_values: bool,
    simultaneous: bool = False,
    most: int,
) -> tuple[bytes, int]:
    """The encoded answers and the number of points; with ``of=None`` predictions of a model, else means.

    Raises
    ------
    DataRefused
        if the body has no points, too many, or points of the wrong kind.
    UsageError
        if ``of`` does not fit the function.
    """
    model = isinstance(function, AnsweringModel | ExactModel)
    of = of or (PREDICT if model else "mean")
    if model and simultaneous:
        raise UsageError("simultaneous", "is for functions", got="it for a model")
    if model != (of == PREDICT) or (model and only_values):
        takes = (
            "only of=predict, since it is a model" if model else "of=mean or of=sum, since it is not a model"
        )
        raise UsageError(f"this function takes {takes}")
    if request_type == ARROW:
        points = read_stream(bytes(body), most_rows=most)
    else:
        dim = function.dim
        points = set_points(body, most=most) if dim is None else dense_points(body, dim=dim, most=most)
    number = len(points)
    if not 0 < number <= most:
        raise DataRefused(f"a query must have 1 to {most} points", got=number, remedy="send several queries")
    parts: dict[str, NDArray[Any]]
    if isinstance(function, AnsweringModel | ExactModel):
        parts = function.answers(points, level=level)
    elif only_values:
        parts = {"value": function(points) if of == "mean" else function.sum(points)}
    else:
        answers = function.query(points, of=of, level=level, simultaneous=simultaneous)
        parts = {name: getattr(answers, name) for name in PARTS}
    encode = _as_arrow if response_type == ARROW else _as_json
    return encode(parts, of, level), number


def _as_json(parts: dict[str, NDArray[Any]], of: str, level: float) -> bytes:
    head = _JSON.encode({"of": of, "level": level})[:-1]
    pieces = [head]
    for name, values in parts.items():
        pieces.append(f',"{name}":[')
        rows = max(1, _AT_A_TIME // max(1, values.size // max(1, len(values))))
        for start in range(0, len(values), rows):
            pieces += ("," if start else "", _written(values[start : start + rows])[1:-1])
        pieces.append("]")
    pieces.append("}")
    return "".join(pieces).encode()


def _written(values: NDArray[Any]) -> str:
    """A list in JSON; null where a number is not finite."""
    try:
        return _JSON.encode(values.tolist())
    except ValueError:
        return _JSON.encode(_known(values))


def _known(values: NDArray[Any]) -> list[Any]:
    listed: list[Any] = values.tolist()
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return listed
    if values.ndim > 1:
        return [_known(row) for row in values]
    finite = np.isfinite(values).tolist()
    return [value if known else None for value, known in zip(listed, finite, strict=True)]


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
