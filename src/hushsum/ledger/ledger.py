"""The ledger: datasets, debits, receipts."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from hushsum.errors import ClaimError, FileRefused, UsageError
from hushsum.ledger import restores
from hushsum.ledger.account import OPEN, RETIRED, Account
from hushsum.ledger.chain import Event, Kind
from hushsum.ledger.charge import Charge
from hushsum.ledger.database import (
    WAIT_SECONDS,
    check_revision,
    connect,
    has_ledger,
    upgrade,
)
from hushsum.ledger.dataset_budget import DatasetBudget
from hushsum.ledger.entries import Entry, entries_of
from hushsum.ledger.journal import Journal
from hushsum.ledger.marks import Marks
from hushsum.ledger.receipt import Receipt
from hushsum.ledger.rules import check_name, person, reason_of
from hushsum.ledger.terms import DatasetTerms
from hushsum.ledger.verify import Verification, verify_chain


class Ledger:
    """The budgets of one or more datasets and their releases, in a file (SQLite) or a PostgreSQL database.

    Several processes and machines may use one ledger at once: each part of a budget is granted once. It is
    append-only and chained by hash.

    It protects against mistakes, crashes and races, and shows tampering. It does not stop an owner who
    releases without it, or who rewrites the database *and* every receipt and mark.

    ``Ledger(place)`` opens one, :meth:`create` makes one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(folder + "/ledger.db", state=folder)
    ...     account = ledger.create_dataset("payroll", DatasetTerms.of(epsilon=1.0))
    ...     ledger.account("payroll").remaining.in_words()
    'ε 1'
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        state: str | os.PathLike[str] | None = None,
        wait_seconds: float = WAIT_SECONDS,
        damaged: bool = False,
    ) -> None:
        """Open a ledger by its path or URL.

        Parameters
        ----------
        place : path or URL
            A file, or ``postgresql://user@host/name``.
        state : path, optional
            The folder that remembers how far ledgers have come; default: the user's.
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
        if journal is None:
            raise UsageError("there is no ledger in this database; make one with: hushsum ledger init")
        self._identity = journal.receipt.ledger
        self._marks = Marks(None if state is None else Path(state))

    @classmethod
    def create(
        cls,
        place: str | os.PathLike[str],
        *,
        who: str | None = None,
        state: str | os.PathLike[str] | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> Ledger:
        """Make a ledger, or bring the one that is there to this version's schema.

        Parameters
        ----------
        place : path or URL
            A file, or ``postgresql://user@host/name``.
        who : str, optional
            Who makes it; default: the user of this process.
        state : path, optional
            The folder that remembers how far ledgers have come; default: the user's.
        wait_seconds : float
            How long a transaction waits for another process's.

        Raises
        ------
        LedgerUnavailable
            if the database cannot be reached.
        """
        marks = Marks(None if state is None else Path(state))
        marks.prepare()
        database = connect(place, create=True, wait_seconds=wait_seconds)
        with database.writing() as connection:
            upgrade(connection)
            journal = Journal.opened(connection, lock=True)
            if journal is None:
                journal = Journal.created(connection, uuid.uuid4().hex, person(who))
        if journal.appended:
            marks.advance(journal.receipt)
        return cls(place, state=state, wait_seconds=wait_seconds)

    @classmethod
    def upgrade(cls, place: str | os.PathLike[str]) -> Ledger:
        """Bring an existing ledger to this version's schema, and open it."""
        database = connect(place)
        with database.writing() as connection:
            if not has_ledger(connection):
                raise UsageError("there is no ledger in this database; make one with: hushsum ledger init")
            upgrade(connection)
        return cls(place)

    def __repr__(self) -> str:
        return f"<Ledger {self._identity} on {self._database.dialect}>"

    @property
    def id(self) -> str:
        """The ledger's own name, the same wherever it is moved."""
        return self._identity

    def create_dataset(self, name: str, terms: DatasetTerms, *, who: str | None = None) -> Account:
        """Open an account for a dataset; its terms, but for the budget, never change.

        Raises
        ------
        UsageError
            if the name is taken.
        """
        check_name("dataset", name)
        account = Account.opened(terms)
        with self._writing() as journal:
            if name in journal.datasets():
                raise UsageError(f"dataset {name!r} is in the ledger already; choose another name")
            self._book(journal, Kind.DATASET_CREATED, name, account, who)
        return account

    def dataset(
        self, name: str, *, part: str | None = None, to: str | None = None, who: str | None = None
    ) -> DatasetBudget:
        """The budget of a dataset, which every releasing call takes as ``budget=``.

        Parameters
        ----------
        name : str
            The dataset's name in this ledger.
        part : str, optional
            The declared part of the data that the releases read; default: all of it.
        to, who : str, optional
            Who receives the releases, and who makes them (default: the user of this process).

        Raises
        ------
        UsageError
            if there is no such dataset or part.

        Examples
        --------
        >>> import tempfile
        >>> import hushsum as hs
        >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10).add([[1.0]] * 100)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger.create(folder + "/ledger.db", state=folder)
        ...     _ = ledger.create_dataset("town", DatasetTerms.of(epsilon=1.0))
        ...     budget = ledger.dataset("town")
        ...     f = tally.release(epsilon=0.25, budget=budget, idempotency_key="spring")
        ...     budget.remaining.in_words()
        'ε 0.75'
        """
        budget = DatasetBudget(self._identity, name, self._reading, self._writing, part=part, to=to, who=who)
        # Refuses an unknown dataset or part here rather than at the first release.
        _ = budget.remaining
        return budget

    def void(self, key: str, *, who: str | None = None) -> Entry:
        """Give back the budget of a debit that was never drawn.

        Raises
        ------
        UsageError
            if there is no such debit, or noise may exist for it.
        """
        with self._writing() as journal:
            entry = journal.entry(key)
            if entry is None:
                raise UsageError(f"no release has the key {key!r}; see hushsum ledger history")
            if entry.step is not Kind.DEBITED:
                raise UsageError(
                    f"only a debit that was never drawn can be voided, got the step {str(entry.step)!r}; "
                    "what may have been seen is spent"
                )
            if journal.last_restore() > entry.sequence:
                raise UsageError(
                    "a debit older than a restored backup may have been drawn in what was lost; "
                    "it stays spent"
                )
            after = journal.account(entry.dataset).voided(entry.charge, part=entry.part)
            self._book(journal, Kind.VOIDED, entry.dataset, after, who, key=key)
        return entry

    def change_budget(self, dataset: str, budget: Charge, *, reason: str, who: str | None = None) -> Account:
        """Set another total, recorded with its reason. A total below what was spent stops all releases."""
        with self._writing() as journal:
            account = journal.account(dataset)
            after = Account(account.terms.with_budget(budget), account.whole, account.parts, account.state)
            self._book(journal, Kind.BUDGET_CHANGED, dataset, after, who, reason=reason_of(reason))
        return after

    def retire(self, dataset: str, *, reason: str, who: str | None = None) -> Account:
        """Close a dataset for ever; its history stays."""
        with self._writing() as journal:
            after = journal.account(dataset).in_state(RETIRED)
            self._book(journal, Kind.RETIRED, dataset, after, who, reason=reason_of(reason))
        return after

    def write_off(self, dataset: str, charge: Charge, *, reason: str, who: str | None = None) -> Account:
        """Charge what was spent outside this ledger, or lost from it, and open a frozen dataset again."""
        if charge != charge.at_least_zero():
            raise ClaimError("a write-off must be at least 0, got less; what was spent is not given back")
        with self._writing() as journal:
            account = journal.account(dataset)
            after = account.charged(charge).in_state(RETIRED if account.state == RETIRED else OPEN)
            self._book(
                journal,
                Kind.WRITTEN_OFF,
                dataset,
                after,
                who,
                reason=reason_of(reason),
                charge=charge.as_json(),
            )
        return after

    def accept_restore(self, *, reason: str, who: str | None = None) -> list[str]:
        """Go on with a ledger that is behind or forked from what this machine has seen of it.

        Every dataset is frozen: what was spent in the lost events is unknown. ``write_off`` charges it and
        opens the dataset. Debits that were not staged stay spent, and can be neither drawn nor voided.

        Returns the names of the frozen datasets.
        """
        mark = self._marks.read(self._identity)
        with self._database.writing() as connection:
            journal = self._opened(connection, lock=True)
            if mark is None or restores.seen(journal, mark):
                raise UsageError(
                    "the ledger has all that this machine knows of it; there is nothing to accept"
                )
            frozen = restores.accept(journal, mark, who=person(who), reason=reason_of(reason))
        self._marks.reset(journal.receipt)
        return frozen

    def account(self, dataset: str) -> Account:
        """What was spent on a dataset, and what is left."""
        with self._reading() as journal:
            return journal.account(dataset)

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

    def behind(self) -> str | None:
        """Why nothing can be recorded, if this machine has seen more of the ledger than it holds."""
        mark = self._marks.read(self._identity)
        with self._reading() as journal:
            return None if mark is None or restores.seen(journal, mark) else restores.explain(journal, mark)

    def verify(self, receipt: Receipt | None = None) -> Verification:
        """Recompute every hash, every balance and every step; compare with this machine's mark and a
        receipt.
        """
        mark = self._marks.read(self._identity)
        with self._database.reading() as connection:
            return verify_chain(connection, receipts=[each for each in (mark, receipt) if each is not None])

    def _book(
        self,
        journal: Journal,
        kind: Kind,
        dataset: str,
        account: Account,
        who: str | None,
        *,
        key: str = "",
        **extra: object,
    ) -> None:
        body = {"who": person(who), "account": account.as_json(), **extra}
        journal.append(kind, dataset=dataset, key=key, body=body)

    @contextmanager
    def _reading(self) -> Iterator[Journal]:
        with self._database.reading() as connection:
            yield self._opened(connection)

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        """Append in one transaction, then move the mark; both or, after a crash, only the first.

        The mark is read before the lock is taken: marks follow commits, so the head that is read under the
        lock has at least what the mark names, unless the ledger was put back.
        """
        self._marks.prepare()
        mark = self._marks.read(self._identity)
        with self._database.writing() as connection:
            journal = self._opened(connection, lock=True)
            if mark is not None and not restores.seen(journal, mark):
                raise FileRefused(restores.explain(journal, mark))
            yield journal
        if journal.appended:
            self._marks.advance(journal.receipt)

    def _opened(self, connection: Connection, *, lock: bool = False) -> Journal:
        journal = Journal.opened(connection, lock=lock)
        if journal is None or journal.receipt.ledger != self._identity:
            raise FileRefused("another ledger stands where this one was; check the path, and open it again")
        return journal
