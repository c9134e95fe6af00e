"""The rollback guard: how far a ledger had come, kept outside its database.

A restored backup is a valid, older chain of events; only something outside the database can show that it is
older. So every process that appends to a ledger also writes the last event to two files: one in the user's
state folder, and one beside the data. A ledger that lacks that event was restored or changed, and nothing is
debited in it until a person has accepted it. Without either file it is unknown whether the ledger is the
newest copy, which is treated the same.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.errors import FilePath, FileRefused, LedgerUnavailable
from hushsum.ledger.database import file_of
from hushsum.ledger.receipt import Receipt

SUFFIX = ".rollback_guard"
"""A SQLite ledger's own guard has the name of its file and this suffix."""


def state_folder() -> Path:
    """Where Hushsum keeps what must outlive a ledger: ``$HUSHSUM_STATE``, or ``hushsum`` in the user's state
    folder.
    """
    own = os.environ.get("HUSHSUM_STATE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "hushsum"


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
