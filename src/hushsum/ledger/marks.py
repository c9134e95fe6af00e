"""High-water marks: what this machine has seen of each ledger, kept outside the ledger.

A restored backup is a valid, older chain; only something outside it can tell. Each machine that appends to a
ledger remembers the last event it committed, in the user's state folder. A ledger that lacks that event is
behind or forked, and nothing is booked in it until a person has decided.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushsum.errors import FileRefused, LedgerUnavailable
from hushsum.ledger.receipt import Receipt


def state_folder() -> Path:
    """Where Hushsum keeps what must outlive a ledger: ``$HUSHSUM_STATE``, or ``hushsum`` in the user's state
    folder.
    """
    own = os.environ.get("HUSHSUM_STATE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "hushsum"


class Marks:
    """The marks in one folder, safe for several processes."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = (state_folder() if folder is None else folder) / "ledgers"

    def read(self, ledger: str) -> Receipt | None:
        """The mark of a ledger, if this machine has one.

        Raises
        ------
        FileRefused
            if it is damaged: then it cannot be told whether the ledger is behind.
        """
        path = self._path(ledger)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError:
            raise LedgerUnavailable(_UNUSABLE.format(folder=self._folder)) from None
        try:
            return Receipt.from_text(text)
        except FileRefused:
            raise FileRefused(
                f"the ledger's mark {str(path)!r} is damaged; check the ledger with a receipt "
                "(hushsum ledger verify --receipt FILE), then remove the mark"
            ) from None

    def prepare(self) -> None:
        """Make sure that a mark can be kept, before anything is booked that would need one."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            raise LedgerUnavailable(_UNUSABLE.format(folder=self._folder)) from None
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise LedgerUnavailable(_UNUSABLE.format(folder=self._folder))

    def advance(self, receipt: Receipt) -> None:
        """Remember an event, unless a later one is remembered."""
        with self._locked(receipt.ledger):
            known = self.read(receipt.ledger)
            if known is None or known.sequence < receipt.sequence:
                self._write(receipt)

    def reset(self, receipt: Receipt) -> None:
        """Remember this event, whatever was remembered; after a restore was accepted."""
        with self._locked(receipt.ledger):
            self._write(receipt)

    def _path(self, ledger: str) -> Path:
        return self._folder / f"{ledger}.json"

    @contextmanager
    def _locked(self, ledger: str) -> Iterator[None]:
        try:
            descriptor = os.open(self._folder / f"{ledger}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            raise LedgerUnavailable(_UNUSABLE.format(folder=self._folder)) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, receipt: Receipt) -> None:
        name = None
        try:
            descriptor, name = tempfile.mkstemp(prefix=".mark.", dir=self._folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(receipt.as_json(), stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(name, self._path(receipt.ledger))
        except OSError:
            if name is not None and os.path.exists(name):
                os.unlink(name)
            raise LedgerUnavailable(_UNUSABLE.format(folder=self._folder)) from None


_UNUSABLE = (
    "the folder {folder}, which remembers how far each ledger had come, cannot be written; "
    "make it writable, or name another in HUSHSUM_STATE"
)
