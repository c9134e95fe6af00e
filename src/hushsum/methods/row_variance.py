"""How much hash rows disagree: a bound from the density, or an estimate from public data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from hushsum._types import Floats
from hushsum.bases.hash_rows import HashRows
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel

_ESTIMATION_ROWS = 2000
_MOST_QUERIES = 1000


@dataclass(frozen=True, slots=True)
class RowVariance:
    """The variance of one row's answer over N², at each of some queries, and their mean kernel values."""

    row_variance: Floats
    density: Floats
    source: str


def bounded_row_variance(density: float, fold_rate: float) -> RowVariance:
    """The largest variance of a row's answer at a mean kernel value.

    The answer X of a row has E[X²] ≤ (Σ√k̃)² ≤ N²·κ̃, with κ̃ = κ + (1 − κ)·fold rate, so Var[X]/N² ≤ κ̃ −
    κ̃² (Theorem 2.5 of the paper, Cauchy–Schwarz). It is met when all similar records always collide
    together.
    """
    folded = density + (1.0 - density) * fold_rate
    return RowVariance(np.array([folded - folded**2]), np.array([density]), "bound")


def estimated_row_variance(
    kernel: Kernel, *, width: int, seed: int, records: int, public: object, queries: object | None
) -> RowVariance:
    """The variance of a row's answer for ``records`` records like the public ones.

    Given a row, records collide with a query independently with some probability p. From n public records X
    of which collide, E[X(X − 1)]/(n(n − 1)) is E[p²] and E[X]/n is E[p], without bias; N records then have
    Var[X] = N²·Var[p] + N·E[p(1 − p)]. A query that is itself one of the public records is left out of its
    own count.
    """
    basis = HashRows(kernel, _ESTIMATION_ROWS, width, seed)
    sample = basis.prepare(public)
    if len(sample) < 3:
        raise UsageError(
            parameter="public",
            rule="must hold at least 3 records to estimate from",
            remedy="give a larger sample",
        )
    own = queries is None
    places = _thin(sample) if own else _thin(basis.prepare_queries(queries))
    table = np.zeros(basis.shape, np.int64)
    basis.accumulate(table, sample, step=1, threads=1)
    counts = table[np.arange(basis.rows), basis.cells(places)].astype(np.float64) - own
    others = len(sample) - own
    first = counts.mean(axis=1) / others
    second = (counts * (counts - 1.0)).mean(axis=1) / (others * (others - 1.0))
    spread = np.maximum(second - first**2, 0.0) + np.maximum(first - second, 0.0) / records
    rate = basis.fold_rate
    return RowVariance(spread, np.maximum((first - rate) / (1.0 - rate), 1e-12), "public data")


def _thin(batch: Batch) -> Batch:
    """Evenly spread records, at most as many as are needed."""
    keep = np.zeros(len(batch), np.bool_)
    keep[np.linspace(0, len(batch) - 1, min(len(batch), _MOST_QUERIES)).astype(np.int64)] = True
    return batch.select(keep)


def row_variances(
    kernel: Kernel, *, records: int, seed: int, density: float, public: object, queries: object
) -> Callable[[int], RowVariance]:
    """The variance of hash rows of a given width: an estimate from public data, else a bound."""

    @cache
    def of_width(width: int) -> RowVariance:
        if public is None:
            return bounded_row_variance(density, HashRows(kernel, 1, width, seed).fold_rate)
        return estimated_row_variance(
            kernel, width=width, seed=seed, records=records, public=public, queries=queries
        )

    return of_width
