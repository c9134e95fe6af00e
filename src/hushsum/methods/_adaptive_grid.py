"""A map whose resolution follows the records: a tree of boxes found by a noisy grid, and the counts of its
leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers, Rows
from hushsum.declaration import shows_keywords
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.privacy import LAPLACE, Mechanism, Relation
from hushsum.records import Bounds, DeclaredBounds
from hushsum.releases import ONE_PROFILE, BoxesFunction, PublicFacts

from ._method import DeclaredBox, Method, OneCallKeywords, OneCallRelease, register
from ._prediction import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest, errors_at_densities

__all__ = ["ADAPTIVE_GRID", "adaptive_grid"]

ADAPTIVE_GRID: Final = "adaptive_grid"
MOST_COLUMNS: Final = 4

_CELLS_PER_BANDWIDTH: Final = 2
MOST_HALVINGS: Final = 18

GRID_SHARE: Final = Fraction(3, 10)
"""The part of ε for the noisy grid that decides the tree. The rest is for the counts of its leaves."""

_PER_CELL: Final = 16.0
_FEWEST_HALVINGS, _MOST_OF_GRID = 10, 16
_SPLIT: Final = 4.5
"""A cell of the grid has about as many records as 16 standard deviations of its noise, if records are spread
evenly, but there are at least 2¹⁰ cells. A box is halved if it is estimated to have more records than 4.5
standard deviations of the noise of a leaf. Chosen, with the share, on one simulated country and a catalogue
of earthquakes, by the sum of absolute errors and the earth mover's distance;
``benchmarks/accuracy/adaptive_maps.py`` scores other maps.
"""

_NANOSECONDS: Final = 100.0
_WITHIN_LEAVES: Final = 0.01
_RATIO_VARIANCE: Final = 1.0 / 12.0
"""Of the part of a box's records that is in its first half, before it is measured: that of a uniform
distribution.
"""


@dataclass(frozen=True, slots=True)
class Halvings:
    """How a box is halved again and again: at each depth all boxes along the same public column.

    A box of a depth is named by its path, one bit per halving, the first one most significant. So boxes 2k
    and 2k + 1 of a depth are the halves of box k of the depth before.
    """

    bounds: Bounds
    columns: tuple[int, ...]

    @classmethod
    def of(cls, bounds: Bounds, widths: Sequence[float]) -> Halvings:
        """Until boxes are half a bandwidth wide along every column, at most 18 times; always the column in
        which they are widest, in bandwidths.
        """
        sides = np.array(bounds.widths) / np.array(widths) * _CELLS_PER_BANDWIDTH
        columns: list[int] = []
        while sides.max() > 1.0 and len(columns) < MOST_HALVINGS:
            columns.append(int(np.argmax(sides)))
            sides[columns[-1]] /= 2.0
        return cls(bounds, tuple(columns))

    @property
    def depth(self) -> int:
        """The depth of the smallest boxes."""
        return len(self.columns)

    def paths(self, rows: Rows) -> Integers:
        """The smallest box of each record, which depends on that record alone."""
        found = np.zeros(len(rows), np.int64)
        low, side = np.array(self.bounds.low), np.array(self.bounds.widths)
        indices, left = [], []
        for column in range(self.bounds.dim):
            number = self.columns.count(column)
            place = rows[:, column].astype(np.float64) + (self.bounds.centre[column] - low[column])
            index = np.floor(place / side[column] * float(1 << number)).astype(np.int64)
            indices.append(np.clip(index, 0, (1 << number) - 1))
            left.append(number)
        for column in self.columns:
            left[column] -= 1
            found = 2 * found + ((indices[column] >> left[column]) & 1)
        return found

    def boxes(self, depth: int, paths: Integers) -> tuple[Floats, Floats]:
        """The lower and the upper corners of boxes of a depth."""
        index = np.zeros((len(paths), self.bounds.dim), np.int64)
        for number, column in enumerate(self.columns[:depth]):
            index[:, column] = 2 * index[:, column] + ((paths >> (depth - 1 - number)) & 1)
        parts = np.array([float(1 << self.columns[:depth].count(c)) for c in range(self.bounds.dim)])
        low, side = np.array(self.bounds.low), np.array(self.bounds.widths)
        return np.minimum(low + side * (index / parts), self.bounds.high), np.minimum(
            low + side * ((index + 1) / parts), self.bounds.high
        )


Measured = dict[int, tuple[Floats, Floats]]
"""Noisy counts of all boxes of a depth, and their precisions, 0 where a box was not counted."""


def estimated_counts(
    measured: Measured, count: float, count_variance: float, depth: int
) -> list[tuple[Floats, Floats]]:
    """The estimated numbers of records of all boxes, by depth, and the variances of their errors.

    From below: a box's count is the mean of its own and of the sum of its halves, by inverse variance. From
    above: a box is split in the measured ratio, shrunk towards ½ as far as noise hides it, between 0 and 1.
    So no number is negative, and halves sum to their box.
    """
    sums: list[tuple[Floats, Floats]] = []
    for level in range(depth, -1, -1):
        values, precision = measured.get(level, (np.zeros(1 << level), np.zeros(1 << level)))
        total = values * precision
        if sums:
            below, own = sums[-1]
            pairs, each = below.reshape(-1, 2), own.reshape(-1, 2)
            product, whole = each.prod(axis=1), np.maximum(each.sum(axis=1), 1e-300)
            both = np.where((each > 0.0).all(axis=1), product / whole, 0.0)
            total, precision = total + pairs.sum(axis=1) * both, precision + both
        sums.append((total / np.maximum(precision, 1e-300), precision))
    found = [(np.array([count]), np.array([count_variance]))]
    for level in range(1, depth + 1):
        whole, variance = found[-1]
        values, precision = (each.reshape(-1, 2) for each in sums[depth - level])
        both = precision.sum(axis=1)
        first = values[:, 0] * precision[:, 0] + (whole - values[:, 1]) * precision[:, 1]
        likely = whole + np.sqrt(variance)
        # The precision of the measured ratio.
        known = both * np.square(likely)
        ratio = np.where(whole > 0.0, first / np.maximum(both * whole, 1e-300), 0.5)
        ratio = np.where(both > 0.0, 0.5 + (ratio - 0.5) * known / (known + 1.0 / _RATIO_VARIANCE), 0.5)
        ratio = np.clip(ratio, 0.0, 1.0)
        ratios = np.stack([ratio, 1.0 - ratio], axis=1)
        unsure = np.square(likely) / (known + 1.0 / _RATIO_VARIANCE)
        halves = (whole[:, None] * ratios).ravel()
        found.append((halves, (np.square(ratios) * variance[:, None] + unsure[:, None]).ravel()))
    return found


def chosen_leaves(estimates: Sequence[tuple[Floats, Floats]], most: float) -> list[NDArray[np.bool_]]:
    """Which boxes of each depth are leaves: those with at most ``most`` records, whose box has more."""
    leaves, reached = [], np.ones(1, bool)
    for level, (numbers, _) in enumerate(estimates):
        split = reached & (numbers > most) & (level < len(estimates) - 1)
        leaves.append(reached & ~split)
        reached = split.repeat(2)
    return leaves


@shows_keywords(OneCallKeywords, relation=Relation.ADD_REMOVE)
def adaptive_grid(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[OneCallKeywords],
) -> BoxesFunction:
    """Boxes that are small where records are dense. Spends ``epsilon``, in two steps.

    For maps in two columns, also for 1, 3 and 4, in which records are concentrated at scales that differ: a
    country with its cities. The bandwidth is the finest resolution, and may be far smaller than a grid could
    be read with: where there are few records the map is coarser. Not for much budget, nor for records that
    are spread evenly, for which a grid is better, nor for further counting: it releases one set of records in
    one call. The claim is for single records: a person with up to m of them has m·ε.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private.
    kernel : ProfileKernel
        One product of Gaussians or exponentials over columns: the Gaussian and Laplacian kernels, and
        products of them.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared; records are clipped to it.
    columns : list of str, optional
        What the columns are called, in their order; frames are then read by these names.
    **keywords
        ``epsilon``, ``relation``, ``budget``, ``idempotency_key`` and ``insecure_noise_seed`` as for
        ``Tally.release``.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; ``delta`` is refused.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    Pure ε, exact integers. Three steps, whose ε add up; under replace the first is not needed.

    1. *The number of records*, with its share of ε. One record present or absent moves it by 1.
    2. *The grid*, with 3/10 of the rest: the counts of all boxes of one depth. The depth follows from public
       quantities and the noisy number of step 1. These boxes do not overlap and cover the declared one, and
       which of them holds a record depends on that record alone. So one record present or absent moves one
       count by 1, Δ1 = 1; one record replaced by another moves two counts by 1, or none: Δ1 = 2.
    3. *The leaves*, with the remainder. They are computed from steps 1 and 2 alone. Whatever the outcome of
       these, leaves do not overlap and cover the box, since a box that is halved is replaced by its halves.
       So for every possible tree Δ1 is 1, or 2 for a replaced record, and the ε of the steps add up by
       sequential composition (the leaves are chosen adaptively, which the theorem allows).

    All counts get discrete Laplace noise of scale Δ1/ε. Estimates are computed from noisy counts alone.

    Notes
    -----
    Qardaji, Yang and Li, *Differentially private grids for geospatial data*, ICDE 2013, for the two steps;
    Hay et al., VLDB 2010, for the sums of a hierarchy; compare Bagdasaryan et al., PETS 2022, and Ghazi et
    al., AAAI 2023. The depth of a leaf here follows from the estimate of every box above it.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> from hushsum.methods import adaptive_grid
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(3, 0.05, (5000, 2)), rng.uniform(0, 10, (1000, 2))])
    >>> f = adaptive_grid(X, hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=(0, 10), epsilon=1.0)
    >>> bool(f.sum([[3.0, 3.0]])[0] > 2000), bool(f.sum([[8.0, 3.0]])[0] < 20)
    (True, True)
    """
    ONE_PROFILE.check(kernel, ADAPTIVE_GRID)
    declared = DeclaredBox.of(kernel, bounds, columns)
    box = declared.bounds
    assert isinstance(kernel, ColumnKernel)
    halvings = Halvings.of(box, kernel.column_widths())
    prepared = OneCallRelease.of(METHOD, **keywords)
    rows = declared.records(X)

    def make() -> BoxesFunction:
        counts = np.bincount(halvings.paths(rows), minlength=1 << halvings.depth).astype(np.int64)

        def at(level: int) -> Integers:
            return np.asarray(counts.reshape(1 << level, -1).sum(axis=1))

        with prepared.noise() as noise:
            count, count_variance, left = prepared.count(noise, len(rows))
            moved = 1 if prepared.private_count else 2
            level = _grid_depth(count, math.sqrt(2.0) * moved / float(left * GRID_SHARE), halvings.depth)
            noisy, drawn = noise.laplace(at(level), moved, left * GRID_SHARE)
            precision = np.full(1 << level, 1.0 / drawn.variance)
            measured: Measured = {level: (noisy.astype(np.float64), precision)}
            deviation = math.sqrt(2.0) * moved / float(left * (1 - GRID_SHARE))
            first = estimated_counts(measured, count, count_variance, halvings.depth)
            leaves = chosen_leaves(first, _SPLIT * deviation)
            exact = [at(depth)[each] for depth, each in enumerate(leaves)]
            noisy, drawn = noise.laplace(np.concatenate(exact), moved, left * (1 - GRID_SHARE))
        ends = np.cumsum([len(each) for each in exact])[:-1]
        for depth, (chosen, values) in enumerate(zip(leaves, np.split(noisy, ends), strict=True)):
            if chosen.any():
                _join(measured, depth, chosen, values.astype(np.float64), 1.0 / drawn.variance)
        estimates = estimated_counts(measured, count, count_variance, halvings.depth)
        shown = _shown(leaves, level)
        corners = [halvings.boxes(depth, np.flatnonzero(each)) for depth, each in enumerate(shown)]
        numbers, own = (
            np.concatenate([each[part][kept] for each, kept in zip(estimates, shown, strict=True)])
            for part in (0, 1)
        )
        return BoxesFunction(
            low=np.concatenate([low for low, _ in corners]),
            high=np.concatenate([high for _, high in corners]),
            weights=numbers,
            variances=own,
            kernel=kernel,
            bounds=box,
            count=count,
            count_variance=count_variance,
            facts=PublicFacts(prepared.claim),
            method=ADAPTIVE_GRID,
            columns=declared.columns,
        )

    return prepared.released(make)


def _grid_depth(count: float, deviation: float, deepest: int) -> int:
    """The depth of the noisy grid, from the noisy number of records and the deviation of the grid's noise."""
    wanted = math.log2(max(count / (_PER_CELL * deviation), 1.0))
    return min(deepest, min(_MOST_OF_GRID, max(_FEWEST_HALVINGS, round(wanted))))


def _join(
    measured: Measured, level: int, chosen: NDArray[np.bool_], values: Floats, precision: float
) -> None:
    """Add the counts of leaves to what was measured of a depth, by inverse variance."""
    known, own = measured.get(level, (np.zeros(len(chosen)), np.zeros(len(chosen))))
    known, own = known.copy(), own.copy()
    both = own[chosen] + precision
    known[chosen] = (known[chosen] * own[chosen] + values * precision) / both
    own[chosen] = both
    measured[level] = (known, own)


def _shown(leaves: Sequence[NDArray[np.bool_]], level: int) -> list[NDArray[np.bool_]]:
    """The boxes whose counts differ: leaves, but in place of those above the grid its cells in them."""
    shown = [each.copy() for each in leaves]
    for depth in range(level):
        cells = shown[depth].repeat(1 << (level - depth))
        shown[level] |= cells
        shown[depth][:] = False
    return shown


def predict(request: PredictionRequest) -> list[Option]:
    """The option without settings, under pure ε, for records and not persons.

    Where a kernel sum is S, leaves have about half of the records at which they would be halved, so that
    S/h of them meet the kernel, if h is that half; each has the noise of a leaf, and where in it records are
    is about as uncertain. But no more than (2√π)^d leaves count, since the squares of kernel values at the
    middles of boxes that are half a bandwidth wide add up to that. Where records are in these costs a
    hundredth of S. A kernel narrower than its leaf has an error of the size of S.
    """
    bounds = request.bounds
    if bounds is None or not request.promise.pure or request.per_unit is not None:
        return []
    if bounds.dim > MOST_COLUMNS:
        return []
    assert request.promise.epsilon is not None
    paid = 0 if request.relation is Relation.REPLACE else request.share
    left = request.promise.epsilon * (1 - paid) * (1 - GRID_SHARE)
    deviation = math.sqrt(2.0) * request.moves / float(left)
    sums = request.all_densities * request.records
    most = (_CELLS_PER_BANDWIDTH * math.sqrt(math.pi)) ** bounds.dim
    leaves = np.clip(sums / (0.5 * _SPLIT * deviation), 1.0, most)
    noise = NORMAL_MEAN_ABSOLUTE * np.minimum(sums, deviation * np.sqrt(leaves)) / request.records
    within = np.hypot(np.where(leaves < most, noise, 0.0), _WITHIN_LEAVES * request.all_densities)
    boxes = round(2.0 * request.records / (_SPLIT * deviation)) + (1 << _FEWEST_HALVINGS)
    return [
        Option(
            method=ADAPTIVE_GRID,
            request=request,
            settings={},
            mechanism=LAPLACE,
            shape=(boxes, 1),
            **errors_at_densities(noise, within, np.hypot(noise, within)),
            size=8 * boxes * (2 * bounds.dim + 2) + HEADER_BYTES,
            seconds=request.records * _NANOSECONDS * 1e-9,
        )
    ]


METHOD = register(
    Method(
        name=ADAPTIVE_GRID,
        role=ONE_PROFILE,
        one_call=adaptive_grid,
        approximate=False,
        mechanism=Mechanism.of(LAPLACE),
        most_columns=MOST_COLUMNS,
        predict=predict,
        named_only=True,
        paper="Qardaji, Yang and Li 2013; Bagdasaryan et al. 2022",
    )
)
