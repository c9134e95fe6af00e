"""The Bernstein mechanism: the function itself on a lattice, read through Bernstein polynomials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels import GAUSSIAN, Batch, Kernel, positive_integer
from hushsum.methods import boxed_tally, register_tally
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds, DeclaredBounds
from hushsum.tables import (
    HEAPED_SHARE,
    BoxBasis,
    LinearReading,
    Table,
    blocks,
    check_power,
    contracted,
    exponential_of_minus,
    gaussian_width,
    outer_products,
    queries_of,
    register,
)
from hushsum.tally import Tally

MAX_DEGREE = 1 << 12
MAX_ITERATIONS = 1 << 16
_RIDGE = 1e-6
"""Keeps the matrix of a fine lattice regular, in parts of its diagonal."""

_NEIGHBOURHOOD = 1.0
"""Over how many steps of the lattice the smoothing error is averaged, as a standard deviation."""

_ROUNDING = 1.0 + 2.0**-30
"""More than what the rounding of all floats here can add to a bound, in proportion."""


@register
@dataclass(frozen=True, kw_only=True)
class BernsteinLattice(BoxBasis):
    """Kernel sums at (k + 1)^d lattice points of the box, interpolated by iterated Bernstein polynomials.

    The Gaussian kernel is a product over columns, so a record adds an outer product of d short vectors
    instead of (k + 1)^d distances. The polynomials smooth: features narrower than about half the box over √k
    are flattened, and iterations sharpen them again at the price of more noise. Queries outside the box are
    answered at its nearest point.

    Parameters
    ----------
    degree : int
        k; the lattice has k + 1 points in each column.
    iterations : int
        h, the order of the iterated operator I − (I − B)^h in each column.
    as_published : bool
        Declare the published sensitivity, 1 at each of the (k + 1)^d points, instead of what a local kernel
        can add up to.

    Privacy
    -------
    A record adds ⌊F·k(x, v)⌋ ≥ 0 at lattice point v. In one column with spacing s, Σ_v k(x, v) is at most
    Σ_{j∈ℤ} k(js), the sum over the endless lattice from one of its points: by Poisson's formula with positive
    coefficients no other place has a larger one. Δ1 = F·Π of these (at most k + 1 each), Δ2² = F²·Π of the
    same for k². Replaced: 2Δ1 and, both vectors being non-negative, 2Δ2².

    Notes
    -----
    Aldà and Rubinstein, *The Bernstein mechanism: function release under differential privacy*, AAAI 2017.
    They iterate the operator of all columns at once; iterating that of each column has the smaller error.
    """

    name: ClassVar[str] = "bernstein"

    kernel: Kernel
    degree: int
    iterations: int = 2
    as_published: bool = False

    def __post_init__(self) -> None:
        gaussian_width(self.kernel, "bernstein")
        super().__post_init__()
        object.__setattr__(self, "degree", positive_integer("degree", self.degree, at_most=MAX_DEGREE))
        iterations = positive_integer("iterations", self.iterations, at_most=MAX_ITERATIONS)
        object.__setattr__(self, "iterations", iterations)
        check_power("degree + 1", self.degree + 1, self.dim)

    def counted_kernel(self) -> Kernel:
        """The kernel that the coefficients are made for."""
        return self.kernel

    @property
    def shape(self) -> tuple[int, int]:
        """(1, (degree + 1)^dim)."""
        return 1, int((self.degree + 1) ** self.dim)

    @cached_property
    def lattice(self) -> Floats:
        """The points of each column, relative to the centre, shape (dim, degree + 1)."""
        steps = np.arange(self.degree + 1, dtype=np.float64) * 2.0 / self.degree - 1.0
        return np.multiply.outer(self.half, steps)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """What a kernel can add up to over the lattice."""
        l1, l2_squared = self._moves
        times = 2 if relation is Relation.REPLACE else 1
        return Sensitivity(l1=times * l1, l2_squared=times * l2_squared, largest=self.scale)

    @cached_property
    def _moves(self) -> tuple[int, int]:
        if self.as_published:
            return self.scale * self.shape[1], self.scale**2 * self.shape[1]
        width = gaussian_width(self.kernel, self.name)
        most, squares = 1.0, 1.0
        for half in self.half.tolist():
            spacing = 2.0 * half / self.degree / width
            most *= _endless_sum(spacing, self.degree + 1.0)
            squares *= _endless_sum(spacing * math.sqrt(2.0), self.degree + 1.0)
        slack = _ROUNDING**self.dim
        return math.floor(self.scale * most * slack), math.floor(self.scale**2 * squares * slack)

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 2 * self.shape[1]

    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        width = gaussian_width(self.kernel, self.name)
        factors = []
        for column in range(self.dim):
            offset = (records[:, column, np.newaxis] - self.lattice[column]) / width
            factors.append(exponential_of_minus(0.5 * offset * offset))
        table[0] += step * np.floor(outer_products(factors) * self.scale).astype(np.int64).sum(axis=0)

    def _reading(self, kernel: Kernel) -> BernsteinReading:
        return BernsteinReading(self, kernel)


@dataclass(frozen=True)
class BernsteinReading(LinearReading):
    """Iterated Bernstein polynomials of the lattice values."""

    basis: BernsteinLattice
    kernel: Kernel

    @cached_property
    def _sharpening(self) -> Floats:
        """Σ_{i<h} (I − B)^i, with B the polynomials at the lattice points."""
        basis = bernstein_values(np.arange(self.basis.degree + 1) / self.basis.degree, self.basis.degree)
        step = np.eye(self.basis.degree + 1) - basis
        total = np.eye(self.basis.degree + 1)
        for _ in range(self.basis.iterations - 1):
            total = np.eye(self.basis.degree + 1) + step @ total
        return total

    def _factors(self, queries: Floats) -> list[Floats]:
        place = np.clip((queries / self.basis.half + 1.0) * 0.5, 0.0, 1.0)
        return [self._values(place[:, column]) for column in range(self.basis.dim)]

    def _values(self, places: Floats) -> Floats:
        """What each point of the lattice counts at places in [0, 1] of a column."""
        return bernstein_values(places, self.basis.degree) @ self._sharpening

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """The iterated polynomial of the noisy lattice values."""
        values = table.reshape(-1) / self.basis.scale
        answers = np.empty(len(batch))
        for start, stop in blocks(len(batch), self.basis.shape[1]):
            answers[start:stop] = contracted(values, self._factors(queries_of(batch)[start:stop]))
        return answers

    def noise_gain(self, batch: Batch) -> Floats:
        """Π over columns of Σ squares."""
        gain = np.full(len(batch), 1.0 / self.basis.scale**2)
        for factor in self._factors(queries_of(batch)):
            gain *= (factor * factor).sum(axis=1)
        return gain

    def noise_covariance(self, batch: Batch) -> Floats:
        """Π over columns of inner products."""
        total = np.full((len(batch), len(batch)), 1.0 / self.basis.scale**2)
        for factor in self._factors(queries_of(batch)):
            total *= factor @ factor.T
        return total

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared smoothing error, beyond the noise of its estimate, and that of what the lattice does
        not show.

        At the points of the lattice the table has the sums themselves, and between them the function of least
        norm in the kernel's space that has these values is near the truth; the polynomials differ from it by
        the smoothing error. One estimate is its square at the query, which sees heaps; another the mean
        square over the points around it, which has less noise. The larger one counts. Of the kernel at a
        query between points that are a bandwidth apart, a part is in no combination of those at the points:
        an error of that part of the records that have the very value of the query.
        """
        queries, own = queries_of(batch), variance / self.basis.scale**2
        values = table.reshape(-1) / self.basis.scale
        squares = self._beyond_noise(values, own)
        smoothing, hidden = np.empty(len(batch)), np.empty(len(batch))
        for start, stop in blocks(len(batch), 2 * self.basis.shape[1]):
            part = queries[start:stop]
            between, hidden[start:stop] = self._interpolated(part)
            smooth = self._factors(part)
            here = np.square(contracted(values, smooth) - contracted(values, between))
            pairs = ((smooth, smooth, 1.0), (smooth, between, -2.0), (between, between, 1.0))
            for one, other, sign in pairs:
                both = (np.einsum("ij,ij->i", a, b) for a, b in zip(one, other, strict=True))
                here -= own * sign * math.prod(both)
            smoothing[start:stop] = np.maximum(here, contracted(squares, self._around(part)))
        unseen = HEAPED_SHARE * hidden * self.evaluate(table, batch, threads=1)
        return np.maximum(smoothing, 0.0) + np.square(unseen)

    def _beyond_noise(self, values: Floats, variance: float) -> Floats:
        """The squared difference of polynomials and sums at the lattice, less what noise of this variance in
        every sum makes of it; flat.
        """
        dim, points = self.basis.dim, self.basis.degree + 1
        at_lattice = self._values(np.linspace(0.0, 1.0, points))
        sums = values.reshape((points,) * dim)
        smooth = sums
        for column in range(dim):
            smooth = np.moveaxis(np.tensordot(at_lattice, smooth, axes=(1, column)), 0, column)
        squares, own = (at_lattice * at_lattice).sum(axis=1), np.diagonal(at_lattice)
        gain = _outer([squares] * dim) - 2.0 * _outer([own] * dim) + 1.0
        return np.ascontiguousarray(np.square(smooth - sums) - variance * gain).reshape(-1)

    def _around(self, queries: Floats) -> list[Floats]:
        """In each column, weights of the lattice points around each query, shape (n, degree + 1)."""
        weights = []
        for column in range(self.basis.dim):
            half, lattice = self.basis.half[column], self.basis.lattice[column]
            places = np.clip(queries[:, column], -half, half)
            away = (places[:, None] - lattice) / (_NEIGHBOURHOOD * 2.0 * half / self.basis.degree)
            near = np.exp(-0.5 * away * away)
            weights.append(near / near.sum(axis=1, keepdims=True))
        return weights

    def _interpolated(self, queries: Floats) -> tuple[list[Floats], Floats]:
        """In each column, what every lattice point counts for the interpolation at each query, shape
        (n, degree + 1); and the squared length, in the kernel's space, of the part of the kernel at each
        query that is not a combination of the kernels at the lattice.
        """
        width, seen = gaussian_width(self.kernel, self.basis.name), np.ones(len(queries))
        weights: list[Floats] = []
        for column in range(self.basis.dim):
            half, lattice = self.basis.half[column], self.basis.lattice[column]
            apart = (lattice[:, None] - lattice) / width
            gram = np.exp(-0.5 * apart * apart) + _RIDGE * np.eye(len(lattice))
            near = (np.clip(queries[:, column], -half, half)[:, None] - lattice) / width
            similar = np.exp(-0.5 * near * near)
            weights.append(np.linalg.solve(gram, similar.T).T)
            seen *= np.einsum("ij,ij->i", similar, weights[-1])
        return weights, np.clip(1.0 - seen, 0.0, 1.0)

    def total(self, table: Table) -> None:
        """The lattice holds smoothed values, not counts."""
        return


def bernstein_values(places: Floats, degree: int) -> Floats:
    """C(k, j)·x^j·(1 − x)^(k − j) for j = 0, …, k, shape (len(places), degree + 1); for queries.

    >>> bernstein_values(np.array([0.5]), 2).tolist()
    [[0.25, 0.5, 0.25]]
    """
    from scipy.special import gammaln, xlog1py, xlogy

    j = np.arange(degree + 1)
    choose = gammaln(degree + 1) - gammaln(j + 1) - gammaln(degree - j + 1)
    x = places[:, np.newaxis]
    values: Floats = np.exp(choose + xlogy(j, x) + xlog1py(degree - j, -x)).round(15)
    return values


def _outer(vectors: list[Floats]) -> Floats:
    """The products of one number of each vector."""
    product = vectors[0]
    for vector in vectors[1:]:
        product = np.multiply.outer(product, vector)
    return product


def _endless_sum(spacing: float, most: float) -> float:
    """Σ over all integers j of exp(−(j·spacing)²/2), from above, up to rounding; at most ``most``.

    It is at least √(2π)/spacing, by Poisson's formula, so that few terms decide.
    """
    if spacing * most <= 2.5:
        return most
    j = np.arange(1, math.ceil(40.0 / spacing) + 2) * spacing
    return min(1.0 + 2.0 * math.fsum(np.exp(-0.5 * j * j).tolist()), most)


PUBLISHED = (1, 3, 7, 9, 19, 39, 99)
"""Degrees of the lattices of 2, 4, 8, 10, 20, 40 and 100 points that Coleman and Shrivastava tried; up to 20
points in three dimensions and more.
"""


def bernstein(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    degree: int = 19,
    iterations: int = 2,
    as_published: bool = False,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of kernel sums at the points of a lattice, read through Bernstein polynomials.

    For one to three columns and smooth functions. Peaks narrower than about half the box over √degree are
    flattened unless ``iterations`` is large.

    Parameters
    ----------
    kernel : GaussianKernel
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it; so are queries.
    degree : int
        The lattice has degree + 1 points in each column.
    iterations : int
        The order h of the iterated polynomials.
    as_published : bool
        Noise for a sensitivity of 1 at every lattice point, instead of what a record can really add up to.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import bernstein
    >>> tally = bernstein(hs.GaussianKernel(dim=1, bandwidth=2.0), bounds=(0, 10))
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f([[9.0]])[0])
    True

    Notes
    -----
    Aldà and Rubinstein, AAAI 2017. With exact integer noise on values in fixed point, and the lattice filled
    through the tensor structure of the kernel.
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> BernsteinLattice:
        return BernsteinLattice(
            kernel=kernel,
            bounds=box,
            columns=names,
            degree=degree,
            iterations=iterations,
            as_published=as_published,
        )

    return boxed_tally("bernstein", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


register_tally("bernstein", bernstein, role=GAUSSIAN, paper="Aldà and Rubinstein 2017", most_columns=3)
