"""Records that are rows of numbers, for the kernels that compare them column by column."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.errors import UsageError
from hushsum.kernels.base import Batch
from hushsum.records.bounds import Bounds
from hushsum.records.dense import as_dense

MAX_DIM = 1 << 20
MAX_POWER = 256


def dense_batch(
    data: object, dim: int, bounds: Bounds | None, *, clip: bool, columns: Sequence[str] | None
) -> Batch:
    """Checked single-precision rows; with bounds centred on their box, and clipped to it unless they are
    queries.
    """
    rows = as_dense(data, dim=dim, bounds=bounds, clip=clip, columns=columns)
    return Batch((rows,), len(rows))


def check_columns(columns: tuple[str, ...] | None, dim: int) -> None:
    """Refuse names of columns that are not ``dim`` different ones, or one for a column of lists."""
    if columns is None:
        return
    if not isinstance(columns, tuple) or not all(isinstance(name, str) and name for name in columns):
        raise UsageError("columns must be names, got something else; give a list of strings")
    if len(set(columns)) != len(columns):
        raise UsageError("columns must name each column once; leave the repetitions out")
    # One name may stand for a column of lists, such as embeddings.
    if len(columns) not in (1, dim):
        raise UsageError(f"columns must be {dim} names, one for each, got {len(columns)}; name them all")
