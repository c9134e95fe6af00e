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
from hushsum._types import Floats
from hushsum.bases.base import Basis, RowAverages, SampledReading, Table
from hushsum.bases.fourier_feature_diameter import MOST_COLUMNS, remembered_squared_diameter
from hushsum.bases.fourier_feature_errors import AMPLITUDE, LENGTH, feature_sensitivity, pairs_for_laplace
from hushsum.bases.registry import register
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel, SpectralKernel
from hushsum.kernels.parameters import check_columns, integer_seed, positive_integer
from hushsum.kernels.public_randomness import row_words
from hushsum.kernels.registry import SPECTRAL
from hushsum.kernels.structured_randomness import hadamard, structured_signs
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds

MAX_FEATURES = 1 << 24
MAX_NUMBERS = 1 << 28
"""Random numbers behind the frequencies: a file that requires more is refused before any is made."""

MAX_GROUPS = 1 << 10

SMALLEST_TRANSFORM = 64
"""Columns of a structured transform: with fewer, directions are too far from uniform."""

FeatureMap = _native.FeatureMap | _native.StructuredFeatureMap

FEWEST_BLOCKS = 8
"""With fewer independent blocks than this, rows are taken for independent."""

MOST_BLOCKS = 512
"""From whose spread errors are estimated, to 3 % of a standard error: more take longer than the answers."""

_WAVES_AT_A_TIME = 1 << 22
_PURPOSE = "fourier-features/groups"


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
    groups : int
        Features are dealt out to this many groups, block by block, and each record is counted in one of them
        alone, which a public hash of its values picks. So m features take the time of m/groups. An answer
        adds the groups' sums, each over m/groups rows. With δ or ρ its noise grows by √groups, which is
        little where the error of the frequencies dominates; under pure ε it does not grow.
    structured : bool
        Take the frequencies of a block from three rounds of random signs and Hadamard transforms, in as many
        columns as the next power of two, at least 64: time and memory per feature no longer grow with the
        columns. Kernels of the Euclidean distance only. Directions are orthogonal and have the right
        covariance exactly, but are only nearly uniform, so k has a bias that does not fall with m: measured
        below 3·10⁻⁴ for records that differ from the query in two of 54 columns.

    Privacy
    -------
    A record's group and integers depend on that record alone. Its integers are zeros in other groups, so
    below m stands for m/groups; a replaced record that changes its group moves the rows of two groups by L
    each, which is less than the rows of one by 2L.

    A record's integers depend on that record alone, bit for bit, and each pair has c² + s² ≤ L², L = 1024:
    either of the two is within 0.5 of what was rounded, and that within 0.01 of A·cos or A·sin of some phase
    (polynomials and arithmetic together, whatever the record), and 1023 + 0.51·√2 < 1024. So one record
    present or absent moves m rows by at most L each: Δ2² = m·L², and Δ1 ≤ m·⌊√2·L⌋ since ‖v‖₁ ≤ √2·‖v‖₂ in
    the plane. One record replaced moves each row by at most 2L: Δ2² = 4m·L², Δ1 ≤ m·⌊2√2·L⌋. (A factor √2
    would not do: cosines change sign.)

    Two records of a declared box are not that far apart on all rows. Where a lattice of their differences
    proves a smaller Δ2 for these very frequencies (`hushsum.bases.fourier_feature_diameter`), a replaced
    record counts with that, and with Δ1 ≤ √(2m)·Δ2. It is near √(2m)·L in a box that is wide beside the
    bandwidth, and less in a narrow one. This is for up to 8 columns, one group, and frequencies that are not
    structured.

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
    groups: int = 1
    structured: bool = False

    def __post_init__(self) -> None:
        features = positive_integer("features", self.features, at_most=MAX_FEATURES)
        SPECTRAL.check(self.kernel, "fourier_features")
        dim = self._spectral.dim
        if self.structured and not self._spectral.rotation_invariant:
            raise UsageError(
                parameter="structured",
                rule="is for kernels of the Euclidean distance",
                got=f"it for {self._spectral.name}",
                remedy="leave it out",
            )
        object.__setattr__(self, "structured", bool(self.structured))
        if features * (self._size // 2 if self.structured else dim) > MAX_NUMBERS:
            raise UsageError(
                f"features × columns must be at most {MAX_NUMBERS}, got {features * dim}; use fewer features"
            )
        check_columns(self.columns, dim)
        orthogonal = bool(self.orthogonal) and self._spectral.rotation_invariant and dim > 1
        orthogonal |= self.structured
        fields = (("features", features), ("seed", integer_seed(self.seed)), ("orthogonal", orthogonal))
        for field, value in fields:
            object.__setattr__(self, field, value)
        object.__setattr__(self, "groups", positive_integer("groups", self.groups, at_most=MAX_GROUPS))
        unit = self.groups * self.block
        if self.groups > 1 and features % unit:
            raise UsageError(
                parameter="features",
                rule=f"must be a multiple of {unit}, groups × the rows of a block",
                got=features,
                remedy=f"use {-(-features // unit) * unit}",
            )

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
        """Every row of a record's group moves by a vector of length L (add/remove) or 2L (replace); all rows
        together by the diameter of the features of the box, where that is known.
        """
        moved = feature_sensitivity(self.features // self.groups, relation)
        if self.bounds is None or not self.costly_sensitivity(relation):
            return moved
        square = remembered_squared_diameter(self.frequencies, self.bounds.half_width)
        return replace(moved, l1=min(moved.l1, math.isqrt(2 * self.features * square)), l2_squared=square)

    def costly_sensitivity(self, relation: Relation) -> bool:
        """Where the diameter is bounded on a lattice, which takes tenths of a second for any few features."""
        plain = self.groups == 1 and not self.structured
        within = self.bounds is not None and self.bounds.dim <= MOST_COLUMNS
        return relation is Relation.REPLACE and plain and within

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's integers to every row, or to those of its group.

        Raises
        ------
        ValueError
            if a record is outside the box, in which the sensitivity holds: it was not prepared.
        """
        records = batch.arrays[0]
        if self.bounds is not None and not np.all(np.abs(records) <= self.bounds.half_width):
            raise ValueError("records must be prepared: clipped to the bounds")
        if self.groups == 1:
            self.map.add(records, table, step, threads)
            return
        chosen = self.group_of(records)
        rows = self.row_groups()
        for group in range(self.groups):
            part = np.ascontiguousarray(records[chosen == group])
            if len(part):
                sums = np.zeros((self.features // self.groups, 2), np.int64)
                self._group_maps[group].add(part, sums, step, threads)
                table[rows == group] += sums

    def group_of(self, records: NDArray[np.float32]) -> NDArray[np.int64]:
        """The group of each prepared record: multiply–shift hashing of the bits of its numbers.

        It is strongly universal, so two different records share a group with probability 1/groups.
        """
        # Minus zero and zero are one number.
        words = (records + np.float32(0.0)).view(np.uint32)
        numbers = row_words(_PURPOSE, self.seed, 1, records.shape[1] + 1)[0]
        total = np.full(len(records), numbers[-1], np.uint64)
        for column in range(records.shape[1]):
            total += words[:, column].astype(np.uint64) * numbers[column]
        high = total >> np.uint64(32)
        return ((high * np.uint64(self.groups)) >> np.uint64(32)).astype(np.int64)

    def prefix(self, rows: int) -> FourierFeatures:
        """The first pairs; frequency j is the same whatever their number."""
        return self if rows == self.features else replace(self, features=rows)

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """Pairs that balance Laplace noise, which grows with them, against chance, which falls.

        Groups do not change the balance: the noise of an answer is that of as many rows in one group.
        """
        pairs = pairs_for_laplace(max(count, 1), epsilon / moves, self.features)
        if self.groups == 1:
            return pairs
        unit = self.groups * self.block
        return min(self.features, -(-pairs // unit) * unit)

    def vectors(self, batch: Batch) -> Floats:
        """φ of each prepared record or query, shape (len(batch), 2·features): φ(x)·φ(q) is the kernel that
        the features stand for.

        A record's numbers are within 2·10⁻⁵/√features of cosines and sines over √features, and depend on
        that record alone, bit for bit. The order is that of the table, row by row.
        """
        waves: NDArray[np.float32] = _native.FeatureMap(self.frequencies).waves(batch.arrays[0])
        return waves.reshape(len(batch), -1).astype(np.float64) / math.sqrt(self.features)

    @property
    def block(self) -> int:
        """How many consecutive rows depend on each other."""
        if self.structured:
            return self._size
        return self._spectral.dim if self.orthogonal else 1

    @property
    def _size(self) -> int:
        """Columns of the structured transforms."""
        return max(SMALLEST_TRANSFORM, 1 << (self._spectral.dim - 1).bit_length())

    @cached_property
    def frequencies(self) -> NDArray[np.float32]:
        """ω_j/(2π), shape (features, dim); of structured features, to single precision. Read-only: records
        are counted with the frequencies that the sensitivity is proven for.
        """
        found = self._drawn_frequencies().copy()
        found.setflags(write=False)
        return found

    def _drawn_frequencies(self) -> NDArray[np.float32]:
        if self.structured:
            signs, scales = self._structure
            # Column r of the transpose S₁·H·S₂·H·S₃·H is what row r of the transforms makes of a record.
            found = np.empty((len(signs), self._size, self._spectral.dim), np.float64)
            units = np.eye(self._size)
            for block, (first, second, third) in enumerate(signs.astype(np.float64)):
                whole = hadamard(second * hadamard(third * hadamard(units))) * first
                found[block] = whole[:, : self._spectral.dim]
            rows = found.reshape(-1, self._spectral.dim)[: self.features] * scales[:, np.newaxis]
            return rows.astype(np.float32)
        return self._spectral.frequencies(rows=self.features, seed=self.seed, orthogonal=self.orthogonal)

    @cached_property
    def map(self) -> FeatureMap:
        """The native features."""
        if self.structured:
            return _native.StructuredFeatureMap(*self._structure, self._spectral.dim)
        return _native.FeatureMap(self.frequencies)

    @cached_property
    def _structure(self) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Signs of each block (blocks, 3, size), and turns per output of a transform, shape (features,)."""
        size = self._size
        signs = structured_signs("fourier-features/signs", self.seed, -(-self.features // size), size)
        lengths = self._spectral.frequency_lengths(rows=self.features, seed=self.seed, size=size)
        assert lengths is not None
        # Three rounds of H multiply lengths by size^{3/2}.
        scales = lengths / (size * math.sqrt(size))
        largest = float(np.finfo(np.float32).max)
        return signs, np.minimum(scales, largest).astype(np.float32)

    @cached_property
    def _group_maps(self) -> list[FeatureMap]:
        rows = self.row_groups()
        if self.structured:
            signs, scales = self._structure
            return [
                _native.StructuredFeatureMap(
                    np.ascontiguousarray(signs[group :: self.groups]),
                    scales[rows == group],
                    self._spectral.dim,
                )
                for group in range(self.groups)
            ]
        return [_native.FeatureMap(self.frequencies[rows == group]) for group in range(self.groups)]

    def row_groups(self) -> NDArray[np.int64]:
        """The group of each row: blocks are dealt out in turn, so that the first rows have all groups."""
        return np.arange(self.features) // self.block % self.groups

    def _reading(self, kernel: Kernel) -> FeatureReading:
        return FeatureReading(self, kernel)


@dataclass(frozen=True)
class FeatureReading(SampledReading):
    """The mean over rows of what each of them says."""

    basis: FourierFeatures
    kernel: Kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums: the mean over rows of what each says, times the number of groups."""
        basis = self.basis
        return basis.map.read(batch.arrays[0], table, basis.groups / (AMPLITUDE * basis.features), threads)

    def noise_gain(self, batch: Batch) -> Floats:
        """groups²/(m·A²) everywhere, since cos² + sin² = 1."""
        return np.full(len(batch), self.basis.groups**2 / (self.basis.features * AMPLITUDE**2))

    def noise_covariance(self, batch: Batch) -> Floats:
        """The inner products of the features, in the same unit."""
        basis, vectors = self.basis, self.basis.vectors(batch)
        return np.asarray(vectors @ vectors.T) * (basis.groups**2 / (basis.features * AMPLITUDE**2))

    def record_answers(self, records: Batch, queries: Batch) -> Floats:
        """The inner products of the features, of each record in its group alone."""
        basis, vectors = self.basis, self.basis.vectors(records)
        if basis.groups > 1:
            rows = np.repeat(basis.row_groups(), 2)
            vectors = vectors * (rows == basis.group_of(records.arrays[0])[:, np.newaxis]) * basis.groups
        return np.asarray(vectors @ basis.vectors(queries).T)

    def spread(self, table: Table, batch: Batch, *, threads: int) -> RowAverages:
        """The spread over blocks of orthogonal rows; over single rows where blocks are few, over the first
        512 blocks where there are more, since all have the same law. The mean is over these rows too.

        Blocks of different groups estimate sums over different records, which adds to their spread and not to
        the error of the answer: a part of 1/N at most.
        """
        block, scale = self._block, self.basis.groups / AMPLITUDE
        rows = self.basis.features
        used = min(rows, MOST_BLOCKS * block)
        mean, variance = self.basis.map.spread(batch.arrays[0], table[:used], block, scale, threads)
        return RowAverages(mean, variance * (used / rows), -(-used // block))

    @property
    def _block(self) -> int:
        block = self.basis.block
        return block if block * FEWEST_BLOCKS <= self.basis.features else 1

    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """Each pair's answer times the number of groups."""
        basis = self.basis
        waves = _native.FeatureMap(basis.frequencies).waves(batch.arrays[0]).reshape(len(batch), -1, 2)
        said = np.einsum("qjw,jw->qj", waves.astype(np.float64), table.astype(np.float64))
        return np.asarray(said * (basis.groups / AMPLITUDE)), self._block

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """An upper estimate that holds at every query, and includes the noise in the table.

        No row's answer exceeds the length of its pair, so the variance of their mean is at most the mean
        squared length over m. :meth:`spread` is sharper.
        """
        lengths = np.square(table.astype(np.float64)).sum(axis=1) * (self.basis.groups / AMPLITUDE) ** 2
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
