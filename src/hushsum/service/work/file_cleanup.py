"""Deletes files in the service's folder that no row of the database refers to."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hushsum.service.logs import log_event
from hushsum.service.settings import Settings
from hushsum.service.store import Datasets
from hushsum.service.store.database import now

GRACE_SECONDS: Final = 3600.0
"""Younger files may still be written. A slower upload than a mebibyte in this time is refused."""


def delete_orphaned_files(
    settings: Settings,
    datasets: Datasets,
    is_served: Callable[[str], bool],
    is_continued: Callable[[str], bool],
) -> int:
    """Delete unfinished files, and uploads, tallies, records and states without a row; returns how many.

    A function's file is always kept: it is public and paid for, and its job may still need it. The
    records of a model in exact mode are kept if ``is_served`` says so of its id, and the state of a stream if
    ``is_continued`` does.
    """
    waiting = {f"{each.id}.{each.format}" for each in datasets.uploads_before(now())}
    tallies = {f"{id}.tally" for id in datasets.tally_ids()}
    left = [path for path in _old(settings.path("uploads")) if path.name not in waiting]
    left += [path for path in _old(settings.path("tallies")) if path.name not in tallies]
    left += [path for path in _old(settings.path("functions")) if path.name.startswith(".")]
    for path in _old(settings.path("served")):
        if path.name.startswith(".") or not is_served(path.name.partition(".")[0]):
            left.append(path)
    for path in _old(settings.path("streams")):
        if path.name.startswith(".") or not is_continued(path.name.partition(".")[0]):
            left.append(path)
    for path in left:
        path.unlink(missing_ok=True)
    if left:
        log_event("orphaned files deleted", number=len(left))
    return len(left)


def delete_exact_model_files(settings: Settings, id: str) -> None:
    """Delete the records of a model in exact mode, and its answers."""
    for pattern in (f"{id}.*", f".{id}.*"):
        for path in settings.path("served").glob(pattern):
            path.unlink(missing_ok=True)


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
