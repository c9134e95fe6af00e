"""Random Fourier features: every record adds the rounded cosine and sine of each of m random phases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum.bases.base import Basis, Floats, RowAverages, SampledReading, Table, register
from hushsum.bases.features_theory import AMPLITUDE, LENGTH, feature_sensitivity, pairs_for_laplace
from hushsum.errors import UsageError
from hushsum.kernels.base import SPECTRAL, Batch, Kernel, SpectralKernel
from hushsum.kernels.parameters import check_columns, integer_seed, positive_integer
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds

MAX_FEATURES = 1 << 24
MAX_NUMBERS = 1 << 28
"""Random numbers behind the frequencies: a file that requires more is refused before any is made."""

FEWEST_BLOCKS = 8
"""With fewer independent blocks than this, rows are taken for independent."""

_WAVES_AT_A_TIME = 1 << 22
_WAVES_IN_CACHE = 1 << 16


@register
@dataclass(frozen=True)
class FourierFeatures(Basis):
    """m random frequencies; a record adds the cosine and the sine of its phase on each, as integers.

    Row j holds Σ round(A·cos ω_j·x) and Σ round(A·sin ω_j·x), with A = 1023 and ω_j drawn from the kernel's
    spectral measure. An answer is the mean over rows of ``(cos(ω_j·q)·C_j + sin(ω_j·q)·S_j)/A``: each row
    estimates Σ cos ω_j·(x − q), whose expectation is the kernel sum. Works in any dimension.

    Phases are computed in single precision, relative to the origin or to the centre of ``bounds``. Where
    records lie more than about 10⁵ bandwidths from it, neighbours lose their similarity: declare bounds.

    Parameters
    ----------
    kernel : SpectralKernel
        With a known spectral measure.
    features : int
        m, the pairs of a cosine and a sine. More answer more precisely, and take more noise under pure ε.
    seed : int
        Public. Equal seeds give equal frequencies on every machine.
    orthogonal : bool
        Makes frequencies orthogonal within blocks of as many as there are columns, which lowers the error.
        Without effect on a single column, and on kernels of another distance than the Euclidean.
    bounds : Bounds, optional
        Records are clipped to this box, which is declared and never learned from the data.
    columns : tuple of str, optional
        What the columns are called, in their order.

    Privacy
    -------
    A record's integers depend on that record alone, bit for bit, and each pair has c² + s² ≤ L², L = 1024:
    either of the two is within 0.5 of what was rounded, and that within 0.01 of A·cos or A·sin of some phase
    (polynomials and arithmetic together, whatever the record), and 1023 + 0.51·√2 < 1024. So one record
    present or absent moves m rows by at most L each: Δ2² = m·L², and Δ1 ≤ m·⌊√2·L⌋ since ‖v‖₁ ≤ √2·‖v‖₂ in
    the plane. One record replaced moves each row by at most 2L: Δ2² = 4m·L², Δ1 ≤ m·⌊2√2·L⌋. (A factor √2
    would not do: cosines change sign.)

    Notes
    -----
    Rahimi and Recht, *Random features for large-scale kernel machines*, NIPS 2007, with pairs, whose length
    is constant; Yu et al., *Orthogonal random features*, NIPS 2016. With δ or ρ the noise of an answer does
    not grow with m: under ρ its standard deviation is L/A·1/√(2ρ), and 1/√(2ρ) is what one record can move.
    """

    name: ClassVar[str] = "fourier-features"
    constants: ClassVar[Mapping[str, int]] = {"length": LENGTH}

    kernel: Kernel
    features: int
    seed: int
    orthogonal: bool = True
    bounds: Bounds | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        features = positive_integer("features", self.features, at_most=MAX_FEATURES)
        SPECTRAL.check(self.kernel, "fourier_features")
        dim = self._spectral.dim
        if features * dim > MAX_NUMBERS:
            raise UsageError(
                f"features × columns must be at most {MAX_NUMBERS}, got {features * dim}; use fewer features"
            )
        check_columns(self.columns, dim)
        orthogonal = bool(self.orthogonal) and self._spectral.rotation_invariant and dim > 1
        fields = (("features", features), ("seed", integer_seed(self.seed)), ("orthogonal", orthogonal))
        for field, value in fields:
            object.__setattr__(self, field, value)

    @property
    def _spectral(self) -> SpectralKernel:
        assert isinstance(self.kernel, SpectralKernel)
        return self.kernel

    def counted_kernel(self) -> Kernel:
        """The kernel of the frequencies."""
        return self.kernel

    @property
    def shape(self) -> tuple[int, int]:
        """(features, 2)."""
        return self.features, 2

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Every row moves by a vector of length L (add/remove) or 2L (replace)."""
        return feature_sensitivity(self.features, relation)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's integers to every row."""
        self.map.add(batch.arrays[0], table, step, threads)

    def prefix(self, rows: int) -> FourierFeatures:
        """The first pairs; frequency j is the same whatever their number."""
        return self if rows == self.features else replace(self, features=rows)

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """Pairs that balance Laplace noise, which grows with them, against chance, which falls."""
        return pairs_for_laplace(max(count, 1), epsilon / moves, self.features)

    def vectors(self, batch: Batch) -> Floats:
        """φ of each prepared record or query, shape (len(batch), 2·features): φ(x)·φ(q) is the kernel that
        the features stand for.

        A record's numbers are within 2·10⁻⁵/√features of cosines and sines over √features, and depend on
        that record alone, bit for bit. The order is that of the table, row by row.
        """
        waves: NDArray[np.float32] = self.map.waves(batch.arrays[0])
        return waves.reshape(len(batch), -1).astype(np.float64) / math.sqrt(self.features)

    @property
    def block(self) -> int:
        """How many consecutive rows depend on each other."""
        return self._spectral.dim if self.orthogonal else 1

    @cached_property
    def frequencies(self) -> NDArray[np.float32]:
        """ω_j/(2π), shape (features, dim)."""
        return self._spectral.frequencies(rows=self.features, seed=self.seed, orthogonal=self.orthogonal)

    @cached_property
    def map(self) -> _native.FeatureMap:
        """The native features."""
        return _native.FeatureMap(self.frequencies)

    def _reading(self, kernel: Kernel) -> FeatureReading:
        return FeatureReading(self, kernel)


@dataclass(frozen=True)
class FeatureReading(SampledReading):
    """The mean over rows of what each of them says."""

    basis: FourierFeatures
    kernel: Kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums: the mean over rows of what each says."""
        return self.basis.map.read(batch.arrays[0], table, 1.0 / (AMPLITUDE * self.basis.features), threads)

    def noise_gain(self, batch: Batch) -> Floats:
        """1/(m·A²) everywhere, since cos² + sin² = 1."""
        return np.full(len(batch), 1.0 / (self.basis.features * AMPLITUDE**2))

    def spread(self, table: Table, batch: Batch) -> RowAverages:
        """The spread over blocks of orthogonal rows; over single rows where blocks are few."""
        block = self.basis.block
        block = block if block * FEWEST_BLOCKS <= self.basis.features else 1
        starts = np.arange(0, self.basis.features, block)
        sizes = np.diff(np.append(starts, self.basis.features)).astype(np.float32)
        cosines, sines = np.ascontiguousarray((table / AMPLITUDE).astype(np.float32).T)
        records = batch.arrays[0]
        mean, variance = np.empty(len(records)), np.full(len(records), np.nan)
        # Few enough that the passes over them stay in the cache.
        step = max(1, _WAVES_IN_CACHE // (2 * self.basis.features))
        for first in range(0, len(records), step):
            part = slice(first, first + step)
            waves = self.basis.map.waves(records[part])
            rows = waves[..., 0] * cosines
            rows += waves[..., 1] * sines
            mean[part] = rows.mean(axis=1, dtype=np.float64)
            if len(starts) > 1:
                means = rows if block == 1 else np.add.reduceat(rows, starts, axis=1) / sizes
                away = means - mean[part, None].astype(np.float32)
                # Weighting with the sizes is the usual estimate, and unbiased for a shorter last block.
                squares = np.einsum("nb,nb,b->n", away, away, sizes, optimize=False)
                variance[part] = squares / ((len(starts) - 1) * self.basis.features)
        return RowAverages(mean, variance, len(starts))

    def method_variance(self, table: Table, batch: Batch, sums: Floats, count: float) -> Floats:
        """An upper estimate that holds at every query, and includes the noise in the table.

        No row's answer exceeds the length of its pair, so the variance of their mean is at most the mean
        squared length over m. :meth:`spread` is sharper.
        """
        lengths = np.square(table.astype(np.float64)).sum(axis=1) / AMPLITUDE**2
        return np.full(len(batch), float(lengths.mean()) / self.basis.features)

    def weighted_sums(self, points: Batch, weights: Floats, batch: Batch) -> Floats:
        """Σ weight·k(point, q) at prepared queries, without features."""
        sums = np.empty(len(batch))
        step = max(1, _WAVES_AT_A_TIME // len(points))
        for first in range(0, len(batch), step):
            part = Batch((batch.arrays[0][first : first + step],), min(step, len(batch) - first))
            sums[first : first + step] = weights @ self.kernel.prepared_similarity(points, part)
        return sums

    def total(self, table: Table) -> None:
        """None: no phase is zero for every record."""
        return
