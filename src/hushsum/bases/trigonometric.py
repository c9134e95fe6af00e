"""Trigonometric polynomials on the whole box: one table for every smooth query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import Table
from hushsum.bases.chebyshev import chebyshev_coefficients, chebyshev_values, column_profile
from hushsum.bases.column_products import contracted, outer_products
from hushsum.bases.declared_box import (
    BoxBasis,
    BoxReading,
    blocks,
    check_columns_of,
    check_power,
    larger,
    queries_of,
)
from hushsum.bases.registry import register
from hushsum.kernels.base import Batch, ColumnKernel, ColumnProfile, Kernel
from hushsum.kernels.parameters import positive_integer
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation

MAX_TERMS = 1 << 12
_NODES_PER_WIDTH = 8
_MAX_NODES = 1 << 14


@register
@dataclass(frozen=True, kw_only=True)
class TrigonometricPolynomials(BoxBasis):
    """Products of cos(r·θ) with x = cos θ in each column: Chebyshev's polynomials of the record.

    The records' part does not know the kernel: any kernel that is a product over the columns is read from
    one table, as the sum over its own coefficients. Few terms see only wide kernels.

    Parameters
    ----------
    terms : int
        t, in each column: r = 0, …, t − 1, so t^d coefficients.

    Privacy
    -------
    Each of the t^d coefficients is an integer within ±F: Δ1 = F·t^d, Δ2² = F²·t^d, attained at a corner of
    the box. A record replaced leaves the constant as it was: twice and four times the others; or, of a
    person, it has no counterpart and moves all as above.

    Notes
    -----
    Wang, Jin, Fan, Zhang, Huang, Zhong and Wang, *Differentially private data releasing for smooth queries*,
    JMLR 2016 (NIPS 2013). Their coefficients of a query come from Jackson's kernel; here they are Chebyshev's
    own, which decay at the rate of the best polynomial for the analytic kernels meant here.
    """

    name: ClassVar[str] = "trigonometric"

    terms: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "terms", positive_integer("terms", self.terms, at_most=MAX_TERMS))
        check_power("terms", self.terms, self.dim)

    @property
    def shape(self) -> tuple[int, int]:
        """(1, terms^dim)."""
        return 1, int(self.terms**self.dim)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Every coefficient moves by at most F; by 2F, except the constant, under replace."""
        coefficients, moved = self.shape[1], self.shape[1] - 1
        added = Sensitivity(self.scale * coefficients, self.scale**2 * coefficients, self.scale)
        if relation is Relation.ADD_REMOVE:
            return added
        return larger(added, Sensitivity(2 * self.scale * moved, 4 * self.scale**2 * moved, 2 * self.scale))

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 2 * self.shape[1]

    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        factors = [
            chebyshev_values(records[:, column] / self.half[column], self.terms - 1).T
            for column in range(self.dim)
        ]
        whole = np.rint(outer_products(factors) * self.scale).astype(np.int64)
        table[0] += step * whole.sum(axis=0)

    def _reading(self, kernel: Kernel) -> TrigonometricReading:
        return TrigonometricReading(self, kernel)


@dataclass(frozen=True)
class TrigonometricReading(BoxReading):
    """The kernel's own coefficients times the records'."""

    basis: TrigonometricPolynomials
    kernel: Kernel

    def __post_init__(self) -> None:
        column_profile(self.kernel, "trigonometric")
        check_columns_of(self.kernel, self.basis)

    @cached_property
    def _profile(self) -> ColumnProfile:
        return column_profile(self.kernel, "trigonometric")

    def _factors(self, queries: Floats) -> list[Floats]:
        profile = self._profile
        return [
            chebyshev_coefficients(
                profile,
                float(self.basis.half[column]),
                queries[:, column],
                self.basis.terms - 1,
                self._nodes[column],
            )
            for column in range(self.basis.dim)
        ]

    @cached_property
    def _nodes(self) -> list[int]:
        """Enough to see the kernel and the highest term."""
        assert isinstance(self.kernel, ColumnKernel)
        width = self.kernel.width
        return [
            min(_MAX_NODES, max(4 * self.basis.terms, int(_NODES_PER_WIDTH * half / width), 64))
            for half in self.basis.half
        ]

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Σ over the kernel's coefficients times the records'."""
        coefficients = table.reshape(-1) / self.basis.scale
        answers = np.empty(len(batch))
        for start, stop in blocks(len(batch), self._numbers_per_query()):
            answers[start:stop] = contracted(coefficients, self._factors(queries_of(batch)[start:stop]))
        return answers

    def noise_gain(self, batch: Batch) -> Floats:
        """Π over columns of Σ squares."""
        gain = np.full(len(batch), 1.0 / self.basis.scale**2)
        for start, stop in blocks(len(batch), self._numbers_per_query()):
            for factor in self._factors(queries_of(batch)[start:stop]):
                gain[start:stop] *= (factor * factor).sum(axis=1)
        return gain

    def noise_covariance(self, batch: Batch) -> Floats:
        """Π over columns of inner products."""
        total = np.full((len(batch), len(batch)), 1.0 / self.basis.scale**2)
        for factor in self._factors(queries_of(batch)):
            total *= factor @ factor.T
        return total

    def _numbers_per_query(self) -> int:
        return max(*self._nodes, self.basis.shape[1])

    def _read_lattice(self, queries: Floats) -> Floats:
        places, _ = self._lattice
        read = np.ones((len(queries), len(places)))
        for column, factor in enumerate(self._factors(queries)):
            along = np.clip(places[:, column] / self.basis.half[column], -1.0, 1.0)
            read *= factor @ chebyshev_values(along, self.basis.terms - 1)
        return read

    def total(self, table: Table) -> tuple[float, float]:
        """The constant term counts the records."""
        return float(table[0, 0]) / self.basis.scale, 1.0 / self.basis.scale**2
