"""Datasets, and what was brought for them: uploads, and the tallies made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa

from hushsum.errors import QuotaExceeded, UsageError

from .rows import Actor, Rows, exists, value_of, write_log
from .schema import Dataset, StoredTally, Upload, accounts, datasets, jobs, now, tallies, uploads

WAITING = "waiting"
USED = "used"
DELETED = "deleted"
# In the result of a job that has started a stream: how many bytes its state takes.
STATE_BYTES = "state_bytes"


@dataclass(frozen=True, slots=True)
class Quota:
    """Stored amounts, or their limits for one owner: bytes of uploads, tallies and states of streams; cells
    of tallies.
    """

    bytes: int
    cells: int


class Datasets(Rows):
    """Datasets, uploads and tallies."""

    def create(self, id: str, owner: str, name: str, actor: Actor) -> Dataset:
        """Remember a dataset, whose account is in the ledger already.

        Raises
        ------
        UsageError
            if the owner has one of that name.
        """
        made = Dataset(id, owner, name, now(), deleted=None)
        self._add(datasets, made, actor, "dataset created", partial(_check_free, owner, name))
        return made

    def check_free(self, owner: str, name: str) -> None:
        """Raise if the owner has a dataset of that name."""
        with self._database.reading() as connection:
            _check_free(owner, name, connection)

    def of(self, owner: str) -> list[Dataset]:
        """The datasets of an owner, oldest first."""
        return self._all(Dataset, owner=owner, deleted=None)

    def find(self, id: str, *, owner: str) -> Dataset | None:
        """A dataset, if it is this owner's."""
        return self._one(Dataset, id=id, owner=owner, deleted=None)

    def exists(self, id: str) -> bool:
        """Whether there is such a dataset, of any owner, that was not deleted."""
        return self._one(Dataset, id=id, deleted=None) is not None

    def delete(self, id: str, actor: Actor) -> tuple[list[Upload], list[str]]:
        """Forget a dataset, its uploads and its tallies; those whose files are to be deleted. The row stays,
        for the functions that were released from it.
        """
        waiting = (uploads.c.dataset == id, uploads.c.state == WAITING)
        with self._database.writing() as connection:
            # The name is free again; the id is no name that anybody can choose.
            connection.execute(sa.update(datasets).where(datasets.c.id == id).values(deleted=now(), name=id))
            files = [value_of(Upload, row) for row in connection.execute(sa.select(uploads).where(*waiting))]
            connection.execute(sa.update(uploads).where(*waiting).values(state=DELETED))
            counted = connection.execute(sa.select(tallies.c.id).filter_by(dataset=id)).scalars().all()
            connection.execute(sa.delete(tallies).filter_by(dataset=id))
            write_log(connection, actor, "dataset deleted", id)
        return files, list(counted)

    def kept_by(self, owner: str) -> Quota:
        """The stored amounts of an owner."""
        with self._database.reading() as connection:
            return _kept(connection, owner)

    def check_room(self, owner: str, quota: Quota, *, bytes: int = 0, cells: int = 0) -> None:
        """Raise QuotaExceeded if an owner would keep too much with these bytes and cells."""
        kept = self.kept_by(owner)
        check_quota(quota, Quota(kept.bytes + bytes, kept.cells + cells))

    def add_upload(self, made: Upload, actor: Actor, *, quota: Quota | None = None) -> Upload:
        """Remember an upload that is complete on the disk.

        Raises
        ------
        QuotaExceeded
            if its owner then keeps too many bytes.
        """
        check = partial(_check_quota, quota, made.dataset, made.size, 0)
        self._add(uploads, made, actor, "upload received", check)
        return made

    def uploads_of(self, dataset: str) -> list[Upload]:
        """The uploads of a dataset, oldest first."""
        return self._all(Upload, dataset=dataset)

    def upload(self, id: str, *, dataset: str) -> Upload | None:
        """An upload, if it is this dataset's."""
        return self._one(Upload, id=id, dataset=dataset)

    def end_upload(self, id: str, state: str, actor: Actor) -> None:
        """Say that the file of an upload is about to be deleted, and why."""
        query = sa.update(uploads).where(uploads.c.id == id, uploads.c.state == WAITING)
        self._change(query.values(state=state), actor, f"upload {state}", id)

    def uploads_before(self, moment: str) -> list[Upload]:
        """Uploads that wait since before a moment."""
        query = sa.select(uploads).where(uploads.c.state == WAITING, uploads.c.created < moment)
        return self._all(Upload, query)

    def add_tally(self, made: StoredTally, actor: Actor, *, quota: Quota | None = None) -> None:
        """Remember a tally that is complete on the disk; once, however often it is called.

        Raises
        ------
        QuotaExceeded
            if its owner then keeps too many cells or bytes.
        """
        check = partial(_check_quota, quota, made.dataset, made.size, made.cells)
        self._add(tallies, made, actor, "tally made", check)

    def delete_tally(self, id: str, actor: Actor) -> None:
        """Forget a tally."""
        self._change(sa.delete(tallies).where(tallies.c.id == id), actor, "tally deleted", id)

    def tally_ids(self) -> list[str]:
        """The tallies of all datasets."""
        return self._column(sa.select(tallies.c.id))

    def tallies_of(self, dataset: str) -> list[StoredTally]:
        """The tallies of a dataset, oldest first."""
        return self._all(StoredTally, dataset=dataset)

    def tally(self, id: str, *, dataset: str) -> StoredTally | None:
        """A tally, if it is this dataset's."""
        return self._one(StoredTally, id=id, dataset=dataset)


def _kept(connection: sa.Connection, owner: str) -> Quota:
    mine = sa.select(datasets.c.id).where(datasets.c.owner == owner)
    waiting = sa.select(sa.func.coalesce(sa.func.sum(uploads.c.size), 0)).where(
        uploads.c.dataset.in_(mine), uploads.c.state == WAITING
    )
    counted = sa.select(
        sa.func.coalesce(sa.func.sum(tallies.c.size), 0), sa.func.coalesce(sa.func.sum(tallies.c.cells), 0)
    ).where(tallies.c.dataset.in_(mine))
    size, cells = connection.execute(counted).one()
    streams = sa.select(jobs.c.result).where(
        jobs.c.kind == "stream",
        jobs.c.result.is_not(None),
        jobs.c.dataset.in_(mine.where(datasets.c.deleted.is_(None))),
    )
    states = sum(result.get(STATE_BYTES, 0) for result in connection.execute(streams).scalars())
    return Quota(int(connection.execute(waiting).scalar_one()) + int(size) + states, int(cells))


def _check_quota(quota: Quota | None, dataset: str, size: int, cells: int, connection: sa.Connection) -> None:
    if quota is None:
        return
    owner = connection.execute(sa.select(datasets.c.owner).where(datasets.c.id == dataset)).scalar_one()
    # Locked, so that two additions of one owner do not both fit into what is left.
    connection.execute(sa.select(accounts.c.id).where(accounts.c.id == owner).with_for_update())
    kept = _kept(connection, owner)
    check_quota(quota, Quota(kept.bytes + size, kept.cells + cells))


def check_quota(quota: Quota, kept: Quota) -> None:
    """Raise QuotaExceeded if an owner would keep more than one owner may."""
    if kept.bytes > quota.bytes:
        rule = f"an owner must keep at most {quota.bytes} bytes of uploads, tallies and streams"
        raise QuotaExceeded(rule, remedy="delete some first")
    if kept.cells > quota.cells:
        rule = f"an owner must keep tallies of at most {quota.cells} cells in all"
        raise QuotaExceeded(rule, remedy="delete some first, or take fewer rows")


def _check_free(owner: str, name: str, connection: sa.Connection) -> None:
    if exists(connection, datasets.c.owner == owner, datasets.c.name == name):
        raise UsageError("name", "must be new", got="the name of another dataset of yours")
