"""Declarations of columns as JSON, in files and headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushsum.errors import UsageError, shown
from hushsum.records.declared_columns import CategoryColumn, DeclaredColumn, FlagColumn
from hushsum.records.number_column import NumberColumn

COLUMN_KINDS: Final[Mapping[str, type[Any]]] = {
    kind.kind: kind for kind in (CategoryColumn, FlagColumn, NumberColumn)
}


def column_from_json(data: object) -> DeclaredColumn:
    """The declaration that :meth:`DeclaredColumn.as_json` describes; what has a default may be left out.

    >>> column_from_json({"kind": "numbers", "low": 0, "high": 120, "bins": 12}).parts
    12

    Raises
    ------
    UsageError
        An unknown kind, an unknown field, or a value that breaks a rule.
    """
    kinds = " or ".join(map(repr, COLUMN_KINDS))
    if not isinstance(data, Mapping) or data.get("kind") not in COLUMN_KINDS:
        raise UsageError(
            rule=f"the declaration of a column must have a 'kind' that is {kinds}",
            got=shown(data.get("kind")) if isinstance(data, Mapping) else type(data).__name__,
            remedy='write for example {"kind": "numbers", "low": 0, "high": 120}',
        )
    given = {str(name): value for name, value in data.items() if name != "kind"}
    kind = COLUMN_KINDS[data["kind"]]
    fields = {"values", "unknown", "missing", "low", "high", "fill", "bins", "whole"} & set(kind.__slots__)
    needed = {"values", "low", "high"} & fields
    if not needed <= set(given) <= fields:
        raise UsageError(
            rule=f"a column of the kind {data['kind']!r} is declared by {', '.join(sorted(fields))}, "
            f"of which {', '.join(sorted(needed)) or 'none'} must be given",
            got="others",
            remedy="correct the declaration",
        )
    column: DeclaredColumn = kind(**given)
    return column
