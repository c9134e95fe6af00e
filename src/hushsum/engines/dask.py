"""Dask: files, dataframes, bags and delayed objects counted by the workers of a cluster."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from hushsum.engines.dask_clusters import chosen_client
from hushsum.engines.file_parts import (
    RecordColumns,
    file_facts,
    file_states,
    plan_parts,
    planned_workers,
    refusing_changes,
)
from hushsum.engines.protocol import (
    CountingTask,
    Driver,
    NamedBatch,
    Part,
    Progress,
    ReadablePart,
    lost,
    uncapped,
)
from hushsum.errors import DataRefused, Parameter, UsageError
from hushsum.kernels.parameters import thread_count
from hushsum.records.arrow import pyarrow
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.tally.checkpoint import Checkpoint
from hushsum.tally.tally import Tally

if TYPE_CHECKING:
    from distributed import Client, Future

_SECONDS_BETWEEN_REPORTS: Final = 0.2
_SECONDS_BETWEEN_LOOKS: Final = 5.0
_SECONDS_WITHOUT_WORKERS: Final = 120.0
"""Workers that die are replaced by the cluster, which takes some seconds."""


def tally(
    source: Any,
    tally: Tally,
    client: Client | None = None,
    *,
    columns: Sequence[str] | None = None,
    unit_column: str | None = None,
    set_column: str | None = None,
    cells: CellFormat = PLAIN,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    encryption_key: bytes | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Count with the workers of a Dask cluster; the result is that of one process, bit for bit.

    Partial tallies travel to this process encrypted; see
    :mod:`hushsum.engines.partial_tally_encryption`. Every partition is counted once, also if a worker dies or
    Dask repeats a task.

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
    columns : sequence of str, optional
        The columns of a record, in order; by default those of the tally, or all.
    unit_column, set_column : str, optional
        For files; as in `hushsum.records.open_batches`.
    threads : int, optional
        Of each task; by default one.
    checkpoint, checkpoint_every, encryption_key
        For files; as in `hushsum.engines.processes.tally`.
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
    each = thread_count(1 if threads is None else threads)
    if not _is_files(source):
        for name, value in (("unit_column", unit_column), ("checkpoint", checkpoint)):
            if value is not None and (name != "unit_column" or tally.max_per_unit is None):
                raise UsageError(parameter=name, rule="needs files as the source", remedy="leave it out")
        uncapped(tally, "a collection of Dask")
        chosen = tally.basis.columns if columns is None else tuple(columns)
        driver = Driver(tally, _partitions(source, chosen), threads=each, progress=progress)
        with chosen_client(client) as connection:
            return _run(driver, connection)
    with chosen_client(client) as connection:
        read = RecordColumns(None if columns is None else tuple(columns), unit_column, set_column, cells)
        workers = max(1, sum(connection.nthreads().values()))
        workers = planned_workers(workers, checkpoint, encryption_key)
        parts = plan_parts(source, tally, read, workers=workers)
        states, saved = file_states(parts), None
        if checkpoint is not None:
            facts = {
                **file_facts(parts, states),
                "fingerprint": tally.fingerprint,
                "cap": tally.max_per_unit,
                "workers": workers,
            }
            saved = Checkpoint(checkpoint, facts, seconds=checkpoint_every, encryption_key=encryption_key)
        driver = Driver(tally, parts, threads=each, checkpoint=saved, progress=progress)
        with refusing_changes(states):
            filled = _run(driver, connection)
        if saved is not None:
            saved.remove()
        return filled


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
            parameter="source",
            rule="must be files, a dask dataframe, a dask bag or a list of delayed objects",
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
            rule="the cluster must have workers until everything is counted",
            got="none for a while",
            remedy="look into the logs of the cluster, and count again",
        )
    return alive


def _submit(client: Client, task: CountingTask, part: Part, key: str) -> Future:
    if not isinstance(part, _Partition):
        return client.submit(_count_files, task, part, key=key, pure=False)
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
            rule="the scheduler of the cluster must run until everything is counted",
            got="one that ended, or cancelled the count",
            remedy="look into its log, and count again",
        ) from None
    if isinstance(error, KilledWorker):
        raise lost(part.name)
    # The message of an error in the graph of the source may quote records.
    raise DataRefused(
        rule=f"{part.name} could not be computed: {type(error).__name__}",
        remedy="compute it by itself to see why",
    )


def _count_files(task: CountingTask, part: ReadablePart) -> bytes:
    return task.count(part)


def _count_computed(
    task: CountingTask, id: str, name: str, computed: Any, columns: list[str] | None
) -> bytes:
    def batches() -> Iterator[NamedBatch]:
        table = hasattr(computed, "shape") or hasattr(computed, "num_rows")
        records: Any = computed if table else list(computed)
        if isinstance(records, list) and records and isinstance(records[0], dict):
            records = _of_fields(records, columns)
        if columns is not None and hasattr(records, "columns"):
            missing = [each for each in columns if each not in _names(records)]
            if missing:
                raise UsageError(
                    parameter="columns", rule="must name columns of the data", got=repr(missing[0])
                )
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
            rule="records without names of columns must have the same fields in the same order",
            got="others",
            remedy=("name the columns with ", Parameter("columns")),
        )
    return pyarrow().Table.from_pylist(records)


def _names(records: Any) -> list[str]:
    return list(getattr(records, "column_names", records.columns))
