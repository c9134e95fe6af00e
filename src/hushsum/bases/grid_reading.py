"""Kernel sums from weights on a grid, for any kernel that is a sum of products over columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.splines import ColumnFactors, column_factors
from hushsum.kernels.base import Batch, ProfileKernel

_NUMBERS_AT_A_TIME = 1 << 22
_NODES_A_QUERY = 20_000
"""Windows with more nodes are summed with the whole grid by matrix products."""

_NODES_PER_PRODUCT = 16
"""Nodes that a matrix product sums in the time in which one is gathered."""

_FEWEST_OF_A_LATTICE = 64
"""Fewer queries are not looked at for a lattice."""
_MOST_FACTORS = 1 << 24
"""Of a column of a lattice, one for each place and node. Where there are more, few nodes are in reach."""


@dataclass(frozen=True, slots=True)
class GridColumn:
    """The nodes along one column: how many, their distance, the place of the first relative to the centre of
    the box, and the degree of the weights, 0 where records lie on nodes.
    """

    nodes: int
    spacing: float
    first: float
    degree: int


@dataclass(frozen=True, slots=True)
class Term:
    """``height`` times a product over columns, which is read with one factor for each."""

    height: float
    factors: tuple[ColumnFactors, ...]


class GridReader:
    """Sums a kernel over the nodes of a grid, with the coefficients that project it on the weights.

    A kernel is read as a sum of terms that are products over columns. Of a term that is narrow only the nodes
    near a query are summed; one that is wide is summed over all of them by matrix products.
    """

    def __init__(self, columns: Sequence[GridColumn], terms: Sequence[Term]) -> None:
        self.columns, self.terms = tuple(columns), tuple(terms)

    @classmethod
    def of(cls, kernel: ProfileKernel, columns: Sequence[GridColumn]) -> GridReader:
        """The reader of a kernel."""
        sides = [column.spacing * (column.nodes - 1) for column in columns]
        spacings = [column.spacing for column in columns]
        return cls(
            columns,
            [
                _term(columns, profile.height, profile.scales, profile.gaussian)
                for profile in kernel.profiles(spacings=spacings, sides=sides)
            ],
        )

    def sums(self, table: NDArray[np.integer], batch: Batch, *, squared: bool = False) -> Floats:
        """Σ over nodes of the table, or of its squares, times the coefficients of each query."""
        queries = batch.arrays[0].astype(np.float64)
        numbers = table.astype(np.float64)
        if squared:
            numbers *= numbers
        if len(queries) >= _FEWEST_OF_A_LATTICE:
            lattice = [np.unique(each, return_inverse=True) for each in queries.T]
            points = math.prod(len(places) for places, _ in lattice)
            factors = max(len(each[0]) * own.nodes for each, own in zip(lattice, self.columns, strict=True))
            if points <= 2 * len(queries) and factors <= _MOST_FACTORS:
                return self._lattice_sums(numbers, lattice)
        total = np.zeros(len(queries))
        wide = []
        for term in self.terms:
            if self._narrow(term, table.size):
                total += term.height * self._window_sums(term, numbers, queries)
            else:
                wide.append(term)
        if wide:
            total += self._product_sums(wide, numbers, queries)
        return total

    def gains(self, batch: Batch) -> Floats:
        """Σ over nodes of the squared coefficients of each query: products over columns of the inner
        products of the terms' factors.
        """
        queries = batch.arrays[0].astype(np.float64)
        heights = np.array([term.height for term in self.terms])
        gain = np.empty(len(queries))
        most = max(column.nodes for column in self.columns) * len(heights)
        if len(heights) == 1 and self._has_reach(self.terms[0]):
            return np.asarray(heights[0] ** 2 * self._window_gains(self.terms[0], queries))
        step = max(1, _NUMBERS_AT_A_TIME // max(most, len(heights) ** 2))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            if len(self.columns) == 1:
                # The terms can be added before they are squared.
                factor = sum(each.height * self._all(each, part, 0) for each in self.terms)
                gain[start : start + step] = np.square(factor).sum(axis=1)
                continue
            inner = np.ones((len(part), len(heights), len(heights)))
            for column in range(len(self.columns)):
                factors = np.stack([self._all(each, part, column) for each in self.terms], axis=1)
                inner *= factors @ factors.transpose(0, 2, 1)
            gain[start : start + step] = np.einsum("i,qij,j->q", heights, inner, heights)
        return gain

    def covariances(self, batch: Batch) -> Floats:
        """Σ over nodes of the products of the coefficients of each pair of queries, in the same way."""
        queries = batch.arrays[0].astype(np.float64)
        factors = [
            [self._all(each, queries, column) for column in range(len(self.columns))] for each in self.terms
        ]
        if len(self.columns) == 1:
            factor: Floats = np.zeros((len(queries), self.columns[0].nodes))
            for term, (values,) in zip(self.terms, factors, strict=True):
                factor += term.height * values
            return factor @ factor.T
        total = np.zeros((len(queries), len(queries)))
        for i, one in enumerate(self.terms):
            for j, other in enumerate(self.terms[: i + 1]):
                product = np.full_like(total, one.height * other.height)
                for mine, theirs in zip(factors[i], factors[j], strict=True):
                    product *= mine @ theirs.T
                total += product if i == j else product + product.T
        return total

    def _has_reach(self, term: Term) -> bool:
        return all(factors.gaussian for factors in term.factors)

    def _narrow(self, term: Term, size: int) -> bool:
        """Whether to gather the nodes near a query, rather than to sum over all."""
        if not self._has_reach(term):
            return False
        window = math.prod(2 * factors.reach for factors in term.factors)
        dense = size // _NODES_PER_PRODUCT + sum(column.nodes for column in self.columns)
        return window <= min(_NODES_A_QUERY, dense)

    def _along(self, values: Floats, column: int) -> Floats:
        """Values of a column as places in cells, counted from the first node."""
        nodes = self.columns[column]
        along: Floats = (values - nodes.first) / nodes.spacing
        return along

    def _all(self, term: Term, queries: Floats, column: int) -> Floats:
        """Factors of all nodes along one column, shape (queries, nodes)."""
        factors, number = term.factors[column], self.columns[column].nodes
        along, where = _distinct(self._along(queries[:, column], column))
        if not factors.gaussian or 2 * factors.reach > number:
            return factors.at(along[:, None] - np.arange(number))[where]
        # Windows are put among zeros, with as many before and behind for those that leave the grid.
        before = np.floor(along)
        room = 2 * factors.reach
        start = np.clip(before - (factors.reach - 1) + room, 0, number + room).astype(np.int64)
        dense = np.zeros((len(along), number + 2 * room))
        np.put_along_axis(dense, start[:, None] + np.arange(room), factors.around(along - before), axis=1)
        return dense[where, room : room + number]

    def _near(
        self, term: Term, queries: Floats, column: int
    ) -> tuple[NDArray[np.int64], Floats, NDArray[np.intp] | slice]:
        """The nodes in reach along one column and their factors, both of shape (places, 2·reach), and the
        place of each query; factors of nodes that the grid does not have are 0.
        """
        factors, number = term.factors[column], self.columns[column].nodes
        along, where = _distinct(self._along(queries[:, column], column))
        before = np.floor(along)
        nodes = before.astype(np.int64)[:, None] + np.arange(1 - factors.reach, factors.reach + 1)
        values = factors.around(along - before)
        outside = (nodes < 0) | (nodes >= number)
        if outside.any():
            values[outside] = 0.0
            np.clip(nodes, 0, number - 1, out=nodes)
        return nodes, values, where

    def _window_sums(self, term: Term, table: Floats, queries: Floats) -> Floats:
        """The nodes near each query, gathered."""
        flat = table.reshape(-1)
        sums = np.empty(len(queries))
        step = max(1, _NUMBERS_AT_A_TIME // math.prod(2 * factors.reach for factors in term.factors))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            nodes = np.zeros((len(part), 1), np.int64)
            factors = []
            for column, own in enumerate(self.columns):
                near, values, where = self._near(term, part, column)
                factors.append(values[where])
                nodes = (nodes[:, :, None] * own.nodes + near[where, None, :]).reshape(len(part), -1)
            sums[start : start + step] = _contracted(flat[nodes], factors[::-1])
        return sums

    def _lattice_sums(self, table: Floats, lattice: Sequence[tuple[Floats, NDArray[np.intp]]]) -> Floats:
        """Queries that are most points of a lattice, such as those of a picture: the sums at all of its
        points, one column after the other.
        """
        total: Floats = np.zeros([len(places) for places, _ in lattice])
        for term in self.terms:
            values = table.reshape([column.nodes for column in self.columns])
            for column, (places, _) in enumerate(lattice):
                queries = np.broadcast_to(places[:, None], (len(places), len(lattice)))
                values = np.tensordot(values, self._all(term, queries, column), axes=(0, 1))
            total += term.height * values
        return np.asarray(total[tuple(where for _, where in lattice)])

    def _window_gains(self, term: Term, queries: Floats) -> Floats:
        gain = np.ones(len(queries))
        for column in range(len(self.columns)):
            _, values, where = self._near(term, queries, column)
            gain *= np.einsum("ij,ij->i", values, values)[where]
        return gain

    def _product_sums(self, terms: Sequence[Term], table: Floats, queries: Floats) -> Floats:
        """All nodes, one column after the other."""
        values = table.reshape(self.columns[0].nodes, -1)
        sums = np.zeros(len(queries))
        step = max(1, _NUMBERS_AT_A_TIME // max(values.shape))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            for term in terms:
                factors = [self._all(term, part, column) for column in range(len(self.columns))]
                kept = _contracted(factors[0] @ values, factors[:0:-1])
                sums[start : start + step] += term.height * kept
        return sums


def _distinct(along: Floats) -> tuple[Floats, NDArray[np.intp] | slice]:
    """The distinct places and which of them each query has, where that saves work: the points of a picture
    have few places along each column.
    """
    places, where = np.unique(along, return_inverse=True)
    return (places, where) if 2 * len(places) <= len(along) else (along, slice(None))


def gaussian_term(columns: Sequence[GridColumn], height: float, scale: float) -> Term:
    """A Gaussian of the same width along all columns."""
    return _term(columns, height, [scale] * len(columns), [True] * len(columns))


def _term(
    columns: Sequence[GridColumn], height: float, scales: Sequence[float], gaussian: Sequence[bool]
) -> Term:
    factors = (
        column_factors(column.degree, scale / column.spacing, normal)
        for column, scale, normal in zip(columns, scales, gaussian, strict=True)
    )
    return Term(height, tuple(factors))


def _contracted(values: Floats, factors: Sequence[Floats]) -> Floats:
    """Values of each query at the nodes, shape (queries, nodes), times the factors of the last column, then
    of the one before, and so on.
    """
    for factor in factors:
        values = np.matmul(values.reshape(len(factor), -1, factor.shape[1]), factor[:, :, None])[..., 0]
    return values.reshape(len(values), -1)[:, 0]
