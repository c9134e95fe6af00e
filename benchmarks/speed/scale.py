"""A model of large counts: its constants, measured here, its predictions, and simulations.

`benchmarks.speed.scale` compares it with an engine and writes docs/explanation/scale.md. Everything is
processor time, because the machine that measures may do other work. Constants are measured on parts of a job;
what is predicted are whole jobs of an engine, which no constant was fitted to.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.speed.engine_speed import DIM, WIDTH, TreeTime, empty, timed, write_file
from benchmarks.writer import ROOT, Results

from hushsum.engines import processes
from hushsum.engines._counting import PARTS_PER_WORKER, JobKey, seal_part
from hushsum.records import open_batches
from hushsum.tally import tally_as_message, tally_from_bytes

CONSTANTS = Results("scale")
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
    sending = _spent(lambda: seal_part(key.public, "part", [tally_as_message(tally)])) / cells
    sealed = seal_part(key.public, "part", [tally_as_message(tally)])

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


PAGE = ROOT / "docs" / "explanation" / "scale.md"


def compare(constants: Constants) -> Iterator[str]:
    """Predicted and measured processor time of whole jobs of processes."""
    yield "| records | rows | workers | predicted, s | measured, s | measured / predicted |"
    yield "|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for records, rows in ((1_000_000, 200), (4_000_000, 1000)):
            path = str(Path(folder) / f"{records}.parquet")
            write_file(path, records)
            for workers in (1, 2):
                predicted = predict(Job(records, DIM, rows, WIDTH, workers), constants).work
                count = partial(processes.tally, [path], empty(rows), workers=workers, threads=1)
                spent = timed(count)[0].processor
                yield (
                    f"| {records:,} | {rows:,} | {workers} | {predicted:.1f} | {spent:.1f} "
                    f"| {spent / predicted:.2f} |"
                )


def measured(constants: Constants) -> Iterator[str]:
    """The terms of the model with their constants."""

    def nanoseconds(value: float) -> str:
        return f"{value * 1e9:.2g} ns"

    yield "| what | who | processor time | measured here |"
    yield "|---|---|---|---|"
    yield (
        f"| decode Parquet, and convert to rows | workers | N·d·a | a = {nanoseconds(constants.decode)} "
        "per number |"
    )
    yield (
        f"| hash and count | workers | N·R·b | b = {nanoseconds(constants.count)} per record and row "
        f"({DIM} columns, W = {WIDTH:,}) |"
    )
    yield f"| seal a partial tally | workers | P·R·W·s | s = {nanoseconds(constants.send)} per cell |"
    yield f"| open, read and add it | driver | P·R·W·m | m = {nanoseconds(constants.merge)} per cell |"
    yield f"| start | each worker | t₀ | {constants.start:.1f} s |"


def table(constants: Constants) -> Iterator[str]:
    """Large jobs, and how many workers help."""
    heads = "records | workers | model | simulated | 2 % of parts lost | core-hours | traffic"
    yield f"| {heads} | the driver alone |"
    yield "|---|---|---|---|---|---|---|---|"
    for power in (9, 10, 11, 12):
        for workers in (10, 100, 1000):
            job = _large(10.0**power, workers)
            found = predict(job, constants)
            plain, faulty = (simulate(job, constants, deaths=each) for each in (0.0, 0.02))
            yield (
                f"| {_ten_to(power)} | {workers:,} | {_words(found.wall)} | {_words(plain)} "
                f"| {_words(faulty)} | {found.work / 3600:,.1f} | {found.traffic / 1e9:.2g} GB "
                f"| {_words(found.driver)} |"
            )
    few, many = (_useful_workers(10.0**power, constants) for power in (9, 11))
    yield ""
    yield (
        f"Workers help until the driver is the limit, at about k = √(N·(d·a + R·b)/(4·R·W·m)), where m is at "
        f"least the {8e9 / NETWORK:.1f} ns that the network takes for a cell: {few:,} for "
        f"{_ten_to(9)} records, {many:,} for {_ten_to(11)}."
    )


def _large(records: float, workers: int) -> Job:
    return Job(records, 10, 1000, 1000, workers)


def _useful_workers(records: float, constants: Constants) -> int:
    job = _large(records, 1)
    counted = records * (job.numbers * constants.decode + job.rows * constants.count)
    merged = PARTS_PER_WORKER * max(job.rows * job.width * constants.merge, job.table_bytes / NETWORK)
    workers = sqrt(counted / merged)
    return round(workers / 10) * 10 if workers < 1000 else round(workers / 100) * 100


def _ten_to(power: int) -> str:
    return "10" + str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def write_block(name: str, lines: Iterator[str]) -> None:
    """Replace one of the generated blocks of the page."""
    begin = f"<!-- {name}: written by python -m benchmarks scale -->\n"
    end = f"<!-- end of {name} -->\n"
    before, rest = PAGE.read_text().split(begin)
    text = "\n".join(lines) + "\n"
    print(text)
    PAGE.write_text(before + begin + text + end + rest.split(end)[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--simulate", action="store_true", help="with the stored constants, without measuring"
    )
    if not parser.parse_args().simulate:
        constants = measure()
        CONSTANTS.write(asdict(constants))
        write_block("check", compare(constants))
    constants = Constants(**CONSTANTS.read())
    write_block("constants", measured(constants))
    write_block("simulation", table(constants))


if __name__ == "__main__":
    main()
