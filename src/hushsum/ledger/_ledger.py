"""The ledger: datasets, debits of releases, history, and reports for readers outside.

A debit is drawn, staged and published; each step is durable, so that a retry after a crash continues.
`_rollback_guard` detects a ledger that was restored from an older copy.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection

from hushsum.errors import ClaimError, FilePath, FileRefused, UsageError
from hushsum.privacy import Claim

from ._account import RETIRED, Account, Charge, DatasetTerms, charge_for
from ._database import (
    WAIT_SECONDS,
    check_revision,
    connect,
    file_of,
    has_ledger,
    no_ledger,
    require_folder,
    staged,
    upgrade,
)
from ._events import (
    Entry,
    Event,
    Journal,
    Kind,
    Receipt,
    Verification,
    check_name,
    check_same,
    entries_of,
    new_guard_id,
    person,
    reason_of,
    staged_bytes,
    verify_chain,
)
from ._rollback_guard import (
    LedgerGuard,
    WatermarkGuard,
    check_kept,
    guard_place,
    record_accepted_restore,
    rollback_refusal,
    valid_receipts,
    watermark_of,
)


class DatasetBudget:
    """The budget of a dataset in a ledger, or of one of its parts; made by :meth:`Ledger.dataset`.

    A :class:`hushsum.privacy.Budget`: give it to a releasing call as ``budget=``.

    Attributes
    ----------
    ledger_id : str
        The ledger's own name, the same wherever it is moved.
    dataset : str
        The dataset's name in the ledger.
    part : str or None
        The declared part of the data that the releases read.
    """

    def __init__(
        self,
        ledger: Ledger,
        dataset: str,
        *,
        part: str | None = None,
        to: str | None = None,
        who: str | None = None,
        fence: Fence | None = None,
    ) -> None:
        self._ledger, self.ledger_id, self.dataset, self.part = ledger, ledger.id, dataset, part
        self._to, self._who, self._fence = to, who, fence

    def __repr__(self) -> str:
        part = "" if self.part is None else f", part={self.part!r}"
        return f"<DatasetBudget {self.dataset!r}{part}>"

    @property
    def account(self) -> Account:
        """The dataset's terms, and what was spent and is left."""
        return self._ledger.account(self.dataset)

    @property
    def remaining(self) -> Charge:
        """The budget that is left, of the dataset or of its part."""
        return self.account.remaining_in(self.part)

    def find(self, idempotency_key: str) -> Entry | None:
        """The release with this key."""
        return self._ledger.find(idempotency_key)

    def price(self, claim: Claim, *, called: str | None = None) -> tuple[Charge, Account]:
        """The price of a claim, and the account after it; nothing is debited.

        Parameters
        ----------
        called : str, optional
            The dataset's name in error messages, where users know it by another one.

        Raises
        ------
        BudgetExhausted, ClaimError
            as ``debit`` would.
        """
        return self._charged(self.account, claim, called or self.dataset)

    def cost(self, claim: Claim) -> Charge:
        """The price of a claim, whether or not as much is left.

        Raises
        ------
        ClaimError
            if the claim cannot be debited.
        """
        return charge_for(claim, self.account.terms, part=self.part)

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> LedgerDebit:
        """Debit a claim, or find the debit of this key; `hushsum.privacy` calls it.

        Parameters
        ----------
        subject : mapping
            What is released, publicly: nothing that depends on the records.
        idempotency_key : str
            Names the attempt. The same key never spends twice, and is refused for anything else.

        Raises
        ------
        BudgetExhausted
            if less is left than the claim costs; nothing is debited.
        ClaimError
            if the claim cannot be debited.
        AlreadyPublished
            if the release with this key has reached its reader.
        UsageError
            if the key belongs to another release.
        """
        check_name("idempotency_key", idempotency_key)
        public = dict(subject)
        with self._ledger._writing() as journal:
            entry = journal.entry(idempotency_key)
            if entry is not None:
                check_same(entry, self.dataset, claim, public, self.part)
            else:
                if self._fence is not None:
                    self._fence(journal.connection)
                charge, after = self._charged(journal.account(self.dataset), claim, self.dataset)
                body = {
                    "who": person(self._who),
                    "to": self._to,
                    "part": self.part,
                    "subject": public,
                    "claim": claim.as_json(),
                    "charge": charge.as_json(),
                    "account": after.as_json(),
                }
                journal.append(Kind.DEBITED, dataset=self.dataset, key=idempotency_key, body=body)
        return LedgerDebit(self._ledger, idempotency_key)

    def _charged(self, account: Account, claim: Claim, called: str) -> tuple[Charge, Account]:
        charge = charge_for(claim, account.terms, part=self.part)
        return charge, account.debited(charge, part=self.part, dataset=called)


PIECE = 1 << 24
"""Staged bytes are kept in rows of this size, so that no row meets a database's limit."""

Fence = Callable[[sa.Connection], None]
"""Called in the transaction of a new debit, with its connection; raises if this process may not spend any
more, such as a worker whose job was given to another one.
"""


class LedgerDebit:
    """A debit of a :class:`Ledger`. Each step is one short transaction; no lock is held between them.

    Two processes may hold the debit of one key. Both may draw, but only the first to stage counts: the
    other gets those bytes back from ``stage``, and what it drew itself leaves it nowhere.
    """

    def __init__(self, ledger: Ledger, key: str) -> None:
        self._ledger, self.key = ledger, key

    @property
    def entry(self) -> Entry:
        """The release as the ledger has it now."""
        with self._ledger._reading() as journal:
            return self._entry(journal)

    @property
    def staged(self) -> bytes | None:
        """The bytes that wait to be published; None before *staged* and after *published*.

        The rollback guard has them when this returns: whoever staged them may have been killed before.
        """
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            return staged_bytes(journal.connection, entry) if entry.step is Kind.STAGED else None

    def draw(self) -> None:
        """Record that noise is about to be drawn; from here on nothing is refunded.

        Raises
        ------
        AlreadyPublished
            if a release with this key has been published.
        UsageError
            if the debit was voided, or a restored backup was accepted since: then it may have been drawn in
            the events that were lost, and a second result for one debit must not exist.
        """
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            entry.refuse_again()
            if entry.step in (Kind.DEBITED, Kind.DRAWN):
                self._refuse_lost(journal, entry)
            if entry.step is Kind.DEBITED:
                journal.append(Kind.DRAWN, dataset=entry.dataset, key=self.key)

    def stage(self, payload: bytes) -> bytes:
        """Keep the bytes durably; returns those of the first to stage."""
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            if entry.step is Kind.STAGED:
                return staged_bytes(journal.connection, entry)
            entry.refuse_again()
            if entry.step is not Kind.DRAWN:
                raise UsageError(
                    "bytes are staged after they were drawn", got=f"the step {str(entry.step)!r}"
                )
            self._refuse_lost(journal, entry)
            for position, start in enumerate(range(0, len(payload), PIECE)):
                piece = payload[start : start + PIECE]
                journal.connection.execute(
                    sa.insert(staged).values(key=self.key, position=position, bytes=piece)
                )
            body = {"sha256": hashlib.sha256(payload).hexdigest(), "size": len(payload)}
            journal.append(Kind.STAGED, dataset=entry.dataset, key=self.key, body=body)
        return payload

    def publish(self) -> None:
        """Record that the bytes have reached their reader; the ledger then keeps only their SHA-256."""
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            if entry.step is Kind.PUBLISHED:
                return
            if entry.step is not Kind.STAGED:
                raise UsageError("only staged bytes are published", got=f"the step {str(entry.step)!r}")
            journal.append(Kind.PUBLISHED, dataset=entry.dataset, key=self.key)
            journal.connection.execute(sa.delete(staged).where(staged.c.key == self.key))

    def _entry(self, journal: Journal) -> Entry:
        entry = journal.entry(self.key)
        if entry is None:
            raise FileRefused(
                f"the entry {self.key!r} is no longer in the ledger",
                remedy="was a backup restored? compare with a receipt: hushsum ledger verify --receipt FILE",
            )
        return entry

    def _refuse_lost(self, journal: Journal, entry: Entry) -> None:
        if journal.restored_since(entry.sequence):
            raise UsageError(
                f"the debit {self.key!r} is older than a restored backup that was accepted, and may have "
                "been released in what was lost",
                remedy="release with another idempotency key, which spends again",
            )


class Ledger:
    """The budgets of one or more datasets and their releases, in a file (SQLite) or a PostgreSQL database.

    Several processes and machines may use one ledger at once: each part of a budget is granted once. It is
    append-only and chained by hash.

    It protects against mistakes, crashes and races, and shows tampering. It does not stop an owner who
    releases without it, or who rewrites the database *and* every receipt and rollback guard.

    ``Ledger(place)`` opens one, :meth:`create` makes one.

    Attributes
    ----------
    id : str
        The ledger's own name, the same wherever it is moved.

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
            raise no_ledger()
        self.id = journal.receipt.ledger
        self._place, self._state = place, state
        self._guard = LedgerGuard(self.id, place, state, guard)

    def __repr__(self) -> str:
        return f"<Ledger {self.id} on {self._database.dialect}>"

    def account(self, dataset: str) -> Account:
        """The account of a dataset: what was spent, and what is left."""
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
            event = journal.last_restore()
        return None if event is None else event.at

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
        if journal is None or journal.receipt.ledger != self.id:
            raise FileRefused(
                "another ledger stands where this one was", remedy="check the path, and open it again"
            )
        return journal

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
        """Create a ledger, or upgrade an existing one to this version's schema.

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
            # Before the guard, which makes the folders that it needs.
            require_folder(file)
            _refuse_lost(beside)
        LedgerGuard("", place, state, guard).prepare()
        database = connect(place, create=True, wait_seconds=wait_seconds)
        with database.writing() as connection:
            upgrade(connection)
            journal = Journal.opened(connection, lock=True)
            if journal is None:
                _refuse_lost(beside)
                journal = Journal.created(connection, uuid.uuid4().hex, person(who))
                # Before the commit: no other machine may find a ledger without a guard, and begin its own.
                LedgerGuard(journal.receipt.ledger, place, state, guard).reset(watermark_of(journal))
        return cls(place, state=state, guard=guard, wait_seconds=wait_seconds)

    @classmethod
    def upgrade(cls, place: str | os.PathLike[str]) -> Ledger:
        """Bring an existing ledger to this version's schema, and open it."""
        database = connect(place)
        with database.writing() as connection:
            if not has_ledger(connection):
                raise no_ledger()
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
                raise UsageError(f"dataset {name!r} is in the ledger already", remedy="choose another name")
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
        budget = DatasetBudget(self, name, part=part, to=to, who=who, fence=fence)
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
                raise UsageError(f"no release has the key {key!r}", remedy="see hushsum ledger history")
            if entry.step is not Kind.DEBITED:
                raise UsageError(
                    "only a debit that was never drawn can be voided",
                    got=f"the step {str(entry.step)!r}",
                    remedy="what may have been seen is spent",
                )
            if journal.restored_since(entry.sequence):
                raise UsageError(
                    "a debit older than a restored backup may have been drawn in what was lost",
                    remedy="it stays spent",
                )
            after = journal.account(entry.dataset).voided(entry.charge, part=entry.part)
            self._book(journal, Kind.VOIDED, entry.dataset, after, who, key=key)
        return entry

    def change_budget(self, dataset: str, budget: Charge, *, reason: str, who: str | None = None) -> Account:
        """Set another total, recorded with its reason. A total below what was spent stops all releases."""
        with self._writing() as journal:
            after = journal.account(dataset).with_budget(budget)
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
        if charge != charge.at_least(Charge()):
            remedy = "what was spent is not given back"
            raise ClaimError("a write-off must be at least 0", got="less", remedy=remedy)
        with self._writing() as journal:
            after = journal.account(dataset).written_off(charge)
            why = reason_of(reason)
            self._book(journal, Kind.WRITTEN_OFF, dataset, after, who, reason=why, charge=charge.as_json())
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
                        "the ledger has all that its rollback guard names",
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
        moved = LedgerGuard(self.id, self._place, self._state, to)
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
    mark = None if guard is None else WatermarkGuard.in_file(guard).known()
    if mark is None or mark.last.sequence <= 1:
        return
    raise FileRefused(
        (
            "there is no ledger here, but the rollback guard of one, ",
            FilePath(str(guard), quoted=True),
            ": its database was lost, and a new one would have the whole budget again",
        ),
        remedy="put the newest copy back, or remove the guard if everything that was released is given up",
    )
