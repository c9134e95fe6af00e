"""Bayesian networks of discretised columns: families, their tables, and a score of bounded sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.records.discretised_box import Codes

MOST_CANDIDATES = 4096
"""Families looked at for the next column; where there are more, a public random sample of them."""

FINENESS = 1 << 10
"""Scores are counted in 1024ths of a record, rounded down."""

_MOST_IN_64_BITS = 1 << 31
SCORE_SENSITIVITY = 2 * FINENESS
"""How far one record present or absent moves a score; proven in `dependence_score`."""


@dataclass(frozen=True, slots=True)
class Family:
    """A column and the columns it depends on."""

    column: int
    parents: tuple[int, ...]

    def parent_cells(self, codes: Codes, bins: Sequence[int]) -> Codes:
        """The cell of each row's parents, the last parent fastest."""
        index = np.zeros(len(codes), np.int64)
        for parent in self.parents:
            index = index * bins[parent] + codes[:, parent]
        return index

    def counts(self, codes: Codes, bins: Sequence[int]) -> NDArray[np.int64]:
        """How many records lie in each cell of the parents and the column, which is fastest; secret."""
        cells = self.parent_cells(codes, bins) * bins[self.column] + codes[:, self.column]
        size = prod(bins[each] for each in self.parents) * bins[self.column]
        return np.bincount(cells, minlength=size).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Network:
    """Families in the order in which columns are drawn; public."""

    families: tuple[Family, ...]
    bins: tuple[int, ...]
    degree: int

    @property
    def released(self) -> tuple[Family, ...]:
        """The families whose tables are released: the first ``degree + 1`` columns are one table."""
        return self.families[self.degree :]


def next_families(placed: Sequence[int], columns: int, degree: int, rng: np.random.Generator) -> list[Family]:
    """Every column that is not placed, with every set of ``degree`` placed parents, or all of them if fewer.

    >>> [len(next_families([0, 1], 4, 1, np.random.default_rng(0)))]
    [4]
    """
    number = min(degree, len(placed))
    open_ = [column for column in range(columns) if column not in placed]
    sets = comb(len(placed), number)
    if len(open_) * sets <= MOST_CANDIDATES:
        return [Family(column, each) for column in open_ for each in combinations(sorted(placed), number)]
    chosen: dict[Family, None] = {}
    while len(chosen) < MOST_CANDIDATES:
        parents = tuple(sorted(rng.choice(list(placed), number, replace=False).tolist()))
        chosen[Family(int(rng.choice(open_)), parents)] = None
    return list(chosen)


def dependence_score(codes: Codes, family: Family, bins: Sequence[int]) -> int:
    """How many records would have to move to make the column independent of its parents, in 1024ths; secret.

    With counts c(x, π), marginals a(x) and b(π) and n records it is ``½·Σ|c(x, π) − a(x)·b(π)/n|``, n times
    the score R of PrivBayes, rounded down.

    Privacy
    -------
    One record more, at (x₀, π₀), moves it by less than 2. Σ|c| changes by 1. The product becomes
    ``(a + e_x)(b + e_π)/(n + 1)``, which differs from ``ab/n`` by ``−ab/(n(n + 1)) + (a·e_π + e_x·b +
    e_x·e_π)/(n + 1)``, in L1 by at most ``(n + 2n + 1)/(n + 1) < 3``. So the half sum moves by less than
    (1 + 3)/2, and the rounded one by at most 2·1024. A record replaced is one less and one more: twice that.
    The sum is computed in integers, as ``Σ|n·c − a·b|``.

    Examples
    --------
    >>> codes = np.array([[0, 0], [1, 1]] * 50)
    >>> dependence_score(codes, Family(0, (1,)), [2, 2]) / FINENESS
    50.0
    """
    records = len(codes)
    if not family.parents or not records:
        return 0
    # Only cells that a record is in have c > 0; the others add a·b each, n² − Σ_used a·b together.
    cells = family.parent_cells(codes, bins)
    own = codes[:, family.column]
    column = np.bincount(own, minlength=bins[family.column])
    names, parent, parents = np.unique(cells, return_inverse=True, return_counts=True)
    joint, counts = np.unique(parent * bins[family.column] + own, return_counts=True)
    del names
    joint_counts = _exact(counts, records)
    product = _exact(column, records)[joint % bins[family.column]] * parents[joint // bins[family.column]]
    total = int(np.abs(records * joint_counts - product).sum()) + records**2 - int(product.sum())
    return total * FINENESS // (2 * records)


def dependence_of_counts(counts: NDArray[np.int64]) -> int:
    """`dependence_score` of two columns, from all counts of their pairs of values; secret.

    Privacy
    -------
    The same number, so the same sensitivity: ``SCORE_SENSITIVITY`` for one record present or absent.

    >>> dependence_of_counts(np.array([[50, 0], [0, 50]])) / FINENESS
    50.0
    """
    records = int(counts.sum())
    if not records:
        return 0
    table = _exact(counts, records)
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    return int(np.abs(records * table - product).sum()) * FINENESS // (2 * records)


def _exact(counts: NDArray[Any], records: int) -> NDArray[Any]:
    """Counts whose products do not overflow: the sums of a score are below 2·records².

    >>> many = np.diag([1 << 33] * 2)
    >>> dependence_of_counts(many) == (1 << 33) * FINENESS
    True
    """
    return counts if records < _MOST_IN_64_BITS else counts.astype(object)
