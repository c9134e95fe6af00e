"""Add the tallies of several sites, days or machines."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.errors import UsageError
from hushsum.jobs.output_files import check_tally_output, refuse_repeated
from hushsum.jobs.progress import Progress
from hushsum.jobs.tally_records import TallyWritten
from hushsum.tally.file import load_tally


def merge_tallies(
    paths: Sequence[str],
    output: str,
    *,
    disjoint_units: bool = False,
    encryption_key: bytes | None = None,
    progress: Progress | None = None,
) -> TallyWritten:
    """Write the exact sum of tallies; one is held in memory besides the sum.

    Parameters
    ----------
    disjoint_units : bool
        Declares that no person is in two of them, so that the caps on a person's records do not add up.
    encryption_key : bytes, optional
        Opens the encrypted ones, and encrypts the output.

    Raises
    ------
    UsageError
        if a file is named twice: its records would count twice, which no claim covers.
    IncompatibleTallies
        if two fingerprints differ; nothing is written.
    """
    if len(paths) < 2:
        raise UsageError(
            parameter="tallies",
            rule="must be at least two",
            got=len(paths),
            remedy="name them all",
        )
    refuse_repeated(paths)
    path = check_tally_output(output)
    total = load_tally(paths[0], encryption_key=encryption_key)
    for done, each in enumerate(paths[1:], start=1):
        if progress is not None:
            progress(done / len(paths))
        total.merge(load_tally(each, encryption_key=encryption_key), disjoint_units=disjoint_units)
    total.save(path, encryption_key=encryption_key)
    return TallyWritten.of(total, path, encrypted=encryption_key is not None)
