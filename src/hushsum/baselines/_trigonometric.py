"""Trigonometric polynomials on the whole box: one table for every smooth query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.baselines._box_polynomials import chebyshev_coefficients, chebyshev_values, column_profile
from hushsum.kernels import PRODUCT, Batch, ColumnKernel, ColumnProfile, Kernel, positive_integer
from hushsum.methods import boxed_tally, register_tally
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds, DeclaredBounds
from hushsum.tables import (
    BoxBasis,
    BoxReading,
    Table,
    blocks,
    check_columns_of,
    check_power,
    contracted,
    larger,
    outer_products,
    queries_of,
    register,
)
from hushsum.tally import Tally

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
    in_pages: ClassVar[bool] = True

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


def trigonometric(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    terms: int = 16,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of trigonometric polynomials, from which every smooth query on the box is read.

    The released function answers other kernels and bandwidths too (``f.with_kernel``), as far as so few terms
    can follow them. For one to three columns and wide kernels.

    Parameters
    ----------
    kernel : Kernel
        Gaussian or Laplacian in any dimension; Euclidean or Manhattan in one.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    terms : int
        In each column; terms^dim coefficients share the budget.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import trigonometric
    >>> tally = trigonometric(hs.GaussianKernel(dim=1, bandwidth=2.0), bounds=(0, 10), terms=8)
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f.with_kernel(hs.GaussianKernel(dim=1, bandwidth=3.0))([[9.0]])[0])
    True

    Notes
    -----
    Wang et al., *Differentially private data releasing for smooth queries*, JMLR 2016. With exact integer
    noise on coefficients in fixed point.
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> TrigonometricPolynomials:
        return TrigonometricPolynomials(bounds=box, columns=names, terms=terms)

    return boxed_tally(
        "trigonometric", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit
    )


register_tally("trigonometric", trigonometric, role=PRODUCT, paper="Wang et al. 2016", most_columns=3)
