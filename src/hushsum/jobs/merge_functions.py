"""Add the released functions of several sites: values and variances add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.errors import UsageError
from hushsum.federated.merge_releases import merge
from hushsum.files.container import FileKind
from hushsum.jobs.output_files import check_function_output, kind_of, refuse_repeated
from hushsum.releases.load import load_function
from hushsum.releases.noisy_table import NoisyTable


@dataclass(frozen=True, slots=True)
class FunctionsMerged:
    """The file of merged functions, and what it holds."""

    file: str
    function: NoisyTable

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"file": self.file, "claim": self.function.claim.in_numbers()}


def are_functions(paths: Sequence[str]) -> bool:
    """Whether the files are released functions, rather than tallies.

    Raises
    ------
    UsageError
        if some are and some are not.
    """
    released = {kind_of(Path(path)) is FileKind.RELEASED for path in paths}
    if len(released) > 1:
        raise UsageError(
            rule="tallies merge with tallies, and released functions with released functions",
            got="both",
            remedy="release the tallies first",
        )
    return released == {True}


def merge_functions(paths: Sequence[str], output: str, *, disjoint_units: bool = False) -> FunctionsMerged:
    """Write the sum of released functions; see `hushsum.federated.merge_releases.merge`."""
    refuse_repeated(paths)
    path = check_function_output(output, inputs=paths)
    function = merge(*(load_function(each) for each in paths), disjoint_units=disjoint_units)
    function.save(path)
    return FunctionsMerged(output, function)
