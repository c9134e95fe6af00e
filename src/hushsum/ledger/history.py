"""What is in a ledger: accounts, entries, events, receipts, and whether all of it still agrees."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection

from hushsum.errors import FileRefused, UsageError
from hushsum.ledger.account import Account
from hushsum.ledger.database import WAIT_SECONDS, check_revision, connect
from hushsum.ledger.events import Entry, Event, Receipt, entries_of
from hushsum.ledger.rollback_guard import RollbackGuard, rollback_refusal, valid_receipts
from hushsum.ledger.transaction import Journal
from hushsum.ledger.verify import Verification, verify_chain


class LedgerHistory:
    """A ledger that is only read; :class:`hushsum.ledger.Ledger` adds what writes to it."""

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        state: str | os.PathLike[str] | None = None,
        guard: str | os.PathLike[str] | None = None,
        wait_seconds: float = WAIT_SECONDS,
        damaged: bool = False,
    ) -> None:
        """Open a ledger by its path or URL.

        Parameters
        ----------
        place : path or URL
            A file, or ``postgresql://user@host/name``.
        state : path, optional
            The state folder; default: the user's.
        guard : path or URL, optional
            Where the rollback guard is; see :meth:`create`.
        wait_seconds : float
            How long a transaction waits for another process's.
        damaged : bool
            Also open one whose last events are missing, to verify it.

        Raises
        ------
        UsageError
            if there is none.
        FileRefused
            if it is damaged or of another version.
        """
        self._database = connect(place, wait_seconds=wait_seconds)
        with self._database.reading() as connection:
            check_revision(connection)
            journal = Journal.opened(connection, damaged=damaged)
            if journal is not None and not damaged:
                journal.check_complete()
        if journal is None:
            raise UsageError(
                rule="there is no ledger in this database", remedy="make one with: hushsum ledger init"
            )
        self._identity = journal.receipt.ledger
        self._place, self._state = place, state
        self._guard = RollbackGuard(self._identity, place, state, guard)

    def __repr__(self) -> str:
        return f"<Ledger {self._identity} on {self._database.dialect}>"

    @property
    def id(self) -> str:
        """The ledger's own name, the same wherever it is moved."""
        return self._identity

    def account(self, dataset: str) -> Account:
        """What was spent on a dataset, and what is left."""
        with self._reading() as journal:
            return journal.account(dataset)

    def standing(self, datasets: Sequence[str]) -> list[tuple[Account, list[Entry]]]:
        """The account and the releases of each dataset, all of the same moment."""
        with self._reading() as journal:
            return [(journal.account(name), entries_of(journal.events(name))) for name in datasets]

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        with self._reading() as journal:
            return journal.datasets()

    def find(self, key: str) -> Entry | None:
        """The release with this key."""
        with self._reading() as journal:
            return journal.entry(key)

    def history(self, dataset: str | None = None) -> list[Entry]:
        """The releases, oldest first."""
        with self._reading() as journal:
            if dataset is not None:
                journal.account(dataset)
            return entries_of(journal.events(dataset))

    def events(self, dataset: str | None = None) -> list[Event]:
        """Everything that happened, oldest first."""
        with self._reading() as journal:
            return list(journal.events(dataset))

    def receipt(self) -> Receipt:
        """The head of the chain, to be kept where whoever keeps the ledger cannot change it."""
        with self._reading() as journal:
            return journal.receipt

    def rollback_problem(self) -> str | None:
        """Why nothing can be recorded: the ledger may not be the newest copy. None if all is well.

        Raises
        ------
        FileRefused
            if events are missing from its middle, which no acceptance can mend.
        """
        try:
            known = self._guard.read()
        except FileRefused as damaged:
            return str(damaged)
        with self._reading() as journal:
            journal.check_complete()
            problem = rollback_refusal(journal, known)
        return None if problem is None else str(problem)

    def restored_at(self) -> str | None:
        """When a restored backup was last accepted; None if never."""
        with self._reading() as journal:
            return journal.restored_at()

    def verify(self, receipt: Receipt | None = None) -> Verification:
        """Recompute every hash, every balance and every step; compare with the rollback guard and a
        receipt.
        """
        marks = self._guard.read().marks
        with self._database.reading() as connection:
            journal = Journal.opened(connection, damaged=True)
            known = [mark.last for mark in marks] if journal is None else valid_receipts(journal, marks)
            return verify_chain(connection, receipts=[*known, *([] if receipt is None else [receipt])])

    @contextmanager
    def _reading(self) -> Iterator[Journal]:
        with self._database.reading() as connection:
            yield self._opened(connection)

    def _opened(self, connection: Connection, *, lock: bool = False) -> Journal:
        journal = Journal.opened(connection, lock=lock)
        if journal is None or journal.receipt.ledger != self._identity:
            raise FileRefused(
                rule="another ledger stands where this one was", remedy="check the path, and open it again"
            )
        return journal
