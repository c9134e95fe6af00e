"""Released functions from a path or from standard input."""

from __future__ import annotations

import sys

from hushsum.jobs.file_places import STANDARD
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function


def open_function(source: str) -> ReleasedFunction:
    """The function in a ``.hush`` file; ``"-"`` reads it from standard input."""
    return load_function(sys.stdin.buffer if source == STANDARD else source)
