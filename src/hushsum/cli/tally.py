"""``hushsum tally`` and ``hushsum merge``: confidential sums of records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import typer

from hushsum.declaration import required, setting
from hushsum.kernels import bandwidth_warnings, kernel_in_words
from hushsum.operations import (
    CheckpointChoice,
    EdgeColumns,
    EngineChoice,
    RecordFiles,
    TallyDescription,
    merge_tallies,
    read_key,
    tally_records,
)
from hushsum.parties import are_functions, merge_functions
from hushsum.planning import KernelSpec, TableSpec
from hushsum.privacy import unit_in_words
from hushsum.records import bounds_in_words, names_in_words

from . import options
from .interrupts import signals_at_progress
from .output import counting, progress_bar, tell, warn, write_facts, write_json, write_result


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
    graph, place = edges.given(), checkpoint.given()
    sets = records.set_column is not None or graph is not None
    kept = nullcontext() if place is None else _kept(place)
    with kept, counting(files, allow_clipping=allow_clipping) as progress:
        written = tally_records(
            replace(records, paths=tuple(files), edges=graph),
            output,
            kernel=kernel.for_records(method=size.method, sets=sets, rows=size.rows, width=size.width),
            size=size,
            threads=threads,
            encryption_key=read_key(encryption_key_file),
            progress=progress,
            engine=engine.given(),
            checkpoint=place,
        )
    for sentence in bandwidth_warnings(written.reading.kernel, written.reading.basis.bounds):
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


def write_tally(described: TallyDescription) -> None:
    """Print what is public of a tally."""
    about, basis = described.as_json(), described.reading.basis
    encrypted = ", encrypted" if about["encrypted"] else ""
    write_facts(
        [
            ("tally", f"{described.path} (CONFIDENTIAL{encrypted})"),
            ("kernel", kernel_in_words(described.reading.kernel)),
            ("columns", "not named" if basis.columns is None else names_in_words(basis.columns)),
            ("bounds", bounds_in_words(basis.bounds)),
            ("table", f"{basis.name}, {about['rows']} × {about['width']}"),
            *([] if about["seed"] is None else [("seed", str(about["seed"]))]),
            *([] if described.graph is None else [("graph", described.graph)]),
            ("unit", unit_in_words(described.unit, described.max_per_unit or 1)),
            ("producer", about["producer"]),
            ("fingerprint", basis.fingerprint),
        ]
    )


def merge(
    tallies: list[str] = typer.Argument(metavar="FILE...", help="Two or more .tally or .hush files."),
    output: str = required("The .tally or .hush file to write."),
    disjoint_units: bool = setting(
        False,
        "Declare that no person (in graphs: no edge or no node) is in two of the tallies; otherwise "
        "limits add.",
    ),
    encryption_key_file: options.EncryptionKeyFile = None,
    json: options.Json = False,
) -> None:
    """Add tallies of different records exactly, or released functions with their noise.

    They must have the same fingerprint. Of released functions values and variances add, and the promises too
    unless --disjoint-units declares that no unit is at two sites. Merging tallies and releasing once needs
    far less noise.

    hushsum merge a.tally b.tally -o all.tally
    """
    if are_functions(tallies):
        merged = merge_functions(tallies, output, disjoint_units=disjoint_units)
        write_result(
            merged, [("function", merged.file), ("claim", merged.function.claim.sentence())], as_json=json
        )
        return
    with progress_bar("merging") as progress:
        written = merge_tallies(
            tallies,
            output,
            disjoint_units=disjoint_units,
            encryption_key=read_key(encryption_key_file),
            progress=progress,
        )
    write_json(written.as_json()) if json else write_tally(written)
