"""DuckDB: relations streamed into a tally, and released functions as a function of SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from hushsum.errors import DataRefused
from hushsum.records import pyarrow
from hushsum.tally import Tally, TallyPattern, is_empty

from ._counting import check_columns, columns_without_cap
from ._sql_functions import Of, answers

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

ROWS_PER_BATCH: Final = 1 << 16


def tally(
    relation: DuckDBPyRelation | str,
    tally: Tally,
    *,
    connection: DuckDBPyConnection | None = None,
    columns: Sequence[str] | None = None,
    threads: int | None = None,
) -> Tally:
    """Count the rows of a relation or query, which is evaluated once and streamed through Arrow.

    Memory does not grow with the number of rows, unless the query itself needs it. Caps on a person's records
    are not offered: the rows of a query come in no fixed order, so other persons could decide which records
    of a person are kept. Write the rows to a Parquet file and count that.

    Parameters
    ----------
    relation : DuckDBPyRelation or str
        A relation, or SQL for ``connection``.
    tally : Tally
        Empty; it says what is counted, and stays empty.
    connection : DuckDBPyConnection, optional
        For SQL; by default DuckDB's own.
    columns : sequence of str, optional
        The columns of a record, in order; by default those of the tally, or all.

    Returns
    -------
    Tally
        A new one with all rows.

    Raises
    ------
    UsageError
        a wrong parameter or a column that is not there.
    DataRefused
        rows that break a rule, or a query that fails; there is no tally.

    Examples
    --------
    >>> import duckdb
    >>> import hushsum as hs
    >>> from hushsum.engines import duckdb as engine
    >>> empty = hs.race(hs.EuclideanKernel(dim=1, bandwidth=2.0), rows=50, columns=["age"])
    >>> ages = duckdb.sql("select 20 + range % 60 as age from range(10000)")
    >>> f = engine.tally(ages, empty).release(epsilon=1.0)
    """
    filled = TallyPattern.of(tally).empty()
    chosen = columns_without_cap(tally, "a relation", columns)
    for batch in _batches(relation, connection, chosen):
        if batch.num_rows:
            filled.add(batch, threads=threads)
    if is_empty(filled):
        raise DataRefused("the relation must have at least one record", got="none")
    return filled


def _batches(
    relation: DuckDBPyRelation | str, connection: DuckDBPyConnection | None, columns: Sequence[str] | None
) -> Iterator[Any]:
    import duckdb

    refused: str
    try:
        if isinstance(relation, str):
            relation = (connection or duckdb.default_connection()).sql(relation)
        if columns is not None:
            check_columns(columns, relation.columns, "the relation")
            relation = relation.select(*[duckdb.ColumnExpression(each) for each in columns])
        modern = hasattr(relation, "to_arrow_reader")
        reader = (relation.to_arrow_reader if modern else relation.fetch_arrow_reader)(ROWS_PER_BATCH)
        yield from reader
        return
    except (duckdb.Error, pyarrow().ArrowException) as error:
        refused = type(error).__name__
    # Raised outside the handler: the message of the database, which may quote values, is not its context.
    raise DataRefused(
        f"the relation could not be evaluated: {refused}", remedy="run the query by itself first"
    )


def register(connection: DuckDBPyConnection, *, name: str = "hush_query", of: Of = "mean") -> None:
    """Add the function ``hush_query(file, columns...)`` to a connection.

    It answers a query of the released function in a ``.hush`` file for each row, a vector of rows at a time,
    and NULL for a row with a NULL.
    Reading a released function costs no privacy.

    Parameters
    ----------
    connection : DuckDBPyConnection
    name : str
        What SQL calls it.
    of : {"mean", "sum"}
        Mean kernel values f(q)/N, or kernel sums f(q).
    """

    def hush_query(file: Any, *columns: Any) -> Any:
        return answers(file, columns, of=of)

    make: Any = connection.create_function
    make(name, hush_query, None, "DOUBLE", type="arrow")
