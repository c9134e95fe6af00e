"""Limits of records with columns, and the names of those."""

from __future__ import annotations

from hushsum.errors import UsageError

MAX_DIM = 1 << 20
MAX_POWER = 256


def check_columns(columns: tuple[str, ...] | None, dim: int) -> None:
    """Refuse names of columns that are not ``dim`` different ones, or one for a column of lists."""
    if columns is None:
        return
    if not isinstance(columns, tuple) or not all(isinstance(name, str) and name for name in columns):
        raise UsageError(
            parameter="columns", rule="must be names", got="something else", remedy="give a list of strings"
        )
    if len(set(columns)) != len(columns):
        raise UsageError(
            parameter="columns", rule="must name each column once", remedy="leave the repetitions out"
        )
    # One name may stand for a column of lists, such as embeddings.
    if len(columns) not in (1, dim):
        raise UsageError(
            parameter="columns",
            rule=f"must be {dim} names, one for each",
            got=len(columns),
            remedy="name them all",
        )
