"""Points in, answers out; and what is no query."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from tests.in_process_service import Town

pa: Any = pytest.importorskip("pyarrow")
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[Town, str, Any]:
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        town = Town(folder, max_points=500, max_query_bytes=40_000)
        kernel = hs.EuclideanKernel(dim=2, bandwidth=1.0)
        tally = hs.race(kernel, rows=50, width=40, columns=["a", "b"]).add(np.zeros((300, 2)))
        function = tally.release(epsilon=1.0)
        return town, town.publish(town.dataset(), "f", function), function


def stream_of(table: Any, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as to:
        to.write_table(table)
    return sink.getvalue()


def test_json_and_arrow_give_the_same(served: tuple[Town, str, Any]) -> None:
    town, id, function = served
    points = np.random.default_rng(0).normal(size=(20, 2))
    reported = town.ok("olga", "POST", f"/functions/{id}/query?of=sum", json={"points": points.tolist()})
    table = pa.table({"b": points[:, 1], "a": points[:, 0]})
    answer = town.ask(
        "olga",
        "POST",
        f"/functions/{id}/query?of=sum",
        content=stream_of(table),
        headers={"content-type": ARROW, "accept": ARROW},
    )
    back = pa.ipc.open_stream(answer.content).read_all()
    expected = function.query(points, of="sum")
    for name in ("value", "stderr", "lower", "upper", "bound"):
        assert reported[name] == back.column(name).to_pylist() == getattr(expected, name).tolist()
    assert back.schema.metadata[b"of"] == b"sum"
    values = town.ok("olga", "POST", f"/functions/{id}/query?only=value", json={"points": points.tolist()})
    assert values["value"] == function(points).tolist()
    assert "stderr" not in values


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1e999",
        b'{"points": 1}',
        b'{"points": []}',
        b'{"points": [[]]}',
        b'{"points": [[1]]}',
        b'{"points": [[1, 2, 3]]}',
        b'{"points": [[1, 2], [3]]}',
        b'{"points": [["1", "2"]]}',
        b'{"points": [[true, false]]}',
        b'{"points": [[null, 1]]}',
        b'{"points": [[NaN, 1]]}',
        b'{"points": [[1e999, 1]]}',
        b'{"points": [[1e300, 1]]}',
        b'{"points": [[{}, 1]]}',
        b'{"points": [[1, 2]], "more": 1}',
        b'{"points": [[' + b"9" * 5000 + b", 1]]}",
        b'{"points": ' + b"[" * 3000 + b"]" * 3000 + b"}",
        b"\xff\xfe",
        json.dumps({"points": [[0, 0]] * 501}).encode(),
    ],
    ids=lambda body: body[:24].decode("latin-1"),
)
def test_what_is_no_json_query_is_refused(served: tuple[Town, str, Any], body: bytes) -> None:
    town, id, _ = served
    headers = {"content-type": "application/json"}
    town.refused("olga", "POST", f"/functions/{id}/query", 422, content=body, headers=headers)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"ARROW1 nothing",
        stream_of(pa.table({"c": [1.0], "d": [2.0]})),
        stream_of(pa.table({"a": ["x"], "b": ["y"]})),
        stream_of(pa.table({"a": [None, 1.0], "b": [1.0, 2.0]})),
        stream_of(pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.float64())})),
        stream_of(pa.table({"a": np.zeros(501), "b": np.zeros(501)})),
        stream_of(pa.table({"a": np.zeros(500), "b": np.zeros(500)}), "zstd"),
        stream_of(pa.table({"a": np.zeros(500), "b": np.zeros(500)}), "lz4"),
        stream_of(pa.table({"a": pa.array(["x"] * 50).dictionary_encode(), "b": np.zeros(50)}), "zstd"),
        stream_of(pa.table({"a": [1.0], "b": [2.0]}))[:-20],
        stream_of(pa.table({"a": [1.0], "b": [2.0]}))[40:],
    ],
)
def test_what_is_no_arrow_query_is_refused(served: tuple[Town, str, Any], body: bytes) -> None:
    town, id, _ = served
    reported = town.refused(
        "olga", "POST", f"/functions/{id}/query", 422, content=body, headers={"content-type": ARROW}
    )
    assert reported["type"].endswith("refused")


def test_flipped_bytes_of_an_arrow_stream_are_no_failure_of_the_service(
    served: tuple[Town, str, Any],
) -> None:
    town, id, _ = served
    whole = stream_of(pa.table({"a": [1.0, 2.0], "b": [2.0, 3.0]}))
    random = np.random.default_rng(5)
    for _ in range(150):
        data = bytearray(whole)
        for place in random.integers(0, len(data), 3):
            data[place] ^= int(random.integers(1, 256))
        answer = town.ask(
            "olga", "POST", f"/functions/{id}/query", content=bytes(data), headers={"content-type": ARROW}
        )
        assert answer.status_code in (200, 422), answer.text


@pytest.mark.parametrize(
    "requested",
    ["of=median", "level=0", "level=1", "level=nan", "level=x", "only=x", "x=1", "simultaneous=x"],
)
def test_questions_that_are_unknown(served: tuple[Town, str, Any], requested: str) -> None:
    town, id, _ = served
    town.refused("olga", "POST", f"/functions/{id}/query?{requested}", 422, json={"points": [[0, 0]]})


def test_simultaneous_intervals_are_those_of_the_library(served: tuple[Town, str, Any]) -> None:
    town, id, f = served
    points = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.5]]
    found = town.ok(
        "olga", "POST", f"/functions/{id}/query?simultaneous=true&level=0.9", json={"points": points}
    )
    np.testing.assert_allclose(found["upper"], f.query(points, level=0.9, simultaneous=True).upper)
    alone = town.ok("olga", "POST", f"/functions/{id}/query?level=0.9", json={"points": points})
    assert (np.array(found["upper"]) > alone["upper"]).all()


def test_the_non_negative_version_is_that_of_the_library(served: tuple[Town, str, Any]) -> None:
    town, id, _ = served
    points = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.5]]
    town.refused("olga", "POST", f"/functions/{id}/query?nonnegative=true", 422, json={"points": points})
    f = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.5), bounds=(-2, 3)).release(epsilon=1.0)
    id = town.publish(town.dataset(name="other"), "bounded", f)
    path = f"/functions/{id}/query?of=sum&nonnegative=true"
    found = town.ok("olga", "POST", path, json={"points": points})
    expected = f.nonnegative().query(points, of="sum")
    np.testing.assert_allclose(found["value"], expected.value)
    np.testing.assert_allclose(found["lower"], expected.lower)


def test_other_formats_and_long_bodies(served: tuple[Town, str, Any]) -> None:
    town, id, _ = served
    path = f"/functions/{id}/query"
    town.refused("olga", "POST", path, 415, content=b"x", headers={"content-type": "text/csv"})
    town.refused("olga", "POST", path, 413, content=b"x" * 40_001)
    town.refused("olga", "POST", path, 413, content=iter([b"x" * 30_000] * 2))


def test_a_withdrawn_grant_ends_at_once(town: Town) -> None:
    function = town.function(town.dataset())
    path = f"/functions/{function}/query"
    body = {"points": [[0.0, 0.0]]}
    town.ok("olga", "PUT", f"/functions/{function}/grants/anna", json={"download": True})
    town.ok("anna", "POST", path, json=body)
    assert town.ask("anna", "GET", f"/functions/{function}/file").status_code == 200
    assert town.ok("olga", "GET", f"/functions/{function}/grants") == [{"account": "anna", "download": True}]
    town.ok("olga", "DELETE", f"/functions/{function}/grants/anna", 204)
    town.refused("anna", "POST", path, 404, json=body)


def test_sets(town: Town, found_town: Callable[..., Town], tmp_path: Path) -> None:
    tally = hs.race(hs.JaccardKernel(), rows=50, width=64).add([{1, 2}, {3}] * 100)
    local = tally.release(epsilon=1.0)
    id = town.publish(town.dataset(), "sets", local)
    reported = town.ok("olga", "POST", f"/functions/{id}/query", json={"points": [[1, 2], [9]]})
    assert reported["value"] == local.query([[1, 2], [9]]).value.tolist()
    town.refused("olga", "POST", f"/functions/{id}/query", 422, json={"points": [[1.5]]})
