"""Random cosine features with one phase each: locality-sensitive quantization as published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import (
    GAUSSIAN,
    Batch,
    Kernel,
    integer_seed,
    normals,
    positive_integer,
    row_words,
    uniforms,
)
from hushsum.methods import boxed_tally, register_tally
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds, DeclaredBounds
from hushsum.tables import (
    BoxBasis,
    RowAverages,
    SampledReading,
    Table,
    blocks,
    cosine_and_sine,
    gaussian_width,
    queries_of,
    register,
)
from hushsum.tally import Tally

MAX_FEATURES = 1 << 22
MAX_NUMBERS = 1 << 28


@register
@dataclass(frozen=True, kw_only=True)
class CosineFeatures(BoxBasis):
    """√2·cos(ω·x + β) of each record for I random frequencies; a kernel sum is the mean of products.

    Any dimension. The answer's own error is about N/√I whatever the noise, and pure ε divides the budget
    among the features: I balances the two.

    Parameters
    ----------
    features : int
        I.
    seed : int
        Public, of frequencies and phases.

    Privacy
    -------
    Each feature is an integer within ±F (F for a cosine of 1): Δ1 = F·I, Δ2² = F²·I; twice and four times
    that for a record replaced. As published: Laplace noise of scale √2·I/(ε·n) on means of √2·cos.

    Notes
    -----
    Wagner, Naamad and Mishra, *Fast private kernel density estimation via locality sensitive quantization*,
    ICML 2023; Rahimi and Recht, *Random features for large-scale kernel machines*, NIPS 2007.
    """

    name: ClassVar[str] = "cosine-features"
    in_pages: ClassVar[bool] = True

    kernel: Kernel
    features: int
    seed: int = 0

    def __post_init__(self) -> None:
        gaussian_width(self.kernel, "lsq_rff")
        super().__post_init__()
        features = positive_integer("features", self.features, at_most=MAX_FEATURES)
        object.__setattr__(self, "features", features)
        if features * (self.dim + 1) > MAX_NUMBERS:
            raise UsageError(
                f"features × columns must be at most {MAX_NUMBERS}, got more; use fewer features"
            )
        object.__setattr__(self, "seed", integer_seed(self.seed))

    def counted_kernel(self) -> Kernel:
        """The kernel that the coefficients are made for."""
        return self.kernel

    @property
    def shape(self) -> tuple[int, int]:
        """(1, features)."""
        return 1, self.features

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Every feature moves by at most F, or 2F under replace."""
        most = self.scale * (2 if relation is Relation.REPLACE else 1)
        return Sensitivity(l1=most * self.features, l2_squared=most**2 * self.features, largest=most)

    @cached_property
    def _waves(self) -> tuple[Floats, Floats]:
        """Frequencies in turns a unit, shape (dim, I), and phases in turns, shape (I,)."""
        words = row_words("cosine-features", self.seed, self.features, self.dim + 1)
        width = gaussian_width(self.kernel, self.name) * (2.0 * math.pi)
        return np.ascontiguousarray((normals(words[:, :-1]) / width).T), uniforms(words[:, -1])

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 8 * self.features

    def cosines(self, points: Floats) -> Floats:
        """cos(ω·x + β) of each point for each frequency, shape (n, features)."""
        frequency, phase = self._waves
        turns = np.repeat(phase[np.newaxis], len(points), axis=0)
        for column in range(self.dim):
            turns += points[:, column, np.newaxis] * frequency[column]
        return cosine_and_sine(turns)[0]

    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        cosine = np.clip(self.cosines(records), -1.0, 1.0)
        table[0] += step * np.rint(cosine * self.scale).astype(np.int64).sum(axis=0)

    def _reading(self, kernel: Kernel) -> CosineReading:
        return CosineReading(self, kernel)


@dataclass(frozen=True)
class CosineReading(SampledReading):
    """The mean over features of products."""

    basis: CosineFeatures
    kernel: Kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """The mean over features of √2·cos at the query times the records' sum of √2·cos."""
        sums = table[0] * (2.0 / self.basis.scale / self.basis.features)
        answers = np.empty(len(batch))
        for start, stop in blocks(len(batch), self.basis.numbers_per_record()):
            answers[start:stop] = self.basis.cosines(queries_of(batch)[start:stop]) @ sums
        return answers

    def noise_gain(self, batch: Batch) -> Floats:
        """Σ (2·cos/(F·I))²."""
        gain = np.empty(len(batch))
        for start, stop in blocks(len(batch), self.basis.numbers_per_record()):
            cosine = self.basis.cosines(queries_of(batch)[start:stop])
            gain[start:stop] = (cosine * cosine).sum(axis=1)
        return gain * (2.0 / self.basis.scale / self.basis.features) ** 2

    def noise_covariance(self, batch: Batch) -> Floats:
        """Inner products of the same coefficients."""
        cosine = self.basis.cosines(queries_of(batch))
        return np.asarray(cosine @ cosine.T) * (2.0 / self.basis.scale / self.basis.features) ** 2

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """No product exceeds twice the size of a feature: the mean of their squares over the number of
        features, which includes the noise. :meth:`spread` is sharper.
        """
        squares = np.square(table[0] * (2.0 / self.basis.scale))
        return np.full(len(batch), float(squares.mean()) / self.basis.features)

    def spread(self, table: Table, batch: Batch, *, threads: int) -> RowAverages:
        """The spread of the products over features."""
        values = table[0] * (2.0 / self.basis.scale)
        mean, variance = np.empty(len(batch)), np.full(len(batch), np.nan)
        for start, stop in blocks(len(batch), self.basis.numbers_per_record()):
            products = self.basis.cosines(queries_of(batch)[start:stop]) * values
            mean[start:stop] = products.mean(axis=1)
            if self.basis.features > 1:
                variance[start:stop] = products.var(axis=1, ddof=1) / self.basis.features
        return RowAverages(mean, variance, self.basis.features)

    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """The product of each feature."""
        return self.basis.cosines(queries_of(batch)) * (table[0] * (2.0 / self.basis.scale)), 1

    def total(self, table: Table) -> None:
        """Features do not count records."""
        return


_ANYWHERE = (-1e38, 1e38)


def lsq_rff(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds | None = None,
    features: int = 200,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of random cosine features, one phase each, as published; any dimension.

    Kept as a peer to compare with: paired features of one frequency have half the noise and no random phase.

    Parameters
    ----------
    kernel : GaussianKernel
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name, optional
        Records are clipped to it. Features are bounded without.
    features : int
        I: the error of the method is about 1/√I, that of the noise about I^½/(ε·n).
    seed : int
        Public seed of frequencies and phases. Tallies that shall merge need the same one.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import lsq_rff
    >>> tally = lsq_rff(hs.GaussianKernel(dim=5, bandwidth=1.0), features=400, seed=7)
    >>> f = tally.add([[0.0] * 5] * 10_000).release(epsilon=1.0)
    >>> bool(f([[0.0] * 5])[0] > f([[9.0] * 5])[0])
    True

    Notes
    -----
    Wagner, Naamad and Mishra, ICML 2023. With exact integer noise on features in fixed point.
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> CosineFeatures:
        return CosineFeatures(kernel=kernel, bounds=box, columns=names, features=features, seed=seed)

    box = _ANYWHERE if bounds is None else bounds
    return boxed_tally("lsq_rff", kernel, basis, bounds=box, columns=columns, max_per_unit=max_per_unit)


register_tally("lsq_rff", lsq_rff, role=GAUSSIAN, paper="Wagner, Naamad and Mishra 2023", needs_bounds=False)
