"""Faults of Spark's workers, and its SQL functions."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import has_java
from tests.engine_cases import spark_session
from tests.engine_files import counts, empty, one_process, write_files

import hushsum as hs
from hushsum.engines import _counting as file_parts
from hushsum.engines._counting import Driver
from hushsum.errors import DataRefused, FileRefused, UsageError
from hushsum.operations import EngineChoice, RecordFiles, tally_records
from hushsum.planning import KernelSpec, TableSpec

pytest.importorskip("pyspark")
if not has_java():
    pytest.skip("no Java 17 is installed", allow_module_level=True)

from hushsum.engines import spark as engine

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
KEY = bytes(range(32))
ROWS = "select sin(id) as a, cos(id) as b, id % 3 as g from range(0, 300, 1, 4)"


def points(rows: Any) -> Any:
    return np.array([[row["a"], row["b"]] for row in rows])


def dying_once(marker: str, *, always: bool = False) -> Any:
    """A map over Arrow batches that ends its own worker process with signal 9, the first time or always."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        for batch in batches:
            if TaskContext.get().partitionId() == 1 and (always or not os.path.exists(marker)):
                Path(marker).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return work


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    frame = spark_session().sql(ROWS).select("a", "b")
    dying = frame.mapInArrow(dying_once(str(tmp_path / "died")), frame.schema)
    filled = engine.tally(dying, empty())
    assert (tmp_path / "died").exists()
    assert counts(filled) == counts(empty().add(points(frame.collect())))


@pytest.mark.slow
def test_a_partition_that_kills_every_worker_refuses_the_job(tmp_path: Path) -> None:
    frame = spark_session().sql(ROWS).select("a", "b")
    dying = frame.mapInArrow(dying_once(str(tmp_path / "died"), always=True), frame.schema)
    with pytest.raises(DataRefused, match="the source could not be evaluated") as caught:
        engine.tally(dying, empty())
    assert caught.value.__context__ is None


def test_a_lazy_frame_that_is_collected_twice_counts_once() -> None:
    frame = spark_session().sql(ROWS)
    expected = empty().add(points(frame.collect()))
    assert counts(engine.tally(frame, empty())) == counts(expected)
    assert counts(engine.tally(frame, empty())) == counts(expected)


def test_duplicated_tasks_count_once_and_are_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As speculative execution would have it, two workers count every part, and both return it."""
    files = write_files(tmp_path)
    monkeypatch.setattr(file_parts, "_LEAST_BYTES", 100_000)
    found: list[tuple[str, bytes]] = []
    run, receive = engine._run, Driver.receive

    def note(self: Driver, id: str, sealed: bytes) -> bool:
        found.append((id, sealed))
        return receive(self, id, sealed)

    monkeypatch.setattr(Driver, "receive", note)
    monkeypatch.setattr(engine, "_run", lambda driver, results: run(driver, results.union(results)))
    filled = engine.tally(files, empty(), spark_session())
    assert counts(filled) == counts(one_process(files, empty()))
    assert len(set(found)) == len(found) == 2 * len({id for id, _ in found}) > 2
    assert not any(b"TALY" in sealed or b"CONFIDENTIAL" in sealed for _, sealed in found)


def test_sql_counts_merges_and_queries(tmp_path: Path) -> None:
    session = spark_session()
    engine.register(session, empty(), encryption_key=KEY)
    session.sql(ROWS).createOrReplaceTempView("town")
    rows = session.sql("select * from town").collect()
    groups = session.sql("select g, hush_tally_agg(a, b) as t from town group by g").collect()
    for row in groups:
        found = hs.load_tally(io.BytesIO(row["t"]), encryption_key=KEY)
        assert counts(found) == counts(empty().add(points([each for each in rows if each["g"] == row["g"]])))
        with pytest.raises(UsageError, match="encrypted"):
            hs.load_tally(io.BytesIO(row["t"]))
        with pytest.raises(FileRefused):
            hs.load_tally(io.BytesIO(row["t"]), encryption_key=bytes(32))
    stored = session.createDataFrame([(bytes(row["t"]),) for row in groups], "t binary")
    stored.createOrReplaceTempView("stored")
    merged = session.sql("select hush_merge_agg(t) as t from stored").collect()[0]["t"]
    total = hs.load_tally(io.BytesIO(merged), encryption_key=KEY)
    assert counts(total) == counts(empty().add(points(rows)))

    function = total.release(epsilon=1.0)
    function.save(tmp_path / "f.hush")
    query = f"select a, b, hush_query('{tmp_path / 'f.hush'}', nullif(a, 0), b) as f from town"
    answers = session.sql(query).collect()
    known = [row for row in answers if row["a"] != 0.0]
    np.testing.assert_array_equal([row["f"] for row in known], function(points(known)))
    assert [row["f"] for row in answers if row["a"] == 0.0] == [None]


def test_sources_are_checked() -> None:
    with pytest.raises(UsageError, match="source must be files or a DataFrame"):
        engine.tally(1, empty())
    with pytest.raises(UsageError, match="columns must name columns of the DataFrame, got 'b'"):
        engine.tally(spark_session().sql("select 1.0 as a"), empty())
    with pytest.raises(UsageError, match="checkpoint is not for Spark"):
        engine.tally(spark_session().sql("select 1.0 as a"), empty(), checkpoint="x")
    with pytest.raises(TypeError, match="colums"):
        engine.tally(spark_session().sql("select 1.0 as a"), empty(), colums=["a"])  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="encryption_key and tally need each other"):
        engine.register(spark_session(), empty())


def test_the_command_line_uses_it(tmp_path: Path) -> None:
    session, files = spark_session(), write_files(tmp_path)
    tally_records(
        RecordFiles(tuple(files), ("a", "b")),
        str(tmp_path / "x.tally"),
        kernel=KernelSpec(kernel="euclidean", bandwidth=1.0),
        size=TableSpec(rows=12, width=40),
        engine=EngineChoice("spark", address="local[2]"),
    )
    assert session.sql("select 1 as a").collect()[0]["a"] == 1, "a session that was active is left running"
    expected = hs.race(hs.EuclideanKernel(2, 1.0), rows=12, width=40, columns=["a", "b"])
    assert counts(hs.load_tally(tmp_path / "x.tally")) == counts(one_process(files, expected))
    for wrong, part in (({"address": None}, "address"), ({"workers": 2}, "workers")):
        with pytest.raises(UsageError, match=part):
            tally_records(
                RecordFiles(tuple(files), ("a", "b")),
                str(tmp_path / "y.tally"),
                kernel=KernelSpec(bandwidth=1.0),
                engine=EngineChoice("spark", **wrong),
            )
