"""Records that are rows of numbers, for the kernels that compare them column by column."""

from __future__ import annotations

from collections.abc import Sequence

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
