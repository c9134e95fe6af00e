"""``hushsum merge``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import progress_bar, write_json
from hushsum.cli.tally import write_tally


def merge(
    tallies: Annotated[list[str], typer.Argument(metavar="TALLY...", help="Two or more .tally files.")],
    output: options.TallyOutput,
    disjoint_units: Annotated[
        bool,
        typer.Option(
            "--disjoint-units",
            help="Declare that no person (of graphs: no edge or no node) is in two tallies, else limits add.",
        ),
    ] = False,
    encryption_key_file: options.EncryptionKeyFile = None,
    json: options.Json = False,
) -> None:
    """Add tallies of different records exactly. They must have the same fingerprint.

    hushsum merge a.tally b.tally -o all.tally
    """
    from hushsum.jobs.merge_tallies import merge_tallies
    from hushsum.jobs.output_files import read_key

    with progress_bar("merging") as progress:
        written = merge_tallies(
            tallies,
            output,
            disjoint_units=disjoint_units,
            encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
            progress=progress,
        )
    write_json(written.as_json()) if json else write_tally(written)
