"""What a process that was killed leaves in the service's folder, found and deleted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from hushsum.service.logs import say
from hushsum.service.settings import Settings
from hushsum.service.store import Datasets
from hushsum.service.store.store import now

GRACE_SECONDS: Final = 3600.0
"""Younger files may still be on their way. A body brings a mebibyte in less time than this, or is refused."""


def delete_leftovers(settings: Settings, datasets: Datasets) -> int:
    """Delete unfinished files, and uploads and tallies that no table knows; how many there were.

    A function's file is kept, whoever knows it: it is public and paid for, and its job finds it again.
    """
    waiting = {f"{each.id}.{each.format}" for each in datasets.uploads_before(now())}
    tallies = {f"{id}.tally" for id in datasets.tally_ids()}
    left = [path for path in _old(settings.path("uploads")) if path.name not in waiting]
    left += [path for path in _old(settings.path("tallies")) if path.name not in tallies]
    left += [path for path in _old(settings.path("functions")) if path.name.startswith(".")]
    for path in left:
        path.unlink(missing_ok=True)
    if left:
        say("leftovers deleted", number=len(left))
    return len(left)


def _old(folder: Path) -> list[Path]:
    before = time.time() - GRACE_SECONDS
    found = []
    for path in folder.iterdir():
        try:
            if path.stat().st_mtime < before:
                found.append(path)
        except FileNotFoundError:
            continue
    return found
