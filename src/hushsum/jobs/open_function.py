"""Released functions from a path or from standard input."""

from __future__ import annotations

import sys

from hushsum.errors import UsageError
from hushsum.jobs.file_places import STANDARD
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function
from hushsum.releases.noisy_table import NoisyTable


def open_function(source: str) -> NoisyTable:
    """The function in a ``.hush`` file; ``"-"`` reads it from standard input."""
    return as_table(load_function(sys.stdin.buffer if source == STANDARD else source))


def as_table(function: ReleasedFunction) -> NoisyTable:
    """A released function as the table it is, for what only tables can tell."""
    if not isinstance(function, NoisyTable):
        raise UsageError(
            f"this needs a function released as a table, got {type(function).__name__}; give another"
        )
    return function


def dimension(function: ReleasedFunction) -> int | None:
    """How many numbers a query has; None for a function of sets."""
    return function.kernel.dim
