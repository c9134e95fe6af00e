"""How far a stream has come, kept outside its file: an older copy of the file is refused.

A restored backup of a stream's state is valid and would draw its next steps a second time. Only something
outside of it can show that it is older. So every step is noted in the user's state folder. On another machine
the note is missing, and nothing can be known there. Two copies of one state are kept apart by a lock beside
the note, which whoever has the stream open holds.
"""

from __future__ import annotations

import os

from hushsum.errors import FileRefused, StreamInUse, UsageError
from hushsum.files.durable_files import GrowingNumber, state_folder


class StepGuard:
    """The note of one stream: the number of its last step, and a lock on the stream."""

    __slots__ = ("_lock", "_note")

    def __init__(self, stream: str) -> None:
        self._note = GrowingNumber(state_folder() / "streams" / stream, _unusable)
        self._lock: int | None = None

    def hold(self, step: int) -> None:
        """Lock the stream until `close`, refuse an older state, and note the step of this one.

        A process that died between writing a step and noting it leaves a state whose last step can be seen:
        it is noted before that, so that an older copy is refused from then on.

        Raises
        ------
        StreamInUse
            if another copy of the state is open.
        FileRefused
            if a later step has been released.
        """
        self.prepare()
        self._lock = self._note.lock(wait=False)
        if self._lock is None:
            raise StreamInUse(
                rule="another process has this stream open, from another copy of its state",
                remedy="continue that one, and delete the other copies",
            )
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
        self._note.prepare()

    def last(self) -> int:
        """The number of the last step on this machine; 0 without a note."""
        return self._note.known() or 0

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
        """Note a step. Whoever has the stream open holds the lock of the note."""
        self.prepare()
        self._note.write(f"{step}\n")


def _unusable() -> UsageError:
    return UsageError(
        rule="the note of a stream's steps cannot be read and written in the state folder",
        remedy="set HUSHSUM_STATE to a folder that lasts",
    )
