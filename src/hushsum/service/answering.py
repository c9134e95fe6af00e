"""Points in, answers out: JSON or Arrow, with released functions kept in memory."""

from __future__ import annotations

import io
import json
import threading
from collections import OrderedDict
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, FileRefused, UsageError
from hushsum.jobs.exact_answers import ExactModel
from hushsum.jobs.model_answers import AnsweringModel
from hushsum.records.arrow import pyarrow
from hushsum.records.arrow_stream import read_stream
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load_released
from hushsum.service.json_points import dense_points, largest_json, set_points
from hushsum.service.rollback_guard import RollbackGuards
from hushsum.service.settings import Settings

ARROW: Final = "application/vnd.apache.arrow.stream"
JSON: Final = "application/json"
PARTS: Final = ("value", "stderr", "lower", "upper", "bound")
_JSON: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
PREDICT: Final = "predict"
MODELS: Final = (AnsweringModel, ExactModel)
_AT_A_TIME: Final = 1024
"""Numbers that are written in one call, which holds the interpreter lock for a millisecond."""
_ARROW_AROUND: Final = 1 << 16
_ARROW_PER_COLUMN: Final = 1 << 10
_ARROW_PER_NUMBER: Final = 17
"""The widest number has 16 bytes, and one bit says whether it is there."""


class Shelf:
    """Released functions and models by their ids. They never change: one that was read is right for ever."""

    def __init__(self, guards: RollbackGuards, size: int = 32) -> None:
        self._guards = guards
        self._size = size
        self._lock = threading.Lock()
        self._functions: OrderedDict[str, Any] = OrderedDict()

    def get(self, id: str) -> Any:
        """A function that was read before, or None."""
        return self._functions.get(id)

    def read(self, id: str, settings: Settings) -> Any:
        """A function, from its files if need be."""
        with self._lock:
            found = self._functions.get(id)
            if found is None:
                found = self._functions[id] = _opened(id, settings, self._guards)
                while len(self._functions) > self._size:
                    self._functions.popitem(last=False)
            self._functions.move_to_end(id)
            return found

    def forget(self, id: str) -> None:
        """Keep a function no longer."""
        with self._lock:
            self._functions.pop(id, None)


def _opened(id: str, settings: Settings, guards: RollbackGuards) -> Any:
    """A released function, a released model, or a model whose records are here.

    Raises
    ------
    FileRefused
        if its files are gone, or older copies of what they were.
    """
    place = settings.path("served", id)
    try:
        if place.with_suffix(".secret").exists():
            return ExactModel.reopened(
                place, encryption_key=settings.tally_key(), rollback_guard=partial(guards.of, id)
            )
        found = load_released(settings.path("functions", f"{id}.hush"))
    except UsageError:
        raise FileRefused("the function's file is gone from the service; restore it") from None
    return AnsweringModel.of(found) if isinstance(found, Bundle) else found


def dim_of(function: Any) -> int | None:
    """How many numbers a point has; None for a function of sets."""
    dim: int | None = function.dim if isinstance(function, MODELS) else function.kernel.dim
    return dim


def largest_body(function: Any, sent: str, settings: Settings) -> int:
    """The longest body that a query of this function can need: more is refused before it is read."""
    dim, points = dim_of(function), settings.max_points
    if dim is None:
        return settings.max_query_bytes
    if sent == ARROW:
        needed = _ARROW_AROUND + dim * (_ARROW_PER_COLUMN + points * _ARROW_PER_NUMBER)
    else:
        needed = largest_json(dim, points)
    return min(needed, settings.max_query_bytes)


def answer(
    function: Any,
    body: bytes | bytearray,
    *,
    sent: str,
    wanted: str,
    of: str | None,
    level: float,
    only_values: bool,
    most: int,
) -> tuple[bytes, int]:
    """The encoded answers, and how many points they are for; ``of`` is None for what the function is for.

    Raises
    ------
    DataRefused
        if the body holds no points, too many of them, or others than the function takes.
    UsageError
        if a model is asked for sums, or a function of sums for predictions.
    """
    model = isinstance(function, MODELS)
    wish = of or (PREDICT if model else "mean")
    if model != (wish == PREDICT) or (model and only_values):
        takes = (
            "of=predict alone, since it is a model" if model else "of=mean or of=sum, since it is no model"
        )
        raise UsageError(f"this function takes {takes}; ask so")
    if sent == ARROW:
        points = read_stream(bytes(body), most_rows=most)
    else:
        points = _points_of_json(body, function, most)
    number = len(points)
    if not 0 < number <= most:
        raise DataRefused(f"a query must have 1 to {most} points, got {number}; send several queries")
    if model:
        parts = function.answers(points, level=level)
    elif only_values:
        parts = {"value": function(points) if wish == "mean" else function.sum(points)}
    else:
        answers = function.query(points, of=wish, level=level)
        parts = {name: getattr(answers, name) for name in PARTS}
    encode = _as_arrow if wanted == ARROW else _as_json
    return encode(parts, wish, level), number


def _points_of_json(body: bytes | bytearray, function: Any, most: int) -> Any:
    dim = dim_of(function)
    return set_points(body, most=most) if dim is None else dense_points(body, dim=dim, most=most)


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
    """A list in JSON; null where a number is not known."""
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
