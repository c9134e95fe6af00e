"""``hushsum merge``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import progress_bar, write_json, write_result
from hushsum.cli.tally import write_tally
from hushsum.declaration import common
from hushsum.operations._count import merge_tallies
from hushsum.operations._files import read_key
from hushsum.parties import are_functions, merge_functions


def merge(
    tallies: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Two or more .tally or .hush files.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The .tally or .hush file to write.")],
    disjoint_units: Annotated[
        bool,
        common("Declare that no person (of graphs: no edge or no node) is in two of them, else limits add."),
    ] = False,
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
            encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
            progress=progress,
        )
    write_json(written.as_json()) if json else write_tally(written)
