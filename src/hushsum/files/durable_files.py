"""Files that appear whole or not at all, and the folder for what must outlive the files it is about."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """A stream whose bytes take the path's place when the block has ended well, durably.

    A reader sees the old file, none, or the whole new one. ``mode`` is the permission of the file, before the
    process's umask. An OSError names the path, and not the unfinished file beside it.
    """
    try:
        with _beside(path, mode) as stream:
            yield stream
    except OSError as error:
        if error.errno is None or error.filename == str(path):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    _sync_folder(path.parent)


@contextmanager
def _beside(path: Path, mode: int) -> Iterator[IO[bytes]]:
    """A new file in the same folder, which takes the path's place in the end."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, mode & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def state_folder() -> Path:
    """Where Hushsum keeps what must outlive a ledger or a stream: ``$HUSHSUM_STATE``, or ``hushsum`` in the
    user's state folder.
    """
    own = os.environ.get("HUSHSUM_STATE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "hushsum"
