"""The queue of jobs, which survives every process.

Workers are shared fairly among owners: the next job is one of the owner who has the fewest jobs running now
and, among those, has used the least worker time in the last hour. So an owner with a thousand jobs delays
another owner's first one by no more than the job that is running.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from hushsum.errors import QuotaExceeded, UsageError
from hushsum.ledger import Fence
from hushsum.service.problem_types import problem

from .rows import Actor, Rows, exists, new_id, value_of, write_log
from .schema import Job, accounts, jobs, now

QUEUED = "queued"
RUNNING = "running"
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
ENDED = (DONE, FAILED, CANCELLED)
# How often a worker may die on a job before it counts as failed.
MOST_ATTEMPTS = 5

# Worker time that was used longer ago does not count against its owner.
FAIR_SECONDS = 3600.0

CLOSED = "account-closed"
DELETED = "dataset-deleted"
_REASONS = {
    CANCELLED: "the job was cancelled; nothing was spent. Send the request again with the same key to do it",
    CLOSED: "the account was closed before the job had spent anything; nothing was spent",
    DELETED: "the dataset was deleted before the job had spent anything; nothing was spent",
}


class JobQueue(Rows):
    """The job queue. A job belongs to a worker as long as the worker renews its lease."""

    def submit(
        self, kind: str, dataset: str, key: str, request: dict[str, Any], actor: Actor, *, most: int
    ) -> Job:
        """Queue work, or find the job of this key. One that failed is queued again.

        ``most`` is how many jobs the account may have queued and running.

        Raises
        ------
        UsageError
            if the key belongs to another request.
        QuotaExceeded
            if the account has too many jobs.
        """
        mine = {"dataset": dataset, "kind": kind, "key": key}
        with self._database.writing() as connection:
            found = connection.execute(sa.select(jobs).filter_by(**mine)).one_or_none()
            if found is not None and _text(found.request) != _text(request):
                rule = "the Idempotency-Key belongs to another request"
                raise UsageError(rule, remedy="repeat that one, or give a new key")
            if found is not None and found.state not in (FAILED, CANCELLED):
                return value_of(Job, found)
            if _number_active(connection, actor.account) >= most:
                rule = f"an account must have at most {most} jobs queued and running"
                raise QuotaExceeded(rule, remedy="wait for one, or cancel it")
            # The last account to request it is charged for its time and may stop it.
            values: dict[str, Any] = dict.fromkeys(("progress", "stop", "problem"))
            values |= {"account": actor.account, "state": QUEUED, "attempts": 0, "lease": 0.0}
            values |= {"before": 0.0 if found is None else found.seconds, "updated": now()}
            if found is None:
                values |= mine | {"id": new_id("job"), "created": values["updated"], "request": request}
                values |= {"touched": 0.0, "seconds": 0.0, "paying": False, "result": None}
                connection.execute(sa.insert(jobs).values(values))
            else:
                connection.execute(sa.update(jobs).filter_by(**mine).values(values))
            job = value_of(Job, connection.execute(sa.select(jobs).filter_by(**mine)).one())
            again = "" if found is None else " again"
            write_log(connection, actor, f"{kind} requested{again}", job.id)
        return job

    def find(self, id: str) -> Job | None:
        """A job."""
        return self._one(Job, id=id)

    def of_key(self, dataset: str, kind: str, key: str) -> Job | None:
        """The job of a key, if there is one."""
        return self._one(Job, dataset=dataset, kind=kind, key=key)

    def of(self, dataset: str) -> list[Job]:
        """A dataset's jobs, oldest first."""
        return self._all(Job, dataset=dataset)

    def needs_upload(self, dataset: str, id: str) -> bool:
        """Whether an unfinished job needs an upload, as its records or as public rows."""
        return any(self.using(dataset, name, id) for name in ("upload", "public", "uploads"))

    def using(self, dataset: str, name: str, id: str) -> bool:
        """Whether an unfinished job needs an upload or a tally; ``name`` is its field: ``tally``, ``upload``,
        ``public``, or ``uploads``, which is a list.
        """
        query = sa.select(jobs.c.request).where(jobs.c.dataset == dataset, _active())
        named = [request.get(name) for request in self._column(query)]
        return any(id in each if isinstance(each, list) else id == each for each in named)

    def is_first_step(self, job: Job) -> bool:
        """Whether no earlier step of the same stream is queued or running."""
        query = sa.select(jobs.c.request).where(
            jobs.c.dataset == job.dataset, jobs.c.kind == job.kind, jobs.c.created < job.created, _active()
        )
        return all(request["stream"] != job.request["stream"] for request in self._column(query))

    def active_of(self, account: str) -> int:
        """How many jobs of an account are queued and running."""
        with self._database.reading() as connection:
            return _number_active(connection, account)

    def waiting(self) -> tuple[int, float]:
        """How many jobs are queued, and the seconds since the oldest of them was submitted."""
        query = sa.select(sa.func.count(), sa.func.min(jobs.c.updated)).where(jobs.c.state == QUEUED)
        with self._database.reading() as connection:
            number, oldest = connection.execute(query).one()
        if oldest is None:
            return 0, 0.0
        return number, max(0.0, (datetime.now(UTC) - datetime.fromisoformat(oldest)).total_seconds())

    def claim(self, lease_seconds: float, *, most_running: int | None = None) -> Job | None:
        """Take a job that nobody works on, of the owner whose turn it is; also one whose worker has been
        silent for too long. ``most_running`` is how many jobs of one owner may run at once.
        """
        moment = time.time()
        free = _active() & (jobs.c.lease < moment)
        with self._database.reading() as connection:
            if not exists(connection, free):
                return None
        with self._database.writing() as connection:
            if self._database.dialect == "postgresql":
                # On SQLite a writer is alone already.
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7235925402417296386)")
            account = _whose_turn(connection, free, moment, most_running)
            if account is None:
                return None
            query = sa.select(jobs).where(free, jobs.c.account == account).order_by(jobs.c.created).limit(1)
            row = connection.execute(query).one()
            taken = {"state": RUNNING, "lease": moment + lease_seconds, "touched": moment}
            taken |= {"attempts": row.attempts + 1, "updated": now()}
            connection.execute(sa.update(jobs).filter_by(id=row.id).values(taken))
            return value_of(Job, connection.execute(sa.select(jobs).filter_by(id=row.id)).one())

    def renew(self, job: Job, lease_seconds: float, progress: float | None) -> Job | None:
        """Renew the lease of a job and record its progress.

        Returns the current job, or None if the job no longer belongs to this worker.
        """
        values: dict[str, Any] = {"lease": time.time() + lease_seconds}
        if progress is not None:
            values["progress"] = progress
        return self.find(job.id) if self._change_held(job, **values) else None

    def begin_paying(self, job: Job) -> bool:
        """Decide that a job goes on to its debit, and is not stopped any more; False if it is to stop.

        Either this or a cancellation comes first: both change one row of the database.
        """
        owner = sa.select(accounts.c.id).where(accounts.c.disabled.is_(False))
        allowed = jobs.c.paying.is_(True) | (jobs.c.stop.is_(None) & jobs.c.account.in_(owner))
        return self._change_held(job, allowed, paying=True)

    def fence(self, job: Job, lost: type[Exception]) -> Fence:
        """Raises ``lost`` in a transaction of this database unless the job is this worker's until its end.

        In the transaction of a debit it keeps a worker that was paused for longer than its lease from
        spending for a job that another worker has taken, or that was reported as failed.
        """

        def check(connection: sa.Connection) -> None:
            query = sa.select(jobs.c.id).where(*_mine(job)).with_for_update()
            if connection.execute(query).first() is None:
                raise lost

        return check

    def put_back(self, job: Job, seconds: float, *, attempted: bool) -> None:
        """Queue a job again, to start after a delay; one that only waits for another was not attempted."""
        attempts = job.attempts if attempted else job.attempts - 1
        self._change_held(job, state=QUEUED, lease=time.time() + seconds, attempts=attempts)

    def change_result(self, id: str, **changed: Any) -> None:
        """Change parts of the result of a job that is done."""
        with self._database.writing() as connection:
            query = sa.select(jobs.c.result).where(jobs.c.id == id, jobs.c.state == DONE).with_for_update()
            result = connection.execute(query).scalar_one() | changed
            connection.execute(sa.update(jobs).where(jobs.c.id == id).values(result=result))

    def finish(self, job: Job, result: dict[str, Any]) -> None:
        """Mark a job as done."""
        self._change_held(job, state=DONE, progress=1.0, result=result, problem=None)

    def fail(self, job: Job, problem: dict[str, Any], *, paid: bool = False) -> None:
        """Mark a job as failed; ``paid`` if the ledger has its debit, so that it can still be finished."""
        self._change_held(job, state=FAILED, problem=problem, paying=paid)

    def end_unpaid(self, job: Job, state: str, problem: dict[str, Any]) -> bool:
        """End a job that is not paying; False if it is, or is no longer this worker's."""
        return self._change_held(job, jobs.c.paying.is_(False), state=state, problem=problem)

    def cancel(self, id: str, actor: Actor) -> Job | None:
        """Stop a job unless it is paying or has finished; returns its new state."""
        with self._database.writing() as connection:
            stop_jobs(connection, jobs.c.id == id, CANCELLED, actor)
        return self.find(id)

    def cancel_all(self, dataset: str, actor: Actor) -> bool:
        """Stop the jobs of a dataset that is to be deleted; False if one is paying, or still running."""
        with self._database.writing() as connection:
            stop_jobs(connection, jobs.c.dataset == dataset, DELETED, actor)
            return not exists(connection, jobs.c.dataset == dataset, _active())

    def _change_held(self, job: Job, *conditions: sa.ColumnElement[bool], **values: Any) -> bool:
        """Change a job that this worker holds, and add the time since the last change to its account."""
        moment = time.time()
        spent = jobs.c.seconds + (moment - jobs.c.touched)
        changed = sa.update(jobs).where(*_mine(job), *conditions)
        with self._database.writing() as connection:
            done = connection.execute(changed.values(seconds=spent, touched=moment, updated=now(), **values))
        return bool(done.rowcount)


def stop_jobs(connection: sa.Connection, which: sa.ColumnElement[bool], reason: str, actor: Actor) -> None:
    """Cancel the jobs that no worker runs, and request the workers of running jobs to stop.

    Jobs whose debit has begun continue: what is paid for is finished.
    """
    condition = which & _active() & jobs.c.paying.is_(False)
    # A worker that has been silent for longer than its lease gets no answer when it renews it.
    idle = (jobs.c.state == QUEUED) | (jobs.c.lease < time.time())
    ended = connection.execute(sa.select(jobs.c.id).where(condition, idle)).scalars().all()
    stopping = connection.execute(sa.select(jobs.c.id).where(condition, ~idle)).scalars().all()
    values = {"state": CANCELLED, "problem": stop_problem(reason), "updated": now()}
    connection.execute(sa.update(jobs).where(jobs.c.id.in_(ended)).values(**values))
    connection.execute(sa.update(jobs).where(jobs.c.id.in_(stopping)).values(stop=reason))
    for id in (*ended, *stopping):
        write_log(connection, actor, f"job stopped: {reason}", id)


def stop_problem(reason: str) -> dict[str, Any]:
    """Why a job was stopped, for its owner."""
    return problem(409, reason, _REASONS[reason])


def _text(request: dict[str, Any]) -> str:
    """A request as text, in which 1 and 1.0 differ."""
    return json.dumps(request, sort_keys=True)


def _active() -> sa.ColumnElement[bool]:
    return jobs.c.state.in_((QUEUED, RUNNING))


def _number_active(connection: sa.Connection, account: str) -> int:
    query = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.account == account, _active())
    return int(connection.execute(query).scalar_one())


def _whose_turn(
    connection: sa.Connection, free: sa.ColumnElement[bool], moment: float, most_running: int | None
) -> str | None:
    """The account whose job is next, if there is one."""
    oldest = sa.select(jobs.c.account, sa.func.min(jobs.c.created)).where(free).group_by(jobs.c.account)
    waiting = {row[0]: row[1] for row in connection.execute(oldest)}
    held = (jobs.c.state == RUNNING) & (jobs.c.lease >= moment)
    since = (datetime.now(UTC) - timedelta(seconds=FAIR_SECONDS)).isoformat(timespec="microseconds")
    running = sa.func.sum(sa.case((held, 1), else_=0))
    used = (
        sa.select(jobs.c.account, running, sa.func.sum(jobs.c.seconds))
        .where(jobs.c.account.in_(list(waiting)), (jobs.c.updated > since) | held)
        .group_by(jobs.c.account)
    )
    load = {row[0]: (int(row[1]), float(row[2])) for row in connection.execute(used)}
    order: list[tuple[int, float, str, str]] = sorted(
        (*load.get(account, (0, 0.0)), created, account) for account, created in waiting.items()
    )
    if not order or (most_running is not None and order[0][0] >= most_running):
        return None
    return order[0][3]


def _mine(job: Job) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions for the row of a running job: no other worker has claimed it since this attempt began."""
    return (jobs.c.id == job.id, jobs.c.state == RUNNING, jobs.c.attempts == job.attempts)
