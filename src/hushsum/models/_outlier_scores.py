"""How usual a record is: kernel densities as narrow as noise allows, and probabilities of columns' bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.kernels import GaussianKernel, InnerProductKernel
from hushsum.methods import GRID
from hushsum.privacy import RECORD, Promise, Relation, calibrate
from hushsum.records import Bounds, clipped_to_ball, clipping_allowed
from hushsum.releases import Answers, CoefficientFunction, NoisyTable, ReleasedFunction, normal_answers
from hushsum.tables import (
    AMPLITUDE,
    Basis,
    FourierFeatures,
    GridWeights,
    Monomials,
    evenness,
    pair_variance,
    pairs_for_laplace,
)
from hushsum.tally import Tally

from ._accuracy import part_of, terms_of
from ._base import require
from ._column_scaling import COARSE, EVEN_PARTS, ColumnScaling, Histograms, bin_edges, bin_noise, even_parts
from ._linear_rules import exponential
from ._table_model import empty_table, spread_points

COUNT_SHARE: Final = Fraction(1, 10)
"""The part of the budget for the number of records, which all else follows from."""
_SCALING_SHARE: Final = Fraction(1, 5)
_PROBES: Final = 3
_TOTAL_SHARE: Final = Fraction(1, 100)
FURTHEST: Final = 5.0
"""Units are clipped at this many standard deviations."""
# The map of a column is straight between quantiles that noise leaves where they are.
_TAIL_NOISES, _TAILS = 4.0, (0.02, 0.1)
# Of a bin, as a share of the records: with more, columns are measured in their bounds.
_MOST_BIN_NOISE: Final = 0.05
# Bandwidths over √columns, in standard deviations.
_WIDEST: Final = 2.0
_NARROWEST, _NARROWEST_ON_GRID = 0.06, (0.05, 0.05, 0.1)
_MIDDLE: Final = 0.5
# How many errors of a mean the average one shall be where a grid counts.
_VISIBLE_ON_GRID: Final = 3.0
# The largest number of columns where a grid counts with less noise than features.
_GRID_COLUMNS: Final = 3
_STRUCTURED_COLUMNS: Final = 64
_MOST_PAIRS, _FEWEST_PAIRS, _FEWEST_PURE_PAIRS = 8192, 256, 8
# The noise of these features is four times the variance of their approximation, or more.
_PAIRS_AMPLE: Final = 4.0
# Noise with a Gamma-distributed radius has half the variance of Laplace noise.
_BETTER_THAN_LAPLACE: Final = math.sqrt(2.0)
_TYPICAL_SIMILARITY: Final = 0.3
_MOST_ERROR: Final = 0.055
_MOST_DENSE_COLUMNS: Final = 48
"""All of these were chosen on the tuning sets of `benchmarks.accuracy.outlier_peers`, those of grids on some
columns of other sets too, and the largest number of columns for a density on the scored sets with more. The
optima are flat: halves and doubles of the shares, of the errors that an average shall be and of the pairs of
a probe change the mean area under the ROC curve by about 0.01.
"""
_LEAST: Final = 1e-4
# Ranges are cut coarsely where the noise of a bin is more than this part of the records.
_COARSE_NOISE: Final = 0.01
_POINTS: Final = 4096
# Bandwidths between points of a lattice.
_LATTICE: Final = 0.7


def _visible(pure: bool) -> float:
    """How many errors of a mean the average one shall be, in more columns."""
    return 6.0 if pure else 8.0


def _probe(pure: bool) -> tuple[Fraction, int]:
    """The part of the budget of a probe, and its pairs."""
    return (Fraction(1, 20), 16) if pure else (Fraction(1, 30), 64)


def _probes(dim: int) -> int:
    return 0 if dim <= _GRID_COLUMNS else _PROBES


def density_share(dim: int, promise: Promise) -> Fraction:
    """The part of a promise, after the number of records, that is left for the density itself."""
    return 1 - _SCALING_SHARE - _probes(dim) * _probe(promise.pure)[0]


class Scores(Protocol):
    """What a release says of points: a high number where they are like many records."""

    def __call__(self, X: Floats) -> Floats:
        """The score of each row."""

    def alone(self, X: Floats) -> Floats:
        """The same for private records: bit for bit, each score depends on its record alone."""

    def answers(self, X: Floats, level: float) -> Answers:
        """With standard errors and intervals."""


@dataclass(frozen=True, slots=True)
class FunctionScores:
    """The share of the records that are near a point, weighted by similarity."""

    function: ReleasedFunction
    prepared: Callable[[Floats], Floats]
    """What the function compares of a row."""

    def __call__(self, X: Floats) -> Floats:
        """The mean kernel value of each row."""
        return self.function(self.prepared(X))

    def answers(self, X: Floats, level: float) -> Answers:
        """With standard errors and intervals."""
        return replace(self.function.query(self.prepared(X), level=level), points=X)

    def alone(self, X: Floats) -> Floats:
        """The score of each record, bit for bit by that record alone.

        A product of matrices would give a record other last bits beside other records, and so move the rank
        of more than one record. Hash rows and features are read record by record anyway; of inner products
        every record is multiplied by itself, in NumPy's own sums of a fixed order; and a grid is read at
        public points, between which each record's value is interpolated by itself.
        """
        rows, function = self.prepared(X), self.function
        if isinstance(function, NoisyTable) and isinstance(function.basis, GridWeights):
            return _interpolated(function, rows)
        if isinstance(function, NoisyTable) and isinstance(function.basis, Monomials):
            return _inner_products(function, rows)
        return function(rows)


def _interpolated(function: NoisyTable, rows: Floats) -> Floats:
    """By cubic splines through a lattice that is as fine as the kernel."""
    from scipy.ndimage import map_coordinates

    kernel: Any = function.kernel
    steps = math.ceil(2.0 * FURTHEST / (_LATTICE * kernel.bandwidth))
    places = np.linspace(-FURTHEST, FURTHEST, steps + 1)
    lattice = np.stack(np.meshgrid(*[places] * rows.shape[1], indexing="ij"), axis=-1)
    values = function(lattice.reshape(-1, rows.shape[1])).reshape(lattice.shape[:-1])
    at = (rows + FURTHEST) * (steps / (2.0 * FURTHEST))
    return np.asarray(map_coordinates(values, at.T, order=3, mode="nearest"))


def _inner_products(function: NoisyTable, records: Floats) -> Floats:
    basis, kernel = function.basis, function.kernel
    assert isinstance(basis, Monomials)
    assert isinstance(kernel, InnerProductKernel)
    units = clipped_to_ball(records.astype(np.float64), kernel.radius) / kernel.radius
    squares = kernel.inner_degree() == 2
    sums = basis.moments(function.table) if squares else function.table[0] / basis.unit
    scores = np.empty(len(units))
    for place, row in enumerate(units):
        products = np.sum(sums * row, axis=-1)
        scores[place] = np.sum(products * row) if squares else products
    return np.asarray(scores / max(function.count, 1.0))


@dataclass(frozen=True, slots=True)
class ScaledDensity:
    """A Gaussian kernel density of columns in units of their own, as narrow as its noise allows.

    A wide kernel averages the noise away and sees one cloud; a narrow one follows clusters and dependences
    until its sums are noise. Which bandwidth suits depends on the records. So rough densities (probes) are
    released first: each tells how similar two records are on average at one bandwidth, and the smallest one
    at which this average is six or eight times the error that the density itself will have is searched by
    bisection. Up to three columns a grid counts with so little noise that the bandwidth follows from the
    number of records, as for normal columns.

    Parameters
    ----------
    box : sequence of (low, high)
        The declared bounds.
    promise : Promise
        For all that is released here.
    records : float
        A public number of records, such as a noisy one.
    seed : int

    Privacy
    -------
    Unit: one record; neighbours: add/remove. Whichever way a unit changes the records: a record that is
    replaced is one that disappears and one that appears, one that appears twice is two records, and their
    order changes nothing, since every step adds integers. So let one record appear. In each step a part of
    the promise is spent on one table:

    1. histograms of all columns (`Histograms.released`);
    2. given these, which are public from then on, the record's vector is computed from the record and public
       numbers alone (`ColumnScaling`), and clipped to a declared box. Each probe is a tally of
       `FourierFeatures` of such vectors: one record adds a vector of the proven length. Its bandwidth
       follows from earlier noisy tables;
    3. the density is another tally of features, or of a grid (`GridWeights`), whose bandwidth and size
       follow from what was released before.

    The parts add up to the promise, and later steps depend on earlier ones only through what these released:
    adaptive composition, of ε under pure ε, of ρ with δ (`part_of`).
    """

    box: Box
    promise: Promise
    records: float
    seed: int

    @property
    def dim(self) -> int:
        """The number of columns."""
        return len(self.box)

    def kernel(self, bandwidth: float) -> GaussianKernel:
        """The kernel with this part of √columns for a bandwidth."""
        return GaussianKernel(dim=self.dim, bandwidth=bandwidth * math.sqrt(self.dim))

    def _features(self, bandwidth: float, pairs: int) -> FourierFeatures:
        structured = self.dim >= _STRUCTURED_COLUMNS
        return FourierFeatures(
            self.kernel(bandwidth), pairs, self.seed, True, self._units(), structured=structured
        )

    def _units(self) -> Bounds:
        return Bounds((-FURTHEST,) * self.dim, (FURTHEST,) * self.dim)

    @property
    def _rest(self) -> Promise:
        return part_of(self.promise, density_share(self.dim, self.promise))

    def _grid(self, bandwidth: float) -> Tally:
        box = [(-FURTHEST, FURTHEST)] * self.dim
        return empty_table(self.kernel(bandwidth), GRID, box=box)

    def _noise_of_cell(self, basis: Basis) -> float:
        """The variance of the noise of a cell of the density."""
        change = basis.unit_change(RECORD, 1, Relation.ADD_REMOVE)
        cells = math.prod(basis.shape)
        return calibrate(self._rest, change, cells=cells, count_share=_TOTAL_SHARE).table.variance

    def _sizes(self) -> tuple[int, int, float]:
        """The pairs to count, those to release, and the variance of the noise of a mean."""
        promise, counted, released = self._rest, _FEWEST_PAIRS, _FEWEST_PAIRS
        if promise.pure:
            assert promise.epsilon is not None
            worth, number = float(promise.epsilon) * _BETTER_THAN_LAPLACE, max(1, round(self.records))
            counted = max(_FEWEST_PURE_PAIRS, pairs_for_laplace(number, worth, _MOST_PAIRS))
            found = self._features(_MIDDLE, counted).rows_for(number, worth, 1)
            released = max(_FEWEST_PURE_PAIRS, found)
        noise = self._noise_of_cell(self._features(_MIDDLE, released)) / released
        noise /= (AMPLITUDE * self.records) ** 2
        if not promise.pure:
            # With δ the noise does not grow with the pairs.
            wanted = _PAIRS_AMPLE * pair_variance(_TYPICAL_SIMILARITY, self.dim) / noise
            pairs = min(max(wanted, _FEWEST_PAIRS), _MOST_PAIRS)
            counted = released = 1 << math.ceil(math.log2(pairs))
        return counted, released, noise

    def error(self, bandwidth: float, similarity: float) -> float:
        """The predicted standard error of a mean, where it is this similarity on average: by noise, random
        features, and the choice of the records.
        """
        similarity = min(max(similarity, _LEAST), 1.0)
        sampling = similarity / self.records
        if self.dim <= _GRID_COLUMNS:
            tally = self._grid(bandwidth)
            reading: Any = tally.basis.reading(self.kernel(bandwidth))
            middle = tally.basis.prepare_queries(np.zeros((1, self.dim)))
            gain = float(reading.noise_gain(middle)[0])
            return math.sqrt(gain * self._noise_of_cell(tally.basis) / self.records**2 + sampling)
        counted, pairs, noise = self._sizes()
        even = self._features(bandwidth, counted).even
        spread = evenness(pairs, similarity, even) if even else 1.0
        chance = pair_variance(similarity, self.dim) * spread**2 / pairs
        return math.sqrt(noise + chance + sampling)

    def of_normal(self, bandwidth: float) -> float:
        """The average similarity of records with independent normal columns."""
        return float((1.0 + 2.0 / (bandwidth**2 * self.dim)) ** (-self.dim / 2.0))

    def bandwidth(self, similarity: Callable[[float], float]) -> float:
        """The smallest bandwidth at which a similarity, by bandwidth, stands out of the predicted error."""
        few = self.dim <= _GRID_COLUMNS
        wide, narrow = _WIDEST, _NARROWEST_ON_GRID[self.dim - 1] if few else _NARROWEST
        clear = _VISIBLE_ON_GRID if few else _visible(self.promise.pure)
        for _ in range(_PROBES):
            middle = math.sqrt(narrow * wide)
            found = similarity(middle)
            if found >= clear * self.error(middle, found):
                wide = middle
            else:
                narrow = middle
        return wide

    def released(self, X: Floats) -> tuple[NoisyTable, ColumnScaling]:
        """The density, and the units that its vectors are in. Spends the promise."""
        paid = part_of(self.promise, _SCALING_SHARE)
        even = even_parts(self.dim, max(1, round(self.records)), paid)
        found = Histograms.released(X, self.box, paid, even)
        scaling = ColumnScaling.of_bounds(self.box, FURTHEST)
        if found.noise <= _MOST_BIN_NOISE:
            tail = min(max(_TAIL_NOISES * found.noise, _TAILS[0]), _TAILS[1])
            scaling = ColumnScaling.of_histograms(self.box, found, tail, FURTHEST)
        units = scaling.units(X)
        if self.dim <= _GRID_COLUMNS:
            tally, given = self._grid(self.bandwidth(self.of_normal)), {}
        else:
            bandwidth, (pairs, rows, _) = (
                self.bandwidth(lambda each: self._probed(units, each)),
                self._sizes(),
            )
            tally, given = Tally(self._features(bandwidth, pairs)), {"rows": rows}
        terms: dict[str, Any] = {**terms_of(self._rest), "count_share": _TOTAL_SHARE, **given}
        function = _counted(tally, units).release(**terms)
        assert isinstance(function, NoisyTable)
        return function, scaling

    def _probed(self, units: Floats, bandwidth: float) -> float:
        """The average similarity of two records, less a standard error."""
        share, pairs = _probe(self.promise.pure)
        terms: dict[str, Any] = {**terms_of(part_of(self.promise, share)), "count_share": _TOTAL_SHARE}
        tally = _counted(Tally(self._features(bandwidth, pairs)), units)
        function = tally.release(**terms, rows=pairs)
        assert isinstance(function, CoefficientFunction)
        found, error = _average_similarity(function, self.records)
        return found - error


def _counted(tally: Tally, units: Floats) -> Tally:
    # Units are clipped, so they reach the ends of their box.
    with clipping_allowed(quiet=True):
        return tally.add(units)


def _average_similarity(function: NoisyTable, records: float) -> tuple[float, float]:
    """The average similarity of two records, by features, and its standard error from noise."""
    pairs, unit = len(function.table), AMPLITUDE * max(records, 1.0)
    noise = function.cell_variance / unit**2
    squares = float(np.square(function.table.astype(np.float64)).sum()) / pairs / unit**2
    found = squares - 2.0 * noise
    return found, 2.0 * math.sqrt(noise * (noise + max(found, 0.0)) / pairs)


def average_score(function: NoisyTable) -> float:
    """The average of a released density over the records that it is of; post-processing.

    Of features this is the square of their length, less that of the noise. A grid is averaged over public
    points, each weighed by the density there.
    """
    if isinstance(function.basis, FourierFeatures):
        return max(sum(_average_similarity(function, function.count)[:1]), 0.0)
    ends = np.full(function.kernel.dim or 1, FURTHEST)
    values = np.maximum(function(spread_points(-ends, ends, _POINTS, seed=0)), 0.0)
    return float(np.square(values).sum() / max(values.sum(), np.finfo(np.float64).tiny))


@dataclass(frozen=True, slots=True)
class BinScores:
    """The geometric mean, over the columns, of the shares of the records in a point's bins.

    A product of the columns' probabilities, which does not see how columns depend on each other, but needs
    few records: the noise of many columns averages out. Shares of bins, not densities: values that many
    records have at the ends of a range or at zero are usual ones. The noise is added to each share, so that
    an empty bin counts as one that noise cannot tell from empty.
    """

    box: Box
    even: int
    shares: Floats
    """Of all bins of all columns, one after the other."""
    noise: float

    @classmethod
    def released(cls, X: Floats, box: Box, promise: Promise, records: float) -> BinScores:
        """From histograms of all columns; spends the promise. See `Histograms.released` for its privacy."""
        coarse = bin_noise(len(box), promise) > _COARSE_NOISE * records
        even = COARSE if coarse else even_parts(len(box), max(1, round(records)), promise)
        found = Histograms.released(X, box, promise, even)
        return cls(box, even, np.concatenate(found.shares), found.noise)

    @classmethod
    def of(cls, box: Box, arrays: Mapping[str, NDArray[Any]]) -> BinScores:
        """What :meth:`arrays` made; ValueError if arrays are not that."""
        shares, sizes = np.asarray(arrays["shares"], np.float64), np.asarray(arrays["bins"], np.float64)
        known = sizes.shape == (2,) and sizes[0] in EVEN_PARTS and 0.0 <= sizes[1] < np.inf
        require(known, "bins")
        found = cls(box, int(sizes[0]), shares, float(sizes[1]))
        many = sum(len(each) - 1 for each in found._edges())
        require(shares.shape == (many,) and np.isfinite(shares).all() and (shares >= 0.0).all(), "shares")
        return found

    def arrays(self) -> dict[str, Floats]:
        """What :meth:`of` reads."""
        return {"shares": self.shares, "bins": np.array([float(self.even), self.noise])}

    def _edges(self) -> list[Floats]:
        return [bin_edges(*ends, self.even) for ends in self.box]

    def _columns(self) -> list[tuple[Floats, Floats]]:
        """Edges and probabilities of each column."""
        edges = self._edges()
        parts = np.split(self.shares, np.cumsum([len(each) - 1 for each in edges])[:-1])
        raised = [each + max(self.noise, _LEAST) for each in parts]
        return [(each, part / part.sum()) for each, part in zip(edges, raised, strict=True)]

    def _places(self, X: Floats, column: int, edges: Floats) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(edges, X[:, column], side="right") - 1, 0, len(edges) - 2)

    def __call__(self, X: Floats) -> Floats:
        """The score of each row. Logarithms are added column by column, so that each row's bits depend on
        that row alone.
        """
        total = np.zeros(len(X))
        for column, (edges, shares) in enumerate(self._columns()):
            total = total + np.log(shares)[self._places(X, column, edges)]
        return exponential(total / len(self.box))

    def alone(self, X: Floats) -> Floats:
        """The same: rows do not touch each other."""
        return self(X)

    def answers(self, X: Floats, level: float) -> Answers:
        """With standard errors and intervals."""
        square = np.zeros(len(X))
        for column, (edges, shares) in enumerate(self._columns()):
            square += np.square(self.noise / shares[self._places(X, column, edges)])
        scores = self(X)
        return normal_answers(scores, scores * np.sqrt(square) / len(self.box), level, X)

    def usual(self, deviations: float) -> float:
        """The score that many standard deviations below that of an average record, if columns were
        independent.
        """
        mean = square = 0.0
        for _, shares in self._columns():
            logs = np.log(shares)
            middle = float(shares @ logs)
            mean, square = mean + middle, square + float(shares @ np.square(logs - middle))
        lowest = (mean - deviations * math.sqrt(square)) / len(self.box)
        return float(exponential(np.array([lowest]))[0])


def density_is_clear(box: Box, promise: Promise, records: float) -> bool:
    """Whether the predicted error of a density's means is small enough for it to be better than bins, in up
    to 48 columns.

    >>> box = [(-1.0, 1.0)] * 20
    >>> [density_is_clear(box, Promise.of(epsilon=epsilon), 1000) for epsilon in (0.1, 10.0)]
    [False, True]
    """
    if len(box) > _MOST_DENSE_COLUMNS:
        return False
    density = ScaledDensity(box, promise, max(records, 1.0), 0)
    return density.error(_MIDDLE, _TYPICAL_SIMILARITY) <= _MOST_ERROR


def bin_error(dim: int, promise: Promise, records: float) -> float:
    """The predicted error of a score of bins, as a part of it."""
    return bin_noise(dim, promise) / max(records, 1.0) / math.sqrt(dim) / _TYPICAL_SIMILARITY
