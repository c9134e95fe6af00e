"""k-means and Gaussian mixtures, fitted to cells of the records that are cut where they vary most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.analysis import (
    COVARIANCE_TYPES,
    FULL,
    SPHERICAL,
    Cells,
    Mixture,
    check_function,
    cluster_cells,
    fit_mixture,
    nearest_centers,
    number_of_clusters,
    number_of_components,
    released_cells,
    restricted,
    sizes_and_spread,
)
from hushsum.declaration import setting
from hushsum.kernels import OF_BOUNDS, different_units, positive_integer
from hushsum.privacy import Promise
from hushsum.records import Bounds, clipped_to_ball, norms
from hushsum.releases import Bundle, CoefficientFunction, ReleasedFunction
from hushsum.tables import ClassMoments
from hushsum.tally import Tally

from ._accuracy import PredictedError, part_of, terms_of
from ._base import SCALE, Drawn, KeptRecords, PrivateModel, declared, require
from ._linear_rules import TOTAL_SHARE, noise_of
from ._record_checks import seed_of
from ._sampler import MOST_SAMPLES

COUNT_SHARE: Final = Fraction(1, 20)
LONE_COUNT_SHARE: Final = Fraction(1, 5)
DIAGONAL_COUNT_SHARE: Final = Fraction(1, 3)
MOMENT_SHARE: Final = Fraction(2, 5)
"""Parts of the squared length of what a record adds, for its number (in one of many cells, in the only one,
on the diagonal) and for its second moments.
"""

FIRST: Final = Fraction(1, 10)
"""The part of the budget for the first step, which measures three numbers."""
_AGAIN: Final = Fraction(7, 10)
_HIDDEN: Final = 0.8
# The part for that step once more, where the noise of one center would exceed this part of the radius.
LOCATING: Final = Fraction(1, 10)
_LOCATING_STEPS: Final = 2
_LOCATABLE: Final = 0.8
_NARROWER: Final = 0.7
# Each of the steps that narrow the only cell takes that part, if the expected noise of its center is below
# this part of the spread; the last is the one that does not make it narrower by so much.
_FEWER: Final = 1.5
# Standard errors of the number of records that are taken off where too many would do harm.
_TOLD: Final = 3.0
# The spread of all records is known where its square is this many times the noise in that.
MOST_CELLS: Final = 64
SMALLEST_PART: Final = Fraction(1, 40)
"""The smallest part of the budget of a step."""
REACH: Final = 1.7
"""The radius of a cell, in root mean squared distances of the records of the cell that it was cut from."""
_HALF: Final = 0.8
_CLEAR: Final = 0.35
# A cell is cut, or used, if the noise of its mean is expected to be shorter than this part of its radius.
_USABLE: Final = 0.7
# The noise of the means of cells is to be about this part of the spread inside them.
_PRECISE: Final = 1.0
SEEN: Final = 3.0
LENGTHS_PART: Final = Fraction(1, 40)
MOST_LENGTHS_PART: Final = Fraction(1, 8)
"""The part of the budget for the sum of squared distances, at the end: the least, and the most."""
SPLITTING: Final = Fraction(1, 2)
"""The part of what is left in between that cuts cells; the rest moves centers."""
REFINING_STEPS: Final = 2
REFINING_PART: Final = (1 - FIRST - LOCATING - LENGTHS_PART) * (1 - SPLITTING) / REFINING_STEPS
_LONE_REACH: Final = 1.1
# As REACH, for the only center: shortening many records a little costs less than their noise.
AFFORDED: Final = 0.5
"""The expected length of the noise of a center in the last steps, over the spread of its records."""
# Of the squared spread that is expected, in squared radii.
_SURE: Final = 0.25
FAR: Final = 2.5
DOUBT: Final = 0.5
"""Distances are measured up to this many expected ones at least; which are wrong by this part, about."""
_EXACT: Final = 0.1
_FARTHEST: Final = 8.0
# Up to more, where the noise of their sum is then at most the first part of it, but to this many at most.
_BITS: Final = 16
_MOST_COLUMNS: Final = 1 << 16
NARROWEST: Final = 2.0**-12
_RECORDS_AT_A_TIME: Final = 1 << 16

MEANS, LOCATION, SQUARES, MOMENTS = "means", "location", "squares", "moments"
LENGTHS, DIAGONAL = "lengths", "diagonal"
SHARES: Final = {MEANS: 0.05, LOCATION: 0.3, SQUARES: 0.35, MOMENTS: 0.0, LENGTHS: 0.0, DIAGONAL: 0.5}
"""The part of the squared length of a vector for the squares of its columns, or that of its length."""


class PromiseParts:
    """A promise that is spent in parts, which add up to it at most.

    >>> parts = PromiseParts(Promise.of(epsilon=1.0, delta=None))
    >>> parts.take(Fraction(1, 4))
    Promise(epsilon=Fraction(1, 4), delta=Fraction(0, 1), rho=None)
    >>> parts.left
    Fraction(3, 4)
    """

    __slots__ = ("left", "promise")

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.left = Fraction(1)

    def take(self, part: Fraction) -> Promise:
        """A part of the whole promise."""
        if not 0 < part <= self.left:
            raise ValueError("more than the promise")
        self.left -= part
        return part_of(self.promise, part)

    def measure(
        self, rows: Floats, partition: Partition, kind: str, part: Fraction, known: Crowd | None = None
    ) -> Measurement:
        """Count the records by cell and release that for a part of the promise.

        Privacy
        -------
        Unit: one record; neighbours: add/remove. The partition and ``kind`` are public, that is, functions of
        what was released before. A record has one cell and one vector of length at most 1, which depend on
        that record alone (`Partition`), and adds them to one tally of `ClassMoments`, whose sensitivity is
        proven there. Under pure ε every cell has a tally of its own, and all have the whole part of the
        promise: a record is in one of them, and the others are the same with it and without it (parallel
        composition). Whichever way a unit changes the records, the tables change by the cells of those that
        come and go:

        - a record appears or disappears: one vector, in one cell;
        - a record is replaced, inside its cell or by one of another cell: one disappears and one appears, so
          it is covered twice, as the claim states;
        - a record appears twice, or more often: it counts as that many records, and no other record is
          affected;
        - the order of records changes: nothing, since integers are added.

        No other record changes its contribution: centers and radii do not depend on the records of this step,
        only on noisy tables of steps before.
        """
        promise = self.take(part)
        tallies = counted_cells(rows, partition, kind, apart=promise.pure)
        spent = {**terms_of(promise), "count_share": float(TOTAL_SHARE)}
        return read([each.release(**spent) for each in tallies], kind, known)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Public centers and radii. A record belongs to the nearest center; what it adds is relative to it.

    Records and centers are in units in which the declared box is within ±1.

    Privacy
    -------
    The center of a record depends on that record alone, bit for bit: record and centers are rounded to
    multiples of 2⁻¹⁶, element by element, and distances are compared as ‖c‖² − 2x·c. Every product and every
    partial sum in it is an integer below d·2³⁴ ≤ 2⁵⁰, for up to 2¹⁶ columns, and so exact in double
    precision in any order of summation. Of equal distances the first center is taken.
    """

    centers: Floats
    radii: Floats

    def codes(self, rows: Floats) -> NDArray[np.int64]:
        """The place of the center of each record."""
        if rows.shape[1] > _MOST_COLUMNS:
            raise ValueError("columns")
        whole = np.rint(np.clip(rows, -1.0, 1.0) * float(1 << _BITS))
        centers = np.rint(np.clip(self.centers, -1.0, 1.0) * float(1 << _BITS))
        nearest: NDArray[np.int64] = np.argmin(
            np.square(centers).sum(axis=1) - 2.0 * (whole @ centers.T), axis=1
        )
        return nearest

    def vectors(self, rows: Floats, codes: NDArray[np.int64]) -> Floats:
        """(x − c)/radius of each record, shortened to length 1; each depends on that record alone."""
        return clipped_to_ball((rows - self.centers[codes]) / self.radii[codes][:, None], 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """What one step released of the cells of a partition; public.

    ``means`` and ``squares`` are relative to the centers and in units of the radii; ``squares`` has one
    column, of squared lengths, where only these were measured. ``mean_noise`` and ``square_noise`` are
    standard deviations of sums, and ``count_noise`` of numbers.
    """

    counts: Floats
    means: Floats
    squares: Floats
    moments: Floats | None
    count_noise: float
    mean_noise: float
    square_noise: float

    @property
    def numbers(self) -> Floats:
        """The counts, where they are at least as large as their noise, and that otherwise."""
        return np.maximum(self.counts, max(self.count_noise, 1.0))

    @property
    def mean_errors(self) -> Floats:
        """The expected length of the noise in each mean, in units of the radius."""
        return np.asarray(self.mean_noise * math.sqrt(self.means.shape[1]) / self.numbers)


def basis_of(cells: int, dim: int, kind: str) -> ClassMoments:
    """The basis of the table in which one step counts the records."""
    if kind == MOMENTS:
        return ClassMoments.of_shares(
            cells, dim, 1.0, moment_share=MOMENT_SHARE, count_share=COUNT_SHARE, by_class=True
        )
    columns = {SQUARES: 2 * dim, LENGTHS: 1, DIAGONAL: 2}.get(kind, dim + 1)
    lone = LONE_COUNT_SHARE if cells == 1 else COUNT_SHARE
    count_share = {DIAGONAL: DIAGONAL_COUNT_SHARE, LENGTHS: COUNT_SHARE}.get(kind, lone)
    return ClassMoments.of_shares(
        cells, columns, 1.0, moment_share=Fraction(0), count_share=count_share, bits=14
    )


def vectors_by_cell(rows: Floats, partition: Partition, kind: str) -> Floats:
    """What a step counts of each record, in a row: its cell, and a vector of length at most 1."""
    codes = partition.codes(rows)
    vectors = partition.vectors(rows, codes)
    if kind == LENGTHS:
        # Of all centers together: one cell, and the square of a length that is at most 1.
        return np.column_stack((np.zeros(len(rows)), np.square(norms(vectors))))
    if share := SHARES[kind]:
        # Of length at most 1, since no column is longer than the vector, nor is the square of its length.
        squares = np.square(vectors) if kind == SQUARES else np.square(norms(vectors))[:, None]
        if kind == DIAGONAL:
            # Exact sums of integers, in any order; longer by √d/2¹⁷ at most, which the tally shortens.
            whole = np.rint(vectors * float(1 << _BITS)).sum(axis=1, keepdims=True)
            vectors = whole / (float(1 << _BITS) * math.sqrt(vectors.shape[1]))
        vectors = np.hstack((math.sqrt(1.0 - share) * vectors, math.sqrt(share) * squares))
    return np.column_stack((codes, vectors))


def counted_cells(rows: Floats, partition: Partition, kind: str, *, apart: bool) -> list[Tally]:
    """The exact sums of one step, of all cells together or of every cell apart; secret."""
    cells = 1 if kind == LENGTHS else len(partition.centers)
    basis = basis_of(1 if apart else cells, rows.shape[1], kind)
    tallies = [Tally(basis, basis.counted_kernel()) for _ in range(cells if apart else 1)]
    for start in range(0, len(rows), _RECORDS_AT_A_TIME):
        vectors = vectors_by_cell(rows[start : start + _RECORDS_AT_A_TIME], partition, kind)
        for cell, tally in enumerate(tallies):
            held = vectors[vectors[:, 0] == cell] if apart else vectors
            if len(held):
                tally.add(np.column_stack((np.zeros(len(held)), held[:, 1:])) if apart else held)
    return tallies


def read(functions: Sequence[object], kind: str, known: Crowd | None = None) -> Measurement:
    """What the released tables of all cells say of them; post-processing."""
    tables = []
    for function in functions:
        assert isinstance(function, CoefficientFunction)
        tables.append(function.table)
        basis, deviation = function.basis, math.sqrt(function.cell_variance)
    assert isinstance(basis, ClassMoments)
    counts = np.concatenate([basis.class_counts(each) for each in tables])
    sums = np.concatenate([basis.class_sums(each) for each in tables])
    count_noise = deviation / basis.count_weight
    if known is not None:
        # Two estimates of one number, by their variances.
        part = count_noise**2 / (count_noise**2 + known.noise**2)
        counts, count_noise = counts + part * (known.number - counts), count_noise * math.sqrt(1.0 - part)
    number = np.maximum(counts, max(count_noise, 1.0))[:, None]
    gain, share = deviation * math.sqrt(basis.sum_gain), SHARES[kind]
    dim = basis.dim // 2 if kind == SQUARES else max(1, basis.dim - (share > 0.0))
    moments = basis.second_moments(tables[0]) / number[:, :, None] if kind == MOMENTS else None
    if moments is not None:
        squares = np.diagonal(moments, axis1=1, axis2=2).copy()
        square_noise = deviation / (5.0 * basis.unit**2)
    else:
        squares, square_noise = (
            sums[:, dim:] / math.sqrt(share or 1.0) / number,
            gain / math.sqrt(share or 1.0),
        )
    return Measurement(
        counts=counts,
        means=clipped_to_ball(sums[:, :dim] / math.sqrt(1.0 - share) / number, 1.0),
        squares=squares,
        moments=moments,
        count_noise=count_noise,
        mean_noise=gain / math.sqrt(1.0 - share),
        square_noise=square_noise,
    )


def noise_of_sums(cells: int, dim: int, kind: str, promise: Promise) -> float:
    """The standard deviation of the noise in a column of the sums of one step, in radii."""
    basis = basis_of(1 if promise.pure else cells, dim, kind)
    return math.sqrt(noise_of(basis, promise).variance * basis.sum_gain / (1.0 - SHARES[kind]))


def cells_of(partition: Partition, found: Measurement) -> tuple[Cells, NDArray[np.bool_]]:
    """The cells of a measurement, and which of them stand out of the noise; post-processing."""
    radii = partition.radii[:, None]
    means = np.clip(partition.centers + radii * found.means, -1.0, 1.0)
    # Noise adds its variance to the square of a mean. A spread that is too small would shorten records, and
    # one that is too large only adds noise: so it is raised by the standard deviation of its own noise.
    apart = found.squares - np.square(found.means)
    dim, number = means.shape[1], found.numbers
    noise = dim * np.square(found.mean_noise / number) + math.sqrt(dim) * found.square_noise / number
    spread = np.clip(np.maximum(apart.sum(axis=1), 0.0) + noise, np.square(NARROWEST), 1.0)
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


def cutting_levels(records: float, dim: int, clusters: int, promise: Promise, share: Fraction) -> int:
    """How many times cells are cut in two, for equal parts of a share of the budget: as many levels as leave
    the noise of a cell's mean below the spread of its records, for cells of equal size; but at least as many
    cells as clusters.
    """
    levels = 1
    for number in range(1, 1 + int(math.log2(MOST_CELLS))):
        cells, spent = 1 << number, part_of(promise, share / number)
        deviation = noise_of_sums(cells, dim, SQUARES, spent)
        # The expected length of the noise in a mean, over the root mean squared distance in its cell.
        error = REACH * math.sqrt(dim) * deviation * cells / max(records, 1.0)
        if error > _PRECISE and cells >= 2 * clusters:
            break
        levels = number
        if error > _PRECISE and cells >= clusters:
            break
    return levels


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """All records as one cell, as the first steps found them; public.

    ``center`` and ``spread`` have one row; ``number`` is noisy, with the standard deviation ``noise``, and
    ``told`` says whether the spread stands out of its noise.
    """

    center: Floats
    spread: Floats
    number: float
    noise: float
    told: bool

    @property
    def fewest(self) -> float:
        """The number of records, less the noise of that."""
        return max(self.number - self.noise, 1.0)

    @property
    def partition(self) -> Partition:
        """The cell."""
        return around(self.center, self.spread)

    @classmethod
    def located(cls, rows: Floats, half_widths: Floats, parts: PromiseParts) -> Crowd:
        """The first steps, whose parts of the promise follow from tables released before.

        First three numbers: of the records, and the means of what their columns have in common (their place
        on the diagonal on which all columns are equal) and of their squared length. Few numbers have little
        noise, and in many columns that are skewed alike the diagonal leads to most of the records. Where one
        center would be hidden by noise, the same is done for most of the budget. Where it can be told, the
        cell is moved to the mean of the records, and narrowed.
        """
        dim, radius = rows.shape[1], max(float(np.linalg.norm(half_widths)), NARROWEST)
        box = Partition(np.zeros((1, dim)), np.array([radius]))
        found = parts.measure(rows, box, DIAGONAL, FIRST)
        fewest = max(float(found.counts[0]) - _FEWER * found.count_noise, found.count_noise)
        if _error_of_mean(dim, parts.promise, _AGAIN) > _HIDDEN * fewest:
            found = parts.measure(rows, box, DIAGONAL, _AGAIN)
        number, doubt = float(found.counts[0]), found.count_noise
        center, spread, told = _moved(box, found, np.full((1, dim), found.means[0, 0] / math.sqrt(dim)))
        center = np.clip(center, -half_widths, half_widths)
        crowd = cls(center, spread, number, doubt, told)
        visible = REACH * _error_of_mean(dim, parts.promise, LOCATING) < _LOCATABLE * crowd.fewest
        # Centers and their inertia are still to be paid for, whatever the noise of the steps before.
        affordable = parts.left > _LOCATING_STEPS * LOCATING + MOST_LENGTHS_PART
        for _ in range(_LOCATING_STEPS if visible and affordable else 0):
            found = parts.measure(rows, crowd.partition, LOCATION, LOCATING, crowd)
            center, spread, told = _moved(crowd.partition, found, found.means)
            before, center = crowd.spread, np.clip(center, -half_widths, half_widths)
            crowd = cls(center, spread, number, doubt, told)
            if spread[0] > _NARROWER * before[0]:
                break
        return crowd


def around(centers: Floats, spread: Floats, reach: float = REACH) -> Partition:
    """Cells whose radii follow from root mean squared distances."""
    return Partition(centers, np.clip(reach * spread, NARROWEST, math.sqrt(centers.shape[1])))


def _error_of_mean(dim: int, promise: Promise, part: Fraction) -> float:
    """The expected length of the noise in the sum of all records, in radii."""
    return math.sqrt(dim) * noise_of_sums(1, dim, MEANS, part_of(promise, part))


def _moved(partition: Partition, found: Measurement, move: Floats) -> tuple[Floats, Floats, bool]:
    """The center of the only cell, moved by as much as is not noise (James and Stein 1961); how far records
    are from it, raised by a standard deviation, since what is too narrow shortens them; and whether that
    stands out of the noise.
    """
    length = float(np.square(found.means).sum())
    error, noise = float(found.mean_errors[0]) ** 2, found.square_noise / float(found.numbers[0])
    kept = max(0.0, 1.0 - error / max(length, 1e-12))
    square = max(float(found.squares[0, 0]) + min(0.0, 2.0 * error - length), 0.0) + noise
    spread = partition.radii * np.sqrt(np.clip([square], NARROWEST**2, 1.0))
    return partition.centers + partition.radii[0] * kept * move, spread, square > _TOLD * noise


def affordable_clusters(records: float, dim: int, most: int, promise: Promise, part: Fraction) -> int:
    """How many centers of clusters of equal size a step can tell from its noise: up to ``most``, and 1 at
    least.
    """
    for number in range(most, 1, -1):
        deviation = noise_of_sums(number, dim, MEANS, part_of(promise, part))
        if REACH * math.sqrt(dim) * deviation * number < AFFORDED * max(records, 1.0):
            return number
    return 1


def split_cells(
    rows: Floats, crowd: Crowd, clusters: int, parts: PromiseParts, share: Fraction, last: str
) -> Cells:
    """Cells of the records, cut where they vary most. Spends ``share`` of the promise.

    Parameters
    ----------
    rows : array of shape (n, dim)
        Records in units in which the box is within ±1; secret.
    crowd : Crowd
        What the first steps found.
    clusters : int
        How many will be looked for.
    last : {"squares", "moments"}
        Whether the last step measures variances or covariances.

    Privacy
    -------
    From the noisy number of records, which was released before, follows how many steps there are
    (`PromiseParts.measure`), with equal parts that add up to ``share``.
    Every partition is a function of the tables released before it. So this is adaptive composition of steps
    whose ρ (pure: whose ε) add up to the same total whatever was released. The parts themselves depend on
    what was released, which composition allows as long as the total is fixed beforehand: for ρ-zCDP by the
    privacy filter of Feldman and Zrnic (2021), for pure ε by that of Rogers et al. (2016). `PromiseParts`
    refuses to spend more than the whole.

    Notes
    -----
    Linde, Buzo and Gray, 1980, for clusters by cutting; Su et al., *Differentially private k-means
    clustering*, CODASPY 2016, for k-means with noisy sums.
    """
    partition = crowd.partition
    levels = cutting_levels(crowd.number, rows.shape[1], clusters, parts.promise, share)
    for level in range(levels + 1):
        kind = last if level == levels else SQUARES
        known = crowd if len(partition.centers) == 1 else None
        found = parts.measure(rows, partition, kind, share / (levels + 1), known)
        cells, seen = cells_of(partition, found)
        if level < levels:
            partition = _cut(partition, found, cells, seen, 1 << levels)
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
    centers, radii = [], []
    for j in np.flatnonzero(seen):
        radius = min(REACH * math.sqrt(float(cells.variances[j].sum())), float(partition.radii[j]))
        step = np.zeros(cells.dim)
        if j in cut:
            step[column[j]] = _HALF * math.sqrt(spread[j])
        for sign in (-1.0, 1.0) if j in cut else (0.0,):
            centers.append(np.clip(cells.means[j] + sign * step, -1.0, 1.0))
            radii.append(max(radius, NARROWEST))
    return Partition(np.array(centers), np.array(radii))


def refined_centers(
    rows: Floats,
    centers: Floats,
    spread: Floats,
    parts: PromiseParts,
    share: Fraction,
    lone: Crowd | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Centers moved, step by step, to the noisy means of their records; with the noisy numbers of those, and
    their root mean squared distances.

    Spends ``share`` of the promise, in equal parts, or at once on a center that is alone. A mean is moved by
    less where much of the move may be noise (James and Stein 1961), and not at all where the number of
    records is not distinguished from 0 and there are other centers.

    Privacy
    -------
    As `split_cells`: every step is one of `PromiseParts.measure`.
    """
    steps, reach = (1, _LONE_REACH) if lone else (REFINING_STEPS, REACH)
    for _ in range(steps):
        partition = around(centers, spread, reach)
        found = parts.measure(rows, partition, MEANS, share / steps, lone)
        squares = np.maximum(np.square(found.means).sum(axis=1), 1e-12)
        kept = np.clip(1.0 - np.square(found.mean_errors) / squares, 0.0, 1.0)
        told = (found.counts > SEEN * found.count_noise) | (lone is not None)
        kept = np.where(told, kept, 0.0)[:, None]
        centers = np.clip(centers + partition.radii[:, None] * kept * found.means, -1.0, 1.0)
        # Of the records from the center where it is now.
        apart = found.squares[:, 0] - (kept * (2.0 - kept) * np.square(found.means)).sum(axis=1)
        # The mean of what is measured and of what was expected, by their variances.
        expected, noise = np.square(spread / partition.radii), np.square(found.square_noise / found.numbers)
        apart = (apart * _SURE**2 + expected * noise) / (_SURE**2 + noise)
        found_spread = partition.radii * np.sqrt(np.clip(apart, expected / 16.0, 1.0))
        spread = np.where(kept[:, 0] > 0.0, found_spread, spread)
    return centers, found.counts, spread


def lengths_part(records: float, promise: Promise) -> Fraction:
    """The part of the budget for `inertia_of`: as much as leaves little noise in it, within limits."""
    noise = noise_of_sums(1, 1, LENGTHS, part_of(promise, LENGTHS_PART)) * FAR**2 / max(records, 1.0)
    wanted = (noise / _EXACT) ** (1 if promise.pure else 2)
    return min(max(LENGTHS_PART * Fraction(round(min(wanted, 10.0), 2)), LENGTHS_PART), MOST_LENGTHS_PART)


def inertia_of(rows: Floats, centers: Floats, counts: Floats, spread: Floats, parts: PromiseParts) -> float:
    """The sum of squared distances of records to their centers, estimated; spends what is left.

    Distances are measured up to a radius for which noise is a small part of the expected sum, or up to some
    times the root mean squared distance that is expected. Where noise hides the sum, the expected one stands
    in for it.

    Privacy
    -------
    One more step of `PromiseParts.measure`, with one cell: a record adds a number of at most 1, the square of
    its distance in units of the radius.
    """
    held, dim = np.maximum(counts, 0.0), rows.shape[1]
    expected = float(held @ np.square(spread))
    unit = noise_of_sums(1, dim, LENGTHS, part_of(parts.promise, parts.left))
    least = FAR**2 * expected / max(float(held.sum()), 1.0)
    most = min(_FARTHEST**2 / FAR**2 * least, dim)
    radius = math.sqrt(float(np.clip(_EXACT * expected / unit, least, most).clip(NARROWEST**2, dim)))
    found = parts.measure(rows, Partition(centers, np.full(len(centers), radius)), LENGTHS, parts.left)
    measured = radius**2 * float(found.numbers[0] * found.means[0, 0])
    noise, doubt = (radius**2 * found.mean_noise) ** 2, (DOUBT * expected) ** 2
    weight = doubt / max(doubt + noise, 1e-300)
    return max(weight * measured + (1.0 - weight) * expected, expected / FAR**2)


AUTO: Final = "auto"
RECORDS, FUNCTION = "records", "released function"


@dataclass(frozen=True, slots=True)
class Frame:
    """The units in which records are compared: x = center + unit·e, where the box is within ±1 for e."""

    center: Floats
    unit: Floats
    half_widths: Floats

    @classmethod
    def of(cls, box: Bounds, scale: str | None) -> Frame:
        """The units for a declared box."""
        low, high = np.array(box.low), np.array(box.high)
        column = high - low
        by_bounds = scale == OF_BOUNDS or (scale is None and different_units(box))
        unit = column / 2.0 if by_bounds else np.full(box.dim, float(column.max()) / 2.0)
        return cls((low + high) / 2.0, unit, column / 2.0 / unit)

    @property
    def length(self) -> float:
        """What a distance of 1 in these units is in those of the data, or in declared ranges where columns
        have units of their own.
        """
        return 0.5 if (self.unit != self.unit[0]).any() else float(self.unit[0])

    def inside(self, X: Floats) -> Floats:
        """Records in these units, clipped to the box; element by element."""
        return np.asarray(np.clip((X - self.center) / self.unit, -self.half_widths, self.half_widths))

    def places(self, points: Floats) -> Floats:
        """Points in these units, wherever they are."""
        return np.asarray((points - self.center) / self.unit)


@declared
class ClusterModel(PrivateModel):
    """A clustering, fitted to records or to a released function.

    A subclass has the parameter ``scale``, says how many clusters it looks for (:meth:`_number`), what it
    computes of private records (:meth:`_clustered`) and of the cells of a released function
    (:meth:`_of_cells`), and checks those arrays in ``_open``.
    """

    scale: str | None = setting(
        None,
        SCALE,
        help="What distances are measured in: the units of the data, or (bounds) the declared range of each "
        "column. Default: bounds where the declared ranges of two columns differ by more than ten times.",
    )

    CHOSEN: ClassVar = {"_source": (RECORDS, FUNCTION)}
    _source = RECORDS

    @property
    def centers(self) -> Floats:
        """The centers or means of the clusters, in the units of the data; only after the release."""
        raise NotImplementedError

    def _number(self) -> int:
        """The number of clusters, or the most there may be."""
        raise NotImplementedError

    def _measured_kinds(self, promise: Promise) -> tuple[str, ...]:
        """What the steps of a fit measure of each cell."""
        raise NotImplementedError

    def _clustered(
        self, rows: Floats, frame: Frame, parts: PromiseParts, seed: int
    ) -> dict[str, NDArray[Any]]:
        """What is released of records in the units of the frame; spends the whole promise at most."""
        raise NotImplementedError

    def _of_cells(self, cells: Cells, frame: Frame, seed: int) -> dict[str, NDArray[Any]]:
        """The same, of the cells of a released function; spends nothing."""
        raise NotImplementedError

    def fit_released(self, function: ReleasedFunction) -> Self:
        """Cluster a released function: post-processing that spends nothing. No record is needed.

        Takes grids, histograms and other weighted points, random Fourier features in any number of columns,
        and every released function of up to three columns with declared bounds. The model carries the claim
        of the function. ``epsilon``, ``delta`` and ``budget`` of this estimator are not used.

        Parameters
        ----------
        function : ReleasedFunction
            Of columns of numbers.

        Raises
        ------
        UsageError
            if it cannot be clustered: hash rows in more than three columns, or records that are sets.
        """
        self.check_parameters()
        self._set_columns(check_function(function), function.columns)
        box = self.bounds_of_columns() if function.bounds is None else function.bounds
        seed, frame = seed_of(self.random_state), Frame.of(box, self.scale)
        sides = list(zip(box.low, box.high, strict=True))
        cells = released_cells(function, self._number(), sides, seed=seed)
        arrays = self._of_cells(cells.in_units(1.0 / frame.unit, -frame.center / frame.unit), frame, seed)
        self._source = FUNCTION
        return self._made_of(function, seed, Drawn(arrays=arrays), bounds=box)

    def _start(self, seed: int) -> KeptRecords:
        self._source = RECORDS
        return KeptRecords()

    def _ready(self, secret: KeptRecords) -> KeptRecords:
        """Refuse columns and promises for which a step could not be released, before anything is spent."""
        promise = self._promise()
        for kind in self._measured_kinds(promise):
            smallest = part_of(promise, SMALLEST_PART)
            # Its variance is computed where the samplers can draw it, and refused otherwise.
            noise_of_sums(MOST_CELLS, self.n_features_in_, kind, smallest)
        return secret

    def _count(self, secret: KeptRecords, X: Floats, y: Any) -> None:
        secret.add(self._frame().inside(X), np.empty((len(X), 0)))

    def _draw(self, secret: KeptRecords, promise: Promise) -> Drawn:
        rows, _ = secret.all()
        parts, seed = PromiseParts(promise), self._state.seed
        return Drawn(arrays=self._clustered(rows, self._frame(), parts, seed))

    def kept_per_record(self, n_features: int) -> int:
        return n_features

    def _frame(self, n_features: int | None = None) -> Frame:
        return Frame.of(self.bounds_of_columns(n_features), self.scale)

    def _places(self, X: object) -> tuple[Frame, Floats]:
        """The units of the model as it was fitted, and queries in them."""
        queries, frame = self._queries(X), self._as_counted()._frame()
        return frame, frame.places(queries)

    def fit_predict(self, X: object, y: object = None) -> NDArray[np.int64]:
        """Fit, which releases, and give each record the number of its cluster, for the owner's eyes."""
        labels: NDArray[np.int64] = self.fit(X, y).predict(X)
        return labels

    def _error_of_centers(
        self, records: int, n_features: int, promise: Promise, share: Fraction, kind: str
    ) -> PredictedError:
        """The predicted error of a center in the last step, for clusters of equal size that fill the box."""
        frame, number = self._frame(n_features), self._number()
        deviation = noise_of_sums(number, n_features, kind, part_of(promise, share))
        radius = float(np.linalg.norm(frame.half_widths))
        error = frame.length * radius * float(np.sqrt(n_features) * deviation) * number / max(records, 1)
        return PredictedError(
            "distance of a center from the mean of its records",
            error,
            records,
            "expected length of the noise for clusters of equal size whose records fill the bounds; "
            "in tight clusters it is smaller in proportion",
        )


MOST_CLUSTERS: Final = 64


@declared
class PrivateKMeans(ClusterModel):
    """k-means of private records, or of a function that was already released.

    Works well if every cluster has some thousand records at ε = 1: the noise of a center is in proportion to
    the width of its cluster, to the number of clusters and to 1/(ε·records). A cluster with fewer than about
    a hundred records per unit of 1/ε is not distinguished from noise, and its records count to a neighbour.
    Where noise would hide some of the clusters, fewer are looked for, and the other centers lie on the
    largest.
    Distances are Euclidean, in the units of the data or of the declared ranges (``scale``). There is no
    ``labels_``: labels of the records are private; ``fit_predict`` returns them to the owner.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        Largest cluster first; only after the release.
    counts_ : array of shape (n_clusters,)
        Noisy numbers of records.
    inertia_ : float
        The sum of squared distances of records to their center, estimated from what was released.
    n_clusters_ : int

    Privacy
    -------
    Unit: one record; neighbours: add/remove. ``fit`` releases, in steps, the number, the sum and the squares
    of the records of each cell of a public partition, with exact integer noise; every partition follows from
    tables released before. Up to 30 % of the budget find where the records are; half of the rest cuts cells
    in two, where they vary most; k-means of these cells is post-processing; the other half moves the centers
    twice to the noisy means of their records, but for what measures ``inertia_``. Where noise would hide all
    clusters but one, all of it finds one center. The steps add up to the claim (`hushsum.models._clusters`).
    Records are kept, in secret, until the release. ``fit_released`` spends nothing.

    Notes
    -----
    Su, Cao, Li, Bertino and Jin, CODASPY 2016, for noisy k-means; Chang and Kamath 2021 and Cohen et al. 2021
    for cells first and centers later; here cells are cut by measured variances.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = np.concatenate([c + 0.05 * random.standard_normal((5000, 2)) for c in (-0.5, 0.4)])
    >>> model = PrivateKMeans(2, epsilon=1.0, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_[:, 0].round(1).tolist())
    [-0.5, 0.4]
    >>> bool(model.predict([[-0.6, -0.5]])[0] != model.predict([[0.5, 0.4]])[0])
    True
    """

    COMMAND = "kmeans"
    n_clusters: int | str = setting(
        8,
        "How many clusters; 'auto': chosen from what was released, by the jump criterion.",
        choices=(AUTO,),
        at_least=1,
        at_most=MOST_CLUSTERS,
        kw_only=False,
    )
    max_clusters: int = setting(20, "The most clusters that 'auto' considers.", at_least=1, at_most=64)

    def predict(self, X: object) -> NDArray[np.int64]:
        """The number of the nearest center, shape (n_queries,); 0 is the largest cluster."""
        frame, queries = self._places(X)
        return nearest_centers(queries, frame.places(self._reading()))[0]

    def distances(self, X: object) -> Floats:
        """The distance to every center, shape (n_queries, n_clusters); with ``scale`` bounds, in declared
        ranges. What scikit-learn calls ``transform``, which would make a pipeline fit, and spend, again.
        """
        frame, queries = self._places(X)
        centers = frame.places(self._reading())
        apart = np.stack([np.square(queries - center).sum(axis=1) for center in centers], axis=1)
        return np.asarray(frame.length * np.sqrt(apart))

    def score(self, X: object, y: object = None) -> float:
        """Minus the sum of squared distances of points to their centers."""
        frame, queries = self._places(X)
        return -float(frame.length**2 * nearest_centers(queries, frame.places(self._reading()))[1].sum())

    @property
    def cluster_centers_(self) -> Floats:
        """The centers, largest cluster first; only after the release."""
        return self.released_.arrays["centers"]

    @property
    def counts_(self) -> Floats:
        """Noisy numbers of records of the clusters; only after the release."""
        return self.released_.arrays["counts"]

    @property
    def inertia_(self) -> float:
        """The sum of squared distances of records to their centers, estimated; only after the release."""
        return float(self.released_.arrays["inertia"][0])

    @property
    def n_clusters_(self) -> int:
        """How many clusters there are; only after the release."""
        return len(self.cluster_centers_)

    centers = cluster_centers_

    def _measured_kinds(self, promise: Promise) -> tuple[str, ...]:
        return DIAGONAL, SQUARES, MEANS, LENGTHS

    def _number(self) -> int:
        return self.max_clusters if isinstance(self.n_clusters, str) else int(self.n_clusters)

    def _centers(self, cells: Cells, number: int, seed: int) -> Floats:
        if isinstance(self.n_clusters, str):
            number = number_of_clusters(cells, number, seed=seed)
        return cluster_cells(cells, number, seed=seed)

    def _clustered(
        self, rows: Floats, frame: Frame, parts: PromiseParts, seed: int
    ) -> dict[str, NDArray[Any]]:
        crowd = Crowd.located(rows, frame.half_widths, parts)
        # The number less its noise: too few clusters cost less than too many.
        left = parts.left - lengths_part(crowd.fewest, parts.promise)
        part, most = left * (1 - SPLITTING) / REFINING_STEPS, self._number() if crowd.told else 1
        number = affordable_clusters(crowd.fewest, rows.shape[1], most, parts.promise, part)
        if number > 1:
            cells = split_cells(rows, crowd, number, parts, left * SPLITTING, SQUARES)
            centers = self._centers(cells, number, seed)
            _, spread = sizes_and_spread(cells, centers)
            fitted = refined_centers(rows, centers, spread, parts, left * (1 - SPLITTING))
        else:
            fitted = refined_centers(rows, crowd.center, crowd.spread, parts, left, crowd)
        centers, counts, spread = fitted
        if not isinstance(self.n_clusters, str):
            # Clusters that noise would hide are where the largest is.
            more = int(self.n_clusters) - len(centers)
            largest = int(np.argmax(counts))
            centers = np.concatenate([centers, np.tile(centers[largest], (more, 1))])
            counts, spread = np.append(counts, np.zeros(more)), np.append(spread, np.zeros(more))
        if float(counts.sum()) < crowd.fewest / 2.0:
            # The number of records is hidden by noise.
            counts = np.where(np.arange(len(counts)) == 0, crowd.fewest, 0.0)
        return _arrays(centers, counts, inertia_of(rows, centers, counts, spread, parts), frame)

    def _of_cells(self, cells: Cells, frame: Frame, seed: int) -> dict[str, NDArray[Any]]:
        centers = np.clip(self._centers(cells, self._number(), seed), -frame.half_widths, frame.half_widths)
        return _arrays(centers, sizes_and_spread(cells, centers)[0], cells.inertia(centers), frame)

    def _open(self, bundle: Bundle) -> Floats:
        centers, counts = bundle.arrays["centers"], bundle.arrays["counts"]
        require(1 <= len(centers) <= MOST_CLUSTERS and bundle.arrays["inertia"].shape == (1,), "clusters")
        require(centers.shape == (len(centers), self.n_features_in_), "centers")
        require(counts.shape == centers.shape[:1], "counts")
        return np.asarray(centers, np.float64)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        return self._error_of_centers(records, n_features, promise, REFINING_PART, MEANS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags


def _arrays(centers: Floats, counts: Floats, inertia: float, frame: Frame) -> dict[str, NDArray[Any]]:
    """What is stored: centers in the units of the data, largest cluster first."""
    order = np.argsort(-counts, kind="stable")
    return {
        "centers": frame.center + frame.unit * centers[order],
        "counts": np.maximum(counts[order], 0.0),
        "inertia": np.array([frame.length**2 * inertia]),
    }


MOST_COMPONENTS: Final = 32
MOST_FULL_COLUMNS: Final = 32
"""Up to which covariances are measured in each cell; with more columns their noise hides them."""


@declared
class PrivateMixture(ClusterModel):
    """A Gaussian mixture of private records, or of a function that was already released.

    Works well if every component has some thousand records at ε = 1. Components are fitted to some dozens of
    cells, of which number, mean and covariance are known, so what is narrower than a cell is seen through
    the covariance of that cell only; a component with fewer than about a hundred records per unit of 1/ε is
    lost in the noise. Covariances between columns are measured with δ and in up to 32 columns; otherwise
    they come from the means of cells alone.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Largest first; only after the release.
    means_ : array of shape (n_components, n_features)
    covariances_ : array
        Of the shape (n_components, n_features, n_features), (n_components, n_features) for ``"diag"`` or
        (n_components,) for ``"spherical"``, as in scikit-learn.
    n_components_ : int

    Privacy
    -------
    Unit: one record; neighbours: add/remove. ``fit`` releases, in steps, the number, the sum and the squares
    or products of the records of each cell of a public partition, with exact integer noise; every partition
    follows from tables released before. The steps add up to the claim (`hushsum.models._clusters`). The
    mixture is computed from the last table, and so are densities, samples and the number of components.
    Records are kept, in secret, until the release. ``fit_released`` spends nothing.

    Notes
    -----
    Dempster, Laird and Rubin 1977, on cells in place of records; Schwarz 1978 for the number of components;
    Keriven et al. 2018 for mixtures of released Fourier features.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = np.concatenate([c + 0.05 * random.standard_normal((5000, 2)) for c in (-0.5, 0.4)])
    >>> model = PrivateMixture(2, epsilon=1.0, delta=1e-6, random_state=0).fit(X)
    >>> sorted(model.means_[:, 0].round(1).tolist())
    [-0.5, 0.4]
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    COMMAND = "mixture"
    n_components: int | str = setting(
        1,
        "How many components; 'auto': chosen from what was released, by the Bayesian information criterion.",
        choices=(AUTO,),
        at_least=1,
        at_most=MOST_COMPONENTS,
        kw_only=False,
    )
    max_components: int = setting(10, "The most components that 'auto' considers.", at_least=1, at_most=64)
    covariance_type: str = setting(
        FULL,
        "What the covariance of a component may be: any, one variance for each column, or one for all.",
        choices=COVARIANCE_TYPES,
    )

    def predict(self, X: object) -> NDArray[np.int64]:
        """The most probable component of each point, shape (n_queries,)."""
        return np.asarray(np.argmax(self.predict_proba(X), axis=1))

    def predict_proba(self, X: object) -> Floats:
        """The probability of each component for each point, shape (n_queries, n_components)."""
        return self._mixture().probabilities(self._queries(X))

    def score_samples(self, X: object) -> Floats:
        """The logarithm of the density at each point, shape (n_queries,)."""
        return self._mixture().log_densities(self._queries(X))

    def score(self, X: object, y: object = None) -> float:
        """The mean logarithm of the density at points."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Synthetic records inside the bounds, shape (n_samples, n_features). Spends nothing.

        Unlike scikit-learn's, it returns the records alone; :meth:`predict` says which component they
        resemble. What a component has beyond the bounds is moved to them, as records are.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
            Of the draws; with an integer they are the same every time.
        """
        number = positive_integer("n_samples", n_samples, at_most=MOST_SAMPLES)
        mixture = self._mixture()
        random = np.random.default_rng(seed_of(random_state))
        chosen = random.choice(len(mixture.weights), number, p=mixture.weights / mixture.weights.sum())
        roots = np.linalg.cholesky(mixture.covariances)
        normal = random.standard_normal((number, mixture.means.shape[1]))
        drawn = mixture.means[chosen] + np.einsum("nij,nj->ni", roots[chosen], normal)
        return self._within_bounds(drawn)

    @property
    def weights_(self) -> Floats:
        """The part of the records in each component, largest first; only after the release."""
        return self.released_.arrays["weights"]

    @property
    def means_(self) -> Floats:
        """The means of the components; only after the release."""
        return self.released_.arrays["means"]

    @property
    def covariances_(self) -> Floats:
        """The covariances of the components, in scikit-learn's shape; only after the release."""
        whole = self.released_.arrays["covariances"]
        kind = self._as_counted().covariance_type
        if kind == FULL:
            return whole
        variances = np.diagonal(whole, axis1=1, axis2=2)
        return np.asarray(variances.mean(axis=1) if kind == SPHERICAL else variances.copy())

    @property
    def n_components_(self) -> int:
        """How many components there are; only after the release."""
        return len(self.weights_)

    def _mixture(self) -> Mixture:
        mixture: Mixture = self._reading()
        return mixture

    centers = means_

    def _measured_kinds(self, promise: Promise) -> tuple[str, ...]:
        return DIAGONAL, SQUARES, self._last_step(promise, self.n_features_in_)

    def _number(self) -> int:
        return self.max_components if isinstance(self.n_components, str) else int(self.n_components)

    def _last_step(self, promise: Promise, dim: int) -> str:
        full = self.covariance_type == FULL and not promise.pure and dim <= MOST_FULL_COLUMNS
        return MOMENTS if full else SQUARES

    def _clustered(
        self, rows: Floats, frame: Frame, parts: PromiseParts, seed: int
    ) -> dict[str, NDArray[Any]]:
        last = self._last_step(parts.promise, rows.shape[1])
        crowd = Crowd.located(rows, frame.half_widths, parts)
        cells = split_cells(rows, crowd, self._number(), parts, parts.left, last)
        return self._of_cells(cells, frame, seed)

    def _of_cells(self, cells: Cells, frame: Frame, seed: int) -> dict[str, NDArray[Any]]:
        number, kind = self._number(), self.covariance_type
        if isinstance(self.n_components, str):
            number = number_of_components(cells, number, kind=kind, seed=seed)
        fitted = fit_mixture(cells, number, kind=kind, seed=seed)[0]
        means = np.clip(fitted.means, -frame.half_widths, frame.half_widths)
        mixture = Mixture(fitted.weights, means, fitted.covariances).in_units(frame.unit, frame.center)
        covariances = np.stack([restricted(each, kind) for each in mixture.covariances])
        return {"weights": mixture.weights, "means": mixture.means, "covariances": covariances}

    def _open(self, bundle: Bundle) -> Mixture:
        weights, means, covariances = (bundle.arrays[name] for name in ("weights", "means", "covariances"))
        shape = (len(weights), self.n_features_in_)
        require(weights.ndim == 1 and 1 <= len(weights) <= MOST_COMPONENTS, "weights")
        require(means.shape == shape and covariances.shape == (*shape, shape[1]), "components")
        require((weights >= 0.0).all() and 0.99 < float(weights.sum()) < 1.01, "weights")
        require(np.allclose(covariances, np.swapaxes(covariances, 1, 2)), "covariances")
        np.linalg.cholesky(covariances)  # LinAlgError, a ValueError, where they are not positive definite.
        return Mixture(weights, means, covariances)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        kind = self._last_step(promise, n_features)
        return self._error_of_centers(records, n_features, promise, (1 - FIRST) / 6, kind)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        return tags
