"""Declared columns in the order of the records, and as columns of a synthetic table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hushsum.errors import UsageError
from hushsum.records import arrow
from hushsum.records.declared_columns import DeclaredColumn
from hushsum.records.number_column import NumberColumn

MOST_LABELS: Final = 1 << 13
"""Of all columns together: a fit takes the square of this number of cells."""


def check_labels(columns: Iterable[DeclaredColumn]) -> None:
    """Refuse more labels than can be fitted, before anything is spent."""
    labels = sum(each.size for each in columns)
    if labels > MOST_LABELS:
        raise UsageError(
            parameter="columns",
            rule=f"must have at most {MOST_LABELS} labels together",
            got=labels,
            remedy="declare fewer bins or categories",
        )


def arrow_column(column: DeclaredColumn, values: Any) -> Any:
    """Drawn values in the type that the declaration gives them; NaN becomes a null."""
    pa = arrow.pyarrow()
    return pa.array(values, from_pandas=True).cast(pa.type_for_alias(column.type_name))


def columns_in_order(columns: object, order: Sequence[str] | None) -> dict[str, DeclaredColumn]:
    """Declared columns by name, in the order of the records' columns; positions are called x0, x1, ….

    Raises
    ------
    UsageError
        if they are not declarations, or one of the records' columns has none.
    """
    if isinstance(columns, Mapping):
        names = list(columns) if order is None else list(order)
        listed = {str(name): columns.get(name) for name in names}
        complete = len(listed) == len(columns)
    else:
        listed = {f"x{i}": each for i, each in enumerate(columns if isinstance(columns, Sequence) else ())}
        complete = True
    declared = {name: each for name, each in listed.items() if isinstance(each, DeclaredColumn)}
    if not complete or not declared or len(declared) != len(listed):
        raise UsageError(
            parameter="columns",
            rule="must be a dictionary or a list of CategoryColumn, FlagColumn or NumberColumn",
            got="something else",
            remedy="declare each column",
        )
    return declared


def bounds_of_column(column: DeclaredColumn) -> tuple[float, float]:
    """The declared range of a column of numbers, or of the codes of its labels."""
    if isinstance(column, NumberColumn):
        return float(column.low), float(column.high)
    return 0.0, float(column.size)
