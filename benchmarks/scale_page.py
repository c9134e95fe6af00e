"""The tables of docs/explanation/scale.md: constants, whole jobs of an engine, and simulations.

python -m benchmarks.scale_page             measures, and compares with the engine of processes
python -m benchmarks.scale_page --simulate  simulates again, with the stored constants
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from math import sqrt
from pathlib import Path

from benchmarks.engine_speed import DIM, WIDTH, empty, timed, write_file
from benchmarks.scale_model import CONSTANTS, NETWORK, Constants, Job, measure, predict, simulate

from hushsum.engines import processes
from hushsum.engines.file_parts import PARTS_PER_WORKER

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "scale.md"


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
    begin = f"<!-- {name}: written by python -m benchmarks.scale_page -->\n"
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
        CONSTANTS.write_text(json.dumps(asdict(constants), indent=1) + "\n")
        write_block("check", compare(constants))
    constants = Constants(**json.loads(CONSTANTS.read_text()))
    write_block("constants", measured(constants))
    write_block("simulation", table(constants))


if __name__ == "__main__":
    main()
