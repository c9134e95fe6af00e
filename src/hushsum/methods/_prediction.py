"""What a release is predicted to cost: the request of every method, its result, and the typical density."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from hushsum._types import Floats
from hushsum.kernels import ColumnKernel, HashableCombination, HashableKernel, Kernel
from hushsum.privacy import (
    COUNT_SHARE,
    GAUSSIAN,
    PERSON,
    Calibration,
    IntegerNoise,
    Promise,
    Relation,
    Sensitivity,
    UnitChange,
    calibrate,
)
from hushsum.records import Bounds, Steps
from hushsum.releases import largest_step
from hushsum.tables import Basis

if TYPE_CHECKING:
    from ._hash_rows import RowVariance

__all__ = [
    "COUNT_SHARES", "HEADER_BYTES", "MEAN", "NORMAL_MEAN_ABSOLUTE", "SUM", "Option", "PredictionRequest",
    "likely_densities", "typical_density",
]  # fmt: skip

DEFAULT_DENSITY = 0.01
_UNBOUNDED = 0.1
BOX_IN_DEVIATIONS = 6.0
"""Sides of the declared box in standard deviations of typical records, in columns along which they vary."""

EFFECTIVE_POWER = 0.27
"""Records in d columns vary along d^power of them, typically: columns depend on each other, some hardly vary,
and records keep together in clusters. Both constants are fitted by
``benchmarks/plans/plan_validation.py`` to the data sets that a plan is not tested on; they hardly depend on
which.
"""

LIKELY_POWERS = (1.5, 0.5, 0.05)
"""Powers of the typical density that errors are predicted for, where a plan has to guess it: the density of
records that are spread over the box, of usual ones, and of records that are concentrated in a small part of
it. Powers, because densities near 1 are known well, and one of 0.01 may be 0.8 or 0.001. Chosen on the tuning
half of ``benchmarks/plans/concentrated.py``.
"""

COUNT_SHARES = (
    Fraction(1, 100),
    COUNT_SHARE,
    Fraction(3, 100),
    Fraction(1, 20),
    Fraction(7, 100),
    Fraction(1, 10),
    Fraction(7, 50),
    Fraction(1, 5),
    Fraction(1, 4),
    Fraction(1, 3),
)
# The count's share is chosen for queries of this multiple of a known density: a wrong share costs more where
# queries are dense than where they are not.
_DENSE = 2.0

MEAN, SUM = "mean", "sum"
"""What answers are: mean kernel values f(q)/N, or kernel sums f(q)."""

_DEVIATIONS = np.linspace(-12.0, 12.0, 961)
_NORMAL_WEIGHTS, _LAPLACE_WEIGHTS = (
    density / density.sum()
    for density in (np.exp(-0.5 * _DEVIATIONS**2), np.exp(-math.sqrt(2.0) * np.abs(_DEVIATIONS)))
)

NORMAL_MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)
HEADER_BYTES = 1000


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """Declared quantities alone: how many records, which kernel on which box, and what is promised to whom.

    ``density`` is the typical mean kernel value at the queries that matter, and ``densities`` are a low, a
    middle and a high one; all are the typical one where that is known. ``of`` is what is answered:
    mean kernel values or sums. ``max_bytes`` is the largest file. ``rows`` and ``width``
    are sizes of hash rows to compare, and ``row_variance`` is how much hash rows of a width disagree.
    ``requested`` is false for a promise that is shown for comparison only. ``steps`` are those of columns
    whose values are multiples of one. ``count_share`` is None where each option has the share that suits it,
    and ``mechanism`` where noise may have the better distribution.
    """

    records: int
    kernel: Kernel
    bounds: Bounds | None
    promise: Promise
    relation: Relation
    count_share: Fraction | None
    per_unit: int | None
    density: float
    densities: tuple[float, float, float]
    max_bytes: int
    requested: bool
    row_variance: Callable[[int], RowVariance]
    rows: int | Sequence[int] | None = None
    width: int | None = None
    mechanism: str | None = None
    steps: Steps | None = None
    of: str = MEAN

    @property
    def moves(self) -> int:
        """How many records' vectors one unit may move."""
        return (self.per_unit or 1) * (2 if self.relation is Relation.REPLACE else 1)

    @property
    def share(self) -> Fraction:
        """The part of the budget that pays for the number of records."""
        return COUNT_SHARE if self.count_share is None else self.count_share

    def with_best_share(
        self, table: float, *, own: float = math.inf, covariance: float = 0.0
    ) -> PredictionRequest:
        """The same with the share of the count that is the least wrong at a low, a middle and a high density:
        the noise of answers there is compared with the least that any share leaves, and the largest of the
        three factors is as small as it can be.

        ``table`` is the variance of an answer's noise, as a sum over the records, ``own`` that of the table's
        own number of records, and ``covariance`` that of both, all at the share of this request. Under pure ε
        variances go as the inverse square of a share, otherwise as its inverse.
        """
        count = self._count_moves
        if self.count_share is not None or count == 0:
            return self
        if self.of == SUM:
            return replace(self, count_share=COUNT_SHARES[0])
        power = 2 if self.promise.pure else 1
        unit = 2.0 * count**2 / float(self.promise.epsilon or 1) ** 2
        if not self.promise.pure:
            one = Sensitivity(l1=count, l2_squared=count**2, largest=count)
            unit = calibrate(self.promise, UnitChange(one, 0, 1), cells=1, mechanism=GAUSSIAN).table.variance
        densities = self.all_densities
        if math.isinf(own) and not self.guessed:
            densities = _DENSE * densities

        def variances(share: Fraction) -> Floats:
            rest = float((1 - self.share) / (1 - share)) ** power
            number = CountError.of(unit / float(share) ** power, own * rest, covariance * rest)
            return self.mean_reciprocal(number) ** 2 * number.of_quotient(table * rest, densities)

        found = np.array([variances(each) for each in COUNT_SHARES])
        worst = (found / np.maximum(found.min(axis=0), 1e-300)).max(axis=1)
        return replace(self, count_share=COUNT_SHARES[int(worst.argmin())])

    def kept_by(self, noise: Calibration) -> PredictionRequest:
        """The same request with the promise that this noise keeps: that of pure ε needs no δ."""
        return replace(self, promise=noise.keeps(self.promise))

    def mean_reciprocal(self, number: CountError | float) -> float:
        """The factor by which errors of mean kernel values exceed their first-order approximation, for a
        number of records with this error (see the function `mean_reciprocal`). The error of a number that
        combines the noisy count with the table's estimate is about normal.
        """
        error = number if isinstance(number, CountError) else CountError(number)
        laplace = self.promise.pure and not error.combined
        return mean_reciprocal(error.variance, self.records, laplace=laplace)

    def count_error(
        self, calibration: Calibration, own: float = math.inf, covariance: float = 0.0
    ) -> CountError:
        """The error of the number that answers are divided by: the noisy count of a release, combined with
        the table's own number (`CountError.of`). Sums are divided by none.
        """
        if self.of == SUM:
            return CountError(0.0)
        return CountError.of(calibration.count.variance, own, covariance)

    @property
    def guessed(self) -> bool:
        """Whether the density is a guess."""
        return self.densities[0] < self.densities[-1]

    @property
    def all_densities(self) -> Floats:
        """A low, a middle and a high density."""
        return np.array(self.densities)

    @property
    def _count_moves(self) -> int:
        return self.per_unit or (0 if self.relation is Relation.REPLACE else 1)

    def calibration(self, basis: Basis) -> Calibration:
        """The noise that a release of the whole basis draws."""
        unit = basis.units[0] if self.per_unit is None else PERSON
        return calibrate(
            self.promise,
            basis.unit_change(unit, self.per_unit or 1, self.relation),
            cells=math.prod(basis.shape),
            count_share=self.share,
            mechanism=self.mechanism,
        )

    def cell_bytes(
        self, noise: IntegerNoise, largest: float, *, spread: float = 0.0, rounding: float = 0.0
    ) -> float:
        """Bytes of a cell in a file, for exact cells up to ``largest`` that spread by ``spread`` about their
        mean, rounded by a step that adds the share ``rounding`` to the variance of their noise.

        Packed cells take the entropy of a normal distribution of that deviation, log2(4.13·σ), and a quarter
        of a bit for the code.
        """
        reach = largest + 12.0 * math.sqrt(noise.variance)
        plain = 2 if reach < 2**15 else 4 if reach < 2**31 else 8
        step = largest_step(noise.variance, rounding) if rounding else 1
        deviation = math.hypot(math.sqrt(noise.variance), spread) / step
        return min(plain, max(1.0, math.log2(4.13 * deviation + 1.0) + 0.25) / 8.0)


@dataclass(frozen=True, slots=True)
class CountError:
    """The error of the number of records that answers are divided by: its variance, its covariance with an
    answer's noise, and whether the noisy count is combined with a number that the table holds.
    """

    variance: float
    covariance: float = 0.0
    combined: bool = False

    @classmethod
    def of(cls, paid: float, own: float, covariance: float) -> CountError:
        """The error of a noisy count of the variance ``paid``, combined with a table's own number as a
        release combines them.

        >>> CountError.of(1.0, 3.0, 2.0)
        CountError(variance=0.75, covariance=0.5, combined=True)
        """
        if math.isinf(own) or paid == 0.0:
            return cls(paid)
        part = paid / (paid + own)
        return cls(part * own, part * covariance, combined=True)

    def of_quotient(self, table: float, densities: Floats) -> Floats:
        """The variance of answers of these densities, times the squared number, if the variance of the sums
        is ``table``. By the Cauchy–Schwarz inequality it is not negative, except for gains that are averages.
        """
        variance: Floats = table + densities**2 * self.variance - 2.0 * densities * self.covariance
        return np.maximum(variance, 0.0)


def mean_reciprocal(variance: float, records: int, *, laplace: bool = False) -> float:
    """The mean of N/N̂, for an estimate N̂ of the N records that has this variance and a normal or Laplace
    distribution, and is raised to 1.

    Errors of mean kernel values are larger than those to the first order by this factor: answers are divided
    by N̂, and where N̂ may be near 0 a few releases have far larger errors than the others.

    >>> round(mean_reciprocal(100.0, 1000), 4), round(mean_reciprocal(36.0, 10), 1)
    (1.0001, 1.9)
    >>> round(mean_reciprocal(7056.0, 300), 1), round(mean_reciprocal(7056.0, 300, laplace=True), 1)
    (1.2, 2.1)
    """
    spread = math.sqrt(variance) / records
    weights = _LAPLACE_WEIGHTS if laplace else _NORMAL_WEIGHTS
    return float(weights @ (1.0 / np.maximum(1.0 + spread * _DEVIATIONS, 1.0 / records)))


class Errors(TypedDict):
    """The errors of an `Option`."""

    noise: float
    approximation: float
    error: float
    sparse_error: float
    dense_error: float


def errors_at_densities(noise: Floats, approximation: Floats, error: Floats) -> Errors:
    """The errors of an option, from those at a low, a middle and a high density."""
    return {
        "noise": float(noise.mean()),
        "approximation": float(approximation.mean()),
        "error": float(error.mean()),
        "sparse_error": float(error[0]),
        "dense_error": float(error[-1]),
    }


@dataclass(frozen=True, slots=True)
class Option:
    """One way to release, and what it is predicted to cost.

    Errors are mean absolute errors of the mean kernel value f(q)/N, or of sums f(q) as a part of the records.
    ``noise`` is exact for the mechanism; ``approximation`` is the error of the method itself: for hash rows a
    bound at the stated density, or an estimate from public data; ``sparse_error`` and ``dense_error``, by
    default ``error``, join both, where few and where most records are near, and include the uncertainty of
    the number of records (`PredictionRequest.mean_reciprocal`). ``error`` is the mean of the errors at a low,
    a middle and a high density (`PredictionRequest.densities`), as ``noise`` and ``approximation`` are.
    ``request`` is what it answers, with the part of the budget for the number of records that suits it.
    ``settings`` are the arguments that make the method's tally, and whether its cells are to be rounded;
    ``shape`` is that of its table. ``size`` is the file's bytes, and ``seconds`` a rough time to count on one
    core. ``move`` is known for the purpose of a comparison: how far records must move, as a part of the
    declared ranges, for the test of two such releases to find it with probability 1/2.
    """

    method: str
    request: PredictionRequest = field(repr=False, compare=False)
    settings: dict[str, Any]
    mechanism: str
    shape: tuple[int, int]
    noise: float
    approximation: float
    error: float
    size: int
    seconds: float
    move: float | None = None
    sparse_error: float = math.nan
    dense_error: float = math.nan

    def __post_init__(self) -> None:
        for name in ("sparse_error", "dense_error"):
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, self.error)

    @property
    def epsilon(self) -> float | None:
        """The ε of the promise."""
        epsilon = self.request.promise.epsilon
        return None if epsilon is None else float(epsilon)

    @property
    def delta(self) -> float:
        """The δ of the promise."""
        return float(self.request.promise.delta)

    @property
    def rho(self) -> float | None:
        """The ρ of the promise."""
        rho = self.request.promise.rho
        return None if rho is None else float(rho)

    @property
    def rows(self) -> int:
        """The rows of the table."""
        return self.shape[0]

    @property
    def width(self) -> int:
        """The width of the table."""
        return self.shape[1]

    @property
    def requested(self) -> bool:
        """False for an option that is shown for comparison only."""
        return self.request.requested

    @property
    def count_share(self) -> float:
        """The part of the budget for the number of records."""
        return float(self.request.share)

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        about = {each.name: getattr(self, each.name) for each in fields(self)}
        derived = ("epsilon", "delta", "rho", "rows", "width", "requested", "count_share")
        del about["request"], about["shape"]
        if self.move is None:
            del about["move"]
        return {**about, **{name: getattr(self, name) for name in derived}}

    @property
    def rounded(self) -> bool:
        """Whether the cells are to be rounded."""
        return bool(self.settings.get("rounded", False))

    @property
    def sizes(self) -> dict[str, Any]:
        """The arguments that make the method's tally."""
        return {name: value for name, value in self.settings.items() if name != "rounded"}


def likely_densities(typical: float) -> tuple[float, float, float]:
    """A low, a middle and a high density, where a plan guessed the typical one.

    >>> [float(f"{each:.1g}") for each in likely_densities(0.01)]
    [0.001, 0.1, 0.8]
    """
    low, middle, high = (typical**power for power in LIKELY_POWERS)
    return low, middle, high


def typical_density(kernel: Kernel, bounds: Bounds | None) -> float:
    """A guess at the mean kernel value of queries that are like the records, from public quantities alone.

    That of normal records whose standard deviation is a sixth of the box, and which vary along d^0.27 of d
    columns, as records whose columns depend on each other do; at least 0.01. For smooth kernels, whose
    features agree less where records vary along many columns, the geometric mean of that and of the same for
    independent columns. The Euclidean kernel is a mixture of Gaussians; the Manhattan kernel is taken to be
    like it. Without bounds it
    is 0.01 for kernels that hash, and 0.1 for others: in many columns a bandwidth at which a query has any
    similar record is one at which it has many.

    >>> import hushsum as hs
    >>> box = Bounds.of((0, 320_000), 1)
    >>> round(typical_density(hs.GaussianKernel(dim=1, bandwidth=5000.0), box), 3)
    0.066
    """
    hashable = isinstance(kernel, HashableKernel | HashableCombination)
    if not isinstance(kernel, ColumnKernel) or bounds is None:
        return DEFAULT_DENSITY if hashable or not isinstance(kernel, ColumnKernel) else _UNBOUNDED
    widths = zip(bounds.widths, kernel.column_widths(), strict=True)
    # In units of the width along each column.
    spread = [side / BOX_IN_DEVIATIONS / width for side, width in widths]
    part = math.pow(kernel.dim, EFFECTIVE_POWER - 1.0)
    if hashable:
        return max(DEFAULT_DENSITY, _collisions(spread, part))
    normal = math.prod(1.0 / math.hypot(math.sqrt(2.0) * each, 1.0) for each in spread)
    independent = max(DEFAULT_DENSITY, normal)
    return max(DEFAULT_DENSITY, math.sqrt(math.pow(normal, part) * independent))


def _collisions(spread: list[float], part: float) -> float:
    """The mean of the Euclidean kernel between two normal records with these standard deviations, in
    bandwidths. It is a mean over the Gaussians whose mixture the kernel is; each column counts as this part
    of a column.
    """
    frequency = np.geomspace(1e-4, 1e4, 2000)
    density = np.sinc(frequency / (2.0 * math.pi)) ** 2 / math.pi
    for each in spread:
        density = density / (1.0 + 2.0 * (frequency * each) ** 2) ** (part / 2.0)
    return float(((density[1:] + density[:-1]) / 2.0 * np.diff(frequency)).sum())
