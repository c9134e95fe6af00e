"""How far a stream has come, kept outside its file: an older copy of the file is refused.

A restored backup of a stream's state is valid and would draw its next steps a second time. Only something
outside of it can show that it is older. So every step is noted in the user's state folder. On another machine
the note is missing, and nothing can be known there. Two copies of one state are kept apart by a lock beside
the note, which whoever has the stream open holds.
"""

from __future__ import annotations

import fcntl
import os

from hushsum.errors import FileRefused, UsageError
from hushsum.files.durable_files import atomic_file, state_folder


class StepGuard:
    """The note of one stream: the number of its last step, and a lock on the stream."""

    __slots__ = ("_lock", "_path")

    def __init__(self, stream: str) -> None:
        self._path = state_folder() / "streams" / stream
        self._lock: int | None = None

    def hold(self, step: int) -> None:
        """Lock the stream until `close`, refuse an older state, and note the step of this one.

        A process that died between writing a step and noting it leaves a state whose last step can be seen:
        it is noted before that, so that an older copy is refused from then on.

        Raises
        ------
        UsageError
            if another copy of the state is open.
        FileRefused
            if a later step has been released.
        """
        self.prepare()
        try:
            lock = os.open(
                self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError:
            raise self._unusable() from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise UsageError(
                rule="another process has this stream open, from another copy of its state",
                remedy="continue that one, and delete the other copies",
            ) from None
        self._lock = lock
        try:
            self.check(step)
            if self.last() < step:
                self.advance(step)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others open the stream."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def prepare(self) -> None:
        """Make sure that the note can be written, before anything is spent."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            raise self._unusable() from None
        if not os.access(self._path.parent, os.W_OK | os.X_OK):
            raise self._unusable()

    def last(self) -> int:
        """The number of the last step on this machine; 0 without a note."""
        try:
            text = self._path.read_text(encoding="ascii")
        except FileNotFoundError:
            return 0
        except (OSError, UnicodeDecodeError):
            raise self._unusable() from None
        if not text.strip().isdigit():
            raise self._unusable()
        return int(text)

    def check(self, step: int) -> None:
        """Refuse a state that is older than the last step.

        Raises
        ------
        FileRefused
            if a later step has been released.
        """
        if self.last() > step:
            raise FileRefused(
                rule="this state of the stream is an older copy: later steps have been released",
                remedy="put the newest copy back; drawing a step twice would spend more than was paid",
            )

    def advance(self, step: int) -> None:
        """Note a step."""
        self.prepare()
        with atomic_file(self._path, mode=0o600) as stream:
            stream.write(f"{step}\n".encode("ascii"))

    def _unusable(self) -> UsageError:
        return UsageError(
            rule="the note of a stream's steps cannot be read and written in the state folder",
            remedy="set HUSHSUM_STATE to a folder that lasts",
        )
