"""The rollback guard: an older copy of a file or a database must not continue.

A restored backup is valid, and what continues from it would draw a second time what was drawn before. Only
something outside of it can show that it is older. So how far a ledger, a stream or the answers of a function
have come, its *mark*, is kept in another place, durably, before anything relies on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hushsum.errors import UsageError

from ._durable import SharedText, state_folder

__all__ = ["GuardPlace", "NumberGuard", "PlacedGuard", "RollbackGuard"]

Mark = TypeVar("Mark")


class RollbackGuard(Protocol[Mark]):
    """A mark that only moves forward, kept where the data are not."""

    def known(self) -> Mark | None:
        """The mark; None if none was ever noted here.

        Raises
        ------
        LedgerUnavailable, FileRefused, UsageError
            while that cannot be known.
        """

    def note(self, mark: Mark, /) -> object:
        """Record a mark durably; an earlier one changes nothing."""


class Slot(Protocol):
    """A text that is read and replaced."""

    def read(self) -> str | None: ...

    def write(self, text: str, /) -> None: ...


class GuardPlace(Protocol):
    """Where a text is that several processes read and replace: a `SharedText`, or a row of a database."""

    def prepare(self) -> None:
        """Make sure that the text can be written, before anything is done that would need it."""

    def read(self) -> str | None:
        """The stored text; None if there is none."""

    def locked(self) -> AbstractContextManager[Slot]:
        """The place, for this process alone."""


@dataclass(slots=True, eq=False)
class PlacedGuard(Generic[Mark]):
    """A rollback guard whose mark is a text in a place.

    Parameters
    ----------
    place : GuardPlace
    parsed, text : callable
        The mark of a text, or an error where it is damaged; and the text of a mark.
    follows : callable
        Whether the first mark is later than the second; may raise to refuse a mark of another history.
    """

    place: GuardPlace
    parsed: Callable[[str], Mark]
    text: Callable[[Mark], str]
    follows: Callable[[Mark, Mark], bool]

    def prepare(self) -> None:
        """Make sure that a mark can be written."""
        self.place.prepare()

    def known(self) -> Mark | None:
        """The stored mark; None if there is none."""
        return self._known(self.place)

    def note(self, mark: Mark) -> bool:
        """Write a mark if it follows the stored mark.

        Returns whether another mark, which it does not follow, stays stored.
        """
        with self.place.locked() as slot:
            return self._note(slot, mark)

    def reset(self, mark: Mark) -> None:
        """Write this mark, whatever was there."""
        with self.place.locked() as slot:
            slot.write(self.text(mark))

    def _known(self, slot: GuardPlace | Slot) -> Mark | None:
        text = slot.read()
        return None if text is None else self.parsed(text)

    def _note(self, slot: Slot, mark: Mark) -> bool:
        known = self._known(slot)
        if known is None or self.follows(mark, known):
            slot.write(self.text(mark))
            return False
        return known != mark


class NumberGuard(PlacedGuard[int]):
    """A number in the user's state folder, such as how many steps or answers have left this machine.

    Parameters
    ----------
    folder, name : str
        Where it is, below the state folder.
    what : str
        What is counted, for messages.
    """

    __slots__ = ("_lock", "_shared", "_what")

    def __init__(self, folder: str, name: str, what: str) -> None:
        self._what = what
        self._shared = SharedText(state_folder() / folder / name, self._unusable)
        self._lock: int | None = None
        super().__init__(self._shared, self._number, "{}\n".format, int.__gt__)

    def note(self, mark: int) -> bool:
        """Record a number durably; a smaller one changes nothing."""
        self.prepare()
        return super().note(mark) if self._lock is None else self._note(self._shared, mark)

    def hold(self) -> bool:
        """Keep other processes from holding and noting the number until `close`.

        Returns False if another process holds it.
        """
        self.prepare()
        self._lock = self._shared.lock(wait=False)
        return self._lock is not None

    def close(self) -> None:
        """Let other processes hold the number."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _number(self, text: str) -> int:
        if not text.strip().isdigit():
            raise self._unusable()
        return int(text)

    def _unusable(self) -> UsageError:
        return UsageError(
            f"the number of {self._what} cannot be read and written in the state folder",
            remedy="set HUSHSUM_STATE to a folder that lasts",
        )
