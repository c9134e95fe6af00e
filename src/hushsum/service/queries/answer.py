"""Answers a query: parses the points from JSON or Arrow, evaluates the function, encodes the answers."""

from __future__ import annotations

import io
import json
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, UsageError
from hushsum.jobs.exact_mode_predictions import ExactModel
from hushsum.jobs.model_answers import AnsweringModel
from hushsum.records.arrow import pyarrow
from hushsum.records.arrow_stream import read_stream
from hushsum.service.queries.function_cache import HeavyFunction, Queryable
from hushsum.service.queries.json_points import dense_points, largest_json, set_points
from hushsum.service.settings import Settings

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
        raise UsageError(
            parameter="simultaneous",
            rule="is for functions",
            got="it for a model",
            remedy="leave it out",
        )
    if model != (of == PREDICT) or (model and only_values):
        takes = (
            "only of=predict, since it is a model" if model else "of=mean or of=sum, since it is not a model"
        )
        raise UsageError(rule=f"this function takes {takes}")
    if request_type == ARROW:
        points = read_stream(bytes(body), most_rows=most)
    else:
        points = _points_of_json(body, function, most)
    number = len(points)
    if not 0 < number <= most:
        raise DataRefused(
            rule=f"a query must have 1 to {most} points", got=number, remedy="send several queries"
        )
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


def _points_of_json(body: bytes | bytearray, function: Queryable, most: int) -> Any:
    dim = function.dim
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
