"""Long work that waits, runs, ended well or failed; it survives every process."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from hushsum.errors import UsageError
from hushsum.ledger.database import Database
from hushsum.service.store.schema import jobs
from hushsum.service.store.store import Actor, new_id, now, write_log

QUEUED = "queued"
RUNNING = "running"
DONE = "done"
FAILED = "failed"
STATES = (QUEUED, RUNNING, DONE, FAILED)
MOST_ATTEMPTS = 5
"""So often a worker may die on a job before it counts as failed."""


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of long work. ``problem`` is an RFC 9457 object if it failed."""

    id: str
    kind: str
    dataset: str
    account: str
    key: str
    request: dict[str, Any]
    state: str
    progress: float | None
    attempts: int
    result: dict[str, Any] | None
    problem: dict[str, Any] | None
    created: str
    updated: str


class JobQueue:
    """The queue. A job belongs to one worker as long as that renews its lease."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def submit(
        self, kind: str, *, dataset: str, key: str, request: dict[str, Any], actor: Actor
    ) -> tuple[Job, bool]:
        """Queue work, or find the job of this key; whether it is new. One that failed is queued again.

        Raises
        ------
        UsageError
            if the key belongs to another request.
        """
        text = json.dumps(request, sort_keys=True)
        mine = (jobs.c.dataset == dataset, jobs.c.kind == kind, jobs.c.key == key)
        with self._database.writing() as connection:
            row = connection.execute(sa.select(jobs).where(*mine)).one_or_none()
            if row is not None:
                if row.request != text:
                    raise UsageError(
                        "the Idempotency-Key belongs to another request; repeat that one, or give a new key"
                    )
                if row.state == FAILED:
                    again = {"state": QUEUED, "problem": None, "attempts": 0, "updated": now()}
                    connection.execute(sa.update(jobs).where(*mine).values(**again))
                    write_log(connection, actor, f"{kind} asked again", row.id)
                    row = connection.execute(sa.select(jobs).where(*mine)).one()
                return _job(row), False
            moment = now()
            values = {
                "id": new_id("job"),
                "kind": kind,
                "dataset": dataset,
                "account": actor.account,
                "key": key,
                "request": text,
                "state": QUEUED,
                "progress": None,
                "attempts": 0,
                "lease": 0.0,
                "result": None,
                "problem": None,
                "created": moment,
                "updated": moment,
            }
            connection.execute(sa.insert(jobs).values(values))
            write_log(connection, actor, f"{kind} asked", str(values["id"]))
            row = connection.execute(sa.select(jobs).where(*mine)).one()
            return _job(row), True

    def find(self, id: str) -> Job | None:
        """A job."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(jobs).where(jobs.c.id == id)).one_or_none()
        return None if row is None else _job(row)

    def of_key(self, dataset: str, kind: str, key: str) -> Job | None:
        """The job of a key, if there is one."""
        query = sa.select(jobs).where(jobs.c.dataset == dataset, jobs.c.kind == kind, jobs.c.key == key)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _job(row)

    def of(self, dataset: str) -> list[Job]:
        """A dataset's jobs, oldest first."""
        query = sa.select(jobs).where(jobs.c.dataset == dataset).order_by(jobs.c.created)
        with self._database.reading() as connection:
            return [_job(row) for row in connection.execute(query)]

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        query = sa.select(jobs.c.state, sa.func.count()).group_by(jobs.c.state)
        with self._database.reading() as connection:
            found = {row[0]: int(row[1]) for row in connection.execute(query)}
        return {state: found.get(state, 0) for state in STATES}

    def longest_wait(self) -> float:
        """Seconds since the oldest job that nobody has begun was submitted; 0 if there is none."""
        query = sa.select(sa.func.min(jobs.c.updated)).where(jobs.c.state == QUEUED)
        with self._database.reading() as connection:
            oldest: str | None = connection.execute(query).scalar()
        if oldest is None:
            return 0.0
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(oldest)).total_seconds())

    def claim(self, lease_seconds: float) -> Job | None:
        """Take the oldest job that nobody works on; also one whose worker has been silent for too long."""
        free = (jobs.c.state == QUEUED) | ((jobs.c.state == RUNNING) & (jobs.c.lease < time.time()))
        with self._database.reading() as connection:
            if connection.execute(sa.select(jobs.c.id).where(free).limit(1)).first() is None:
                return None
        query = sa.select(jobs).where(free).order_by(jobs.c.created).limit(1)
        with self._database.writing() as connection:
            row = connection.execute(query.with_for_update(skip_locked=True)).one_or_none()
            if row is None:
                return None
            taken = {
                "state": RUNNING,
                "lease": time.time() + lease_seconds,
                "attempts": row.attempts + 1,
                "updated": now(),
            }
            connection.execute(sa.update(jobs).where(jobs.c.id == row.id).values(**taken))
            row = connection.execute(sa.select(jobs).where(jobs.c.id == row.id)).one()
        return _job(row)

    def renew(self, id: str, lease_seconds: float, progress: float | None) -> None:
        """Keep a job, and tell how far it has come."""
        values: dict[str, Any] = {"lease": time.time() + lease_seconds, "updated": now()}
        if progress is not None:
            values["progress"] = progress
        with self._database.writing() as connection:
            connection.execute(
                sa.update(jobs).where(jobs.c.id == id, jobs.c.state == RUNNING).values(**values)
            )

    def postpone(self, id: str, seconds: float) -> None:
        """Let a job rest before somebody takes it up again."""
        with self._database.writing() as connection:
            connection.execute(
                sa.update(jobs)
                .where(jobs.c.id == id, jobs.c.state == RUNNING)
                .values(lease=time.time() + seconds, updated=now())
            )

    def finish(self, id: str, result: dict[str, Any]) -> None:
        """A job ended well."""
        self._end(id, state=DONE, progress=1.0, result=json.dumps(result), problem=None)

    def fail(self, id: str, problem: dict[str, Any]) -> None:
        """A job failed."""
        self._end(id, state=FAILED, problem=json.dumps(problem))

    def _end(self, id: str, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.update(jobs).where(jobs.c.id == id).values(updated=now(), **values))


def _job(row: sa.Row[Any]) -> Job:
    return Job(
        row.id,
        row.kind,
        row.dataset,
        row.account,
        row.key,
        json.loads(row.request),
        row.state,
        row.progress,
        row.attempts,
        None if row.result is None else json.loads(row.result),
        None if row.problem is None else json.loads(row.problem),
        row.created,
        row.updated,
    )
