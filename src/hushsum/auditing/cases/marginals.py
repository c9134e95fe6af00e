"""Marginals: records that share no label, records at edges of parts, missing and undeclared values."""

from __future__ import annotations

import numpy as np

from hushsum.auditing.adversarial_records import Pool
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.marginals import Marginals
from hushsum.records.declared_columns import CategoryColumn, DeclaredColumn, FlagColumn
from hushsum.records.number_column import NumberColumn


def _values(column: DeclaredColumn, rng: np.random.Generator) -> list[object]:
    """Values of a column: ends, edges and their neighbours, far outside, missing and undeclared ones."""
    if isinstance(column, NumberColumn):
        edges = column.edges
        found = [
            *edges,
            *np.nextafter(edges, np.inf),
            *np.nextafter(edges, -np.inf),
            -0.0,
            1e300,
            -1e300,
            5e-324,
        ]
        found += rng.uniform(column.low, column.high, 8).tolist()
        return [float(each) for each in found] + ([None] if column.fill is not None else [])
    if isinstance(column, CategoryColumn):
        undeclared = ["undeclared"] if isinstance(column.values[0], str) else [-77.0]
        listed: list[object] = list(column.values)
        listed += undeclared if column.unknown == "other" else []
        return listed + ([None] if column.missing == "category" else [])
    assert isinstance(column, FlagColumn)
    return [False, True, *([None] if column.missing == "category" else [])]


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Opposite records, which share no label and so meet the bound under replace; then random ones."""
    assert isinstance(basis, Marginals)
    values = [_values(each.column, rng) for each in basis.encodings]
    ends = [[each[0] for each in values], [each[1] for each in values], [each[-1] for each in values]]
    mixed = [[each[int(rng.integers(len(each)))] for each in values] for _ in range(40)]
    return [*ends, *ends, *mixed]


_AGE = NumberColumn(0, 120, fill=0, bins=6)
_MONEY = NumberColumn(0, 1e5, bins=[0, 1, 1000, 1e5])
_JOB = CategoryColumn(["care", "trade", "law"], unknown="other")
_CODE = CategoryColumn([1, 2.5, 7], unknown="other", missing="refuse")

register_basis(
    Marginals.name,
    BasisCases(
        _pool,
        (
            Marginals.of([_AGE], [(0,)]),
            Marginals.of([_AGE, _JOB], [(0,), (1,), (0, 1)]),
            Marginals.of([_JOB, FlagColumn(missing="refuse")], [(0,), (1,), (0, 1)]),
            Marginals.of(
                [_AGE, _JOB, _MONEY, FlagColumn(), _CODE],
                [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 4), (2, 3), (0, 2, 4), (0, 1, 2, 3, 4)],
                ["age", "job", "money", "smoker", "code"],
            ),
        ),
    ),
)
