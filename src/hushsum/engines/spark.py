"""Spark: files and DataFrames counted by executors, and tallies and released functions in SQL."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from hushsum.errors import DataRefused, Parameter, UsageError
from hushsum.records import pyarrow, quietly
from hushsum.tally import Tally, TallyPattern, load_tally, save_tally

from ._counting import (
    PARTS_PER_WORKER,
    CountingTask,
    CountKeywords,
    CountOptions,
    Driver,
    FilePart,
    NamedBatch,
    check_columns,
    columns_without_cap,
    count_files,
)
from ._sql_functions import Of, answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RESULT = "id string, sealed binary"


def tally(
    source: Any, tally: Tally, spark: SparkSession | None = None, **keywords: Unpack[CountKeywords]
) -> Tally:
    """Count with the executors of Spark; the result is that of one process, bit for bit.

    One Spark job is run, once. Each of its partitions becomes one partial tally, a BINARY value that is
    encrypted for this process. Spark keeps one result of
    a task that it repeats or runs twice. The partial tallies of all partitions must fit into
    ``spark.driver.maxResultSize``; there are at most four for each core of the executors.

    Parameters
    ----------
    source : list of path-like, or pyspark.sql.DataFrame
        Files are read by the executors themselves, a few row groups each, which is fastest; they must see
        them under the same paths. The rows of a DataFrame pass through Arrow batches; a partition that is
        computed again must have the same ones.
    tally : Tally
        Empty; it says what is counted, and stays empty. Caps on a person's records need files.
    spark : SparkSession, optional
        By default that of the DataFrame, or the active one.
    columns, unit_column, set_column, cells
        As in `hushsum.engines.processes.tally`; all but the columns are for files.
    threads : int, optional
        Of each task; by default one.
    progress : callable, optional
        Called with the fraction that is done, before and after the Spark job.

    Returns
    -------
    Tally
        A new one with all records.

    Raises
    ------
    UsageError, DataRefused
        a wrong parameter, or a file or partition that cannot be counted, by name; there is no tally of the
        others.
    """
    options = CountOptions(**keywords)
    if options.checkpoint is not None:
        raise UsageError("checkpoint", "is not for Spark", remedy="count with processes or Dask")
    if isinstance(source, str | os.PathLike | list | tuple):
        session = _session(spark)

        def run(driver: Driver, parts: list[FilePart]) -> Tally:
            numbers = session.range(0, len(parts), 1, len(parts))
            return _run(driver, numbers.mapInArrow(_counting_files(driver.task, parts), _RESULT))

        return count_files(source, tally, _parallelism(session), run, options)
    if not hasattr(source, "mapInArrow"):
        raise UsageError("source", "must be files or a DataFrame of Spark", got=type(source).__name__)
    chosen = columns_without_cap(tally, "a DataFrame", options.columns)
    frame = source
    if chosen is not None:
        check_columns(chosen, frame.columns, "the DataFrame")
        frame = frame.select(*[f"`{each.replace('`', '``')}`" for each in chosen])
    driver = Driver(tally, threads=options.threads, progress=options.progress)
    # Every partition sends a whole table, so there are not more of them than keep the executors busy.
    frame = frame.coalesce(PARTS_PER_WORKER * _parallelism(spark or frame.sparkSession))
    return _run(driver, frame.mapInArrow(_counting_rows(driver.task), _RESULT))


def _run(driver: Driver, results: DataFrame) -> Tally:
    driver.report()
    remedy = "evaluate it by itself to see why"
    for row in quietly(
        results.collect, lambda kind: DataRefused(f"the source could not be evaluated: {kind}", remedy=remedy)
    ):
        driver.receive(row["id"], bytes(row["sealed"]))
    driver.report()
    return driver.finish()


def _counting_files(task: CountingTask, parts: Sequence[Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def count(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _result(parts[number].id, task.count(parts[number]))

    return count


def _counting_rows(task: CountingTask) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def count(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        id = str(TaskContext.get().partitionId())
        name = f"partition {id}"
        filled = (NamedBatch(name, batch) for batch in batches if batch.num_rows)
        yield _result(id, task.count_batches(id, name, filled))

    return count


def _result(id: str, sealed: bytes) -> Any:
    return pyarrow().RecordBatch.from_pydict({"id": [id], "sealed": [sealed]})


@contextmanager
def connected(master: str) -> Iterator[SparkSession]:
    """A session of the master at an address, such as ``spark://host:7077``, ``yarn`` or ``local[4]``; the
    active one if there is one, which is then left running.

    Raises
    ------
    UsageError
        if no session can be started there.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    refusal = UsageError(
        "address",
        "must be the master URL of Spark, which needs Java",
        got="one at which no session could be started",
        remedy="check that it runs, and that Java 17 or later is installed",
    )
    builder = SparkSession.builder.master(master).appName("hushsum")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    # Messages of Java are long, and may show the environment.
    session = quietly(builder.getOrCreate, lambda _: refusal)
    quietly(lambda: session.sparkContext.setLogLevel("OFF"), lambda _: refusal)
    try:
        yield session
    finally:
        session.stop()


def _session(spark: SparkSession | None) -> SparkSession:
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession() if spark is None else spark
    if found is None:
        raise UsageError("spark", "must be given", got="no active session", remedy="start one")
    return found


def _parallelism(spark: SparkSession) -> int:
    return max(1, int(spark.sparkContext.defaultParallelism))


def register(
    spark: SparkSession, tally: Tally | None = None, *, encryption_key: bytes | None = None, of: Of = "mean"
) -> None:
    """Add functions to the SQL of a session.

    ``hush_query(file, columns...)`` answers a query of the released function in a ``.hush`` file for each
    row, and NULL for a row with a NULL; this costs no privacy. With ``tally`` and ``encryption_key`` there
    are also two aggregate functions, which return BINARY values: ``hush_tally_agg(columns...)``, the
    encrypted tally of the rows of a group, and ``hush_merge_agg(tally)``, the sum of such values.
    ``hs.load_tally(io.BytesIO(value), encryption_key=...)`` opens them.

    A group is counted by one executor, in whose memory its rows must fit: for large groups use `tally`. SQL
    is lazy, so store the values before they are merged: a query that is evaluated twice gives two tallies of
    the same rows, and the sum of both would count them twice.

    Parameters
    ----------
    spark : SparkSession
    tally : Tally, optional
        Empty; what ``hush_tally_agg`` counts.
    encryption_key : bytes, optional
        32 bytes. The executors need the key, so it is sent to them with the query.
    of : {"mean", "sum"}
        What ``hush_query`` returns: mean kernel values f(q)/N, or kernel sums f(q).
    """
    from pyspark.sql.functions import arrow_udf

    column = pyarrow().Array

    def hush_query(file: Any, *columns: Any) -> Any:
        return answers(file, columns, of=of)

    # Spark tells by the types whether a function is one of rows or of groups.
    hush_query.__annotations__ = {"file": column, "columns": column, "return": column}
    spark.udf.register("hush_query", arrow_udf(hush_query, "double"))
    if (tally is None) != (encryption_key is None):
        raise UsageError("encryption_key", ("and ", Parameter("tally"), " need each other"), got="one")
    if tally is None or encryption_key is None:
        return
    pattern, names, key = TallyPattern.of(tally), tally.basis.columns, encryption_key
    columns_without_cap(tally, "a group", None)
    save_tally(tally, io.BytesIO(), encryption_key=key)

    def hush_tally_agg(*columns: Any) -> bytes:
        filled = pattern.empty()
        listed = names or [f"column {number}" for number in range(len(columns))]
        records = columns[0] if len(columns) == 1 and names is None else _table(columns, listed)
        if len(columns[0]):
            filled.add(records, threads=1, allow_clipping=True)
        return _encrypted(filled, key)

    def hush_merge_agg(tallies: Any) -> bytes:
        total = pattern.empty()
        for each in tallies.to_pylist():
            if each is not None:
                total.merge(load_tally(io.BytesIO(each), encryption_key=key))
        return _encrypted(total, key)

    hush_tally_agg.__annotations__ = {"columns": column, "return": bytes}
    hush_merge_agg.__annotations__ = {"tallies": column, "return": bytes}
    spark.udf.register("hush_tally_agg", arrow_udf(hush_tally_agg, "binary"))
    spark.udf.register("hush_merge_agg", arrow_udf(hush_merge_agg, "binary"))


def _table(columns: Sequence[Any], names: Sequence[str]) -> Any:
    if len(columns) != len(names):
        raise UsageError("columns", f"must be those of the tally: {', '.join(names)}", got=len(columns))
    return pyarrow().table(dict(zip(names, columns, strict=True)))


def _encrypted(tally: Tally, key: bytes) -> bytes:
    stream = io.BytesIO()
    save_tally(tally, stream, encryption_key=key)
    return stream.getvalue()
