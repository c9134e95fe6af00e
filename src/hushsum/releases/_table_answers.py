"""How released tables answer: those of hash rows, and those of coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, is_number
from hushsum.errors import UsageError, shown
from hushsum.kernels import Batch, GaussianKernel, GaussianProfileKernel, Kernel, one_of
from hushsum.privacy import GAMMA, LAPLACE
from hushsum.tables import (
    LinearReading,
    Reading,
    RowAverages,
    RowReading,
    SampledReading,
    groups_for,
    median_of_means_bound,
)

from ._base import Answers, Points, QueryOptions, Quotient, ReleasedFunction, normal_quantile, query_points
from ._noisy_table import NoisyTable

if TYPE_CHECKING:
    from ._public_points import SharpenedFunction


DRAWS = 500
MOST_NUMBERS = 1 << 25
"""The most cells times draws, or queries times rows, for which errors are simulated."""

MOST_QUERIES = 2000
_UNIT = 1 << 20
_SEED = 0
_SMALLEST_TAIL = 1e-12

Simulation = Callable[[np.random.Generator, int], Floats]
"""The largest error over all queries, in standard errors, of each of some independent draws."""


def simultaneous_reach(
    level: float, number: int, quantile: Callable[[float], float], simulate: Simulation | None
) -> float:
    """Standard errors that contain all of ``number`` errors with probability ``level``.

    ``quantile(p)`` is what contains one of them with probability p. By Bonferroni's inequality its value at
    ``1 − (1 − level)/number`` suffices, whatever the dependence, as far as errors are normal. Simulated
    errors have the dependence of nearby queries, for which less is enough, and the tails of Laplace noise,
    which need more: the quantile of their maxima, one standard deviation of its rank above the level. The
    draws are pseudo-random with a fixed seed, so that equal queries have equal intervals.
    """
    rank = math.ceil(level * DRAWS + math.sqrt(level * (1.0 - level) * DRAWS))
    if simulate is None or number < 2 or rank >= DRAWS:
        return quantile(1.0 - (1.0 - level) / max(number, 1))
    from scipy.special import ndtr

    normal = float(np.sort(simulate(np.random.default_rng(_SEED), DRAWS))[rank])
    # Student's distribution in place of the normal one, where the standard errors are estimated.
    tail = 2.0 * float(ndtr(-normal))
    return normal * quantile(1.0 - tail) / quantile_of_normal(tail) if tail > _SMALLEST_TAIL else normal


def quantile_of_normal(tail: float) -> float:
    """What a normal error exceeds in size with this probability."""
    from scipy.special import ndtri

    return float(-ndtri(0.5 * tail))


def noise_table(
    rng: np.random.Generator, shape: tuple[int, ...], mechanism: str
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], float]:
    """Noise of the distribution of a release in integers, for a reading, and its standard deviation."""
    if mechanism == LAPLACE:
        drawn = rng.laplace(scale=math.sqrt(0.5), size=shape)
    else:
        drawn = rng.standard_normal(shape)
    if mechanism == GAMMA:
        # Normal numbers of one variance, which has a Gamma distribution (`gamma_radius`).
        half = (math.prod(shape) + 1) / 2.0
        drawn *= math.sqrt(rng.gamma(half) / half)
    return np.rint(drawn * _UNIT).astype(np.int64), float(_UNIT)


def multiplier_maxima(
    rng: np.random.Generator, draws: int, rows: Floats, block: int, variance: Floats, common: Floats
) -> Floats:
    """Maxima of the errors of means over rows, each row multiplied by a random number: the multiplier
    bootstrap, which has the dependence between queries that the rows have.

    Parameters
    ----------
    rows : array of shape (queries, rows)
        What each row says.
    block : int
        How many rows share a random number, because they depend on each other.
    variance : array of shape (queries,)
        Of the means.
    common : array of shape (queries,)
        A part of each error that one more random number decides, that of the number of records.
    """
    number = rows.shape[1]
    starts = np.arange(0, number, block)
    sums = np.add.reduceat(rows - rows.mean(axis=1, keepdims=True), starts, axis=1) / number
    scale = np.sqrt(variance + common**2)
    paths = sums @ rng.standard_normal((len(starts), draws))
    paths += np.outer(common, rng.standard_normal(draws))
    largest: Floats = (np.abs(paths) / np.where(scale > 0.0, scale, np.inf)[:, None]).max(axis=0)
    return largest


ESTIMATORS = ("mean", "median-of-means")
# The probability with which ``Answers.bound`` may be too small.
_RARE = 0.001

_CELLS_AT_A_TIME = 1 << 22
# Below this many independent blocks of rows their spread is too uncertain, and the bound is reported instead.
_FEWEST_BLOCKS = 8


class Estimation(TypedDict, total=False):
    """How a sketch is read; see `TableFunction`."""

    estimator: str
    count: str
    nonnegative: bool
    failure: float
    threads: int


@dataclass(frozen=True, eq=False)
class TableFunction(NoisyTable):
    """A released sketch: public, frozen, answering mean kernel values for any number of queries.

    Made by ``Tally.release`` or ``hushsum.load``; not by hand.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    reading: RowReading

    def __repr__(self) -> str:
        rows, width = self.basis.shape
        return f"ReleasedFunction({self.kernel!r}, rows={rows}, width={width}, claim={self.claim!r})"

    @cached_property
    def _table_count(self) -> tuple[float, float]:
        """Algorithm 2's own estimate: every row sums to the number of records."""
        rows, width = self.basis.shape
        cells = self.cells
        total = cells.sum(dtype=np.int64) if isinstance(cells, np.ndarray) else cells.total
        return float(total) / rows, width * self.cell_variance / rows

    def _own_count(self) -> tuple[float, float]:
        return self._table_count

    @property
    def number_slope(self) -> float:
        """How much one more in the number of records lowers a kernel sum, where cells stay the same."""
        rate = self.reading.basis.fold_rate
        return rate / (1.0 - rate)

    @property
    def table_count(self) -> float:
        """Algorithm 2's own estimate of the number of records, from the table alone; 10 to 20 times
        noisier.
        """
        return max(self._table_count[0], 1.0)

    def __call__(self, Q: object, **how: Unpack[Estimation]) -> Floats:
        """Mean kernel values f(q)/N̂ (Algorithm 2), shape (n_queries,).

        Parameters
        ----------
        Q : records as the kernel takes them
            Queries; a single dense query may be one-dimensional.
        estimator : {"mean", "median-of-means"}, optional
            Over the rows. The median of means has the guarantee of Theorem 3.4, the mean usually the
            smaller error.
        count : {"combined", "table"}
            ``"table"`` is Algorithm 2 as published, which takes N from the table alone.
        nonnegative : bool
            Raise negative answers to 0: closer to the truth for each query, biased upwards on average.
        failure : float
            Of the median of means: the probability with which :meth:`error_bound` may be exceeded. It decides
            how many groups the rows are cut into.
        """
        return self._estimated(Q, mean=True, **how)

    def sum(self, Q: object, **how: Unpack[Estimation]) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,); parameters as for calling the function."""
        return self._estimated(Q, mean=False, **how)

    def _estimated(
        self,
        Q: object,
        *,
        mean: bool,
        estimator: str = "mean",
        count: str = "combined",
        nonnegative: bool = False,
        failure: float = 0.05,
        threads: int = 1,
    ) -> Floats:
        if estimator == "mean" and count == "combined" and threads == 1 and not nonnegative:
            values = (self._quick if mean else self._quick_sum)(Q)
            if values is not None:
                return values
        if count not in ("combined", "table"):
            raise UsageError("count", "must be 'combined' or 'table'", got=shown(count))
        one_of("estimator", estimator, ESTIMATORS)
        number = self.count if count == "combined" else self.table_count
        scale = 1.0 / max(number, 1.0) if mean else 1.0
        batch = self.basis.prepare_queries(Q)
        if estimator == "mean":
            sums = self.reading.sums(self.cells, batch, count=number, scale=scale, threads=threads)
        else:
            sums = scale * self.reading.unfold(self._median_of_means(batch, failure), number)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """From the spread over the rows. Simultaneous intervals are as wide as rows with random weights show
        (multiplier bootstrap), or as Bonferroni's.
        """
        readings = self._read(points, options.threads)
        count, number_variance = self._counts
        sums, number = self.reading.unfold(readings.mean, count), max(count, 1.0)
        rate = self.reading.basis.fold_rate
        keep = 1.0 / (1.0 - rate)
        most = self._largest_variance(readings.mean, _RARE)
        enough = readings.blocks >= _FEWEST_BLOCKS
        spread = np.maximum(readings.variance, self._noise_variance) if enough else most
        # f̂ = keep·(mean − rate·N̂): the two errors are independent up to the table's small part in N̂.
        folded = keep * rate
        quantile = partial(normal_quantile, blocks=max(readings.blocks, 2) if enough else None)
        reach = quantile(options.level)
        if options.simultaneous:
            slope = np.full(len(sums), folded) if options.of == "sum" else folded + sums / number
            common = math.sqrt(number_variance) * slope
            simulate = self._simulation(points, keep, keep**2 * spread, common) if enough else None
            reach = simultaneous_reach(options.level, len(sums), quantile, simulate)
        variance = keep**2 * spread + folded**2 * number_variance
        largest = np.maximum(keep**2 * most + folded**2 * number_variance, variance)
        quotient = Quotient(sums, number, variance, number_variance, -folded * number_variance)
        return quotient.answers(reach, points, options, most=largest)

    def _simulation(self, points: Points, keep: float, variance: Floats, common: Floats) -> Simulation | None:
        if len(points) > MOST_QUERIES or len(points) * self.rows > MOST_NUMBERS:
            return None
        cells = self.reading.basis.cells(self.basis.prepare_queries(points))
        rows = keep * self._values(cells).astype(np.float64)
        block = self.reading.basis.independent_rows
        return partial(multiplier_maxima, rows=rows, block=block, variance=variance, common=common)

    def error_bound(self, Q: object, *, failure: float = 0.05) -> Floats:
        """Theorem 3.4 for ``f.sum(Q, estimator="median-of-means", failure=failure)``, at each query.

        Exceeded with probability at most ``failure``, whatever the data, for queries chosen without regard to
        the hash functions. Half of that pays for the theorem. The theorem's (Σ√k)² is private, so N·f stands
        for it, and the other half pays for bounding N·f from above by what was released.
        """
        mean = self._read(Q, 1).mean
        largest = self._largest_variance(mean, failure / 2.0)
        factor = median_of_means_bound(1.0, self._blocks, failure / 2.0)
        return factor * np.sqrt(self._blocks * largest) / (1.0 - self.reading.basis.fold_rate)

    @cached_property
    def _quick(self) -> Callable[[object], Floats | None]:
        """Mean kernel values of plain arrays, in a third of the time that a single query takes otherwise."""
        return self.reading.reader(self.cells, count=self.count, scale=1.0 / max(self.count, 1.0))

    @cached_property
    def _quick_sum(self) -> Callable[[object], Floats | None]:
        """Kernel sums in the same way."""
        return self.reading.reader(self.cells, count=self.count, scale=1.0)

    def _read(self, Q: object, threads: int) -> RowAverages:
        return self.reading.read(self.cells, self.basis.prepare_queries(Q), threads=threads)

    @cached_property
    def _noise_variance(self) -> float:
        """What noise adds to the variance of a mean over the rows."""
        return self.cell_variance / self.rows

    @cached_property
    def _blocks(self) -> int:
        """How many independent blocks of rows there are; rows of a block share random numbers."""
        return -(-self.rows // self.reading.basis.independent_rows)

    def _median_of_means(self, batch: Batch, failure: float) -> Floats:
        """Groups of whole blocks, ⌈8 ln(2/failure)⌉ of them or as many as there are blocks."""
        groups = min(groups_for(failure / 2.0), self._blocks)
        block = self.reading.basis.independent_rows
        edges = np.linspace(0, self._blocks, groups + 1).astype(np.int64) * block
        edges[-1] = self.rows
        medians = np.empty(len(batch))
        step = max(1, _CELLS_AT_A_TIME // self.rows)
        cells = self.reading.basis.cells(batch)
        for start in range(0, len(batch), step):
            values = self._values(cells[start : start + step]).astype(np.float64)
            means = np.add.reduceat(values, edges[:-1], axis=1) / np.diff(edges)
            medians[start : start + step] = np.median(means, axis=1)
        return medians

    def _values(self, cells: NDArray[np.int32]) -> NDArray[np.integer[Any]]:
        """The noisy values in ``cells[j, row]`` of every row."""
        if isinstance(self.cells, np.ndarray):
            return self.cells[np.arange(self.rows), cells]
        return self.cells.take(cells)

    def _largest_variance(self, mean: Floats, failure: float) -> Floats:
        """The largest variance of the mean over rows that data with this released mean can have.

        An exact cell X of a row lies in [0, N] and has mean m = Σ(k + (1 − k)/W) and variance at most N·m
        (Theorem 2.5, Cauchy–Schwarz). By the multiplicative Chernoff bound over b independent blocks the
        exact average is below m − t with probability at most exp(−t²·b/(2·m·N)), so m ≤ (a + √(a² +
        average))² with a² = N·ln(1/p)/(2b), even where no row has met a heavy cluster. The average and N are
        known up to noise, whose sums are bounded by Chebyshev's inequality; each of the three takes a third
        of ``failure``.
        """
        part = failure / 3.0
        noise = self._noise_variance
        number = self._counts[0] + math.sqrt(self._counts[1] / part)
        average = np.clip(mean + math.sqrt(noise / part), 0.0, number)
        half = number * math.log(1.0 / part) / (2.0 * self._blocks)
        most = np.minimum((math.sqrt(half) + np.sqrt(half + average)) ** 2, number)
        return number * most / self._blocks + noise


# The variance of the noisy count over that of the table's own number: below this ratio, the table's number
# has hardly any weight in N̂, and its covariance with the answers does not matter.
_SMALL_PART = 0.02


@dataclass(frozen=True, eq=False)
class CoefficientFunction(NoisyTable):
    """A released grid, series or feature vector: public, frozen, answering kernel sums for any query.

    Made by ``Tally.release`` or ``hushsum.load``; not by hand. The noise of an answer is known exactly: each
    is a public linear form of the noisy integers.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    reading: LinearReading

    def __repr__(self) -> str:
        rows, width = self.basis.shape
        table = f"{self.basis.name} of {rows} × {width}"
        stated = "" if self.unchecked is None else ", noise not yet compared with the claim"
        return f"ReleasedFunction({self.kernel!r}, {table}, claim={self.claim!r}{stated})"

    def _own_count(self) -> tuple[float, float] | None:
        # Whoever asks what kind of object this is looks at its count; that is not yet a use of the table.
        total = self.reading.total(self._unpacked)
        return None if total is None else (total[0], total[1] * self.cell_variance)

    def __call__(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,); parameters as for ``sum``."""
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,).

        ``nonnegative`` raises negative answers to 0: closer to the truth for each query, biased upwards on
        average.
        """
        if nonnegative and self.kernel.signed:
            raise UsageError(
                "nonnegative", f"must be left out: sums of the {self.kernel.name} kernel may be negative"
            )
        sums = self.reading.evaluate(self.table, self.basis.prepare_queries(Q), threads=threads)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def _answers(self, points: Points, options: QueryOptions, known: Floats | float = 0.0) -> Answers:
        """The noise exactly, the method's own error as its basis estimates it from the table or its rows show
        it by their spread, and the error of N̂. ``known`` is added to the sums, and is exact.

        Simultaneous intervals are as wide as the noise of this release, drawn again and again and read at
        these queries, requires; as Bonferroni's where that is too much work.
        """
        batch = self.basis.prepare_queries(points)
        sums = self.reading.evaluate(self.table, batch, threads=options.threads)
        count, number_variance = self._counts
        variance, largest, blocks = self._variances(batch, count, options.threads)
        largest = largest + self.reading.bias_bound(self.table, batch, count, self.cell_variance) ** 2
        quantile = partial(normal_quantile, blocks=blocks)
        reach = quantile(options.level)
        sums, number = sums + known, max(count, 1.0)
        mean = options.of == "mean"
        if options.simultaneous:
            common = math.sqrt(number_variance) / number * sums if mean else np.zeros(len(sums))
            simulate = self._simulation(batch, variance, common, blocks)
            reach = simultaneous_reach(options.level, len(sums), quantile, simulate)
        covariance = self._count_covariance(batch) if mean else 0.0
        quotient = Quotient(sums, number, variance, number_variance, covariance)
        return quotient.answers(reach, points, options, most=np.maximum(largest, variance))

    def _simulation(
        self, batch: Batch, variance: Floats, common: Floats, blocks: int | None
    ) -> Simulation | None:
        """The errors of these queries, drawn together; None where that is too much work.

        ``common`` is the part of each that the error of N̂ decides. What a basis states of its own error is
        drawn for every query by itself, since nothing is known of its dependence.
        """
        if len(batch) > MOST_QUERIES:
            return None
        if blocks is not None:
            assert isinstance(self.reading, SampledReading)
            if len(batch) * self.rows > MOST_NUMBERS:
                return None
            rows, block = self.reading.rows(self.table, batch)
            return partial(multiplier_maxima, rows=rows, block=block, variance=variance, common=common)
        if self.table.size * DRAWS > MOST_NUMBERS:
            return None
        own = np.sqrt(np.maximum(variance - self.cell_variance * self.reading.noise_gain(batch), 0.0))
        scale = np.sqrt(variance + common**2)
        deviation = math.sqrt(self.cell_variance)

        def simulate(rng: np.random.Generator, draws: int) -> Floats:
            maxima = np.empty(draws)
            for draw in range(draws):
                table, unit = noise_table(rng, self.table.shape, self.noise.mechanism)
                path = deviation / unit * self.reading.evaluate(table, batch, threads=1)
                path += own * rng.standard_normal(len(own)) + common * rng.standard_normal()
                maxima[draw] = (np.abs(path) / np.where(scale > 0.0, scale, np.inf)).max()
            return maxima

        return simulate

    def _count_covariance(self, batch: Batch) -> Floats | float:
        """The covariance of the noise of the sums with the noise of N̂.

        It is 0 where N̂ is the noisy count alone, or nearly so, since the noise of the count is independent
        of the table.
        """
        own = self._own_count()
        if own is None or self.count_noise.variance <= _SMALL_PART * own[1]:
            return 0.0
        part = self.count_noise.variance / (own[1] + self.count_noise.variance)
        return part * self.cell_variance * self.reading.total_covariance(batch)

    def _variances(self, batch: Batch, number: float, threads: int) -> tuple[Floats, Floats, int | None]:
        """The variance of each sum, a larger one that bounds it, and how many blocks the first comes from."""
        noise = self.cell_variance * self.reading.noise_gain(batch)
        method = self.reading.method_variance(self.table, batch, number, self.cell_variance)
        if not isinstance(self.reading, SampledReading):
            return noise + method, noise + method, None
        rows = self.reading.spread(self.table, batch, threads=threads)
        if rows.blocks < _FEWEST_BLOCKS:
            return noise + method, noise + method, None
        return np.maximum(rows.variance, noise), noise + method, rows.blocks

    def with_public_points(self, points: object) -> SharpenedFunction:
        """The same release of Fourier features, read with the help of public points: nothing is spent.

        Parameters
        ----------
        points : as queries
            A few hundred to some thousand *public* points that resemble the records: a public sample,
            synthetic data, or the queries themselves. Never private records. Unsuitable points do no harm.

        Raises
        ------
        UsageError
            if the release is none of Fourier features.
        """
        from ._public_points import sharpen

        return sharpen(self, points)

    def sharpened(self) -> SharpenedFunction:
        """The same release of Fourier features, read with the help of points that are found in the release
        itself: nothing is spent, and the claim is the same.

        Weighted points take over most of what the frequencies are there for, so that their error is left to
        the rest: with δ or ρ, errors come near those of the noise alone with a tenth of the features. Needs
        bounds within a few tens of bandwidths, or records near the middle of them. Where points do not
        explain all but a twentieth of the table beside its noise, answers are those of this function. Takes
        some seconds, once: the points are in the file.

        Raises
        ------
        UsageError
            if the release is none of Fourier features.
        """
        from ._public_points import sharpen

        return sharpen(self, None)

    def with_kernel(self, kernel: Kernel) -> CoefficientFunction:
        """The same release, read for another kernel or bandwidth: post-processing, nothing is spent.

        Raises
        ------
        UsageError
            where the table is counted for one kernel, or the kernel does not have the role that it needs.
        """
        reading = self.basis.reading(kernel)
        assert isinstance(reading, LinearReading)
        return replace(self, reading=reading)


def function_type(reading: Reading) -> type[NoisyTable]:
    """The kind of released function that a table is, by how it is read."""
    if isinstance(reading, RowReading):
        return TableFunction
    if isinstance(reading, LinearReading):
        return CoefficientFunction
    raise TypeError(f"the reading {type(reading).__name__} reads neither single cells nor the whole table")


# From one width to the next.
_STEP: Final = math.sqrt(2.0)


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourDensity:
    """Densities at queries, and the widths of the windows that they were counted in, shape (n_queries,)."""

    value: Floats
    width: Floats


def neighbour_density(function: ReleasedFunction, Q: object, neighbours: float) -> NeighbourDensity:
    """The density at each query, in the narrowest Gaussian window that holds ``neighbours`` records.

    Where records are dense the window is narrow, where they are sparse it is wide: every density rests on
    about as many records, and none on noise alone if ``neighbours`` is well above the noise of a kernel sum.
    Widths are those of the function's kernel times powers of √2, so a density is blurred by less than one
    such step more than needed. For one to four columns, where a grid can be released.

    Parameters
    ----------
    function : ReleasedFunction
        A release of a grid with a Gaussian kernel, whose bandwidth is the narrowest window.
    Q : array-like of shape (n_queries, dim)
    neighbours : float
        k: how many records a window holds, each weighted by exp(−r²/(2·width²)).

    Privacy
    -------
    Post-processing of one release, read with several kernels: nothing is spent. The distance to the k-th
    nearest record itself has no bounded sensitivity; see *Neighbours, optimisation and steps*.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> f = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.05), bounds=(-6, 6)).add(X).release(epsilon=1.0)
    >>> found = hs.releases.neighbour_density(f, [[0.0], [3.0]], neighbours=500)
    >>> found.value.round(1).tolist(), bool(found.width[1] > found.width[0])
    ([0.4, 0.0], True)
    """
    kernel = function.kernel
    if not isinstance(function, CoefficientFunction) or not isinstance(kernel, GaussianProfileKernel):
        raise UsageError(
            "function",
            "must be a release of a grid with a Gaussian kernel",
            got=f"a {type(function).__name__} with a {kernel.name} kernel",
            remedy="make one with hs.grid(hs.GaussianKernel(…))",
        )
    if not is_number(neighbours) or not 0.0 < neighbours < math.inf:
        raise UsageError("neighbours", "must be above 0", got=shown(neighbours), remedy="try 100")
    queries = query_points(Q, dim=function.dim, columns=function.columns)
    assert isinstance(queries, np.ndarray)
    narrowest = kernel.gaussian_width()
    box = function.bounds
    longest = max([narrowest, *(() if box is None else box.widths)])
    steps = math.ceil(math.log(longest / narrowest, _STEP))
    widths = [narrowest * _STEP**step for step in range(steps + 1)]
    windows = [GaussianKernel(dim=kernel.dim, bandwidth=width) for width in widths]
    sums = np.stack([function.with_kernel(each).sum(queries) for each in windows])
    reached = sums >= neighbours
    # Where no window holds as many, the widest: reached is then all False, and argmax would be the first.
    chosen = np.where(reached.any(axis=0), reached.argmax(axis=0), len(widths) - 1)
    width = np.array(widths)[chosen]
    volume = (math.sqrt(2.0 * math.pi) * width) ** kernel.dim
    value = np.maximum(sums[chosen, np.arange(len(queries))], 0.0) / (max(function.count, 1.0) * volume)
    return NeighbourDensity(value, width)
