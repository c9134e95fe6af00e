"""The engines under test, each called with a list of files."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import pytest

from hushsum.engines import processes
from hushsum.tally import Tally
from tests.conftest import has_java
from tests.engine_files import read_tables


@dataclass(frozen=True)
class Engine:
    name: str
    run: Callable[..., Tally]
    needs: tuple[str, ...] = ()
    reads_files: bool = True
    """Whether it opens the files itself."""
    takes_caps: bool = True
    slow: bool = False

    @property
    def marks(self) -> list[pytest.MarkDecorator]:
        """Of its tests: whether they are slow, and whether they need a cluster."""
        cluster = {"distributed", "pyspark"} & set(self.needs)
        return [pytest.mark.slow] * self.slow + [pytest.mark.cluster] * bool(cluster)

    def tally(self, files: list[str], tally: Tally, **columns: Any) -> Tally:
        return self.run(files, tally, **columns)

    def skip_if_missing(self) -> None:
        for package in self.needs:
            if package == "java" and not has_java():
                pytest.skip("no Java 17 is installed")
            if package != "java" and importlib.util.find_spec(package) is None:
                pytest.skip(f"{package} is not installed")


def by_processes(files: list[str], tally: Tally, **columns: Any) -> Tally:
    return processes.tally(files, tally, workers=2, **columns)


@contextmanager
def dask_cluster() -> Iterator[Any]:
    """A client of two worker processes, for tests that kill them."""
    import distributed

    from hushsum.engines.dask import settled

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        settled(cluster),
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@cache
def dask_client() -> Any:
    """One cluster of two worker processes for all tests of this process.

    Tests that kill workers have their own: on a busy machine Dask may give up starting new ones.
    """
    opened = ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(dask_cluster())


def by_dask(files: list[str], tally: Tally, **columns: Any) -> Tally:
    from hushsum.engines import dask

    return dask.tally(files, tally, dask_client(), **columns)


def by_dask_frames(files: list[str], tally: Tally, **columns: Any) -> Tally:
    import dask.dataframe

    from hushsum.engines import dask as engine

    frames = [dask.dataframe.from_pandas(each.to_pandas(), npartitions=3) for each in read_tables(files)]
    return engine.tally(dask.dataframe.concat(frames), tally, dask_client(), **columns)


def by_duckdb(files: list[str], tally: Tally, unit_column: str | None = None) -> Tally:
    import duckdb

    from hushsum.engines import duckdb as engine

    with duckdb.connect() as connection:
        for number, table in enumerate(read_tables(files)):
            connection.register(f"t{number}", table)
        parts = [f"select * from t{number}" for number in range(len(files))]
        return engine.tally(" union all by name ".join(parts), tally, connection=connection)


@cache
def spark_session() -> Any:
    """One session with two workers for all tests of this process.

    Most of the time of these tests is the start of Java, so it does not optimise what it compiles.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "2",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2,2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session


def by_spark(files: list[str], tally: Tally, **columns: Any) -> Tally:
    from hushsum.engines import spark

    return spark.tally(files, tally, spark_session(), **columns)


def by_spark_frames(files: list[str], tally: Tally, **columns: Any) -> Tally:
    from hushsum.engines import spark

    session = spark_session()
    frames = [session.createDataFrame(each) for each in read_tables(files)]
    return spark.tally(
        reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames), tally, **columns
    )


ENGINES = [
    Engine("processes", by_processes),
    Engine("dask", by_dask, ("distributed",)),
    Engine("dask dataframes", by_dask_frames, ("distributed",), reads_files=False, takes_caps=False),
    Engine("spark", by_spark, ("pyspark", "java")),
    Engine(
        "spark dataframes",
        by_spark_frames,
        ("pyspark", "java"),
        reads_files=False,
        takes_caps=False,
        slow=True,
    ),
    Engine("duckdb", by_duckdb, ("duckdb",), reads_files=False, takes_caps=False),
]
