"""DuckDB: queries are evaluated once; `hush_query` answers as the function does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engine_files import counts, empty
from tests.exact_tallies import exact_count

import hushsum as hs
from hushsum.errors import DataRefused, UsageError

duckdb = pytest.importorskip("duckdb")

from hushsum.engines import duckdb as engine  # noqa: E402


@pytest.fixture
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        yield opened


def test_batches_of_a_stream_do_not_matter(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ROWS_PER_BATCH", 2048)
    query = "select sin(range) as b, cos(range) as a, 'text' as c from range(10000)"
    filled = engine.tally(query, empty(), connection=connection)
    points = np.arange(10000.0)
    rows = connection.sql(query).select("a, b").fetchnumpy()
    assert len(points) == len(rows["a"])
    assert counts(filled) == counts(empty().add(np.column_stack([rows["a"], rows["b"]])))


def test_a_relation_is_evaluated_once(connection: Any) -> None:
    calls: list[int] = []

    def noted(value: int) -> float:
        calls.append(value)
        return float(value)

    connection.create_function("noted", noted, ["BIGINT"], "DOUBLE", side_effects=True)
    relation = connection.sql("select noted(range) as a, 1.5::double as b from range(50)")
    filled = engine.tally(relation, empty())
    assert sorted(calls) == list(range(50))
    assert exact_count(filled) == 50


def test_a_query_that_fails_shows_no_value(connection: Any) -> None:
    query = "select cast(v as double) as a, 1.0 as b from (values ('1.5'), ('secret-value')) as t(v)"
    with pytest.raises(DataRefused, match="the relation could not be evaluated") as caught:
        engine.tally(query, empty(), connection=connection)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def released(folder: Path) -> tuple[str, Any]:
    function = empty().add(np.random.default_rng(1).normal(size=(500, 2))).release(epsilon=1.0)
    path = str(folder / "f.hush")
    function.save(path)
    return path, function


def test_hush_query_is_the_function(connection: Any, tmp_path: Path) -> None:
    path, function = released(tmp_path)
    engine.register(connection)
    engine.register(connection, name="hush_sum", of="sum")
    rows = connection.sql(
        f"select a, b, hush_query('{path}', a, b) as mean, hush_sum('{path}', a, b) as total "
        "from (select range / 1000 as a, 1 - range / 700 as b from range(5000))"
    ).fetchnumpy()
    points = np.column_stack([rows["a"], rows["b"]])
    np.testing.assert_array_equal(rows["mean"], function(points))
    np.testing.assert_array_equal(rows["total"], function.sum(points))


def test_a_function_that_is_written_anew_is_read_anew(connection: Any, tmp_path: Path) -> None:
    path, _ = released(tmp_path)
    engine.register(connection)
    query = f"select hush_query('{path}', 0.25, -0.5)"
    before = connection.sql(query).fetchall()
    _, function = released(tmp_path)
    assert connection.sql(query).fetchall() == [(function([[0.25, -0.5]])[0],)] != before


def test_hush_query_of_sets(connection: Any, tmp_path: Path) -> None:
    function = hs.race(hs.JaccardKernel(), rows=20, width=50).add([[1, 2], [2, 3]] * 50).release(epsilon=1.0)
    path = str(tmp_path / "s.hush")
    function.save(path)
    engine.register(connection)
    answer = connection.sql(f"select hush_query('{path}', [1, 2, 9])").fetchall()
    assert answer == [(function([[1, 2, 9]])[0],)]


def test_a_null_is_answered_with_null(connection: Any, tmp_path: Path) -> None:
    path, function = released(tmp_path)
    other = str(tmp_path / "other.hush")
    empty().add([[0.0, 0.0]]).release(epsilon=1.0).save(other)
    engine.register(connection)
    rows = pa.table(
        {
            "f": [path, None, path, other, path],
            "a": [0.5, 0.5, None, 0.5, 1.5],
            "b": pa.array([1, 1, 1, None, 2]),
        }
    )
    connection.register("rows", rows)
    found = [value for (value,) in connection.sql("select hush_query(f, a, b) from rows").fetchall()]
    assert found == [function([[0.5, 1.0]])[0], None, None, None, function([[1.5, 2.0]])[0]]
    query = f"select hush_query('{path}', a, 1) from (values (0.5), (null)) as t(a)"
    assert connection.sql(query).fetchall() == [(found[0],), (None,)]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("hush_query('{path}', 0.5)", "columns must be the 2 of this function: a, b, got 1"),
        ("hush_query('{path}', 'secret', 0.5)", "columns must be numbers for this function, got string"),
        ("hush_query('nowhere.hush', 0.5, 0.5)", "file must be the path of a .hush file"),
        ("hush_query('{secret}', 0.5, 0.5)", "is a confidential tally"),
    ],
)
def test_hush_query_refuses(connection: Any, tmp_path: Path, call: str, sentence: str) -> None:
    path, _ = released(tmp_path)
    empty().add([[0.0, 0.0]]).save(tmp_path / "x.tally")
    engine.register(connection)
    with pytest.raises(duckdb.Error, match=sentence):
        connection.sql(f"select {call.format(path=path, secret=tmp_path / 'x.tally')}").fetchall()


def test_columns_are_checked(connection: Any) -> None:
    with pytest.raises(UsageError, match="columns must name columns of the relation, got 'b'"):
        engine.tally("select 1.0 as a", empty(), connection=connection)
