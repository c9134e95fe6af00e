"""JSON files of results that several processes may add to."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def update_file(file: Path, change: Callable[[Any], str]) -> None:
    """Replace a file by what ``change`` makes of its document, or of None, while no other process does.

    The file is replaced in one step, so that a reader never sees half of it.
    """
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
        part = file.with_suffix(".part")
        part.write_text(change(found), encoding="utf-8")
        os.replace(part, file)
