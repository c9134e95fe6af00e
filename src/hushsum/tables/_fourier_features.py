"""Random Fourier features, their errors, and answers that are fitted at public points."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import (
    MOST_COORDINATES,
    SPECTRAL,
    Batch,
    Kernel,
    SpectralKernel,
    check_columns,
    hadamard,
    integer_seed,
    positive_integer,
    row_words,
    sobol_points,
    structured_signs,
)
from hushsum.privacy import IntegerNoise, Relation, Sensitivity
from hushsum.records import Bounds

from ._base import Basis, RowAverages, SampledReading, Table, register, slices

__all__ = [
    "AMPLITUDE", "FOLDS", "LENGTH", "FeatureError", "FeatureReading", "FourierFeatures", "chance_error",
    "drawn_points", "even_pairs_for_laplace", "evenness", "explain", "mean_weights", "pair_variance",
    "pairs_for_laplace", "predicted_error", "unexplained",
]  # fmt: skip

AMPLITUDE = _native.WAVE_AMPLITUDE
LENGTH = _native.WAVE_LENGTH
TYPICAL_PAIR_VARIANCE = 0.037
"""Variance of one pair's answer over N². Of normal records in many columns it is K·(1 − K)²/2 at a mean
density K: from 0.018 to its largest value 0.074 for every K from 0.04 to 0.68, of which this is the middle.
The optimum is flat: a factor of two in this number costs a twentieth of the error.
"""


def feature_sensitivity(pairs: int, relation: Relation) -> Sensitivity:
    """Every row moves by a vector no longer than L, or 2L where a record is replaced.

    ‖v‖₁ ≤ √2·‖v‖₂ in the plane, so Δ1 is at most ⌊√2·L⌋ per row.

    >>> feature_sensitivity(10, Relation.ADD_REMOVE)
    Sensitivity(l1=14480, l2_squared=10485760, largest=1024)
    """
    length = LENGTH if relation is Relation.ADD_REMOVE else 2 * LENGTH
    square = length**2
    return Sensitivity(l1=pairs * math.isqrt(2 * square), l2_squared=pairs * square, largest=length)


def pairs_for_laplace(
    records: float, epsilon: float, capacity: int, variance: float = TYPICAL_PAIR_VARIANCE
) -> int:
    """The pairs a pure-ε release should publish, without looking at anything private but a noisy count.

    The variance v·N²/m + 4m/ε² is smallest at m = N·ε·√v/2, with v the variance of a pair.

    >>> pairs_for_laplace(records=100_000, epsilon=0.1, capacity=4000)
    962
    """
    best = records * epsilon * math.sqrt(variance) / 2.0
    return max(1, min(capacity, math.ceil(best)))


def even_pairs_for_laplace(
    records: float, epsilon: float, capacity: int, variance: Callable[[int], float], unit: int = 1
) -> int:
    """As `pairs_for_laplace` where ``variance``, that of a pair, falls with the number of pairs: a power of
    two of units, or the capacity.

    >>> even_pairs_for_laplace(100_000, 0.1, 4096, lambda pairs: 0.037 * evenness(pairs, 0.1, 4) ** 2)
    512
    """
    sizes = {min(capacity, unit << power) for power in range(capacity.bit_length() + 1)}
    scale = 4.0 / (max(records, 1.0) * epsilon) ** 2
    return min(sorted(sizes), key=lambda pairs: variance(pairs) / pairs + pairs * scale)


def evenness(pairs: int, density: float, coordinates: int) -> float:
    """The error of evenly spread frequencies over that of as many independent ones, at this mean similarity.

    It falls with the number of pairs, faster in few columns and for wide kernels: a fit to the tuning half of
    ``benchmarks/plans/plan_validation.py`` at 8 to 131,072 pairs, in which errors above it count twice. On
    the other half four fifths are between 0.3 and 2.3 times as large, as data differ.

    >>> [round(evenness(4096, 0.3, columns), 3) for columns in (2, 4, 8, 16)]
    [0.015, 0.076, 0.302, 0.73]
    """
    matter = 60.0 * pairs * math.pow(density, 1.8) / coordinates**3.4
    return max(math.pow(1.0 + matter, -0.62 / (1.0 + coordinates / 12.0)), min(2.0 / pairs, 1.0))


TYPICAL_DENSITY = 0.1
"""Of `evenness` where the mean similarity is not known: its optimum is flat, too."""


def pair_variance(density: float, dim: int) -> float:
    """The variance of one pair's answer over N², on average over queries from the data, for normal data.

    With variance a·h² in every column, ``K = (1 + 2a)^{−d/2}``, the mean of B is ``(1 + 6a)^{−d/2}`` and
    that of f² is ``((1 + a)(1 + 3a))^{−d/2}``; K and d give a. In high dimension this is K/2.

    >>> round(pair_variance(density=0.05, dim=54), 4)
    0.0225
    """
    if not 0.0 < density <= 1.0:
        rule, remedy = "must be above 0 and at most 1", "give the mean similarity"
        raise UsageError("density", rule, got=f"{density}", remedy=remedy)
    a: float = (math.pow(density, -2.0 / dim) - 1.0) / 2.0
    moved = math.pow(1.0 + 6.0 * a, -dim / 2.0)
    squared = math.pow((1.0 + a) * (1.0 + 3.0 * a), -dim / 2.0)
    return max((density + moved) / 2.0 - squared, 0.0)


def chance_error(
    *, records: int, dim: int, pairs: int, density: float, groups: int = 1, even: int = 0
) -> float:
    """The mean absolute error of the mean kernel value that independent random frequencies leave, or that
    frequencies do which are evenly spread in so many coordinates.
    """
    spread = evenness(pairs // groups, density, even) if even else 1.0
    variance = (pair_variance(density, dim) * spread**2 + (groups - 1) / (2.0 * records)) / pairs
    return math.sqrt(2.0 / math.pi * variance)


@dataclass(frozen=True, slots=True)
class FeatureError:
    """Predicted mean absolute errors of the mean kernel value, at queries from the data.

    ``noise`` is that of the claim, ``chance`` that of the random frequencies; ``total`` has both.
    """

    noise: float
    chance: float
    total: float


def predicted_error(
    *, records: int, dim: int, pairs: int, noise: IntegerNoise, density: float, groups: int = 1, even: int = 0
) -> FeatureError:
    """The error of a release with ``pairs`` pairs, from declared quantities alone.

    ``noise`` is that of the table's cells (`hushsum.privacy.calibrate`); the error of the noisy number of
    records is left out. ``density`` is the mean similarity of two records, which a publisher declares or
    guesses; chance is that of independent frequencies, which orthogonal ones undercut, or of those that are
    evenly spread in ``even`` coordinates. ``groups`` is the number of groups of pairs, of which a record is
    counted in one.

    >>> from hushsum.privacy import UnitChange, calibrate
    >>> from hushsum.privacy import Promise
    >>> moved = feature_sensitivity(4000, Relation.ADD_REMOVE)
    >>> record = UnitChange.of_records(moved, None, Relation.ADD_REMOVE)
    >>> noise = calibrate(Promise.of(epsilon=1.0, delta=1e-6), record, cells=8000).table
    >>> error = predicted_error(records=581_000, dim=54, pairs=4000, noise=noise, density=0.05)
    >>> f"{error.noise:.1e} {error.chance:.1e} {error.total:.1e}"
    '5.9e-06 1.9e-03 1.9e-03'
    """
    variance = groups**2 * noise.variance / (pairs * AMPLITUDE**2) / records**2
    of_noise = math.sqrt(2.0 / math.pi * variance)
    chance = chance_error(records=records, dim=dim, pairs=pairs, density=density, groups=groups, even=even)
    return FeatureError(noise=of_noise, chance=chance, total=math.hypot(of_noise, chance))


Waves = tuple[Floats, Floats]
"""Cosines and sines of phases, each of shape (points, features)."""

MOST_COLUMNS: Final = 8
"""With more, a lattice has too few points per column."""

MOST_WORK: Final = 1 << 28
"""Frequencies times points of the lattice: a few hundredths of a second to a few tenths."""

# Frequencies times points of one column: 32 megabytes for the cosines, as many for the sines.
_MOST_WAVES: Final = 1 << 22

# In a table of sums of columns, and in a product of two: 8 megabytes.
_MOST_NUMBERS: Final = 1 << 20

# A change of k between the points of the lattice; a smaller one is not worth a finer lattice.
_FINEST: Final = 0.004

_MOST_BITS, _FEWEST_BITS = 14, 6
_NARROWEST, _WIDEST = 2.0**-100, 2.0**100
_MOST_REMEMBERED: Final = 256
_EXACT_BITS: Final = 53
_SINGLE: Final = 2.0**-24
_WAVE_ERROR: Final = 2e-5
_ROUNDING: Final = 0.51
_DOUBLE: Final = 1e-9


def squared_diameter(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> int:
    """An upper bound of ‖v(x) − v(x')‖² over all records of the box; at most 4·m·L², which always holds.

    Parameters
    ----------
    frequencies : array of shape (features, dim)
        In turns per unit.
    half_width : array of shape (dim,)
        No prepared record is further from zero.

    >>> from hushsum.kernels import GaussianKernel
    >>> found = GaussianKernel(dim=1, bandwidth=1.0).frequencies(rows=500, seed=0, orthogonal=False)
    >>> round(squared_diameter(found, np.float32([5.0])) / (500 * 1024**2), 1)
    2.1
    """
    features, dim = len(frequencies), len(half_width)
    always = 4 * features * LENGTH**2
    least = least_similarity(frequencies, half_width)
    if least is None:
        return always
    phases = 2.0 * math.pi * (dim + 1) * _SINGLE * _reach(frequencies, half_width)
    length = (
        AMPLITUDE * math.sqrt(features * (2.0 - 2.0 * least))
        + 2.0 * AMPLITUDE * math.sqrt(math.fsum(np.square(phases)))
        + 2.0 * _ROUNDING * math.sqrt(2.0 * features)
    )
    return min(always, math.ceil(length * length * (1.0 + _DOUBLE)))


_remembered: dict[tuple[bytes, bytes], int] = {}


def remembered_squared_diameter(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> int:
    """`squared_diameter`, computed once for equal numbers, since tallies of one form share it.

    They are recognised by the frequencies themselves, not by the kernel that is said to have drawn them: the
    bound holds for what records are counted with.
    """
    key = hashlib.sha256(frequencies.tobytes()).digest(), half_width.tobytes()
    found = _remembered.get(key)
    if found is None:
        found = squared_diameter(frequencies, half_width)
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[key] = found
    return found


def least_similarity(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> float | None:
    """A lower bound of (1/m)·Σ_j cos 2πω_j·(x − x') over records of the box, above −1; None where none is
    found with bounded work.
    """
    features, dim = len(frequencies), len(half_width)
    bits = min(_MOST_BITS, (_EXACT_BITS - 2 - features.bit_length()) // dim)
    if dim > MOST_COLUMNS or bits < _FEWEST_BITS:
        return None
    if not np.all((half_width >= _NARROWEST) & (half_width <= _WIDEST)):
        return None
    angular = 2.0 * math.pi * frequencies.astype(np.float64)
    sides = 2.0 * half_width.astype(np.float64)
    parts = _parts_of_sides(angular, sides)
    if parts is None:
        return None
    between = _largest_rise(angular, sides / np.array(parts) / 2.0)
    factor = math.sqrt(2.0) * (2.0 ** -(bits + 1) + _WAVE_ERROR)
    phases = 2.0 * math.pi * 6.0 * _SINGLE * math.fsum(_reach(frequencies, half_width)) / features
    uncertain = between + math.prod([1.0 + factor] * dim) - 1.0 + phases
    if not uncertain < 1.0:
        return None
    nodes = [np.arange(-many if column else 0, many + 1) / many for column, many in enumerate(parts)]
    waves = [
        _scaled_waves(frequencies[:, column], nodes[column] * sides[column], bits) for column in range(dim)
    ]
    lowest = _lattice_minimum(waves) / (features * 2.0 ** (bits * dim))
    found = lowest - uncertain - _DOUBLE
    return found if found > -1.0 else None


def _reach(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> Floats:
    """E_j = Σ_i |ω_ji|·h_i, shape (features,); column by column, since the order of a sum matters."""
    total = np.zeros(len(frequencies))
    for column, half in enumerate(half_width.astype(np.float64)):
        total += np.abs(frequencies[:, column].astype(np.float64)) * half
    return total


def _parts_of_sides(angular: Floats, sides: Floats) -> list[int] | None:
    """How many steps each side of the lattice has, from its middle to its face: as fine as the work allows;
    None if that is useless. Steps are in proportion to the scale on which k changes along the column.
    """
    features, dim = angular.shape
    scales = [
        float(side) * math.sqrt(math.fsum(np.square(column)) / features)
        for side, column in zip(sides, angular.T, strict=True)
    ]
    step, coarsest = math.sqrt(8.0 * _FINEST / dim), math.sqrt(8.0 / dim)
    if not all(each / coarsest < _MOST_WAVES for each in scales):
        return None
    while step < coarsest:
        parts = [max(1, math.ceil(each / step)) for each in scales]
        nodes = [parts[0] + 1, *(2 * each + 1 for each in parts[1:])]
        if features * max(nodes) <= _MOST_WAVES and features * math.prod(nodes) <= MOST_WORK:
            return parts
        step *= 1.1
    return None


def _largest_rise(angular: Floats, halves: Floats) -> float:
    """The largest (1/2m)·Σ_j (2πω_j·g)² over corners g of the box of these half widths."""
    features, dim = angular.shape
    found = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=dim - 1):
        along = angular[:, 0] * halves[0]
        for column, sign in enumerate(signs, 1):
            along = along + sign * halves[column] * angular[:, column]
        found = max(found, math.fsum(np.square(along)) / (2.0 * features))
    return found


def _scaled_waves(column: NDArray[np.float32], at: Floats, bits: int) -> Waves:
    """2ᵇ·cos and 2ᵇ·sin of a column's phases, rounded to integers, each of shape (points, features)."""
    native = _native.FeatureMap(np.ascontiguousarray(column[:, np.newaxis]))
    waves = native.waves(np.ascontiguousarray(at[:, np.newaxis], np.float32)).reshape(len(at), -1, 2)
    whole = np.rint(waves.astype(np.float64) * 2.0**bits)
    return np.ascontiguousarray(whole[..., 0]), np.ascontiguousarray(whole[..., 1])


def _lattice_minimum(waves: list[Waves]) -> float:
    """The smallest sum over frequencies, of exact integers, over all points of the lattice.

    Columns are joined from both ends to two tables, the points of some columns each, while these are small:
    so a product of matrices has much to do, whatever the number of columns.
    """
    if len(waves) == 1:
        return float(waves[0][0].sum(axis=1).min())
    first, *middle, last = waves
    while middle:
        ahead = len(first[0]) <= len(last[0])
        if (first if ahead else last)[0].size * len(middle[0 if ahead else -1][0]) > _MOST_NUMBERS:
            break
        if ahead:
            first = _joined(first, middle.pop(0))
        else:
            last = _joined(last, middle.pop())
    if middle:
        column, *later = middle
        rows = zip(*(each[:, np.newaxis] for each in column), strict=True)
        return min(_lattice_minimum([_joined(first, row), *later, last]) for row in rows)
    step = max(1, _MOST_NUMBERS // len(last[0]))
    return min(
        float((first[0][at : at + step] @ last[0].T - first[1][at : at + step] @ last[1].T).min())
        for at in range(0, len(first[0]), step)
    )


def _joined(one: Waves, other: Waves) -> Waves:
    """Cosines and sines of all sums of a phase of one and a phase of the other."""
    (cosine, sine), (cosines, sines) = (each[:, np.newaxis] for each in one), other
    features = one[0].shape[1]
    return (
        (cosine * cosines - sine * sines).reshape(-1, features),
        (cosine * sines + sine * cosines).reshape(-1, features),
    )


MAX_FEATURES = 1 << 24
MAX_NUMBERS = 1 << 28
"""Random numbers behind the frequencies: a file that requires more is refused before any is made."""

MAX_GROUPS = 1 << 10
MOST_AXES = 64

SMALLEST_TRANSFORM = 64
"""Columns of a structured transform: with fewer, directions are too far from uniform."""

FeatureMap = _native.FeatureMap | _native.StructuredFeatureMap

FEWEST_BLOCKS = 8
"""With fewer independent blocks than this, rows are taken for independent."""

SOBOL_BLOCKS = 16
"""At least so many blocks, of 2ᵏ rows, from whose spread the error of evenly spread frequencies is estimated.
"""

EVEN_ALWAYS, EVEN_ROWS = 4, 4096
"""Frequencies are evenly spread by default where there are 4 times as many for each coordinate beyond these,
or so many in any case. Fewer are no better spread than independent ones, and orthogonal ones are.
"""

MOST_BLOCKS = 512
"""From whose spread errors are estimated, to 3 % of a standard error: more take longer than the answers."""

_WAVES_AT_A_TIME = 1 << 22
_POINTS_AT_A_TIME = 1 << 14
_PURPOSE = "fourier-features/groups"


@register
@dataclass(frozen=True)
class FourierFeatures(Basis):
    """m frequencies; a record adds the cosine and the sine of its phase on each, as integers.

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
        Makes random frequencies orthogonal within blocks of as many as there are columns, which lowers the
        error. Without effect on a single column, on kernels of another distance than the Euclidean, and on
        evenly spread frequencies. False: independent ones.
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
    sobol : bool, optional
        Take frequencies at the points of a scrambled Sobol sequence: evenly spread, each of the right
        distribution, so that the error falls faster than 1/√features. Powers of two are best. Each group has
        points of its own. By default in up to 32 coordinates, which are columns for most kernels, where there
        are enough features: 4 in five, 256 in eight and 4096 in ten or more. Not for ``orthogonal=False``,
        nor where ``structured``.
    axes : int
        Count so many further rows for each column of a declared box: cosines and sines of that column alone,
        with 1, 2, … half periods in its range. They are no part of answers: `drawn_points` finds from them
        where records are, column by column. A pure-ε release of fewer rows publishes none of them.

    Privacy
    -------
    The rows of ``axes`` are rows like others, which have records of all groups; m below counts them.

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
    proves a smaller Δ2 for these very frequencies (`hushsum.tables._fourier_features`), a replaced
    record counts with that, and with Δ1 ≤ √(2m)·Δ2. It is near √(2m)·L in a box that is wide beside the
    bandwidth, and less in a narrow one. This is for up to 8 columns, one group, and frequencies that are not
    structured.

    Notes ----- Rahimi and Recht, *Random features for large-scale kernel machines*, NIPS 2007, with pairs,
    whose length is constant; Yu et al., *Orthogonal random features*, NIPS 2016; Avron, Sindhwani, Yang and
    Mahoney, *Quasi-Monte Carlo feature maps for shift-invariant kernels*, JMLR 2016. With δ or ρ the noise of
    an answer does not grow with m: under ρ its standard deviation is L/A·1/√(2ρ), and 1/√(2ρ) is what one
    record can move.
    """

    name: ClassVar[str] = "fourier-features"
    in_pages: ClassVar[bool] = True
    constants: ClassVar[Mapping[str, int]] = {"length": LENGTH}

    kernel: Kernel
    features: int
    seed: int
    orthogonal: bool = True
    bounds: Bounds | None = None
    columns: tuple[str, ...] | None = None
    groups: int = 1
    structured: bool = False
    sobol: bool | None = None
    axes: int = 0

    def __post_init__(self) -> None:
        features = positive_integer("features", self.features, at_most=MAX_FEATURES)
        SPECTRAL.check(self.kernel, "fourier_features")
        dim = self._spectral.dim
        if self.structured and not self._spectral.rotation_invariant:
            rule = "is for kernels of the Euclidean distance"
            raise UsageError("structured", rule, got=f"it for {self._spectral.name}")
        sobol = self._sobol(features) if self.sobol is None else bool(self.sobol)
        if sobol and (self.structured or not 1 <= self._spectral.coordinates <= MOST_COORDINATES):
            rule = f"is for kernels of at most {MOST_COORDINATES} coordinates, and not with structured"
            raise UsageError("sobol", rule, got=f"it for {self._spectral.coordinates}", remedy="leave it out")
        orthogonal = bool(self.orthogonal) and self._spectral.rotation_invariant and dim > 1 and not sobol
        settled: dict[str, object] = {
            "features": features,
            "seed": integer_seed(self.seed),
            "orthogonal": orthogonal or bool(self.structured),
            "groups": positive_integer("groups", self.groups, at_most=MAX_GROUPS),
            "structured": bool(self.structured),
            "sobol": sobol,
            "axes": positive_integer("axes", self.axes, at_most=MOST_AXES) if self.axes else 0,
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if features * (self._size // 2 if self.structured else dim) > MAX_NUMBERS:
            rule = f"× columns must be at most {MAX_NUMBERS}"
            raise UsageError("features", rule, got=features * dim, remedy="use fewer features")
        check_columns(self.columns, dim)
        if self.axes and self.bounds is None:
            raise UsageError("axes", "need bounds", got="none", remedy="declare bounds")
        unit = self.groups * self.block
        if self.groups > 1 and features % unit:
            rule = f"must be a multiple of {unit}, groups × the rows of a block"
            raise UsageError("features", rule, got=features, remedy=f"use {-(-features // unit) * unit}")

    def _sobol(self, features: int) -> bool:
        """Whether frequencies are evenly spread where that is not requested."""
        coordinates = self._spectral.coordinates
        enough = features >= min(4 ** max(coordinates - EVEN_ALWAYS, 0), EVEN_ROWS)
        known = 1 <= coordinates <= MOST_COORDINATES
        return bool(self.orthogonal) and not self.structured and known and enough

    def parameters(self) -> dict[str, Any]:
        """The fields as JSON values; ``sobol`` and ``axes`` only where there are any, as in files that were
        written before them.
        """
        return {
            name: value
            for name, value in super().parameters().items()
            if value or name not in ("sobol", "axes")
        }

    @classmethod
    def from_parameters(cls, data: Mapping[str, Any]) -> FourierFeatures:
        """The basis that a file's header describes."""
        return super().from_parameters({"sobol": False, "axes": 0, **data})

    @property
    def _spectral(self) -> SpectralKernel:
        assert isinstance(self.kernel, SpectralKernel)
        return self.kernel

    @property
    def shape(self) -> tuple[int, int]:
        """(features and rows of single columns, 2)."""
        return self.features + self.along, 2

    @property
    def along(self) -> int:
        """How many rows are of single columns; they are the last."""
        return self.axes * self._spectral.dim

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Every row of a record's group moves by a vector of length L (add/remove) or 2L (replace); all rows
        together by the diameter of the features of the box, where that is known.
        """
        moved = feature_sensitivity(self.features // self.groups + self.along, relation)
        if self.bounds is None or not self.costly_sensitivity(relation):
            return moved
        rows = np.concatenate([self.frequencies, self.axis_frequencies]) if self.axes else self.frequencies
        square = remembered_squared_diameter(rows, self.bounds.half_width)
        return replace(moved, l1=min(moved.l1, math.isqrt(2 * len(rows) * square)), l2_squared=square)

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
        if self.axes:
            self.axis_map.add(records, table[self.features :], step, threads)
            table = table[: self.features]
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
        return self if rows == self.shape[0] else replace(self, features=min(rows, self.features), axes=0)

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """Pairs that balance Laplace noise, which grows with them, against sampling error, which falls.

        Groups do not change the balance: the noise of an answer is that of as many rows in one group.
        """
        if self.sobol:
            return even_pairs_for_laplace(count, epsilon / moves, self.features, self._variance, self.groups)
        pairs = pairs_for_laplace(max(count, 1), epsilon / moves, self.features)
        if self.groups == 1:
            return pairs
        unit = self.groups * self.block
        return min(self.features, -(-pairs // unit) * unit)

    def _variance(self, pairs: int) -> float:
        """The typical variance of one of so many pairs."""
        spread = evenness(-(-pairs // self.groups), TYPICAL_DENSITY, self.even)
        return TYPICAL_PAIR_VARIANCE * spread**2

    @property
    def even(self) -> int:
        """In how many coordinates the frequencies are evenly spread; 0 where they are random."""
        return self._spectral.coordinates if self.sobol else 0

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
        if self.sobol:
            even = np.empty((self.features, self._spectral.dim), np.float32)
            for group in range(self.groups):
                own = even[group :: self.groups]
                for first in range(0, len(own), _POINTS_AT_A_TIME):
                    some = own[first : first + _POINTS_AT_A_TIME]
                    purpose, wide = f"fourier-features/sobol/{group}", self._spectral.coordinates
                    points = sobol_points(purpose, self.seed, len(some), wide, first=first)
                    some[:] = self._spectral.frequencies_at(points)
            return even
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
    def axis_frequencies(self) -> NDArray[np.float32]:
        """Those of the rows of single columns, column by column: half periods in the range of each."""
        assert self.bounds is not None
        found = np.zeros((self.along, self._spectral.dim), np.float32)
        for column, half in enumerate(self.bounds.half_width.astype(np.float64)):
            rows = slice(column * self.axes, (column + 1) * self.axes)
            found[rows, column] = np.arange(1, self.axes + 1) / (4.0 * max(half, 1e-30))
        return found

    @property
    def axis_map(self) -> FeatureMap:
        """The native features of the rows of single columns."""
        return _native.FeatureMap(self.axis_frequencies)

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
            maps, dim, (signs, scales) = range(self.groups), self._spectral.dim, self._structure
            dealt = [np.ascontiguousarray(signs[group :: self.groups]) for group in maps]
            return [_native.StructuredFeatureMap(dealt[group], scales[rows == group], dim) for group in maps]
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
        basis, scale = self.basis, self.basis.groups / (AMPLITUDE * self.basis.features)
        return basis.map.read(batch.arrays[0], table[: basis.features], scale, threads)

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
        512 blocks where there are more: all have the same distribution. The mean is over these rows too.

        Evenly spread rows are in 16 blocks or more of 2ᵏ rows. The errors of these blocks are smaller than
        those of independent rows, and partly cancel, so that their spread says too much rather than too
        little: about twice the error of the frequencies where it falls as m^−3/4, and what noise adds
        exactly.

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
        if self.basis.sobol:
            block = self.basis.groups
            return block << max((self.basis.features // (SOBOL_BLOCKS * block)).bit_length() - 1, 0)
        return block if block * FEWEST_BLOCKS <= self.basis.features else 1

    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """Each pair's answer times the number of groups."""
        basis = self.basis
        waves = _native.FeatureMap(basis.frequencies).waves(batch.arrays[0]).reshape(len(batch), -1, 2)
        said = np.einsum("qjw,jw->qj", waves.astype(np.float64), table[: basis.features].astype(np.float64))
        return np.asarray(said * (basis.groups / AMPLITUDE)), self._block

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """An upper estimate that holds at every query, and includes the noise in the table.

        No row's answer exceeds the length of its pair, so the variance of their mean is at most the mean
        squared length over m. :meth:`spread` is sharper.
        """
        rows = table[: self.basis.features].astype(np.float64)
        lengths = np.square(rows).sum(axis=1) * (self.basis.groups / AMPLITUDE) ** 2
        return np.full(len(batch), float(lengths.mean()) / self.basis.features)

    def weighted_sums(self, points: Batch, weights: Floats, batch: Batch) -> Floats:
        """Σ weight·k(point, q) at prepared queries, without features."""
        sums = np.empty(len(batch))
        for at in slices(len(batch), _WAVES_AT_A_TIME // len(points)):
            queries = batch.arrays[0][at]
            part = Batch((queries,), len(queries))
            sums[at] = weights @ self.kernel.prepared_similarity(points, part)
        return sums


FOLDS = 5
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties of squared weights, where a point's own part of the fit counts 1. The one that explains unseen
rows best is taken, or none of them.
"""

_ROWS_AT_A_TIME = 2048
_MOST_FITTED = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Points' weights for each fold of rows, and the share of the table's energy that they explain.

    ``share`` is measured on rows that the weights were not fitted to, noise included; it is 0 where no
    penalty helps, and then the weights are zeros.
    """

    weights: Floats
    share: float


def explain(basis: FourierFeatures, table: Table, points: Batch) -> Explained:
    """Weights of public points that resemble the released table, fitted across folds of its first rows."""
    nothing = Explained(np.zeros((FOLDS, len(points))), 0.0)
    folds = _folds(min(basis.features, _MOST_FITTED), basis.block)
    if not folds:
        return nothing
    values = table.astype(np.float64) / _amplitude(basis)
    moments = [_Moments.of(basis, rows, values, points) for rows in folds]
    fits = [_fits(moments, fold) for fold in range(FOLDS)]
    errors = [
        sum(moments[fold].error(fits[fold][choice]) for fold in range(FOLDS)) for choice in range(len(RIDGES))
    ]
    best = int(np.argmin(errors))
    share = 1.0 - errors[best] / max(sum(each.energy for each in moments), 1.0)
    return Explained(np.array([fit[best] for fit in fits]), share) if share > 0.0 else nothing


def unexplained(basis: FourierFeatures, table: Table, points: Batch, weights: Floats) -> NDArray[np.int64]:
    """What weighted points leave of a table: each fold of rows has weights that were fitted to the others."""
    remainder = table.astype(np.int64)
    for rows, fit in zip(_folds(basis.features, basis.block), weights, strict=False):
        # A cell is an integer with noise of many units: rounding what is left of it is not a loss.
        remainder[rows] = np.rint(table[rows] - _amplitude(basis) * _parts(basis, rows, points, fit))
    return remainder


def mean_weights(basis: FourierFeatures, weights: Floats) -> Floats:
    """The points' weights on average over the rows."""
    sizes = [len(rows) for rows in _folds(basis.features, basis.block)]
    return np.asarray(np.average(weights, axis=0, weights=sizes)) if sizes else np.zeros(weights.shape[1])


def _amplitude(basis: FourierFeatures) -> float:
    """What a record adds to a row at most. A row counts the records of its group alone, one part in
    `groups` of all.
    """
    return AMPLITUDE / basis.groups


MOST_DRAWN: Final = 600
_SEARCH_ROWS, _STARTS, _FIRST_STEPS, _STEPS, _ROUNDS, _FITS = 1 << 15, 128, 8, 3, 40, 3
_NARROWER, _WIDEST_KERNEL, _FEWEST_ROWS = 1.35, 4.0, 50.0
_RIDGE = 1e-3
_IN_VAIN = 3
_WORTH = 0.1
"""No more points are looked for where what is left of the table is below this part of its noise."""
_APART, _DISTINCT = 0.25, 3.0


def drawn_points(
    reading: FeatureReading, table: Table, variance: float, count: float, *, seed: int = 0
) -> Floats:
    """Points, relative to the centre of the box, that resemble the records as far as the released table
    shows: found in it alone, so nothing is spent.

    Moves starting points up the released kernel sums, by mean-shift steps, first with a kernel that is made
    wider by giving less weight to high frequencies, so that they find their way; then, again and again, up
    what weighted points do not explain yet. Where single columns were counted too, starting points are like
    the records column by column. ``variance`` is that of a cell, ``count`` the number of records. Empty where
    noise hides what points could explain, or where nothing is found.

    Parameters
    ----------
    seed : int
        Of public random starting points.
    """
    return _PointSearch(reading, table, variance, count, seed).points()


_PLACES = 129
"""Of a column, from which starting points are drawn."""


class _PointSearch:
    def __init__(
        self, reading: FeatureReading, table: Table, variance: float, count: float, seed: int
    ) -> None:
        basis = reading.basis
        rows = min(_SEARCH_ROWS, basis.features)
        self.kernel, self.rng = reading.kernel, np.random.default_rng(seed)
        self.turns = np.ascontiguousarray(basis.frequencies[:rows])
        self.angular = np.float32(2.0 * math.pi) * self.turns
        self.values = (table[:rows] / _amplitude(basis)).astype(np.float32)
        self.noise = 2.0 * rows * variance / _amplitude(basis) ** 2
        # As of a normal spectral measure, whose median is 0.6745 deviations from zero.
        self.width = 0.6745 / np.maximum(np.median(np.abs(self.angular), axis=0), 1e-30)
        half = basis.bounds.half_width if basis.bounds is not None else 4.0 * self.width
        self.half = half.astype(np.float64)
        self.columns = self._of_columns(basis, table, variance, max(count, 1.0)) if basis.axes else None

    def _of_columns(
        self, basis: FourierFeatures, table: Table, variance: float, count: float
    ) -> list[Floats]:
        """The distribution of each column over even places from end to end of its range: the Fourier series
        of twice the range, without the terms that noise hides and with smaller ones for quick changes.
        """
        terms = table[basis.features :].astype(np.float64).reshape(-1, basis.axes, 2) / (AMPLITUDE * count)
        terms[np.square(terms).sum(axis=2) < 8.0 * variance / (AMPLITUDE * count) ** 2] = 0.0
        order = np.arange(1, basis.axes + 1)
        phases = 0.5 * math.pi * order * np.linspace(-1.0, 1.0, _PLACES)[:, None]
        smaller = np.exp(-2.0 * np.square(order / (basis.axes + 1.0)))
        found = []
        for cosines, sines in terms.transpose(0, 2, 1):
            series = 1.0 + 2.0 * (np.cos(phases) @ (cosines * smaller) + np.sin(phases) @ (sines * smaller))
            likely = np.maximum(series, 0.0) + 1e-3
            found.append(likely / likely.sum())
        return found

    def _starts(self, number: int) -> Floats:
        """Places of the box, as likely column by column as records where that is known."""
        if self.columns is None:
            starts = self.rng.uniform(-1.0, 1.0, (number, len(self.half))) * self.half
            starts[: number // 4] *= 0.25
            starts[0], starts[1] = 0.0, -self.half
            return starts
        steps = np.array([self.rng.choice(_PLACES, number, p=each) for each in self.columns]).T
        return np.asarray((2.0 * steps / (_PLACES - 1) - 1.0) * self.half)

    def points(self) -> Floats:
        """See `drawn_points`."""
        found, left = np.zeros((0, len(self.half))), self.values
        if not self._worthwhile(left):
            return found
        starts = self._starts(_STARTS)
        for widening in self._widenings() if self.columns is None else [1.0]:
            starts, sums = self._climbed(starts, left, widening, _FIRST_STEPS)
        weights, in_vain = np.zeros(0), 0
        for _ in range(_ROUNDS):
            found, added = self._joined(found, starts, sums, left)
            in_vain = 0 if added else in_vain + 1
            if added:
                weights, left = self._fitted(found)
            done = len(found) >= MOST_DRAWN or not self._worthwhile(left)
            if done or not len(found) or in_vain == _IN_VAIN:
                break
            chosen = np.maximum(weights, 0.0) + 1e-3 * np.abs(weights).mean() + 1e-300
            pairs = found[self.rng.choice(len(found), (2, _STARTS), p=chosen / chosen.sum())]
            # A part of them mix the columns of two points, so that indicators change together.
            mixed = self.rng.random((_STARTS, 1)) < 0.3
            from_other = mixed & (self.rng.random(pairs[0].shape) < 0.3)
            places = np.where(from_other, pairs[1], pairs[0])
            reach = self.rng.choice([0.3, 0.7, 1.5], (_STARTS, 1)) * min(1.0, math.sqrt(8.0 / len(self.half)))
            moved = places + reach * self.width * self.rng.standard_normal(places.shape)
            if self.columns is not None:
                moved[: _STARTS // 4] = self._starts(_STARTS // 4)
            starts, sums = self._climbed(np.clip(moved, -self.half, self.half), left, 1.0, _STEPS)
        return found[:MOST_DRAWN]

    def _worthwhile(self, left: NDArray[np.float32]) -> bool:
        return float(np.square(left, dtype=np.float64).sum()) > (1.0 + _WORTH) * self.noise

    def _damping(self, widening: float) -> Floats:
        """The weight of each frequency in a kernel that is so many times wider in every column."""
        squares = np.square(self.angular * self.width).sum(axis=1, dtype=np.float64)
        return np.asarray(np.exp(-0.5 * (widening**2 - 1.0) * squares))

    def _widenings(self) -> list[float]:
        """From the widest kernel that enough frequencies still stand for to the kernel itself."""
        found = [1.0]
        while (wider := found[-1] * _NARROWER) <= _WIDEST_KERNEL:
            weights = self._damping(wider)
            if weights.sum() ** 2 < _FEWEST_ROWS * np.square(weights).sum():
                break
            found.append(wider)
        return found[::-1]

    def _climbed(
        self, places: Floats, left: NDArray[np.float32], widening: float, steps: int
    ) -> tuple[Floats, Floats]:
        """Places after some mean-shift steps up the sums that a table stands for, and the sums there."""
        weights = self._damping(widening)
        kept = weights > 1e-3 * weights.max()
        table = left[kept] * (weights[kept] / weights.sum())[:, None].astype(np.float32)
        native, angular = _native.FeatureMap(self.turns[kept]), self.angular[kept]
        width = widening * self.width
        furthest = 0.7 * math.sqrt(len(width))
        for step in range(steps + 1):
            waves = native.waves(np.ascontiguousarray(places, np.float32))
            sums = np.einsum("qjw,jw->q", waves, table).astype(np.float64)
            if step == steps:
                break
            slopes = (waves[..., 0] * table[:, 1] - waves[..., 1] * table[:, 0]) @ angular
            moves = width * slopes / np.maximum(sums, 1e-3 * np.abs(sums).max() + 1e-300)[:, None]
            lengths = np.sqrt(np.square(moves).sum(axis=1))
            moves *= np.minimum(1.0, furthest / np.maximum(lengths, 1e-300))[:, None]
            places = np.clip(places + width * moves, -self.half, self.half)
        return places, sums

    def _joined(
        self, found: Floats, places: Floats, sums: Floats, left: NDArray[np.float32]
    ) -> tuple[Floats, int]:
        """The points with the places whose sums stand out, and which are apart from others."""
        least = _DISTINCT * math.sqrt(np.square(left, dtype=np.float64).sum() / 2.0) / len(left)
        before, points = len(found), list(found)
        for place in np.argsort(-sums)[: int((sums > least).sum())]:
            away = np.square((np.array(points).reshape(-1, len(self.half)) - places[place]) / self.width)
            if not len(away) or away.sum(axis=1).min() > _APART**2:
                points.append(places[place])
        return np.array(points).reshape(-1, len(self.half)), len(points) - before

    def _fitted(self, points: Floats) -> tuple[Floats, NDArray[np.float32]]:
        """Weights of points by least squares, and what they leave: a few steps with the kernel matrix in
        place of that of the features, which is near it.
        """
        from scipy.linalg import cho_factor, cho_solve

        batch = Batch((np.ascontiguousarray(points, np.float32),), len(points))
        gram = self.kernel.prepared_similarity(batch, batch)
        gram.flat[:: len(points) + 1] += _RIDGE
        factor = cho_factor(gram, overwrite_a=True, check_finite=False)
        waves = _native.FeatureMap(self.turns).waves(batch.arrays[0]).reshape(len(points), -1)
        weights, left = np.zeros(len(points)), self.values.reshape(-1)
        for _ in range(_FITS):
            weights += cho_solve(factor, (waves @ left).astype(np.float64) / len(self.turns))
            left = self.values.reshape(-1) - weights.astype(np.float32) @ waves
        return weights, left.reshape(-1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Sums over the rows of one fold: points with points, points with the table, the table with itself."""

    rows: int
    gram: Floats
    cross: Floats
    energy: float

    @classmethod
    def of(cls, basis: FourierFeatures, rows: NDArray[np.int64], values: Floats, points: Batch) -> _Moments:
        gram, cross = np.zeros((len(points), len(points))), np.zeros(len(points))
        for part in _chunks(rows):
            waves = _waves(basis, part, points)
            gram += waves @ waves.T
            cross += waves @ values[part].reshape(-1)
        return cls(len(rows), gram, cross, float(np.square(values[rows]).sum()))

    def error(self, weights: Floats) -> float:
        """The squared length of what the weights leave of the fold's rows."""
        return float(self.energy - 2.0 * weights @ self.cross + weights @ self.gram @ weights)


def _fits(moments: list[_Moments], left_out: int) -> list[Floats]:
    """Weights for each penalty, from all folds but one.

    The penalty draws them towards equal weights, the best such: points drawn like the records should have
    them.
    """
    others = [each for fold, each in enumerate(moments) if fold != left_out]
    rows = sum(each.rows for each in others)
    gram = sum((each.gram for each in others), np.zeros_like(moments[0].gram)) / rows
    cross = sum((each.cross for each in others), np.zeros_like(moments[0].cross)) / rows
    equal = np.full(len(cross), cross.sum() / max(gram.sum(), 1.0))
    rest = cross - gram @ equal
    from scipy.linalg import solve

    fits = []
    for ridge in RIDGES:
        penalised = gram.copy()
        penalised.flat[:: len(cross) + 1] += ridge
        fits.append(equal + solve(penalised, rest, assume_a="pos", overwrite_a=True))
    return fits


def _folds(rows: int, block: int) -> list[NDArray[np.int64]]:
    """Whole blocks, dealt out in turn; none where there are fewer blocks than folds."""
    blocks = np.arange(rows) // block
    if blocks[-1] + 1 < FOLDS:
        return []
    return [np.flatnonzero(blocks % FOLDS == fold) for fold in range(FOLDS)]


def _chunks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.array_split(rows, -(-len(rows) // _ROWS_AT_A_TIME))


def _waves(basis: FourierFeatures, rows: NDArray[np.int64], points: Batch) -> NDArray[np.float32]:
    """Cosines and sines of the points on some rows, shape (points, 2·rows)."""
    waves = _native.FeatureMap(np.ascontiguousarray(basis.frequencies[rows])).waves(points.arrays[0])
    return waves.reshape(len(points), -1)


def _parts(basis: FourierFeatures, rows: NDArray[np.int64], points: Batch, weights: Floats) -> Floats:
    """What the weighted points add to each row, shape (rows, 2)."""
    return np.concatenate([(weights @ _waves(basis, part, points)).reshape(-1, 2) for part in _chunks(rows)])
