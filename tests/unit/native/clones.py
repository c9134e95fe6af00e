"""A program run by each clone of the hot loops, which must all print the same digest."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hushsum import _native

CLONES = ("baseline", "v3", "v4")


def digest_of(clone: str, program: str) -> str:
    """What the program prints behind the name of its clone; skips where this machine has no such clone."""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HUSHSUM_FORCE_CLONE": clone, "PYTHONPATH": os.pathsep.join(["", *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    used, digest = run.stdout.split()
    if used != clone:
        pytest.skip(f"this processor or build has no {clone} clone; it runs {_native.clone()}")
    return digest
