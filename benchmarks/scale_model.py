"""A model of large counts: its constants, measured here; its predictions for engines; and simulations.

    python -m benchmarks.scale_model             measures, and compares with the engine of processes
    python -m benchmarks.scale_model --simulate  the table of docs/explanation/scale.md, from stored constants

Everything is processor time, because the machine that measures may do other work. Constants are measured on
parts of a job; what is predicted are whole jobs of an engine with one and two workers, which no constant was
fitted to.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.engine_speed import DIM, ROWS, WIDTH, empty, timed, write_file
from benchmarks.process_tree_time import TreeTime

from hushsum.engines import processes
from hushsum.engines.file_parts import PARTS_PER_WORKER
from hushsum.engines.partial_tally_encryption import JobKey, seal
from hushsum.records import open_batches
from hushsum.tally.tally_messages import tally_as_pieces, tally_from_bytes

CONSTANTS = Path(__file__).parent / "results" / "scale_constants.json"
_RECORDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds of processor time; ``cell`` costs are for 8 bytes."""

    decode: float
    """Of one number of a record, from Parquet."""

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


def predict(job: Job, constants: Constants, *, network: float = 1.25e9) -> Prediction:
    """The model: work that is divided, plus what the driver does alone.

    A part costs its records' share and one table to send. The driver receives all tables through one network
    link and adds them while workers count; only if that takes longer than counting does it add to the time.
    """
    cells = job.rows * job.width
    counted = job.records * (job.numbers * constants.decode + job.rows * constants.count)
    sent = job.parts * cells * constants.send
    merged = job.parts * max(cells * constants.merge, job.table_bytes / network)
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
    add = max(cells * constants.merge, job.table_bytes / 1.25e9)
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
        tally = empty(ROWS)
        batches = [batch for batch, _ in open_batches(path)]
        start = time.process_time()
        for batch in batches:
            tally.add(batch, threads=1)
        counting = (time.process_time() - start) / (_RECORDS * ROWS)
    key, cells = JobKey(), ROWS * WIDTH
    start = time.process_time()
    for _ in range(5):
        sealed = seal(key.public, "part", tally_as_pieces(tally))
    sending = (time.process_time() - start) / (5 * cells)
    total = empty(ROWS)
    start = time.process_time()
    for _ in range(5):
        total._table += tally_from_bytes(key.open("part", sealed))._table
    merging = (time.process_time() - start) / (5 * cells)
    return Constants(decoding, counting, sending, merging, _start_up())


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


def compare(constants: Constants) -> Iterator[str]:
    """Predicted and measured processor time of whole jobs of processes."""
    yield "| records | rows | workers | predicted, s | measured, s | ratio |"
    yield "|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for records, rows in ((500_000, 200), (2_000_000, 400)):
            path = str(Path(folder) / f"{records}.parquet")
            write_file(path, records)
            for workers in (1, 2):
                job = Job(records, DIM, rows, WIDTH, workers)
                predicted = predict(job, constants).work
                pattern = empty(rows)
                spent = timed(partial(processes.tally, [path], pattern, workers=workers, threads=1))[
                    0
                ].processor
                ratio = spent / predicted
                yield f"| {records} | {rows} | {workers} | {predicted:.1f} | {spent:.1f} | {ratio:.2f} |"


def table(constants: Constants) -> Iterator[str]:
    """Large jobs: 10 numbers a record, 1000 × 1000 cells."""
    heads = "records | workers | wall | simulated | 2 % of parts lost | core-hours | traffic | driver"
    yield f"| {heads} |"
    yield "|---|---|---|---|---|---|---|---|"
    for records in (1e9, 1e10, 1e11, 1e12):
        for workers in (10, 100, 1000):
            job = Job(records, 10, 1000, 1000, workers)
            found = predict(job, constants)
            plain, faulty = (simulate(job, constants, deaths=each) for each in (0.0, 0.02))
            yield (
                f"| 10^{int(np.log10(records))} | {workers} | {_words(found.wall)} | {_words(plain)} "
                f"| {_words(faulty)} | {found.work / 3600:,.0f} | {found.traffic / 1e9:.2g} GB "
                f"| {_words(found.driver)} |"
            )


def _words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--simulate", action="store_true", help="with the stored constants, without measuring"
    )
    if not parser.parse_args().simulate:
        constants = measure()
        CONSTANTS.write_text(json.dumps(asdict(constants), indent=1) + "\n")
        print("\n".join(compare(constants)) + "\n")
    constants = Constants(**json.loads(CONSTANTS.read_text()))
    for name, value in asdict(constants).items():
        print(f"{name}: {value:.3g} s", file=sys.stderr)
    print("\n".join(table(constants)))


if __name__ == "__main__":
    main()
