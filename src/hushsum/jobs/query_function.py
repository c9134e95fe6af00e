"""Ask a released function: a few points, or a file of them of any size. Spends nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushsum._types import Floats
from hushsum.errors import Argument, Parameter, UsageError, shown
from hushsum.jobs.output_files import open_function
from hushsum.jobs.progress import Progress
from hushsum.kernels.parameters import one_of
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.columns_by_name import choose_columns, columns_in_words
from hushsum.records.dates import NO_DATES, DateFormat
from hushsum.records.record_batches import open_batches
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.sketch import ESTIMATORS, TableFunction

BOUND_LEVEL = 0.95
"""The level at which the median of means is formed, and the only one its theorem is then about."""


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The quantity to compute, f(q)/N or the ``sum`` f(q), the level and the estimator."""

    sum: bool = False
    level: float = 0.95
    estimator: str = "mean"
    simultaneous: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        one_of("estimator", self.estimator, ESTIMATORS)
        if not 0.0 < self.level < 1.0:
            raise UsageError(
                parameter="level", rule="must be between 0 and 1", got=f"{self.level}", remedy="try 0.95"
            )
        if self.estimator != "mean" and self.level != BOUND_LEVEL:
            raise UsageError(
                parameter="level",
                rule=f"must be {BOUND_LEVEL} for the median of means",
                got=self.level,
                remedy="leave it out, or use the mean",
            )
        if self.estimator != "mean" and self.simultaneous:
            raise UsageError(
                parameter="simultaneous",
                rule="is for the mean over rows",
                got="it with the median of means",
                remedy="leave one of the two out",
            )


@dataclass(frozen=True, slots=True)
class AnsweredQueries:
    """Some queries and their answers; arrays of shape (n_queries,).

    ``queries`` is a list of rows of numbers or of sets, or an Arrow batch of the columns of a file; dates are
    text in both.
    ``stderr`` is NaN for the median of means, which has a bound instead, that ``lower`` and ``upper`` give;
    all three are NaN where a method has no error estimate.
    """

    queries: Any
    value: Floats
    stderr: Floats
    lower: Floats
    upper: Floats

    def as_json(self) -> list[dict[str, Any]]:
        """One dictionary per query; None for what is not known."""
        points = self.queries if isinstance(self.queries, list) else _rows_of(self.queries)
        columns = (self.value, self.stderr, self.lower, self.upper)
        return [
            {
                "at": point,
                **{
                    name: None if math.isnan(number) else number
                    for name, number in zip(("value", "stderr", "lower", "upper"), numbers, strict=True)
                },
            }
            for point, *numbers in zip(points, *(column.tolist() for column in columns), strict=True)
        ]


def query_points(
    source: str, points: Sequence[Sequence[float | str]], terms: QueryTerms, dates: DateFormat = NO_DATES
) -> AnsweredQueries:
    """Answers at points given as numbers, and as ISO dates in the columns of ``dates``; for a function of
    sets each is one set of integers.

    Raises
    ------
    UsageError
        if a point has another number of values than the function has columns, or a value it cannot have.
    """
    function = open_function(source)
    of_dates = _positions(function, dates)
    if not points:
        raise UsageError(
            parameter="at",
            rule="must be at least one point",
            got="none",
            remedy=("give a point, or a file with ", Parameter("points")),
        )
    dim = function.dim
    listed: list[list[float]] = []
    for given in points:
        if dim is not None and len(given) != dim:
            raise UsageError(
                parameter="at",
                rule=f"must have {dim} values for this function",
                got=len(given),
                remedy="separate them by commas",
            )
        point = [_coordinate(value, i in of_dates, dates) for i, value in enumerate(given)]
        listed.append(point)
        if not all(math.isfinite(value) for value in point):
            raise UsageError(
                parameter="at",
                rule="must have finite values",
                got="NaN or infinity",
                remedy="give numbers",
            )
        if dim is None and any(value != int(value) for value in point):
            raise UsageError(
                parameter="at",
                rule="must have integers as members of a set",
                got="a fraction",
                remedy="number the members",
            )
    if dim is None:
        sets = [[int(value) for value in point] for point in listed]
        return _ask(function, sets, sets, terms)
    return _ask(function, [list(point) for point in points], np.array(listed, np.float64), terms)


def _positions(function: ReleasedFunction, dates: DateFormat) -> list[int]:
    """Where the columns of dates are."""
    if not dates.columns:
        return []
    if function.columns is None:
        raise UsageError(
            parameter="dates", rule="must name columns", got="a file whose columns have no names"
        )
    return choose_columns(function.columns, dates.columns, "dates")


def _coordinate(value: float | str, is_date: bool, dates: DateFormat) -> float:
    if not isinstance(value, str):
        return value
    if not is_date:
        raise UsageError(
            parameter="at",
            rule="must have numbers in columns that are not declared as dates",
            got=shown(value),
            remedy=("name the column in ", Argument("dates")),
        )
    return dates.number(value, "at")


def query_nodes(
    source: str,
    nodes: Sequence[str],
    graph: str,
    terms: QueryTerms,
    *,
    columns: Sequence[str] | None = None,
    directed: bool = False,
) -> AnsweredQueries:
    """Answers at nodes of a graph, whose neighbours are looked up in a public edge list.

    Raises
    ------
    UsageError
        if the function is not one of sets.
    """
    from hushsum.records.edge_list import read_edges

    function = open_function(source)
    if function.dim is not None:
        raise UsageError(
            parameter="node",
            rule="is for functions of sets",
            got=f"it for a function of {columns_in_words(function.dim)}",
            remedy=("give a point with ", Parameter("at")),
        )
    sets = read_edges(graph, columns=columns, directed=directed).neighbours(nodes)
    return _ask(function, list(nodes), sets, terms)


def query_file(
    source: str,
    path: str,
    terms: QueryTerms,
    *,
    columns: Sequence[str] | None = None,
    set_column: str | None = None,
    cells: CellFormat = PLAIN,
    progress: Progress | None = None,
) -> Iterator[AnsweredQueries]:
    """Answers at the points of a CSV, Parquet or Arrow file, batch by batch, in bounded memory.

    Columns are found by the names the function knows; ``columns`` gives other names, in the function's order,
    and a function without names takes all columns in the file's order. For a function of sets,
    ``set_column`` names the column of them, unless the file has one column only. ``cells`` are read as
    declared. The first batch is answered before this returns, so that an error is reported before anything is
    written.
    """
    if source == path == "-":
        raise UsageError(
            rule="function and points cannot both come from standard input", remedy="give one as a file"
        )
    if terms.simultaneous:
        raise UsageError(
            parameter="simultaneous",
            rule=("is for the points of ", Parameter("at"), ": a file is answered while it is read"),
            remedy="leave it out, or query the function in Python",
        )
    function = open_function(source)
    if function.dim is None and set_column is None:
        with open_batches(path, columns=columns, cells=cells) as peek:
            names = peek.column_names
        if path == "-" or len(names) != 1:
            raise UsageError(
                parameter="set_column",
                rule="must name the column of sets for this function",
                remedy="give it",
            )
        set_column, columns = names[0], None
    answered = _answer_file(function, path, terms, columns, set_column, cells, progress)
    first = next(answered)
    return _chain(first, answered)


def _chain(first: AnsweredQueries, rest: Iterator[AnsweredQueries]) -> Iterator[AnsweredQueries]:
    yield first
    yield from rest


def _answer_file(
    function: ReleasedFunction,
    path: str,
    terms: QueryTerms,
    columns: Sequence[str] | None,
    set_column: str | None,
    cells: CellFormat,
    progress: Progress | None,
) -> Iterator[AnsweredQueries]:
    dim = function.dim
    own = function.columns
    chosen = own if columns is None else columns
    dates = cells.dates
    with open_batches(path, columns=chosen, set_column=set_column, cells=cells) as stream:
        choose_columns(stream.column_names, dates.columns, "dates")
        for batch, _ in stream:
            if dim is not None and 1 < batch.num_columns != dim:
                raise UsageError(
                    parameter="points",
                    rule=f"must have {columns_in_words(dim)} for this function",
                    got=f"{batch.num_columns}",
                    remedy="choose the columns",
                )
            renamed = own is not None and columns is not None and len(own) == batch.num_columns
            queries = batch.rename_columns(list(own)) if renamed and own else batch
            yield _ask(function, with_dates(batch, dates), queries, terms)
            if progress is not None:
                progress(stream.progress)


def with_dates(batch: Any, dates: DateFormat) -> Any:
    """The batch with dates in place of their numbers, as it is shown."""
    for name in dates.columns:
        i = batch.schema.get_field_index(name)
        batch = batch.set_column(i, name, dates.text(batch.column(i)))
    return batch


def _ask(function: ReleasedFunction, shown: Any, queries: object, terms: QueryTerms) -> AnsweredQueries:
    if terms.estimator == "mean":
        answers = function.query(
            queries,
            of="sum" if terms.sum else "mean",
            level=terms.level,
            simultaneous=terms.simultaneous,
            threads=terms.threads,
        )
        return AnsweredQueries(shown, answers.value, answers.stderr, answers.lower, answers.upper)
    if not isinstance(function, TableFunction):
        raise UsageError(
            parameter="estimator",
            rule="must be mean for this function, which has no hash rows",
            got=repr(terms.estimator),
            remedy="leave it out",
        )
    sums = function.sum(queries, estimator=terms.estimator)
    reach = function.error_bound(queries, failure=1.0 - BOUND_LEVEL)
    if not terms.sum:
        # A quotient of two estimates: the error of the count adds its part, at two standard errors.
        reach = (reach + 2.0 * function.count_stderr * np.abs(sums) / function.count) / function.count
        sums = sums / function.count
    return AnsweredQueries(shown, sums, np.full(len(sums), np.nan), sums - reach, sums + reach)


def _rows_of(batch: Any) -> list[list[Any]]:
    columns = [column.to_pylist() for column in batch.columns]
    if len(columns) == 1 and columns[0] and isinstance(columns[0][0], list):
        members: list[list[Any]] = columns[0]
        return members
    return [list(row) for row in zip(*columns, strict=True)]
