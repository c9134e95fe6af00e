"""Cells of private records: numbers, means and variances by cell, halved where the records vary most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.class_moments import ClassMoments
from hushsum.models.class_moments_rule import TOTAL_SHARE, noise_of
from hushsum.models.predicted_error import part_of
from hushsum.privacy.claim import Promise
from hushsum.records.norm_clipping import clipped_to_ball, norms
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.tally.tally import Tally
from hushsum.tasks.cells import Cells

COUNT_SHARE: Final = Fraction(1, 20)
MOMENT_SHARE: Final = Fraction(2, 5)
SQUARE_SHARE: Final = 0.35
LENGTH_SHARE: Final = 0.05
"""Of the squared length of what a record adds: its number, second moments, squares of the columns, and the
square of its length.
"""

FIRST: Final = Fraction(1, 10)
"""Of the budget, for the first step, which has one cell."""
MOST_CELLS: Final = 64
SMALLEST_PART: Final = Fraction(3, 40)
"""Of the budget, that any step has: 9/20 of it in six steps, which make 64 cells of one."""
REACH: Final = 1.7
"""The radius of a cell, in root mean squared distances of the records of the cell that it was cut from."""
_HALF: Final = 0.8
_CLEAR: Final = 0.35
_USABLE: Final = 0.7
"""A cell is cut, or used, if the noise of its mean is expected to be shorter than this part of its radius."""
_PRECISE: Final = 1.0
"""Cells are cut into so many that the noise of their means is about this part of the spread inside them."""
_CELLS_PER_CLUSTER: Final = 3
SEEN: Final = 3.0
_BITS: Final = 16
_MOST_COLUMNS: Final = 1 << 16
NARROWEST: Final = 2.0**-12
_RECORDS_AT_A_TIME: Final = 1 << 16

MEANS, SQUARES, MOMENTS = "means", "squares", "moments"


class PromiseParts:
    """A promise that is spent in parts, which add up to it at most.

    >>> parts = PromiseParts(Promise.of(epsilon=1.0, delta=None))
    >>> parts.take(Fraction(1, 4))
    {'epsilon': Fraction(1, 4)}
    >>> parts.left
    Fraction(3, 4)
    """

    __slots__ = ("left", "promise")

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.left = Fraction(1)

    def take(self, part: Fraction) -> dict[str, Any]:
        """A part of the whole promise, as arguments of ``Tally.release``."""
        if not 0 < part <= self.left:
            raise ValueError("more than the promise")
        self.left -= part
        return part_of(self.promise, part)

    def measure(self, rows: Floats, partition: Partition, kind: str, part: Fraction) -> Measurement:
        """Count the records by cell and release that for a part of the promise; see `measured`."""
        return measured(rows, partition, kind, self.take(part))


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Public centres and radii. A record belongs to the nearest centre; what it adds is relative to it.

    Records and centres are in units in which the declared box is within ±1.

    Privacy
    -------
    The centre of a record depends on that record alone, bit for bit: record and centres are rounded to
    multiples of 2⁻¹⁶, element by element, and distances are compared as ‖c‖² − 2x·c. Every product and every
    partial sum in it is a whole number below d·2³⁴ ≤ 2⁵⁰, for up to 2¹⁶ columns, and so exact in double
    precision in any order of summation. Of equal distances the first centre is taken.
    """

    centres: Floats
    radii: Floats

    def codes(self, rows: Floats) -> NDArray[np.int64]:
        """The place of the centre of each record."""
        if rows.shape[1] > _MOST_COLUMNS:
            raise ValueError("columns")
        whole = np.rint(np.clip(rows, -1.0, 1.0) * float(1 << _BITS))
        centres = np.rint(np.clip(self.centres, -1.0, 1.0) * float(1 << _BITS))
        nearest: NDArray[np.int64] = np.argmin(
            np.square(centres).sum(axis=1) - 2.0 * (whole @ centres.T), axis=1
        )
        return nearest

    def vectors(self, rows: Floats, codes: NDArray[np.int64]) -> Floats:
        """(x − c)/radius of each record, shortened to length 1; each depends on that record alone."""
        return clipped_to_ball((rows - self.centres[codes]) / self.radii[codes][:, None], 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """What one step released of the cells of a partition; public.

    ``means`` and ``squares`` are relative to the centres and in units of the radii; ``squares`` has one
    column, of squared lengths, where only these were measured. ``mean_noise`` and ``square_noise`` are
    standard deviations of sums, and ``count_noise`` of numbers.
    """

    counts: Floats
    means: Floats
    squares: Floats | None
    moments: Floats | None
    count_noise: float
    mean_noise: float
    square_noise: float

    @property
    def mean_errors(self) -> Floats:
        """The expected length of the noise in each mean, in units of the radius."""
        return np.asarray(self.mean_noise * math.sqrt(self.means.shape[1]) / np.maximum(self.counts, 1.0))


def basis_of(cells: int, dim: int, kind: str) -> ClassMoments:
    """What one step counts."""
    if kind == MOMENTS:
        return ClassMoments.of_shares(
            cells, dim, 1.0, moment_share=MOMENT_SHARE, count_share=COUNT_SHARE, by_class=True
        )
    columns = 2 * dim if kind == SQUARES else dim + 1
    return ClassMoments.of_shares(
        cells, columns, 1.0, moment_share=Fraction(0), count_share=COUNT_SHARE, bits=14
    )


def vectors_by_cell(rows: Floats, partition: Partition, kind: str) -> Floats:
    """What a step counts of each record, in a row: its cell, and a vector of length at most 1."""
    codes = partition.codes(rows)
    vectors = partition.vectors(rows, codes)
    if kind == SQUARES:
        # Of length at most 1, since no column is longer than the vector.
        vectors = np.hstack(
            (math.sqrt(1.0 - SQUARE_SHARE) * vectors, math.sqrt(SQUARE_SHARE) * np.square(vectors))
        )
    elif kind == MEANS:
        lengths = np.square(norms(vectors))[:, None]
        vectors = np.hstack((math.sqrt(1.0 - LENGTH_SHARE) * vectors, math.sqrt(LENGTH_SHARE) * lengths))
    return np.column_stack((codes, vectors))


def counted_cells(rows: Floats, partition: Partition, kind: str) -> Tally:
    """The exact sums of one step; secret."""
    basis = basis_of(len(partition.centres), rows.shape[1], kind)
    tally = Tally(basis, basis.counted_kernel())
    for start in range(0, len(rows), _RECORDS_AT_A_TIME):
        tally.add(vectors_by_cell(rows[start : start + _RECORDS_AT_A_TIME], partition, kind))
    return tally


def measured(rows: Floats, partition: Partition, kind: str, spent: dict[str, Any]) -> Measurement:
    """Count the records by cell and release that. Spends ``spent``.

    Privacy
    -------
    Unit: one record; neighbours: add/remove. The partition and ``kind`` are public, that is, functions of
    what was released before. A record has one cell and one vector of length at most 1, which depend on that
    record alone (`Partition`), and adds them to one tally of `ClassMoments`, whose sensitivity is proven
    there. Whichever way a unit changes the records, the table changes by the cells of those that come and go:

    - a record appears or disappears: one vector, in one cell;
    - a record is replaced, inside its cell or by one of another cell: one disappears and one appears, so it
      is covered twice, as the claim says;
    - a record appears twice, or more often: it counts as that many records, and no other record is affected;
    - the order of records changes: nothing, since whole numbers are added.

    No other record moves with it: centres and radii do not depend on the records of this step, only on
    noisy tables of steps before.
    """
    tally = counted_cells(rows, partition, kind)
    return read(tally.release(count_share=float(TOTAL_SHARE), **spent), kind)


def read(function: object, kind: str) -> Measurement:
    """What a released table says of its cells; post-processing."""
    assert isinstance(function, CoefficientFunction)
    basis = function.basis
    assert isinstance(basis, ClassMoments)
    table, deviation = function.table, math.sqrt(function.cell_variance)
    counts, sums = basis.class_counts(table), basis.class_sums(table)
    number = np.maximum(counts, 1.0)[:, None]
    gain = deviation * math.sqrt(basis.sum_gain)
    squares = moments = None
    square_noise = 0.0
    mean_noise = gain
    if kind == SQUARES:
        dim = basis.dim // 2
        squares = sums[:, dim:] / math.sqrt(SQUARE_SHARE) / number
        sums = sums[:, :dim] / math.sqrt(1.0 - SQUARE_SHARE)
        square_noise = gain / math.sqrt(SQUARE_SHARE)
        mean_noise = gain / math.sqrt(1.0 - SQUARE_SHARE)
    if kind == MEANS:
        squares = sums[:, -1:] / math.sqrt(LENGTH_SHARE) / number
        sums = sums[:, :-1] / math.sqrt(1.0 - LENGTH_SHARE)
        mean_noise = gain / math.sqrt(1.0 - LENGTH_SHARE)
    if kind == MOMENTS:
        moments = basis.second_moments(table) / number[:, :, None]
        squares = np.diagonal(moments, axis1=1, axis2=2).copy()
        square_noise = deviation / (5.0 * basis.unit**2)
    return Measurement(
        counts=counts,
        means=clipped_to_ball(sums / number, 1.0),
        squares=squares,
        moments=moments,
        count_noise=deviation / basis.count_weight,
        mean_noise=mean_noise,
        square_noise=square_noise,
    )


def cells_of(partition: Partition, found: Measurement) -> tuple[Cells, NDArray[np.bool_]]:
    """The cells of a measurement, and which of them stand out of the noise; post-processing."""
    radii = partition.radii[:, None]
    means = np.clip(partition.centres + radii * found.means, -1.0, 1.0)
    assert found.squares is not None
    # Noise adds its variance to the square of a mean. A spread that is too small would shorten records, and
    # one that is too large only adds noise: so it is raised by the standard deviation of its own noise.
    apart = found.squares - np.square(found.means)
    dim, number = means.shape[1], np.maximum(found.counts, 1.0)
    noise = dim * np.square(found.mean_noise / number) + math.sqrt(dim) * found.square_noise / number
    spread = np.clip(apart.sum(axis=1) + noise, np.square(NARROWEST), 1.0)
    variances = np.maximum(apart, spread[:, None] / (100.0 * dim))
    variances *= (spread / variances.sum(axis=1))[:, None] * np.square(radii)
    covariances = None
    if found.moments is not None:
        outer = found.means[:, :, None] * found.means[:, None, :]
        covariances = _positive((found.moments - outer) * np.square(radii)[:, :, None])
        variances = np.diagonal(covariances, axis1=1, axis2=2).copy()
    seen = (found.counts > SEEN * found.count_noise) & (found.mean_errors < _USABLE)
    if not seen.any():
        seen = np.arange(len(means)) == int(np.argmax(found.counts))
    error = np.square(found.mean_noise * partition.radii / number)
    return Cells(np.maximum(found.counts, 0.0), means, variances, covariances, error), seen


def _positive(matrices: Floats) -> Floats:
    """The nearest positive definite matrices, but for what is narrower than the rounding of records."""
    values, vectors = np.linalg.eigh((matrices + np.swapaxes(matrices, 1, 2)) / 2.0)
    least = np.square(NARROWEST) / matrices.shape[1]
    kept = vectors * np.maximum(values, least)[:, None, :]
    return np.asarray(kept @ np.swapaxes(vectors, 1, 2))


@dataclass(frozen=True, slots=True)
class SplittingPlan:
    """How many times cells are cut in two, and with which part of the budget each time; public."""

    levels: int
    part: Fraction

    @classmethod
    def of(
        cls, records: float, dim: int, clusters: int, promise: Promise, share: Fraction, most: int
    ) -> SplittingPlan:
        """As many levels as leave the noise of a cell's mean below the spread of its records, for cells of
        equal size; but cells for three times as many as there are clusters.
        """
        levels = 1
        for number in range(1, 1 + max(1, int(math.log2(most)))):
            cells = 1 << number
            precise = cls._error(records, dim, cells, promise, share / number) <= _PRECISE
            needed = cells < 2 * _CELLS_PER_CLUSTER * clusters
            if not precise and not needed:
                break
            levels = number
            if not precise and cells >= _CELLS_PER_CLUSTER * clusters:
                break
        return cls(levels, share / levels)

    @staticmethod
    def _error(records: float, dim: int, cells: int, promise: Promise, part: Fraction) -> float:
        """The expected length of the noise in a mean, over the root mean squared distance in its cell."""
        basis = basis_of(cells, dim, SQUARES)
        spent = Promise.of(**{name: value for name, value in part_of(promise, part).items() if value})
        deviation = math.sqrt(noise_of(basis, spent).variance * basis.sum_gain / (1.0 - SQUARE_SHARE))
        return REACH * math.sqrt(dim) * deviation * cells / max(records, 1.0)


def split_cells(
    rows: Floats, half_widths: Floats, clusters: int, parts: PromiseParts, share: Fraction, last: str
) -> Cells:
    """Cells of the records, cut where they vary most. Spends ``share`` of the promise and `FIRST`.

    Parameters
    ----------
    rows : array of shape (n, dim)
        Records in units in which the box is within ±1; secret.
    half_widths : array of shape (dim,)
        Of the box, at most 1.
    clusters : int
        How many will be looked for.
    last : {"squares", "moments"}
        Whether the last step measures variances or covariances.

    Privacy
    -------
    The first step (`measured`) has one cell, the whole box, and a fixed part of the budget. From its noisy
    number a plan follows: how many further steps, with equal parts that add up to ``share``. Every partition
    is a function of the tables released before it. So this is adaptive composition of steps whose ρ (pure:
    whose ε) add up to the same total whatever was released. The parts themselves depend on what was
    released, which composition allows as long as the total is fixed beforehand: for ρ-zCDP by the privacy
    filter of Feldman and Zrnic (2021), for pure ε by that of Rogers et al. (2016). `PromiseParts` refuses
    to spend more than the whole.

    Notes
    -----
    Linde, Buzo and Gray, 1980, for clusters by cutting; Su et al., *Differentially private k-means
    clustering*, CODASPY 2016, for k-means with noisy sums.
    """
    dim = rows.shape[1]
    partition = Partition(np.zeros((1, dim)), np.array([max(float(np.linalg.norm(half_widths)), NARROWEST)]))
    found = parts.measure(rows, partition, SQUARES, FIRST)
    cells, seen = cells_of(partition, found)
    plan = SplittingPlan.of(float(found.counts[0]), dim, clusters, parts.promise, share, MOST_CELLS)
    for level in range(1, plan.levels + 1):
        partition = _cut(partition, found, cells, seen, 1 << plan.levels)
        kind = last if level == plan.levels else SQUARES
        found = parts.measure(rows, partition, kind, plan.part)
        cells, seen = cells_of(partition, found)
    return cells.chosen(seen)


def _cut(
    partition: Partition, found: Measurement, cells: Cells, seen: NDArray[np.bool_], most: int
) -> Partition:
    """The next partition: cells with the most weight × variance in two, those within the noise left out."""
    column = cells.variances.argmax(axis=1)
    spread = cells.variances[np.arange(len(cells)), column]
    number = np.maximum(found.counts, 1.0)
    noise = 2.0 * found.square_noise * np.square(partition.radii) / number
    clear = seen & (found.mean_errors < _CLEAR) & (spread > noise)
    score = np.where(clear, number * spread, 0.0)
    room = max(0, most - int(seen.sum()))
    cut = {int(j) for j in np.argsort(-score, kind="stable")[:room] if score[j] > 0.0}
    centres, radii = [], []
    for j in np.flatnonzero(seen):
        radius = min(REACH * math.sqrt(float(cells.variances[j].sum())), float(partition.radii[j]))
        step = np.zeros(cells.dim)
        if j in cut:
            step[column[j]] = _HALF * math.sqrt(spread[j])
        for sign in (-1.0, 1.0) if j in cut else (0.0,):
            centres.append(np.clip(cells.means[j] + sign * step, -1.0, 1.0))
            radii.append(max(radius, NARROWEST))
    return Partition(np.array(centres), np.array(radii))
