"""Query, compare and describe released functions and their files. Spends nothing."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushsum._types import Floats
from hushsum.analysis import Comparison, compare
from hushsum.errors import Argument, Parameter, UsageError, shown
from hushsum.files import FileKind
from hushsum.kernels import Kernel, kernel_as_json, kernel_in_words, one_of
from hushsum.operations._files import STANDARD, Progress, check_output, kind_of, open_function
from hushsum.plotting import check_format, save_figure
from hushsum.privacy import PERSON
from hushsum.records import (
    NO_DATES,
    PLAIN,
    Bounds,
    CellFormat,
    DateFormat,
    choose_columns,
    columns_in_words,
    open_batches,
)
from hushsum.releases import (
    ESTIMATORS,
    Bundle,
    NoisyTable,
    ReleasedFunction,
    TableFunction,
    load_function,
    load_released,
)
from hushsum.tables import AdjacencyRows, Marginals, reading_from_json
from hushsum.tally import public_header

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
            raise UsageError("level", "must be between 0 and 1", got=f"{self.level}", remedy="try 0.95")
        if self.estimator != "mean" and self.level != BOUND_LEVEL:
            raise UsageError(
                "level",
                f"must be {BOUND_LEVEL} for the median of means",
                got=self.level,
                remedy="leave it out, or use the mean",
            )
        if self.estimator != "mean" and self.simultaneous:
            raise UsageError(
                "simultaneous",
                "is for the mean over rows",
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
            "at",
            "must be at least one point",
            got="none",
            remedy=("give a point, or a file with ", Parameter("points")),
        )
    dim = function.dim
    listed: list[list[float]] = []
    for given in points:
        if dim is not None and len(given) != dim:
            raise UsageError(
                "at",
                f"must have {dim} values for this function",
                got=len(given),
                remedy="separate them by commas",
            )
        point = [_coordinate(value, i in of_dates, dates) for i, value in enumerate(given)]
        listed.append(point)
        if not all(math.isfinite(value) for value in point):
            raise UsageError("at", "must have finite values", got="NaN or infinity")
        if dim is None and any(value != int(value) for value in point):
            raise UsageError(
                "at", "must have integers as members of a set", got="a fraction", remedy="number the members"
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
        raise UsageError("dates", "must name columns", got="a file whose columns have no names")
    return choose_columns(function.columns, dates.columns, "dates")


def _coordinate(value: float | str, is_date: bool, dates: DateFormat) -> float:
    if not isinstance(value, str):
        return value
    if not is_date:
        raise UsageError(
            "at",
            "must have numbers in columns that are not declared as dates",
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
    from hushsum.records import read_edges

    function = open_function(source)
    if function.dim is not None:
        raise UsageError(
            "node",
            "is for functions of sets",
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
            "function and points cannot both come from standard input", remedy="give one as a file"
        )
    if terms.simultaneous:
        raise UsageError(
            "simultaneous",
            ("is for the points of ", Parameter("at"), ": a file is answered while it is read"),
            remedy="leave it out, or query the function in Python",
        )
    function = open_function(source)
    if function.dim is None and set_column is None:
        with open_batches(path, columns=columns, cells=cells) as peek:
            names = peek.column_names
        if path == "-" or len(names) != 1:
            raise UsageError("set_column", "must name the column of sets for this function")
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
                    "points",
                    f"must have {columns_in_words(dim)} for this function",
                    got=f"{batch.num_columns}",
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
            "estimator", "must be mean for this function, which has no hash rows", got=repr(terms.estimator)
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


@dataclass(frozen=True, slots=True, eq=False)
class FunctionsCompared:
    """The comparison, and where its picture is."""

    comparison: Comparison
    output: str | None

    def as_json(self) -> dict[str, Any]:
        """The comparison for a machine."""
        return {**self.comparison.as_json(), "output": self.output}


def compare_functions(
    first: str,
    second: str,
    *,
    at: Sequence[Sequence[float]] | None = None,
    significance: float = 0.05,
    cluster_size: float = 1.0,
    output: str | None = None,
    of: str = "mean",
) -> FunctionsCompared:
    """Compare the functions of two files; the parameters are those of ``hushsum.compare``.

    Raises
    ------
    UsageError
        if the two cannot be compared, or the difference cannot be drawn.
    FileRefused
        if a file does not hold a released function.
    """
    if first == second == STANDARD:
        raise UsageError(
            "second", ("and ", Parameter("first"), " cannot both be standard input"), got=STANDARD
        )
    if output is not None:
        check_format(check_output(output, inputs=[first, second]))
    f, g = (load_function(sys.stdin.buffer if each == STANDARD else each) for each in (first, second))
    names = tuple(Path(each).stem or each for each in (first, second))
    if names[0] == names[1]:
        names = (first, second)
    found = compare(f, g, at=at, significance=significance, cluster_size=cluster_size, names=names)
    if output is not None:
        save_figure(found.picture(found.view(of=of)).figure(), output)
    return FunctionsCompared(found, output)


MOST_LISTED: Final = 1000
"""How many numbers of an array a description lists."""


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    """A released function, for whoever received its file. ``size`` is None when it was read from a pipe."""

    source: str
    function: ReleasedFunction
    size: int | None

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        return {**self.function.describe().as_json(), "source": self.source, "size": self.size}


@dataclass(frozen=True, slots=True)
class TallyDescription:
    """The public header of a confidential tally: no counts, and not how many persons it holds."""

    source: str
    warning: str
    basis: str
    kernel: Kernel
    rows: int
    width: int
    seed: int | None
    columns: tuple[str, ...] | None
    bounds: Bounds | None
    unit: str
    max_per_unit: int | None
    graph: str | None
    edge_lists: int
    add_remove_only: bool
    fingerprint: str
    encrypted: bool
    producer: str

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        return {
            "kind": "confidential tally",
            "source": self.source,
            "warning": self.warning,
            "basis": self.basis,
            "kernel": kernel_as_json(self.kernel),
            "rows": self.rows,
            "width": self.width,
            "seed": self.seed,
            "columns": None if self.columns is None else list(self.columns),
            "bounds": None if self.bounds is None else self.bounds.as_json(),
            "unit": self.unit,
            "max_per_unit": self.max_per_unit,
            "graph": self.graph,
            "edge_lists": self.edge_lists,
            "add_remove_only": self.add_remove_only,
            "fingerprint": self.fingerprint,
            "encrypted": self.encrypted,
            "producer": self.producer,
        }


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A released model, for whoever received its file. ``size`` is None when it was read from a pipe."""

    source: str
    bundle: Bundle
    size: int | None

    @property
    def expected_errors(self) -> dict[tuple[str, ...], float]:
        """The expected error of each marginal of a synthesizer, by the names of its columns; else empty."""
        errors = self.bundle.arrays.get("expected_errors")
        found = [part.basis for part in self.bundle.parts.values() if isinstance(part, NoisyTable)]
        if errors is None or len(found) != 1 or not isinstance(basis := found[0], Marginals):
            return {}
        return dict(zip(basis.set_names(), errors.tolist(), strict=False))

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        about = self.bundle.about
        return {
            "kind": "released model",
            "source": self.source,
            "model": about.get("model"),
            "parameters": about.get("parameters"),
            "columns": about.get("feature_names"),
            "features": about.get("features"),
            "classes": (about.get("classes") or {}).get("values"),
            "assumptions": list(about.get("assumptions") or []),
            "claim": self.bundle.claim.in_numbers(),
            "bounds": (about.get("parameters") or {}).get("bounds"),
            "kernels": list({kernel_in_words(part.kernel): None for part in self.bundle.parts.values()}),
            "parts": list(self.bundle.parts),
            "arrays": {
                name: values.tolist() if values.size <= MOST_LISTED else {"shape": list(values.shape)}
                for name, values in self.bundle.arrays.items()
            },
            "expected_errors": [
                {"columns": list(names), "error": error} for names, error in self.expected_errors.items()
            ],
            "producer": self.bundle.producer,
            "size": self.size,
        }


def describe_file(source: str) -> FunctionDescription | ModelDescription | TallyDescription:
    """What a ``.hush`` or ``.tally`` file is; ``"-"`` reads a ``.hush`` file from standard input.

    Raises
    ------
    FileRefused
        if it is damaged or neither of them.
    """
    if source != STANDARD and kind_of(Path(source)) is FileKind.TALLY:
        return _describe_tally(source)
    released = load_released(sys.stdin.buffer if source == STANDARD else source)
    size = None if source == STANDARD else Path(source).stat().st_size
    if isinstance(released, Bundle):
        return ModelDescription(source, released, size)
    assert isinstance(released, ReleasedFunction)
    return FunctionDescription(source, released, size)


def _describe_tally(source: str) -> TallyDescription:
    header = public_header(source)
    reading = reading_from_json(header)
    basis = reading.basis
    rows, width = basis.shape
    units, lists = header["units"], header.get("edge_lists", 1)
    return TallyDescription(
        source=source,
        warning=str(header["warning"]),
        basis=basis.name,
        kernel=reading.kernel,
        rows=rows,
        width=width,
        seed=basis.parameters().get("seed"),
        columns=basis.columns,
        bounds=basis.bounds,
        unit=basis.units[0] if units is None else PERSON,
        max_per_unit=None if units is None else int(units["limit"]),
        graph=basis.graph_in_words(lists) if isinstance(basis, AdjacencyRows) else None,
        edge_lists=lists,
        add_remove_only=bool(header.get("add_remove_only", False)),
        fingerprint=basis.fingerprint,
        encrypted=header["encryption"] is not None,
        producer=str(header["producer"]),
    )
