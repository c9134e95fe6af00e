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
from hushsum.jobs.asked_model import AskedModel
from hushsum.jobs.exact_answers import ExactModel
from hushsum.records.arrow import pyarrow
from hushsum.records.arrow_stream import read_stream
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load
from hushsum.service.settings import Settings
from hushsum.service.witness import Witnesses

ARROW: Final = "application/vnd.apache.arrow.stream"
JSON: Final = "application/json"
PARTS: Final = ("value", "stderr", "lower", "upper", "bound")
_JSON: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
PREDICT: Final = "predict"
MODELS: Final = (AskedModel, ExactModel)


class Shelf:
    """Released functions and models by their ids. They never change: one that was read is right for ever."""

    def __init__(self, witnesses: Witnesses, size: int = 32) -> None:
        self._witnesses = witnesses
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
                found = self._functions[id] = _opened(id, settings, self._witnesses)
                while len(self._functions) > self._size:
                    self._functions.popitem(last=False)
            self._functions.move_to_end(id)
            return found

    def forget(self, id: str) -> None:
        """Keep a function no longer."""
        with self._lock:
            self._functions.pop(id, None)


def _opened(id: str, settings: Settings, witnesses: Witnesses) -> Any:
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
                place, encryption_key=settings.tally_key(), witness=partial(witnesses.of, id)
            )
        found = load(settings.path("functions", f"{id}.hush"))
    except UsageError:
        raise FileRefused("the function's file is gone from the service; restore it") from None
    return AskedModel.of(found) if isinstance(found, Bundle) else found


def answer(
    function: Any,
    body: bytes,
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
    points = read_stream(body, most_rows=most) if sent == ARROW else _points_of_json(body, function)
    number = points.num_rows if sent == ARROW else len(points)
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


def _points_of_json(body: bytes, function: Any) -> Any:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise DataRefused('the body cannot be read as JSON; send {"points": [[...], ...]}') from None
    if not isinstance(asked, dict) or set(asked) != {"points"} or not isinstance(asked["points"], list):
        raise DataRefused('the body must be an object with points alone; send {"points": [[...], ...]}')
    points = asked["points"]
    if not isinstance(function, MODELS) and getattr(function.kernel, "dim", None) is None:
        return _sets(points)
    try:
        array = np.array(points)
    except (ValueError, OverflowError):
        array = np.array(None)
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise DataRefused("points must be rows of numbers, all of one length; correct them")
    return array


def _sets(points: list[Any]) -> list[list[int]]:
    for each in points:
        if not isinstance(each, list) or not all(type(member) is int for member in each):
            raise DataRefused("points must be lists of integers for this function; correct them")
    return points


def _as_json(parts: dict[str, NDArray[Any]], of: str, level: float) -> bytes:
    listed = {name: values.tolist() for name, values in parts.items()}
    try:
        return _JSON.encode({"of": of, "level": level, **listed}).encode()
    except ValueError:
        known = {name: _known(values) for name, values in parts.items()}
        return _JSON.encode({"of": of, "level": level, **known}).encode()


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
