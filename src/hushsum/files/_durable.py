"""Files that appear whole or not at all, and the folder for what must outlive the files it is about."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["SharedText", "atomic_file", "state_folder"]


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """A stream whose bytes take the path's place when the block has ended well, durably.

    A reader sees the old file, none, or the whole new one. ``mode`` is the permission of the file, before the
    process's umask. An OSError names the path, and not the unfinished file beside it.
    """
    try:
        with _beside(path, lambda new: os.fchmod(new, mode & ~_umask())) as stream:
            yield stream
    except OSError as error:
        if error.errno is None or error.filename == str(path):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    _sync_folder(path.parent)


@contextmanager
def _beside(path: Path, allow: Callable[[int], None]) -> Iterator[IO[bytes]]:
    """A new file in the same folder, which takes the path's place in the end; ``allow`` sets the permissions
    of its descriptor.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            allow(stream.fileno())
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@dataclass(frozen=True, slots=True, eq=False)
class SharedText:
    """A short text in a file that several processes read and replace, with a lock beside it.

    Rollback guards are such files: what they record must be durable before anything relies on it.

    Parameters
    ----------
    path : path
    unusable : callable
        The error to raise where the file cannot be read or written.
    like : path, optional
        A file whose owner and permissions this one has; default: readable by its owner alone.
    """

    path: Path
    unusable: Callable[[], Exception]
    like: Path | None = None

    def prepare(self) -> None:
        """Make sure that the file can be written, before anything depends on it."""
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            raise self.unusable() from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise self.unusable()

    def read(self) -> str | None:
        """The text; None without a file, and empty for bytes that are not text."""
        try:
            return self.path.read_bytes().decode("utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError:
            raise self.unusable() from None

    def write(self, text: str) -> None:
        """Replace the text, durably."""
        try:
            with _beside(self.path, self._allow) as stream:
                stream.write(text.encode())
            _sync_folder(self.path.parent)
        except OSError:
            raise self.unusable() from None

    @contextmanager
    def locked(self) -> Iterator[SharedText]:
        """Keep other processes from replacing the text until the block ends."""
        lock = self.lock()
        assert lock is not None
        try:
            yield self
        finally:
            os.close(lock)

    def lock(self, *, wait: bool = True) -> int | None:
        """A lock that lasts until its descriptor is closed; None if another process has it."""
        try:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self._mode())
        except OSError:
            raise self.unusable() from None
        try:
            self._own(lock)
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _mode(self) -> int:
        return 0o600 if self.like is None else self.like.stat().st_mode & 0o666

    def _allow(self, descriptor: int) -> None:
        os.fchmod(descriptor, self._mode())
        self._own(descriptor)

    def _own(self, descriptor: int) -> None:
        if self.like is not None and os.geteuid() == 0:
            owner = self.like.stat()
            with suppress(OSError):
                os.fchown(descriptor, owner.st_uid, owner.st_gid)


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
