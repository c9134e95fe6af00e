"""Reading the audit log: filtered, from either end, with the names of what its ids stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from hushsum.ledger.database import Database
from hushsum.service.store.database import LogLine, as_dict
from hushsum.service.store.schema import (
    accounts,
    datasets,
    functions,
    jobs,
    log,
    shares,
    tallies,
    tokens,
    uploads,
)

MOST_LINES: Final = 1000


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines are read; what is None does not matter. ``action`` is a part of what was done, ``account``
    an id, ``since`` and ``until`` the first and the last day, such as ``2026-05-03``.
    """

    after: int = 0
    before: int | None = None
    account: str | None = None
    action: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line of the log, and the names of its account and its object, if they are known."""

    line: LogLine
    account_name: str | None
    object_name: str | None


class LogReader:
    """The audit log for people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lines(self, which: LogFilter, *, newest_first: bool, limit: int) -> list[NamedLine]:
        """The lines that a filter lets through, at most ``limit`` of them."""
        query = sa.select(log).where(*_conditions(which)).limit(limit)
        query = query.order_by(log.c.sequence.desc() if newest_first else log.c.sequence)
        with self._database.reading() as connection:
            found = [LogLine(**as_dict(row)) for row in connection.execute(query)]
            names = _names(
                connection, {part for line in found for part in (line.account, *line.object.split())}
            )
        return [NamedLine(line, names.get(line.account), _object_name(line.object, names)) for line in found]


def _conditions(which: LogFilter) -> list[sa.ColumnElement[bool]]:
    conditions = [log.c.sequence > which.after]
    if which.before is not None:
        conditions.append(log.c.sequence < which.before)
    if which.account is not None:
        conditions.append(log.c.account == which.account)
    if which.action is not None:
        conditions.append(log.c.action.contains(which.action, autoescape=True))
    if which.since is not None:
        conditions.append(log.c.at >= which.since)
    if which.until is not None:
        # Times begin with their day, and every sign that follows it sorts below a tilde.
        conditions.append(log.c.at <= f"{which.until}~")
    return conditions


def _object_name(text: str, names: dict[str, str]) -> str | None:
    known = list(dict.fromkeys(names[part] for part in text.split() if part in names))
    # A link is named with its function, which then need not stand before it.
    kept = [name for at, name in enumerate(known) if not any(f"({name})" in each for each in known[at + 1 :])]
    return ", ".join(kept) or None


def _names(connection: sa.Connection, ids: Iterable[str]) -> dict[str, str]:
    """The names that ids stand for: uploads, tallies and jobs are named by their dataset, tokens by their
    label and account, links by their label and function.
    """
    wanted = set(ids)
    of_dataset = [
        sa.select(table.c.id, datasets.c.name.label("name"), sa.literal("").label("more"))
        .join(datasets, datasets.c.id == table.c.dataset)
        .where(datasets.c.deleted.is_(None))
        for table in (uploads, tallies, jobs)
    ]
    queries: dict[str, sa.Select[Any]] = {
        "acc_": sa.select(accounts.c.id, accounts.c.name, sa.literal("").label("more")),
        "ds_": sa.select(datasets.c.id, datasets.c.name, sa.literal("").label("more")).where(
            datasets.c.deleted.is_(None)
        ),
        "fn_": sa.select(functions.c.id, functions.c.name, sa.literal("").label("more")),
        "up_": of_dataset[0],
        "ta_": of_dataset[1],
        "job_": of_dataset[2],
        "tok_": sa.select(tokens.c.id, tokens.c.label.label("name"), accounts.c.name.label("more")).join(
            accounts, accounts.c.id == tokens.c.account
        ),
        "sh_": sa.select(shares.c.id, shares.c.label.label("name"), functions.c.name.label("more")).join(
            functions, functions.c.id == shares.c.function
        ),
    }
    found: dict[str, str] = {}
    for prefix, query in queries.items():
        some = [each for each in wanted if each.startswith(prefix)]
        if some:
            column = query.selected_columns[0]
            for id, name, more in connection.execute(query.where(column.in_(some))):
                found[id] = f"{name} ({more})" if name and more else name or more
    return found
