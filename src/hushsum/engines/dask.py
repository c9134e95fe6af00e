"""Dask: files, dataframes, bags and delayed objects counted by the workers of a cluster."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Unpack
from uuid import uuid4

from hushsum.errors import DataRefused, Parameter, UsageError
from hushsum.kernels import positive_integer, thread_count
from hushsum.records import pyarrow
from hushsum.tally import Tally

from ._counting import (
    CountingTask,
    CountKeywords,
    CountOptions,
    Driver,
    NamedBatch,
    Part,
    check_columns,
    columns_without_cap,
    count_files,
    lost,
)

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster


_MOST_WORKERS: Final = 1024
_LONGEST_START_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05
_ENVIRONMENT: Final = "distributed.nanny.pre-spawn-environ"
_TRIM: Final = "MALLOC_TRIM_THRESHOLD_"
# Without a profiler, which looks at the stack of a worker 100 times per second, and with a check of the event
# loops once per second instead of 50 times.
_SETTINGS: Final[dict[str, Any]] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
}


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address.

    Raises
    ------
    UsageError
        if no scheduler answers there in the time that Dask's settings give it, 30 seconds by default.
    """
    from distributed import Client

    try:
        client = Client(address, set_as_default=False)
    except Exception:
        # What a server that is not Dask's sends is taken for a length, which may be more than the memory.
        raise UsageError(
            "address", "must be that of a Dask scheduler", got=address, remedy="check that it runs"
        ) from None
    with client:
        yield client


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[Client]:
    """A client of a new cluster of this machine, which ends with the block.

    Its workers are processes of one thread. Dask's profiler is off, and memory that is freed is kept for the
    next batch: by default Dask makes the allocator of a worker return it to the system at once, and every
    batch then begins with page faults. Both matter in counts, which run one function for minutes.

    Parameters
    ----------
    workers : int, optional
        By default the cores that this process may use.
    """
    import dask
    from distributed import Client, LocalCluster

    many = (
        thread_count(None) if workers is None else positive_integer("workers", workers, at_most=_MOST_WORKERS)
    )
    environment = {name: value for name, value in dask.config.get(_ENVIRONMENT).items() if name != _TRIM}
    with (
        dask.config.set({**_SETTINGS, _ENVIRONMENT: environment}),
        LocalCluster(n_workers=many, threads_per_worker=1, dashboard_address=":0") as cluster,
        settled(cluster),
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def settled(cluster: LocalCluster) -> Iterator[None]:
    """A block at whose end none of the cluster's workers is being started.

    Dask starts workers again that were killed, and fails to close one whose process does not exist yet. That
    failure would hide why the count was refused.
    """
    from distributed.core import Status

    try:
        yield
    finally:
        until = time.monotonic() + _LONGEST_START_SECONDS
        while time.monotonic() < until:
            processes = [getattr(each, "process", None) for each in cluster.workers.values()]
            if not any(each is not None and each.status is Status.starting for each in processes):
                break
            time.sleep(_POLL_SECONDS)


@contextmanager
def chosen_client(client: Client | None) -> Iterator[Client]:
    """The given client, the current one, or that of a local cluster which ends with the block.

    Raises
    ------
    UsageError
        if it is asynchronous.
    """
    from distributed import default_client

    if client is None:
        try:
            client = default_client()
        except ValueError:
            with local_cluster() as own:
                yield own
            return
    if client.asynchronous:
        raise UsageError("client", "must not be asynchronous", remedy="make a plain one")
    yield client


_SECONDS_BETWEEN_REPORTS: Final = 0.2
_SECONDS_BETWEEN_LOOKS: Final = 5.0
# Workers that die are replaced by the cluster, which takes some seconds.
_SECONDS_WITHOUT_WORKERS: Final = 120.0


def tally(
    source: Any, tally: Tally, client: Client | None = None, **keywords: Unpack[CountKeywords]
) -> Tally:
    """Count with the workers of a Dask cluster; the result is that of one process, bit for bit.

    Partial tallies travel to this process encrypted. Every partition is counted once, also if a worker dies
    or Dask repeats a task.

    Parameters
    ----------
    source : list of path-like, dask dataframe, dask bag or list of delayed objects
        Files are read by the workers themselves, which is fastest; they must see them under the same paths.
        The partitions of a bag are lists of records, delayed objects whatever ``tally.add`` takes. A
        partition that is computed again must have the same records.
    tally : Tally
        Empty; it says what is counted, and stays empty. Caps on a person's records need files.
    client : distributed.Client, optional
        By default the current one, or a cluster of this machine's cores that lasts as long as the count.
    columns, unit_column, set_column, cells, checkpoint, checkpoint_every, encryption_key
        As in `hushsum.engines.processes.tally`; all but the columns are for files.
    threads : int, optional
        Of each task; by default one.
    progress : callable, optional
        Called with the fraction that is done; what it raises cancels the count.

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
    if _is_files(source):
        with chosen_client(client) as connection:
            workers = max(1, sum(connection.nthreads().values()))
            return count_files(source, tally, workers, lambda driver, _: _run(driver, connection), options)
    if options.checkpoint is not None:
        raise UsageError("checkpoint", "needs files as the source")
    chosen = columns_without_cap(tally, "a collection of Dask", options.columns)
    if options.unit_column is not None:
        raise UsageError("unit_column", "needs files as the source")
    parts = _partitions(source, chosen)
    driver = Driver(tally, parts, threads=options.threads, progress=options.progress)
    with chosen_client(client) as connection:
        return _run(driver, connection)


def _is_files(source: Any) -> bool:
    if isinstance(source, str | os.PathLike):
        return True
    return isinstance(source, list | tuple) and all(isinstance(each, str | os.PathLike) for each in source)


class _Partition:
    """A partition of a collection; Dask computes it and gives it to `_count_computed`."""

    size = 1

    def __init__(self, number: int, delayed: Any, columns: Sequence[str] | None) -> None:
        self.id = str(number)
        self.name = f"partition {number}"
        self.delayed = delayed
        self.columns = None if columns is None else list(columns)


def _partitions(source: Any, columns: Sequence[str] | None) -> list[_Partition]:
    from dask.delayed import Delayed

    if hasattr(source, "to_delayed"):
        delayed = list(source.to_delayed())
    elif isinstance(source, list | tuple) and all(isinstance(each, Delayed) for each in source):
        delayed = list(source)
    else:
        raise UsageError(
            "source",
            "must be files, a dask dataframe, a dask bag or a list of delayed objects",
            got=type(source).__name__,
        )
    return [_Partition(number, each, columns) for number, each in enumerate(delayed)]


def _run(driver: Driver, client: Client) -> Tally:
    job = uuid4().hex
    waiting: dict[Future, Part] = {}
    # Filled by a thread of the client, so that nothing has to ask for what is done.
    done: queue.Queue[Future] = queue.Queue()
    looked = alive = time.monotonic()
    try:
        for part in driver.waiting:
            future = _submit(client, driver.task, part, f"hushsum-{job}-{part.id}")
            waiting[future] = part
            future.add_done_callback(done.put)
        while waiting:
            driver.report()
            try:
                future = done.get(timeout=_SECONDS_BETWEEN_REPORTS)
            except queue.Empty:
                if time.monotonic() - looked > _SECONDS_BETWEEN_LOOKS:
                    looked = time.monotonic()
                    alive = _alive(client, alive)
                continue
            part = waiting.pop(future)
            driver.receive(part.id, _result(future, part))
            future.release()
        driver.report()
    finally:
        client.cancel(list(waiting))
    return driver.finish()


def _alive(client: Client, alive: float) -> float:
    """When the cluster last had workers, by the clock; refuses the job if that is too long ago."""
    now = time.monotonic()
    if client.nthreads():
        return now
    if now - alive > _SECONDS_WITHOUT_WORKERS:
        raise DataRefused(
            "the cluster must have workers until everything is counted",
            got="none for a while",
            remedy="look into the logs of the cluster, and count again",
        )
    return alive


def _submit(client: Client, task: CountingTask, part: Part, key: str) -> Future:
    if not isinstance(part, _Partition):
        return client.submit(CountingTask.count, task, part, key=key, pure=False)
    from dask import delayed

    counted = delayed(_count_computed, pure=False)(
        task, part.id, part.name, part.delayed, part.columns, dask_key_name=key
    )
    return client.compute(counted)


def _result(future: Future, part: Part) -> bytes:
    from distributed import KilledWorker

    try:
        error = future.exception()
        if error is None:
            result: bytes = future.result()
            return result
    except CancelledError:
        raise DataRefused(
            "the scheduler of the cluster must run until everything is counted",
            got="one that ended, or cancelled the count",
            remedy="look into its log, and count again",
        ) from None
    if isinstance(error, KilledWorker):
        raise lost(part.name)
    # The message of an error in the graph of the source may quote records.
    raise DataRefused(
        f"{part.name} could not be computed: {type(error).__name__}", remedy="compute it by itself to see why"
    )


def _count_computed(
    task: CountingTask, id: str, name: str, computed: Any, columns: list[str] | None
) -> bytes:
    def batches() -> Iterator[NamedBatch]:
        table = hasattr(computed, "shape") or hasattr(computed, "num_rows")
        records: Any = computed if table else list(computed)
        if isinstance(records, list) and records and isinstance(records[0], dict):
            records = _of_fields(records, columns)
        if columns is not None and hasattr(records, "columns"):
            check_columns(columns, getattr(records, "column_names", records.columns), "the data")
            records = records.select(columns) if hasattr(records, "num_rows") else records[columns]
        if len(records):
            yield NamedBatch(name, records)

    return task.count_batches(id, name, batches())


def _of_fields(records: list[Any], columns: list[str] | None) -> Any:
    """Records that are dictionaries as a table.

    Without names of columns a record's coordinates are its fields in their order. Arrow takes names and order
    from the first record, which must not decide how the others are read, so all must have the same.
    """
    fields = list(records[0])
    if columns is None and any(not isinstance(each, dict) or list(each) != fields for each in records):
        raise DataRefused(
            "records without names of columns must have the same fields in the same order",
            got="others",
            remedy=("name the columns with ", Parameter("columns")),
        )
    return pyarrow().Table.from_pylist(records)
