"""Arrow bytes that state lengths they do not have: nothing beyond them is read, and no process dies."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hushsum.errors import DataRefused
from hushsum.records import read_stream
from hushsum.service.queries import ARROW, read_points
from tests.fuzz.mutate import mutated_bytes
from tests.fuzz.targets import check_arrow, stream_of

pa: Any = pytest.importorskip("pyarrow")


def claiming(body: bytes, rows: int, claimed: int) -> bytes:
    """The body with every 64-bit ``rows`` replaced: the batch's length and those of its columns."""
    changed = body.replace(struct.pack("<q", rows), struct.pack("<q", claimed))
    assert changed != body
    # The buffers stay as they are: none for missing values, and one that may be as many bytes long as rows.
    return changed.replace(struct.pack("<4q", 0, 0, 0, claimed), struct.pack("<4q", 0, 0, 0, rows))


LISTS = pa.table({"set": pa.array([[1, 2], [3], [4, 5, 6]], pa.list_(pa.int64()))})
WORDS = pa.table({"a": pa.array(["left", "right", "left"])})
OFFSETS = struct.pack("<4i", 0, 2, 3, 6)


def with_offsets(*offsets: int) -> bytes:
    body = stream_of(LISTS)
    assert OFFSETS in body
    return body.replace(OFFSETS, struct.pack("<4i", *offsets))


BODIES: dict[str, Callable[[], bytes]] = {
    "uint8 that claims 5,000 rows": lambda: claiming(
        stream_of(pa.table({"a": np.arange(37, dtype=np.uint8)})), 37, 5_000
    ),
    "int64 that claims 99,999 rows": lambda: claiming(stream_of(pa.table({"a": np.arange(37)})), 37, 99_999),
    "int64 that claims 2**60 rows": lambda: claiming(stream_of(pa.table({"a": np.arange(37)})), 37, 1 << 60),
    "a negative number of rows": lambda: claiming(stream_of(pa.table({"a": np.arange(37)})), 37, -1),
    "offsets beyond the values": lambda: with_offsets(0, 2, 3, 1 << 30),
    "offsets that fall": lambda: with_offsets(0, 5, 3, 6),
    "negative offsets": lambda: with_offsets(-(1 << 30), 2, 3, 6),
    "text that is not UTF-8": lambda: stream_of(WORDS).replace(b"left", b"l\xff\xfet"),
    "a name that is not UTF-8": lambda: stream_of(pa.table({"name": [1.0]})).replace(b"name", b"n\xff\xfee"),
    "dictionary indices beyond the dictionary": lambda: stream_of(
        pa.table({"a": pa.array(["x", "y", "x", "y"]).dictionary_encode()})
    ).replace(struct.pack("<4i", 0, 1, 0, 1), struct.pack("<4i", 0, 1, 900, -5)),
    "compressed": lambda: stream_of(pa.table({"a": np.zeros(5_000)}), "zstd"),
    "bytes after the end": lambda: stream_of(pa.table({"a": [1.0]})) + b"\0" * 8,
    "cut": lambda: stream_of(pa.table({"a": [1.0, 2.0]}))[:-30],
    "text of another type": lambda: stream_of(pa.table({"a": pa.array([b"x"], pa.binary())})),
    "no bytes": lambda: b"",
}


@pytest.mark.parametrize("name", BODIES)
def test_hostile_bodies_are_refused(name: str) -> None:
    with pytest.raises(DataRefused, match="Arrow stream"):
        read_stream(BODIES[name](), most_rows=100_000)


@pytest.mark.parametrize("name", ["uint8 that claims 5,000 rows", "int64 that claims 99,999 rows"])
def test_a_query_is_answered_from_its_own_bytes_alone(name: str) -> None:
    """Once answered with 5,000 values computed from the server's memory, or with the end of the server."""
    with pytest.raises(DataRefused, match=r"its bytes|bytes received"):
        read_points(BODIES[name](), dim=1, request_type=ARROW, most=100_000)
    honest = stream_of(pa.table({"a": np.zeros(3, np.uint8)}))
    assert len(read_points(honest, dim=1, request_type=ARROW, most=100_000)) == 3


def test_more_rows_than_allowed_are_refused_before_they_are_decoded() -> None:
    body = stream_of(pa.table({"a": pa.nulls(1_000)}))
    with pytest.raises(DataRefused, match="more than 999 rows"):
        read_stream(body, most_rows=999)
    assert read_stream(body, most_rows=1_000).num_rows == 1_000


def test_columns_that_share_their_description_do_not_multiply() -> None:
    """A flatbuffer's vector may list one field many times, and fields may nest so: 4 bytes for each."""
    whole = stream_of(pa.table({f"c{i}": [1.0] for i in range(40)}))
    assert read_stream(whole).num_columns == 40
    deep: Any = pa.array([1])
    for _ in range(6):
        deep = pa.array([deep.tolist()])
    with pytest.raises(DataRefused, match="Arrow stream"):
        read_stream(stream_of(pa.table({"a": deep})))


def test_very_many_small_batches_are_refused() -> None:
    table = pa.table({"a": [1.0]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as out:
        for _ in range(5_000):
            out.write_table(table)
    with pytest.raises(DataRefused, match="small batches"):
        read_stream(sink.getvalue(), most_rows=100_000)


HONEST = {
    "numbers": pa.table(
        {"a": np.arange(7), "b": np.arange(7.0), "c": [True, None, False, True, None, True, True]}
    ),
    "narrow numbers": pa.table({"a": pa.array([1, 2], pa.uint8()), "b": pa.array([0.5, None], pa.float16())}),
    "text": pa.table({"s": ["x", "é", None], "t": pa.array(["", "zz", "q"], pa.large_string())}),
    "lists": pa.table({"l": [[1, 2], [], None], "m": pa.array([[1], [], [2]], pa.large_list(pa.int8()))}),
    "embeddings": pa.table({"f": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))}),
    "categories": pa.table({"d": pa.array(["u", "v", None, "u"]).dictionary_encode()}),
    "nothing": pa.table({"n": pa.nulls(3), "e": [[], [], []]}),
    "no rows": pa.table({"a": pa.array([], pa.float64()), "s": pa.array([], pa.string())}),
    "no lists": pa.table({"l": pa.array([], pa.list_(pa.int64()))}),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_streams_are_read_as_pyarrow_reads_them(name: str) -> None:
    table = HONEST[name]
    found = read_stream(stream_of(table))
    found.validate(full=True)
    assert found.equals(table)
    part = table.slice(1, 1)
    assert read_stream(stream_of(part)).equals(part)


def test_a_stream_of_polars_and_one_in_several_batches_are_read() -> None:
    polars = pytest.importorskip("polars")
    sink = io.BytesIO()
    polars.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}).write_ipc_stream(sink)
    assert read_stream(sink.getvalue()).to_pydict() == {"a": [1.0, 2.0], "b": [3, 4]}
    table = pa.concat_tables([pa.table({"a": [1.0, 2.0]}), pa.table({"a": [3.0]})])
    assert read_stream(stream_of(table)).column("a").to_pylist() == [1.0, 2.0, 3.0]


def test_bytes_that_are_not_aligned_are_read() -> None:
    body = b"x" + stream_of(pa.table({"a": [1.5, 2.5]}))
    assert read_stream(memoryview(body)[1:]).column("a").to_pylist() == [1.5, 2.5]


@pytest.mark.parametrize("name", HONEST)
def test_changed_bytes_never_lead_out_of_the_body(name: str) -> None:
    body = stream_of(HONEST[name])
    read = sum(check_arrow(mutated_bytes(body, random.Random(seed))) for seed in range(400))
    assert 0 < read < 400, "some changes must be read and some refused, or the test tests nothing"
