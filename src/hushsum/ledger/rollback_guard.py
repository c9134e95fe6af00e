"""The rollback guard: how far a ledger had come, kept outside its database.

A restored backup is a valid, older chain of events; only something outside the database can show that it is
older. So every process that appends to a ledger also writes the last event to two files: one in the user's
state folder, and one beside the data. A ledger that lacks that event was restored or changed, and nothing is
debited in it until a person has accepted it. Without either file it is unknown whether the ledger is the
newest copy, which is treated the same.

The first half of this module has the files, the second the comparison of a ledger with them.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.errors import FilePath, FileRefused, LedgerUnavailable
from hushsum.files.durable_files import state_folder
from hushsum.ledger.account import FROZEN, RETIRED
from hushsum.ledger.database import file_of
from hushsum.ledger.events import Kind, Receipt
from hushsum.ledger.transaction import Journal

SUFFIX = ".rollback_guard"
"""A SQLite ledger's own guard has the name of its file and this suffix."""


_REMEDY = (
    "put the newest copy back, or accept this one with: hushsum ledger accept-restore, "
    "which freezes its datasets"
)


@dataclass(frozen=True, slots=True)
class Watermark:
    """The last event that was written, and the last accepted restore up to it (None without one)."""

    last: Receipt
    restore: Receipt | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Later watermarks of one ledger compare as larger, also across an accepted restore."""
        return (0 if self.restore is None else self.restore.sequence, self.last.sequence)

    def as_json(self) -> dict[str, Any]:
        """The watermark for a file."""
        return {
            **self.last.as_json(),
            "restore": None if self.restore is None else self.restore.as_json(),
        }

    @classmethod
    def from_text(cls, text: str) -> Watermark:
        """Read a watermark.

        Raises
        ------
        FileRefused
            if the text is none.
        """
        last = Receipt.from_text(text)
        restore = json.loads(text).get("restore")
        return cls(last, None if restore is None else Receipt.from_text(json.dumps(restore)))


class GuardFile:
    """One file with a watermark, safe for several processes."""

    def __init__(self, path: Path, *, like: Path | None = None) -> None:
        self._path = path
        self._like = like

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> Watermark | None:
        """The watermark, if there is one.

        Raises
        ------
        FileRefused
            if it is damaged: then it is unknown whether the ledger is the newest copy.
        """
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        except OSError:
            raise self._unusable() from None
        try:
            return Watermark.from_text(text)
        except FileRefused:
            raise FileRefused(
                rule=(
                    f"the rollback guard {self._path.name!r} is damaged, so it is unknown whether "
                    "the ledger is the newest copy"
                ),
                remedy=(
                    "compare it with a receipt (hushsum ledger verify --receipt FILE), then accept "
                    "it: hushsum ledger accept-restore"
                ),
            ) from None

    def prepare(self) -> None:
        """Make sure that the file can be written, before anything is debited that would need it."""
        folder = self._path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            raise self._unusable() from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise self._unusable()

    def advance(self, mark: Watermark) -> None:
        """Write a watermark, unless a later one is there."""
        with self._locked():
            known = self.read()
            if known is None or (known.last.ledger == mark.last.ledger and known.order < mark.order):
                self._write(mark)

    def reset(self, mark: Watermark) -> None:
        """Write this watermark, whatever was there; after a person has accepted the ledger."""
        with self._locked():
            self._write(mark)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, self._mode())
        except OSError:
            raise self._unusable() from None
        try:
            self._own(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, mark: Watermark) -> None:
        name = None
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                os.fchmod(stream.fileno(), self._mode())
                self._own(stream.fileno())
                json.dump(mark.as_json(), stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(name, self._path)
        except OSError:
            if name is not None and os.path.exists(name):
                os.unlink(name)
            raise self._unusable() from None

    def _mode(self) -> int:
        """Whoever can use the database must be able to use its guard."""
        return 0o600 if self._like is None else self._like.stat().st_mode & 0o666

    def _own(self, descriptor: int) -> None:
        if self._like is not None and os.geteuid() == 0:
            owner = self._like.stat()
            with suppress(OSError):
                os.fchown(descriptor, owner.st_uid, owner.st_gid)

    def _unusable(self) -> LedgerUnavailable:
        return LedgerUnavailable(
            rule=(
                "the folder ",
                FilePath(self._path.parent, service="of the state"),
                ", which keeps the ledger's rollback guard, cannot be read or written",
            ),
            remedy="make it writable, or name another in HUSHSUM_STATE",
        )


class RollbackGuard:
    """The guard files of one ledger: in the user's state folder, and beside the data.

    Parameters
    ----------
    ledger : str
        The ledger's id.
    beside : path, optional
        The file beside the data; a ledger in PostgreSQL has one only where its user names one.
    database : path, optional
        The SQLite file whose permissions ``beside`` has.
    state : path, optional
        The state folder; default: the user's.
    """

    def __init__(
        self,
        ledger: str,
        *,
        beside: Path | None = None,
        database: Path | None = None,
        state: Path | None = None,
    ) -> None:
        folder = (state_folder() if state is None else state) / "ledgers"
        self._files = [GuardFile(folder / f"{ledger}.json")]
        if beside is not None:
            self._files.append(GuardFile(beside, like=database))

    def read(self) -> list[Watermark]:
        """The watermarks that are there.

        Raises
        ------
        FileRefused
            if one is damaged.
        """
        return [mark for each in self._files if (mark := each.read()) is not None]

    def readable(self) -> list[Watermark]:
        """The watermarks that are there and are not damaged."""
        found = []
        for each in self._files:
            with suppress(FileRefused):
                if (mark := each.read()) is not None:
                    found.append(mark)
        return found

    def prepare(self) -> None:
        """Make sure that all files can be written."""
        for each in self._files:
            each.prepare()

    def advance(self, mark: Watermark) -> None:
        """Write a watermark to all files, unless a later one is there."""
        for each in self._files:
            each.advance(mark)

    def reset(self, mark: Watermark) -> None:
        """Write a watermark to all files, whatever was there."""
        for each in self._files:
            each.reset(mark)


def guard_of(
    ledger: str,
    place: str | os.PathLike[str],
    state: str | os.PathLike[str] | None,
    guard: str | os.PathLike[str] | None,
) -> RollbackGuard:
    """The two guards of a ledger: in the state folder, and beside the data."""
    return RollbackGuard(
        ledger,
        beside=guard_beside(place, guard),
        database=file_of(place),
        state=None if state is None else Path(state),
    )


def guard_beside(place: str | os.PathLike[str], guard: str | os.PathLike[str] | None) -> Path | None:
    """The guard beside the data: the file that was named, or the one beside a SQLite file."""
    if guard is not None:
        return Path(guard)
    file = file_of(place)
    return None if file is None else file.with_name(file.name + SUFFIX)


def watermark_of(journal: Journal) -> Watermark:
    """The watermark of a journal's head."""
    return Watermark(journal.receipt, journal.last_restore())


def rollback_refusal(journal: Journal, marks: Sequence[Watermark]) -> str | None:
    """Why nothing may be debited, and what to do; None if the ledger has all that the guard knows.

    A new ledger, with no event but its creation, needs no guard: there is nothing that it could have lost.
    """
    if not marks:
        if journal.receipt.sequence <= 1:
            return None
        return (
            "the ledger has a history, and no rollback guard shows that this is its newest copy: it may be a "
            f"restored backup, or the guard was lost; {_REMEDY}; or, with a receipt just taken where "
            "the ledger is in use: hushsum ledger add-guard"
        )
    return next((text for mark in marks if (text := _behind(journal, mark)) is not None), None)


def contains_event(journal: Journal, receipt: Receipt) -> bool:
    """Whether the ledger contains the event that a receipt names."""
    if receipt.ledger != journal.receipt.ledger or not 1 <= receipt.sequence <= journal.receipt.sequence:
        return False
    if receipt == journal.receipt:
        return True
    try:
        return journal.event(receipt.sequence).hash == receipt.hash
    except FileRefused:
        return False


def valid_receipts(journal: Journal, marks: Sequence[Watermark]) -> list[Receipt]:
    """The last events of those watermarks that no accepted restore has replaced."""
    return [mark.last for mark in marks if not _replaced(journal, mark)]


def record_accepted_restore(
    journal: Journal, marks: Sequence[Watermark], *, who: str, reason: str
) -> list[str]:
    """Record that events may be lost, and freeze every dataset that is not retired."""
    known = [mark.last for mark in marks if mark.last.ledger == journal.receipt.ledger]
    lost = max(known, key=lambda each: each.sequence).as_json() if known else None
    journal.append(Kind.RESTORE_ACCEPTED, body={"who": who, "reason": reason, "lost": lost})
    frozen = []
    for name in journal.datasets():
        account = journal.account(name)
        if account.state != RETIRED:
            after = account.in_state(FROZEN)
            journal.append(Kind.FROZEN, dataset=name, body={"who": who, "account": after.as_json()})
            frozen.append(name)
    return frozen


def _behind(journal: Journal, mark: Watermark) -> str | None:
    if mark.last.ledger != journal.receipt.ledger:
        what = "is another one than its rollback guard names"
    elif contains_event(journal, mark.last) or _replaced(journal, mark):
        return None
    elif journal.receipt.sequence < mark.last.sequence:
        ends, named = journal.receipt.sequence, mark.last.sequence
        what = f"ends at event {ends}, and its rollback guard names event {named}"
    else:
        what = f"has another event {mark.last.sequence} than its rollback guard names"
    return (
        f"the ledger {what}: it was restored from a backup or changed, and may not have all that was spent; "
        f"{_REMEDY}"
    )


def _replaced(journal: Journal, mark: Watermark) -> bool:
    """Whether a restore was accepted after this watermark was written, here or on another machine.

    The watermark names the last accepted restore of its own history. If the ledger has that one, and a later
    one, then the history that the watermark belongs to was given up when the later restore was accepted,
    and every dataset was frozen then. A ledger put back to before the known restore does not have it.
    """
    if mark.last.ledger != journal.receipt.ledger:
        return False
    latest = journal.last_restore()
    if latest is None:
        return False
    if mark.restore is None:
        return True
    return contains_event(journal, mark.restore) and latest.sequence > mark.restore.sequence
