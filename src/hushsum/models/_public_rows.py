"""What public rows decide for a model where its parameters say so: bounds and bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.errors import DataRefused
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.planning import rounded_bandwidth, silverman
from hushsum.records import as_dense, in_memory, refuse_copied_rows, refuse_private_rows
from hushsum.releases import FEWEST_POINTS, MOST_POINTS

from ._accuracy import NoPlanWithinLimits

PUBLIC_PARAMETERS: Final = "the rows that parameters were derived from are public"
USUAL_RECORDS: Final = 10_000
"""The number of records that a bandwidth is chosen for where none is declared: the true one is private."""
# Bounds reach beyond the range of the rows by this part of it, on either side.
_WIDER: Final = 0.1
# A typical kernel mean is to be this many times its predicted error.
_VISIBLE: Final = 4.0
# Rows whose distances are computed.
_COMPARED: Final = 400
_DOUBLINGS: Final = 24


def refuse_repeated_rows(
    public: object, given: object, records: Floats, columns: Sequence[str] | None
) -> None:
    """Refuse private records that were also given as public rows: the same object, or equal contents."""
    refuse_private_rows(public, given)
    refuse_copied_rows(public, records, records.shape[1], columns)


def public_table(public: object, dim: int, columns: Sequence[str] | None) -> Floats:
    """Public rows as an array of ``dim`` columns; of many rows, some evenly spaced ones.

    Raises
    ------
    DataRefused
        for anything but enough rows of finite numbers.
    """
    rows = as_dense(in_memory(public), dim=dim, columns=columns).astype(np.float64)
    if len(rows) < FEWEST_POINTS:
        rule = f"must have at least {FEWEST_POINTS} rows"
        remedy = "give more public rows, or leave them out and declare the parameters"
        raise DataRefused("public", rule, got="fewer", remedy=remedy)
    return rows[:: -(-len(rows) // MOST_POINTS)]


def bounds_of_rows(rows: Floats) -> list[tuple[float, float]]:
    """The range of each column and a tenth of it beyond on either side.

    >>> bounds_of_rows(np.array([[0.0, 5.0], [10.0, 5.0]]))
    [(-1.0, 11.0), (4.5, 5.5)]
    """
    low, high = rows.min(axis=0), rows.max(axis=0)
    alike = _WIDER * np.maximum(np.abs(low), 1.0)
    reach = np.where(high > low, _WIDER * (high - low), alike)
    return list(zip((low - reach).tolist(), (high + reach).tolist(), strict=True))


def median_distance(rows: Floats) -> float:
    """The median distance between rows: the usual bandwidth of machines that separate or interpolate.

    >>> median_distance(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]]))
    5.0
    """
    some = rows[:: -(-len(rows) // _COMPARED)]
    places = np.triu_indices(len(some), 1)
    squares = np.square(some).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * some @ some.T, 0.0))[places]
    apart = distances[distances > 1e-9 * max(float(distances.max(initial=0.0)), 1e-300)]
    return rounded_bandwidth(float(np.median(apart))) if len(apart) else 1.0


def visible_bandwidth(
    kernel: Callable[[float], Kernel], rows: Floats, records: int, error: Callable[[Kernel], float]
) -> float:
    """Silverman's rule for a density, or twice, four times, … as much, until the kernel mean at a typical row
    stands out of its predicted error. In many columns rows are so far from each other that at the bandwidth
    of the rule every sum would be noise.

    Parameters
    ----------
    kernel : callable
        The kernel of a bandwidth.
    rows : array of shape (n_rows, dim)
        Public.
    records : int
        Declared, or the usual number.
    error : callable
        The predicted error of the mean of a kernel.
    """
    one = kernel(1.0)
    # What one unit of the bandwidth is in each column, and the width of the kernel in such units.
    units = np.array(one.column_bandwidths()) if isinstance(one, ColumnKernel) else np.ones(1)
    width = one.column_widths()[0] / units[0] if isinstance(one, ColumnKernel) else 1.0
    found = rounded_bandwidth(silverman(rows / units, records) / width)
    some = rows[:: -(-len(rows) // _COMPARED)]
    for _ in range(_DOUBLINGS):
        chosen = kernel(found)
        values = chosen.similarity(some, some)
        np.fill_diagonal(values, 0.0)
        typical = float(np.median(values.sum(axis=1))) / (len(some) - 1)
        try:
            if typical >= _VISIBLE * error(chosen):
                break
        except NoPlanWithinLimits:
            break
        found *= 2.0
    return found
