"""A model of large counts: its constants, measured here, its predictions, and simulations.

`benchmarks.scale_page` compares it with an engine and writes docs/explanation/scale.md. Everything is
processor time, because the machine that measures may do other work. Constants are measured on parts of a job;
what is predicted are whole jobs of an engine, which no constant was fitted to.
"""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.engine_speed import DIM, WIDTH, empty, write_file
from benchmarks.process_tree_time import TreeTime

from hushsum.engines import processes
from hushsum.engines.file_parts import PARTS_PER_WORKER
from hushsum.engines.partial_tally_encryption import JobKey, seal
from hushsum.records import open_batches
from hushsum.tally.tally_messages import tally_as_pieces, tally_from_bytes

CONSTANTS = Path(__file__).parent / "results" / "scale_constants.json"
NETWORK = 1.25e9
"""Bytes per second at the driver: 10 Gbit/s."""

_RECORDS = 1_000_000
_FEW_ROWS, _MANY_ROWS = 200, 1000


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds of processor time; ``cell`` costs are for 8 bytes."""

    decode: float
    """Of one number of a record, from Parquet to the rows that are hashed."""

    count: float
    """Of one record and row of the table."""

    send: float
    """Of one cell: a worker encodes and seals it."""

    merge: float
    """Of one cell: the driver opens, reads and adds it."""

    start: float
    """Of a worker: imports, and the process that decodes."""


@dataclass(frozen=True, slots=True)
class Job:
    """A count of ``records`` of ``numbers`` numbers each into rows × width cells, by ``workers`` workers."""

    records: float
    numbers: int
    rows: int
    width: int
    workers: int

    @property
    def parts(self) -> int:
        """Four per worker, as the engines cut files."""
        return PARTS_PER_WORKER * self.workers

    @property
    def table_bytes(self) -> int:
        """Of one partial tally in a message."""
        return 8 * self.rows * self.width


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds and bytes of one job; ``wall`` supposes a core for every worker and one for the driver."""

    work: float
    traffic: float
    driver: float
    wall: float


def predict(job: Job, constants: Constants) -> Prediction:
    """The model: work that is divided, plus what the driver does alone.

    A part costs its records' share and one table to send. The driver receives all tables through one network
    link and adds them while workers count; only if that takes longer than counting does it add to the time.
    """
    cells = job.rows * job.width
    counted = job.records * (job.numbers * constants.decode + job.rows * constants.count)
    sent = job.parts * cells * constants.send
    merged = job.parts * max(cells * constants.merge, job.table_bytes / NETWORK)
    each = (counted + sent) / job.workers
    wall = constants.start + max(each + merged / job.parts, each / PARTS_PER_WORKER + merged)
    work = counted + sent + job.workers * constants.start + job.parts * cells * constants.merge
    return Prediction(work, job.parts * job.table_bytes, merged, wall)


def simulate(
    job: Job, constants: Constants, *, seed: int = 0, deaths: float = 0.0, spread: float = 0.2
) -> float:
    """The wall seconds of one run, part by part.

    Parts take times that vary by ``spread`` (lognormal). A worker dies in a part with probability ``deaths``,
    and the part is counted again. The driver adds one table at a time.
    """
    rng = np.random.default_rng(seed)
    cells = job.rows * job.width
    counted = job.records * (job.numbers * constants.decode + job.rows * constants.count)
    mean = counted / job.parts + cells * constants.send
    add = max(cells * constants.merge, job.table_bytes / NETWORK)
    free = [constants.start] * job.workers
    heapq.heapify(free)
    waiting, arrivals = job.parts, []
    while waiting:
        at = heapq.heappop(free)
        long = mean * float(rng.lognormal(-(spread**2) / 2, spread))
        if rng.random() < deaths:
            heapq.heappush(free, at + long * float(rng.random()) + constants.start)
            continue
        waiting -= 1
        arrivals.append(at + long)
        heapq.heappush(free, at + long)
    driver = 0.0
    for arrival in sorted(arrivals):
        driver = max(driver, arrival) + add
    return driver


def measure() -> Constants:
    """The constants of this machine, in processor time on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "records.parquet")
        write_file(path, _RECORDS)
        decoding = _least(lambda: _decoded(path)) / (_RECORDS * DIM)
        batches = [batch for batch, _ in open_batches(path)]
    few, many = (_counting(batches, rows) / _RECORDS for rows in (_FEW_ROWS, _MANY_ROWS))
    counting = (many - few) / (_MANY_ROWS - _FEW_ROWS)
    converting = max(0.0, few - _FEW_ROWS * counting) / DIM
    tally, total = empty(_MANY_ROWS), empty(_MANY_ROWS)
    tally.add(batches[0], threads=1)
    key, cells = JobKey(), _MANY_ROWS * WIDTH
    sending = _spent(lambda: seal(key.public, "part", tally_as_pieces(tally))) / cells
    sealed = seal(key.public, "part", tally_as_pieces(tally))

    def merge() -> None:
        total._table += tally_from_bytes(key.open("part", sealed))._table

    return Constants(decoding + converting, counting, sending, _spent(merge) / cells, _start_up())


def _counting(batches: Sequence[Any], rows: int) -> float:
    def count() -> None:
        tally = empty(rows)
        for batch in batches:
            tally.add(batch, threads=1)

    return _spent(count)


def _spent(call: Callable[[], object]) -> float:
    """The processor time of this thread, the median of five calls after one that is not timed."""

    def once() -> float:
        start = time.thread_time()
        call()
        return time.thread_time() - start

    return median([once() for _ in range(6)][1:])


def _decoded(path: str) -> None:
    for _ in open_batches(path):
        pass


def _least(call: Callable[[], object]) -> float:
    def once() -> float:
        with TreeTime() as spent:
            call()
        return spent.processor

    return min(once() for _ in range(3))


def _start_up() -> float:
    """What a job of one tiny part costs."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "tiny.parquet")
        write_file(path, 1000)
        return _least(lambda: processes.tally([path], empty(1), workers=1, threads=1))
