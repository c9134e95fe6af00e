"""Queries of a function in a service: points and answers as Arrow streams, in batches."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.client.http_client import Connection
from hushsum.errors import DataRefused, ServiceRefused
from hushsum.records.arrow import pyarrow
from hushsum.records.arrow_stream import read_stream
from hushsum.releases.answers import query_points

AT_A_TIME: Final = 100_000
"""Points per request; more points are sent in several requests."""

_ARROW: Final = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True, slots=True)
class FunctionAddress:
    """Where a function is in a service: the path of its routes, and how many points a request may have."""

    path: str
    at_a_time: int = AT_A_TIME


def query_function(
    connection: Connection, where: FunctionAddress, points: Any, request: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """Every answer of a function at the points of an Arrow table, by name."""
    pieces = [
        _piece(connection, where.path, points.slice(start, where.at_a_time), request)
        for start in range(0, points.num_rows, where.at_a_time)
    ]
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


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


def _piece(
    connection: Connection, path: str, points: Any, request: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    ipc = pyarrow("ipc")
    sink = io.BytesIO()
    with ipc.new_stream(sink, points.schema) as stream:
        stream.write_table(points)
    answer = connection.request(
        "POST",
        f"{path}/query",
        again=True,
        params=dict(request),
        content=sink.getvalue(),
        headers={"content-type": _ARROW, "accept": _ARROW},
    )
    try:
        table = read_stream(answer.content, most_rows=points.num_rows, name="the response")
        if table.num_rows != points.num_rows:
            raise DataRefused(rule="the response has another number of rows than the query")
        return {name: _array(table.column(name)) for name in table.column_names}
    except DataRefused:
        raise ServiceRefused(
            rule=f"the response of {connection.url} is not one of Hushsum",
            remedy="check the address and its version",
        ) from None


def _array(column: Any) -> NDArray[Any]:
    pa = pyarrow()
    if pa.types.is_fixed_size_list(column.type):
        return np.asarray(column.combine_chunks().flatten().to_numpy()).reshape(-1, column.type.list_size)
    if pa.types.is_string(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    values: NDArray[Any] = column.to_numpy()
    return values
