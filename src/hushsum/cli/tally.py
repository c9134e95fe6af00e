"""``hushsum tally``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from hushsum.cli import options
from hushsum.cli.interrupts import interruptible_input, signals_at_progress
from hushsum.cli.output import bytes_of, progress_bar, tell, warn, warnings_printed, write_facts, write_json
from hushsum.operations import CheckpointChoice, EdgeColumns, EngineChoice, RecordFiles
from hushsum.planning import KernelSpec, TableSpec

if TYPE_CHECKING:
    from hushsum.operations import TallyWritten


def tally(
    files: options.RecordFiles,
    output: options.TallyOutput,
    records: RecordFiles,
    kernel: KernelSpec,
    size: TableSpec,
    edges: EdgeColumns,
    engine: EngineChoice,
    checkpoint: CheckpointChoice,
    allow_clipping: options.AllowClipping = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    json: options.Json = False,
) -> None:
    """Count private records into a confidential tally, in one pass.

    The output does not depend on the records, except for a warning on standard error if a bound or the
    bandwidth seems to be computed from them. The file is created at the end, and only if all records were
    counted.

    hushsum tally skin.parquet --columns R,G,B --kernel euclidean --bandwidth 5 -o skin.tally

    hushsum tally graph.txt.gz --edges 1,2 --kernel jaccard -o graph.tally
    """
    from hushsum.kernels import bandwidth_warnings
    from hushsum.operations import STANDARD, read_key, tally_records
    from hushsum.records import clipping_allowed

    graph, place = edges.given(), checkpoint.given()
    sets = records.set_column is not None or graph is not None
    piped = interruptible_input() if STANDARD in files else nullcontext()
    kept = nullcontext() if place is None else _kept(place)
    counting = progress_bar("counting", size=bytes_of(files))
    with warnings_printed(), clipping_allowed(allow_clipping), piped, kept, counting as progress:
        written = tally_records(
            replace(records, paths=tuple(files), edges=graph),
            output,
            kernel=kernel.for_records(method=size.method, sets=sets, rows=size.rows, width=size.width),
            size=size,
            threads=threads,
            encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
            progress=progress,
            engine=engine.given(),
            checkpoint=place,
        )
    for sentence in bandwidth_warnings(written.kernel, written.bounds):
        warn(sentence)
    write_json(written.as_json()) if json else write_tally(written)


@contextmanager
def _kept(checkpoint: CheckpointChoice) -> Iterator[None]:
    """Let a signal end the count after a batch, when the checkpoint can be written."""
    try:
        with signals_at_progress():
            yield
    except (KeyboardInterrupt, SystemExit):
        if os.path.exists(checkpoint.path):
            tell(f"the count so far is in {checkpoint.path}; the same command continues it")
        raise


def write_tally(written: TallyWritten) -> None:
    """Print what is public of a tally that was written."""
    from hushsum.kernels import kernel_in_words
    from hushsum.records import bounds_in_words, names_in_words

    columns = written.columns
    write_facts(
        [
            ("tally", f"{written.output} (CONFIDENTIAL{', encrypted' if written.encrypted else ''})"),
            *([] if columns is None else [("columns", names_in_words(columns))]),
            ("kernel", kernel_in_words(written.kernel)),
            ("bounds", bounds_in_words(written.bounds)),
            ("table", f"{written.basis}, {written.rows} × {written.width}"),
            *([] if written.graph is None else [("graph", written.graph)]),
            ("unit", written.unit_in_words),
            ("fingerprint", written.fingerprint),
        ]
    )
