"""What a public sample decides where it is not declared: columns, bandwidth, bounds, mean kernel value."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from hushsum._types import Floats
from hushsum.errors import DataRefused
from hushsum.kernels.bandwidth_scale import in_scale, in_units
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.registry import is_expression, named, parameter_names
from hushsum.kernels.scaled import scaled_by
from hushsum.records.bounds import DeclaredBounds
from hushsum.records.mixed_columns import column_names_of
from hushsum.records.native_batch import as_dense
from hushsum.releases.public_combination import FEWEST_POINTS

_WIDER: Final = 0.1
"""Bounds reach beyond the range of the sample by this part of it, on either side."""
_LEAST: Final = 1e-9
_NORMAL_QUARTILES: Final = 1.349
_FINE: Final = 2
_MOST_ROWS: Final = 4000
_MOST_QUERIES: Final = 500


def kernel_of_sample(
    kernel: str | Kernel,
    *,
    dim: int | None,
    bandwidth: float | None,
    public: object,
    records: int,
    bounds: DeclaredBounds | None = None,
    scale: str | None = None,
) -> Kernel:
    """The kernel, with the bandwidth of the sample where none is given and the kernel has one.

    Silverman's rule for a density of so many records in d columns: s·(4/((d + 2)·n))^(1/(d + 4)), s the
    geometric mean over columns of the standard deviation or of quartiles, whichever is smaller. Where the
    bandwidth is a fraction of bounds, all of that is of the columns in units of their ranges.
    """
    if isinstance(kernel, Kernel):
        return in_scale(kernel, scale, bounds, column_names_of(public), default=False)
    names = parameter_names(kernel)
    if "dim" in names and dim is None:
        dim = _width(public)
    columns = column_names_of(public)
    if bandwidth is not None or "bandwidth" not in names or "dim" not in names:
        chosen = named(kernel, dim=dim, bandwidth=bandwidth, columns=columns)
        declared = bounds_of_sample(chosen, bounds, public)
        return in_scale(chosen, scale, declared, columns, default=not is_expression(kernel))
    assert dim is not None
    rows = _rows(public, dim)
    one = named(kernel, dim=dim, bandwidth=1.0)
    width = one.width if isinstance(one, ColumnKernel) else 1.0
    declared = bounds_of_sample(one, bounds, public, beyond=False)
    units = np.array(in_units(one, scale, declared, columns))
    smooth = silverman(rows / units, records)
    found = named(kernel, dim=dim, bandwidth=rounded_bandwidth(smooth / width))
    return scaled_by(found, units.tolist()) if isinstance(found, ColumnKernel) else found


def silverman(rows: Floats, records: int) -> float:
    """Silverman's bandwidth of a Gaussian density of so many records that are spread like the rows."""
    dim = rows.shape[1]
    return _spread(rows) * float((4.0 / ((dim + 2.0) * records)) ** (1.0 / (dim + 4.0)))


def rounded_bandwidth(bandwidth: float) -> float:
    """A bandwidth to two digits: it is a rule of thumb."""
    return float(f"{bandwidth:.{_FINE}g}")


def bounds_of_sample(
    kernel: Kernel, bounds: DeclaredBounds | None, public: object, *, beyond: bool = True
) -> DeclaredBounds | None:
    """The bounds given, or those of the sample and a tenth of its range beyond, at least a bandwidth where
    ``beyond``; for kernels of columns and samples that are large enough.
    """
    if bounds is not None or not isinstance(kernel, ColumnKernel):
        return bounds
    rows = as_dense(public, dim=kernel.dim).astype(np.float64)
    if len(rows) < FEWEST_POINTS:
        return None
    low, high = rows.min(axis=0), rows.max(axis=0)
    reach = np.maximum(_WIDER * (high - low), kernel.column_bandwidths() if beyond else _LEAST)
    pairs = tuple(zip((low - reach).tolist(), (high + reach).tolist(), strict=True))
    names = column_names_of(public)
    return pairs if names is None or len(names) != kernel.dim else dict(zip(names, pairs, strict=True))


def density_of_sample(kernel: Kernel, public: object, queries: object) -> float | None:
    """The mean kernel value of public records at public queries, or at each other; None for kernels that have
    no columns of numbers, and for samples that are too small.

    >>> import hushsum as hs
    >>> sample = np.linspace(0.0, 1.0, 200)[:, None]
    >>> round(density_of_sample(hs.GaussianKernel(dim=1, bandwidth=0.1), sample, None), 2)
    0.23
    """
    if not isinstance(kernel, ColumnKernel):
        return None
    rows = as_dense(public, dim=kernel.dim).astype(np.float64)
    if len(rows) < FEWEST_POINTS:
        return None
    rows = _thinned(rows, _MOST_ROWS)
    own = queries is None
    places = _thinned(rows if own else as_dense(queries, dim=kernel.dim).astype(np.float64), _MOST_QUERIES)
    # A record's kernel with itself is 1, and says nothing of others.
    density = float((kernel.exact_sum(rows, places).mean() - own) / (len(rows) - own))
    return min(max(density, _LEAST), 1.0)


def _thinned(rows: Floats, most: int) -> Floats:
    """Evenly spread rows, at most so many."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))]


def _width(public: object) -> int:
    shape: Any = getattr(public, "shape", None) or np.asarray(public).shape
    return 1 if len(shape) == 1 else int(shape[1])


def _rows(public: object, dim: int) -> Floats:
    rows = as_dense(public, dim=dim).astype(np.float64)
    if len(rows) < FEWEST_POINTS:
        raise DataRefused(
            parameter="public",
            rule=f"must have at least {FEWEST_POINTS} rows",
            got="fewer",
            remedy="give more public rows, or declare bandwidth and bounds",
        )
    return rows


def _spread(rows: Floats) -> float:
    quartiles = np.diff(np.quantile(rows, (0.25, 0.75), axis=0), axis=0)[0] / _NORMAL_QUARTILES
    deviations = rows.std(axis=0)
    smaller = np.where(quartiles > 0.0, np.minimum(quartiles, deviations), deviations)
    varying = smaller[smaller > 0.0]
    return math.exp(float(np.log(varying).mean())) if len(varying) else 1.0
