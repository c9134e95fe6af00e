"""The ledger: datasets, debits, receipts."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from hushsum.errors import ClaimError, FilePath, FileRefused, UsageError
from hushsum.ledger.account import OPEN, RETIRED, Account
from hushsum.ledger.database import (
    WAIT_SECONDS,
    connect,
    file_of,
    has_ledger,
    upgrade,
)
from hushsum.ledger.dataset_budget import DatasetBudget, Fence
from hushsum.ledger.dataset_terms import Charge, DatasetTerms
from hushsum.ledger.events import Entry, Kind, check_name, new_guard_id, person, reason_of
from hushsum.ledger.history import LedgerHistory
from hushsum.ledger.rollback_guard import (
    GuardFile,
    RollbackGuard,
    check_kept,
    guard_place,
    record_accepted_restore,
    rollback_refusal,
    watermark_of,
)
from hushsum.ledger.transaction import Journal


class Ledger(LedgerHistory):
    """The budgets of one or more datasets and their releases, in a file (SQLite) or a PostgreSQL database.

    Several processes and machines may use one ledger at once: each part of a budget is granted once. It is
    append-only and chained by hash.

    It protects against mistakes, crashes and races, and shows tampering. It does not stop an owner who
    releases without it, or who rewrites the database *and* every receipt and rollback guard.

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

    @classmethod
    def create(
        cls,
        place: str | os.PathLike[str],
        *,
        who: str | None = None,
        state: str | os.PathLike[str] | None = None,
        guard: str | os.PathLike[str] | None = None,
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
            The state folder, where this machine keeps the last event that it wrote; default: the user's.
        guard : path or URL, optional
            The rollback guard, which all machines that use the ledger share: a file, or the URL of another
            PostgreSQL database than the ledger's. Default: what ``HUSHSUM_GUARD`` names; else the SQLite
            file's name with ``.rollback_guard``; else, for PostgreSQL, a file in the state folder, and then
            one machine can use the ledger.
        wait_seconds : float
            How long a transaction waits for another process's.

        Raises
        ------
        LedgerUnavailable
            if the database cannot be reached.
        FileRefused
            if there is no ledger, but a rollback guard of one: its database was lost.
        """
        named = guard_place(place, guard)
        beside = named if isinstance(named, Path) else None
        file = file_of(place)
        if file is not None and not file.exists():
            _refuse_lost(beside)
        RollbackGuard("", place, state, guard).prepare()
        database = connect(place, create=True, wait_seconds=wait_seconds)
        with database.writing() as connection:
            upgrade(connection)
            journal = Journal.opened(connection, lock=True)
            if journal is None:
                _refuse_lost(beside)
                journal = Journal.created(connection, uuid.uuid4().hex, person(who))
                # Before the commit: no other machine may find a ledger without a guard, and begin its own.
                RollbackGuard(journal.receipt.ledger, place, state, guard).reset(watermark_of(journal))
        return cls(place, state=state, guard=guard, wait_seconds=wait_seconds)

    @classmethod
    def upgrade(cls, place: str | os.PathLike[str]) -> Ledger:
        """Bring an existing ledger to this version's schema, and open it."""
        database = connect(place)
        with database.writing() as connection:
            if not has_ledger(connection):
                raise UsageError(
                    rule="there is no ledger in this database", remedy="make one with: hushsum ledger init"
                )
            upgrade(connection)
        return cls(place)

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
            # A dataset whose events were removed must not begin with its whole budget again.
            journal.check_complete()
            if name in journal.datasets():
                raise UsageError(
                    rule=f"dataset {name!r} is in the ledger already", remedy="choose another name"
                )
            self._book(journal, Kind.DATASET_CREATED, name, account, who)
        return account

    def dataset(
        self,
        name: str,
        *,
        part: str | None = None,
        to: str | None = None,
        who: str | None = None,
        fence: Fence | None = None,
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
        fence : callable, optional
            Called with the connection of the transaction of each new debit; raises to refuse it.

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
        budget = DatasetBudget(
            self._identity, name, self._reading, self._writing, part=part, to=to, who=who, fence=fence
        )
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
                raise UsageError(rule=f"no release has the key {key!r}", remedy="see hushsum ledger history")
            if entry.step is not Kind.DEBITED:
                raise UsageError(
                    rule="only a debit that was never drawn can be voided",
                    got=f"the step {str(entry.step)!r}",
                    remedy="what may have been seen is spent",
                )
            if journal.restored_since(entry.sequence):
                raise UsageError(
                    rule="a debit older than a restored backup may have been drawn in what was lost",
                    remedy="it stays spent",
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
        """Close a dataset permanently; its history stays."""
        with self._writing() as journal:
            after = journal.account(dataset).in_state(RETIRED)
            self._book(journal, Kind.RETIRED, dataset, after, who, reason=reason_of(reason))
        return after

    def write_off(self, dataset: str, charge: Charge, *, reason: str, who: str | None = None) -> Account:
        """Charge what was spent outside this ledger, or lost from it, and open a frozen dataset again."""
        if charge != charge.at_least_zero():
            raise ClaimError(
                rule="a write-off must be at least 0", got="less", remedy="what was spent is not given back"
            )
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
        """Continue with a ledger that may not be the newest copy, as :meth:`rollback_problem` reports.

        Every dataset is frozen: what was spent in the lost events is unknown. ``write_off`` charges it and
        opens the dataset. Debits that were not staged stay spent, and can be neither drawn nor voided. It is
        needed once, on any machine that uses the ledger. The guard gets a new id: if it was replaced by
        another one, the old one is of no use from then on, and should be deleted.

        Returns the names of the frozen datasets.
        """
        self._guard.prepare()
        with self._database.writing() as connection:
            journal = self._opened(connection, lock=True)
            journal.check_complete()
            with suppress(FileRefused):  # a damaged guard is accepted too
                if rollback_refusal(journal, self._guard.read()) is None:
                    raise UsageError(
                        rule="the ledger has all that its rollback guard names",
                        remedy="there is nothing to accept",
                    )
            marks = self._guard.readable()
            frozen = record_accepted_restore(journal, marks, who=person(who), reason=reason_of(reason))
            mark = watermark_of(journal)
        self._guard.reset(mark)
        return frozen

    def move_guard(self, to: str | os.PathLike[str], *, reason: str, who: str | None = None) -> None:
        """Move the rollback guard to a file, or to a PostgreSQL database, that several machines can share.

        Whoever uses the ledger from then on gives the new place as ``guard``, or names it in
        ``HUSHSUM_GUARD``; the old place is of no use any more.

        Raises
        ------
        FileRefused
            if the ledger may not be the newest copy.
        """
        moved = RollbackGuard(self._identity, self._place, self._state, to)
        moved.prepare()
        with self._writing() as journal:
            body = {"who": person(who), "reason": reason_of(reason), "guard": new_guard_id()}
            journal.append(Kind.GUARD_MOVED, body=body)
            mark = watermark_of(journal)
            # Before the commit, and the old one first: after a crash there may be no guard, but never two.
            self._guard.shared.reset(replace(mark, guard=None))
            moved.reset(mark)
            self._guard = moved

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
    def _writing(self) -> Iterator[Journal]:
        """Append in one transaction, then advance the rollback guard; both or, after a crash, only the first.

        The guard is advanced also where nothing was appended: whoever is given what an earlier attempt has
        staged must not rely on a guard that this attempt did not live to write.
        """
        self._guard.prepare()
        with self._database.writing() as connection:
            journal = self._opened(connection, lock=True)
            problem = rollback_refusal(journal, self._guard.read())
            if problem is not None:
                raise problem
            yield journal
            mark = watermark_of(journal)
        if self._guard.advance(mark):
            known = self._guard.read()
            with self._reading() as journal:
                check_kept(journal, mark, known)


def _refuse_lost(guard: Path | None) -> None:
    """Refuse to make a ledger where the guard of another one is, which had more than its creation."""
    mark = None if guard is None else GuardFile(guard).read()
    if mark is None or mark.last.sequence <= 1:
        return
    raise FileRefused(
        rule=(
            "there is no ledger here, but the rollback guard of one, ",
            FilePath(str(guard), quoted=True),
            ": its database was lost, and a new one would have the whole budget again",
        ),
        remedy=("put the newest copy back, or remove the guard if everything that was released is given up"),
    )
