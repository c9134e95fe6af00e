"""Random cosine features with one phase each: locality-sensitive quantization as published."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import RowAverages, SampledReading, Table
from hushsum.bases.declared_box import BoxBasis, blocks, gaussian_width, queries_of
from hushsum.bases.portable_math import cosine_and_sine
from hushsum.bases.registry import register
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel
from hushsum.kernels.parameters import integer_seed, positive_integer
from hushsum.kernels.public_randomness import normals, row_words, uniforms
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation

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
