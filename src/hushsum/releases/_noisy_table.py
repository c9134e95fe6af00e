"""Released tables: noisy integers, a noisy count, a claim, and their answers with errors."""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, PathOrFile
from hushsum.errors import UsageError, shown
from hushsum.kernels import Batch, Kernel, one_of
from hushsum.privacy import (
    GAMMA,
    LAPLACE,
    PERSON,
    SITE_NOISE,
    Claim,
    IntegerNoise,
    Mechanism,
    Relation,
    StreamNoise,
    StreamUnit,
    spent_epsilon,
    spent_rho,
)
from hushsum.records import Bounds
from hushsum.releases._base import (
    Answers,
    Detail,
    Points,
    Presented,
    Quotient,
    Released,
    check_question,
    mixed_points,
    normal_quantile,
    query_points,
)
from hushsum.releases._load import pickled
from hushsum.tables import (
    Basis,
    Cells,
    LinearReading,
    Reading,
    RowAverages,
    RowReading,
    SampledReading,
    Table,
    groups_for,
    median_of_means_bound,
)

if TYPE_CHECKING:
    from hushsum.files import PackedTable
    from hushsum.releases._public_points import SharpenedFunction
    from hushsum.tables import Basis


_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_CLOSE = 1e-5
"""How far a stored variance may be from one that is computed again, on another machine perhaps."""


@dataclass(frozen=True, slots=True)
class StreamStep:
    """Which step of which stream a function shows; public.

    Attributes
    ----------
    stream : str
        The name of the stream, 32 hexadecimal digits: functions of one stream have it in common.
    step, horizon : int
        The number of the step, from 1, and the horizon.
    removals : bool
        Whether records may be removed again.
    noise : StreamNoise
        Strategy, view, and the noise of every output.
    """

    stream: str
    step: int
    removals: bool
    noise: StreamNoise

    @property
    def horizon(self) -> int:
        """How many steps the claim covers."""
        return self.noise.horizon

    def as_json(self) -> dict[str, Any]:
        """For a file's header."""
        return {
            "stream": self.stream,
            "step": self.step,
            "removals": self.removals,
            "noise": self.noise.as_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamStep:
        """The step of a file's header; ValueError if there is none like it."""
        if set(data) != {"stream", "step", "removals", "noise"}:
            raise ValueError("stream")
        found = cls(data["stream"], data["step"], data["removals"], StreamNoise.from_json(data["noise"]))
        if not isinstance(found.stream, str) or not _ID.fullmatch(found.stream):
            raise ValueError("stream")
        if type(found.step) is not int or not 1 <= found.step <= found.horizon:
            raise ValueError("step")
        if type(found.removals) is not bool:
            raise ValueError("removals")
        return found

    def keeps(self, claim: Claim, basis: Basis, table: IntegerNoise, count: IntegerNoise) -> bool:
        """Whether the noise of all steps keeps a claim, and that of this one is what it is said to be.

        Pure ε and ρ add up exactly; for ε and δ only the kind of noise is looked at here.
        """
        shown = self.noise.at(self.step)
        for stated, found in zip((table, count), shown, strict=True):
            if stated.mechanism != found.mechanism or Mechanism.of(stated.mechanism) != claim.mechanism:
                return False
            if abs(stated.variance - found.variance) > _CLOSE * found.variance:
                return False
        unit = stream_unit(basis, claim.unit, claim.records_per_unit, claim.relation, removals=self.removals)
        if claim.promise.pure:
            assert claim.promise.epsilon is not None
            return self.noise.intervals and spent_epsilon(self.noise, unit) <= claim.promise.epsilon
        if self.noise.intervals:
            return False
        return claim.promise.rho is None or spent_rho(self.noise, unit) <= claim.promise.rho


def stream_unit(basis: Basis, unit: str, per_unit: int, relation: Relation, *, removals: bool) -> StreamUnit:
    """What one unit can change in a stream of tables."""
    rows, width = basis.shape
    return StreamUnit(
        record={each: basis.sensitivity(each) for each in Relation},
        relation=relation,
        per_unit=per_unit if unit == PERSON else None,
        removals=removals,
        cells=rows * width,
    )


@dataclass(frozen=True, slots=True)
class StepCovariance:
    """How the noise of two functions of one stream goes together: in each cell, and in the numbers of
    records.
    """

    cell: float
    count: float


def step_covariance(first: NoisyTable, second: NoisyTable) -> StepCovariance:
    """The covariance of the noise that two steps of one stream have in the same cell; other cells are
    independent.

    Steps share the draws of all steps before, so a difference of two steps has less noise than two
    independent releases would: Var(f − g) = Var f + Var g − 2·Cov(f, g), cell by cell.

    Raises
    ------
    UsageError
        if they are not functions of one stream.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10)
    >>> stream = hs.stream(tally, horizon=12, rho=0.5)
    >>> first, second = stream.add([[0.5]]).step(), stream.step()
    >>> 0.4 < step_covariance(first, second).cell / first.noise.variance < 1.0
    True
    """
    one, other = first.stream_step, second.stream_step
    if one is None or other is None or one.stream != other.stream or one.noise != other.noise:
        raise UsageError("both functions must be steps of one stream", remedy="give two of its files")
    gain = one.noise.correlation_gain(one.step, other.step)
    return StepCovariance(one.noise.table.variance * gain, one.noise.count.variance * gain)


ROUNDING_SHARE = 0.02
"""What rounding cells may add to their variance where it is requested."""

LARGEST_STEP = 2**31 - 1
"""The largest step of rounding that a file can state."""

DIGEST_LETTERS = 32
"""The length of a release's digest, which finds repetitions and does not prevent forgery."""

UNSEEN_SHARE = 0.001
"""What rounding adds to the variance of cells that are counted in small fractions of a record."""


@dataclass(frozen=True, eq=False)
class NoisyTable(Presented, ABC):
    """The noisy sum of a basis's vectors over records, and how it is read; public and frozen.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    reading: Reading
    cells: Cells
    claim: Claim
    noise: IntegerNoise
    noisy_count: int
    count_noise: IntegerNoise
    producer: str
    step: int = 1
    stream_step: StreamStep | None = None
    parts: tuple[str, ...] = ()
    unchecked: Callable[[NoisyTable], None] | None = None
    """Compares the noise that a file states with its claim, where that takes longer than reading the file;
    None once it is done, as it is where it takes no time. It raises ``FileRefused``.
    """

    def __post_init__(self) -> None:
        if isinstance(self.cells, np.ndarray):
            self.cells.flags.writeable = False

    @property
    def table(self) -> Table:
        """The noisy cells as an array; unpacks all of them where they are packed.

        Raises
        ------
        FileRefused
            if they were read from a file whose noise does not keep its claim.
        """
        self.check_noise()
        return self._unpacked

    @property
    def _unpacked(self) -> Table:
        return self.cells if isinstance(self.cells, np.ndarray) else self.cells.unpacked()

    def check_noise(self) -> None:
        """Compare the noise of a file with its claim, unless that was done; queries and descriptions do.

        Raises
        ------
        FileRefused
            if the noise does not keep the claim.
        """
        if self.unchecked is not None:
            self.unchecked(self)
            object.__setattr__(self, "unchecked", None)

    @abstractmethod
    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,)."""

    @abstractmethod
    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""

    @abstractmethod
    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``."""

    @abstractmethod
    def _own_count(self) -> tuple[float, float] | None:
        """The number of records as the table itself tells it, and the variance of that; None if it does
        not.
        """

    @property
    def basis(self) -> Basis:
        """What the table counts."""
        return self.reading.basis

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""
        return self.reading.kernel

    @property
    def dim(self) -> int | None:
        """The number of columns of a query; None where records are sets."""
        return self.kernel.dim

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called, in the order in which arrays give them; None if not declared."""
        return self.basis.columns

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that holds the records; None if not declared."""
        return self.basis.box

    @property
    def cell_variance(self) -> float:
        """The variance of what a cell holds beside its exact sum: noise, and rounding where there was any.

        A distribution (discrete Gaussian, Laplace or Gamma radius) whose deviation is at least an odd step s
        leaves a remainder that is uniform, up to 1e-8 or a per cent of its variance, whose variance is (s² −
        1)/12. Functions of several sites were rounded before they were added.
        """
        trust = self.claim.trust
        rounded = trust.parties if trust is not None and trust.model == SITE_NOISE else 1
        return self.noise.variance + rounded * (self.step**2 - 1) / 12.0

    def rounded(self, step: int | None = None) -> Self:
        """The same release with cells rounded to multiples of ``step``, for a smaller file: nothing is spent.

        A cell then takes about log2(4.3·σ/step) bits of the file, σ the deviation of its noise. Error bars
        know of it.

        Parameters
        ----------
        step : int, optional
            Odd, so that rounding has no bias; at most the deviation of the noise, and a multiple of what
            cells are rounded to already. Default: the largest that adds at most 2 % to its variance, about
            half of the deviation; 4 bits per cell suffice then.

        Raises
        ------
        UsageError
            if the step is even, below 1 or beyond the noise, or no multiple of the present one.

        Examples
        --------
        >>> import hushsum as hs
        >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=400)
        >>> f = tally.add([[0.5]] * 1000).release(epsilon=1.0, delta=1e-6)
        >>> f.rounded().step, bool((f.rounded().table % f.rounded().step == 0).all())
        (41, True)
        """
        deviation = math.sqrt(self.noise.variance)
        if step is None:
            step = self.step * largest_step(self.noise.variance / self.step**2)
        if type(step) is not int or step < 1 or step % 2 == 0 or (step > 1 and step > deviation):
            raise UsageError(
                "step", f"must be odd and at most the deviation of the noise, {deviation:.3g}", got=f"{step}"
            )
        if step % self.step:
            raise UsageError(
                "step",
                f"must be a multiple of {self.step}, to which the cells are rounded already",
                got=f"{step}",
            )
        return self if step == self.step else replace(self._rounded(step), parts=self.releases)

    def rounded_at_release(self, step: int) -> Self:
        """The table with cells rounded at the release: the table before rounding is not released."""
        return self if step == self.step else self._rounded(step)

    def _rounded(self, step: int) -> Self:
        if not isinstance(self.cells, np.ndarray):
            return replace(self, cells=_packed_rounded(self.cells, step), step=step)
        # A cell at the end of 32 bits would leave them.
        table = self.cells if self.cells.dtype == np.int64 else _roomy(self.cells, step)
        return replace(self, cells=round_cells(table, step), step=step)

    @property
    def releases(self) -> tuple[str, ...]:
        """Which releases are in this table: their digests, sorted.

        They are kept (``parts``) where the table does not tell them any more, that is after rounding and
        merging. Noise makes the digests of two releases differ.
        """
        return self.parts or (_release_digest(self.cells, self.noisy_count),)

    @property
    def rows(self) -> int:
        """How many rows were published."""
        return self.basis.shape[0]

    @cached_property
    def _counts(self) -> tuple[float, float]:
        """The number of records and the variance of that estimate: the noisy count and the table's own,
        combined.
        """
        if self.count_noise.variance == 0.0:
            return float(self.noisy_count), 0.0
        own = self._own_count()
        if own is None:
            return max(float(self.noisy_count), 1.0), self.count_noise.variance
        table, table_variance = own
        weight = table_variance / (table_variance + self.count_noise.variance)
        value = weight * self.noisy_count + (1.0 - weight) * table
        return max(value, 1.0), weight * self.count_noise.variance

    @property
    def count(self) -> float:
        """The estimated number of records; public and exact under the replace relation."""
        return self._counts[0]

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return math.sqrt(self._counts[1])

    def noise_covariance(self, Q: object, *, of: str = "mean", unit: Floats | None = None) -> Floats:
        """The covariances of the noise in the answers at queries, that of the number of records included, to
        the first order; shape (n_queries, n_queries).

        It contains neither the error of the method nor the sampling error of the records. ``unit`` is
        :meth:`unit_covariance` of these queries, for those who have it already.
        """
        batch = self.basis.prepare_queries(self._points(Q))
        number, variance = self._counts
        covariance = self.cell_variance * (self.unit_covariance(Q) if unit is None else unit)
        slope = np.full(len(batch), self._number_slope)
        if of == "mean":
            slope += self(Q)
        shared = np.outer(slope, np.broadcast_to(self._count_covariance(batch), (len(batch),)))
        covariance += variance * np.outer(slope, slope) - shared - shared.T
        return covariance / max(number, 1.0) ** 2 if of == "mean" else covariance

    def unit_covariance(self, Q: object) -> Floats:
        """The covariances of kernel sums at queries for noise of variance 1 in every cell: the same for all
        releases of one basis.
        """
        return self.reading.noise_covariance(self.basis.prepare_queries(self._points(Q)))

    def record_answers(self, X: object, Q: object) -> Floats:
        """What one record adds to the kernel sum at each query, for records that are public or made up; shape
        (n_records, n_queries). It is the kernel with the error of this release's basis.
        """
        return self.reading.record_answers(self.basis.prepare(X), self.basis.prepare_queries(self._points(Q)))

    def first_rows(self, rows: int) -> Self:
        """The same release with its first rows alone: post-processing, nothing is spent.

        Raises
        ------
        UsageError
            where the table is released whole, or has fewer rows.
        """
        if rows == self.rows:
            return self
        reading = self.basis.prefix(rows).reading(self.kernel)
        return replace(self, reading=reading, cells=self.table[:rows].copy(), parts=self.releases)

    @property
    def _number_slope(self) -> float:
        """How much one more in the number of records lowers a kernel sum, where cells stay the same."""
        return 0.0

    def _count_covariance(self, batch: Batch) -> Floats | float:
        """Of the noise of the sums with that of the number of records."""
        return 0.0

    def details(self) -> tuple[Detail, ...]:
        """The table, its noise, and the fingerprint of what it counts."""
        self.check_noise()
        rows, width = self.basis.shape
        deviation = math.sqrt(self.noise.variance)
        noise = {**self.noise.as_json(), "standard_deviation": deviation}
        rounded = "" if self.step == 1 else f", cells rounded to multiples of {self.step}"
        return (
            Detail("basis", self.basis.name, f"{self.basis.name}, {rows} × {width}{rounded}", label="table"),
            Detail("rows", rows),
            Detail("width", width),
            Detail("noise", noise, f"{self.noise.in_words}, standard deviation {deviation:.5g} per cell"),
            Detail("step", self.step),
            Detail("fingerprint", self.basis.fingerprint, self.basis.fingerprint),
            *self._stream_details(),
        )

    def _stream_details(self) -> tuple[Detail, ...]:
        found = self.stream_step
        if found is None:
            return ()
        shows = found.noise.view.in_words()
        about = {"stream": found.stream, "step": found.step, "horizon": found.horizon, "shows": shows}
        return (Detail("stream", about, f"step {found.step} of {found.horizon}: {shows}", label="stream"),)

    def _points(self, Q: object) -> Points:
        if self.dim is not None and any(each.dim is None for each in self.kernel.parts()):
            return mixed_points(Q, dim=self.dim, columns=self.columns)
        return query_points(Q, dim=self.dim, columns=self.columns)

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        from hushsum.releases._table_file import save_table

        save_table(self, target)

    def __reduce__(self) -> tuple[Callable[[bytes], Released], tuple[bytes]]:
        return pickled(self)


def largest_step(variance: float, share: float = ROUNDING_SHARE) -> int:
    """The largest odd step that adds at most this share to the variance of cells.

    >>> largest_step(10_000.0)
    49
    """
    most = min(int(math.sqrt(12.0 * share * variance + 1.0)), LARGEST_STEP)
    return max(1, most - (most + 1) % 2)


def round_cells(table: Any, step: int) -> Any:
    """Integers to the nearest multiples of an odd step.

    >>> round_cells(np.array([-4, 3, 5]), 3)
    array([-3,  3,  6])
    """
    return (table + step // 2) // step * step


def _release_digest(cells: Cells, noisy_count: int) -> str:
    """Names a release by its noisy numbers, in whatever form they are kept."""
    digest = hashlib.sha256(f"release {noisy_count} ".encode("ascii"))
    for values in [cells] if isinstance(cells, np.ndarray) else cells.blocks():
        digest.update(np.ascontiguousarray(values, dtype="<i8").data.cast("B"))
    return digest.hexdigest()[:DIGEST_LETTERS]


def _packed_rounded(cells: PackedTable, step: int) -> PackedTable:
    from hushsum.files import TablePacker

    packer = TablePacker(cells.shape, unit=step)
    for values in cells.blocks():
        packer.add(round_cells(values, step))
    return packer.finish()


def _roomy(table: Table, step: int) -> Table:
    limits = np.iinfo(np.int32)
    near = int(table.max()) > limits.max - step or int(table.min()) < limits.min + step
    return table.astype(np.int64) if near else table


def function_of(
    reading: Reading,
    cells: Cells,
    claim: Claim,
    noise: IntegerNoise,
    noisy_count: int,
    count_noise: IntegerNoise,
    producer: str,
    step: int = 1,
    stream_step: StreamStep | None = None,
    parts: tuple[str, ...] = (),
) -> NoisyTable:
    """The released function of a noisy table, by how it is read."""
    rest = (claim, noise, noisy_count, count_noise, producer, step, stream_step, parts)
    if isinstance(reading, RowReading):
        return TableFunction(reading, cells, *rest)
    if isinstance(reading, LinearReading):
        return CoefficientFunction(reading, cells, *rest)
    raise TypeError(f"the reading {type(reading).__name__} reads neither single cells nor the whole table")


DRAWS = 500
MOST_NUMBERS = 1 << 25
"""Of cells times draws, or of queries times rows: beyond, errors are not simulated."""

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
_RARE = 0.001
"""The probability with which ``Answers.bound`` may be too small."""

_CELLS_AT_A_TIME = 1 << 22
_FEWEST_BLOCKS = 8
"""Below this many independent blocks of rows their spread is too uncertain, and the bound is reported
instead.
"""


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
    def _number_slope(self) -> float:
        rate = self.reading.fold_rate
        return rate / (1.0 - rate)

    @property
    def table_count(self) -> float:
        """Algorithm 2's own estimate of the number of records, from the table alone; 10 to 20 times
        noisier.
        """
        return max(self._table_count[0], 1.0)

    def __call__(
        self,
        Q: object,
        *,
        estimator: str = "mean",
        count: str = "combined",
        nonnegative: bool = False,
        failure: float = 0.05,
        threads: int = 1,
    ) -> Floats:
        """Mean kernel values f(q)/N̂ (Algorithm 2), shape (n_queries,).

        Parameters
        ----------
        Q : records as the kernel takes them
            Queries; a single dense query may be one-dimensional.
        estimator : {"mean", "median-of-means"}
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
        if estimator == "mean" and count == "combined" and threads == 1 and not nonnegative:
            values = self._quick(Q)
            if values is not None:
                return values
        number = self._number(count)
        return self._sums(Q, estimator, number, 1.0 / max(number, 1.0), nonnegative, failure, threads)

    def sum(
        self,
        Q: object,
        *,
        estimator: str = "mean",
        count: str = "combined",
        nonnegative: bool = False,
        failure: float = 0.05,
        threads: int = 1,
    ) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,); parameters as for calling the function."""
        if estimator == "mean" and count == "combined" and threads == 1 and not nonnegative:
            values = self._quick_sum(Q)
            if values is not None:
                return values
        return self._sums(Q, estimator, self._number(count), 1.0, nonnegative, failure, threads)

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals, from the spread over the rows.

        ``of`` is ``"mean"`` for f(q)/N̂ or ``"sum"`` for f(q). The error of N̂ is part of both. With
        ``simultaneous`` all intervals together hold at ``level``: as wide as rows with random weights show
        (multiplier bootstrap), or as Bonferroni's.
        """
        check_question(of, level)
        points = self._points(Q)
        readings = self._read(points, threads)
        count, number_variance = self._counts
        sums, number = self.reading.unfold(readings.mean, count), max(count, 1.0)
        rate = self.reading.fold_rate
        keep = 1.0 / (1.0 - rate)
        most = self._largest_variance(readings.mean, _RARE)
        enough = readings.blocks >= _FEWEST_BLOCKS
        spread = np.maximum(readings.variance, self._noise_variance) if enough else most
        # f̂ = keep·(mean − rate·N̂): the two errors are independent up to the table's small part in N̂.
        folded = keep * rate
        blocks = max(readings.blocks, 2) if enough else None
        reach = normal_quantile(level, blocks)
        if simultaneous:
            slope = np.full(len(sums), folded) if of == "sum" else folded + sums / number
            common = math.sqrt(number_variance) * slope
            simulate = self._simulation(points, keep, keep**2 * spread, common) if enough else None
            quantile = partial(normal_quantile, blocks=blocks)
            reach = simultaneous_reach(level, len(sums), quantile, simulate)
        variance = keep**2 * spread + folded**2 * number_variance
        largest = np.maximum(keep**2 * most + folded**2 * number_variance, variance)
        if of == "sum":
            stderr = np.sqrt(variance)
            lower, upper = sums - reach * stderr, sums + reach * stderr
            return Answers(sums, stderr, lower, upper, np.sqrt(largest), level, points, simultaneous)
        mean = Quotient(sums, number, variance, number_variance, -folded * number_variance)
        lower, upper = mean.interval(reach)
        bound = replace(mean, sum_variance=largest).stderr
        return Answers(mean.value, mean.stderr, lower, upper, bound, level, points, simultaneous)

    def _simulation(self, points: Points, keep: float, variance: Floats, common: Floats) -> Simulation | None:
        if len(points) > MOST_QUERIES or len(points) * self.rows > MOST_NUMBERS:
            return None
        cells = self.reading.cells(self.basis.prepare_queries(points))
        rows = keep * self._values(cells).astype(np.float64)
        block = self.reading.independent_rows
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
        return factor * np.sqrt(self._blocks * largest) / (1.0 - self.reading.fold_rate)

    @cached_property
    def _quick(self) -> Callable[[object], Floats | None]:
        """Mean kernel values of plain arrays, in a third of the time that a single query takes otherwise."""
        return self.reading.reader(self.cells, count=self.count, scale=1.0 / max(self.count, 1.0))

    @cached_property
    def _quick_sum(self) -> Callable[[object], Floats | None]:
        """Kernel sums in the same way."""
        return self.reading.reader(self.cells, count=self.count, scale=1.0)

    def _number(self, count: str) -> float:
        if count == "combined":
            return self.count
        if count == "table":
            return self.table_count
        raise UsageError("count", "must be 'combined' or 'table'", got=shown(count))

    def _read(self, Q: object, threads: int) -> RowAverages:
        return self.reading.read(self.cells, self.basis.prepare_queries(Q), threads=threads)

    def _sums(
        self,
        Q: object,
        estimator: str,
        number: float,
        scale: float,
        nonnegative: bool,
        failure: float,
        threads: int,
    ) -> Floats:
        """``scale`` times the kernel sums, with ``number`` records."""
        one_of("estimator", estimator, ESTIMATORS)
        batch = self.basis.prepare_queries(Q)
        if estimator == "mean":
            sums = self.reading.sums(self.cells, batch, count=number, scale=scale, threads=threads)
        else:
            sums = scale * self.reading.unfold(self._median_of_means(batch, failure), number)
        return np.maximum(sums, 0.0) if nonnegative else sums

    @cached_property
    def _noise_variance(self) -> float:
        """What noise adds to the variance of a mean over the rows."""
        return self.cell_variance / self.rows

    @cached_property
    def _blocks(self) -> int:
        """How many independent blocks of rows there are; rows of a block share random numbers."""
        return -(-self.rows // self.reading.independent_rows)

    def _median_of_means(self, batch: Batch, failure: float) -> Floats:
        """Groups of whole blocks, ⌈8 ln(2/failure)⌉ of them or as many as there are blocks."""
        groups = min(groups_for(failure / 2.0), self._blocks)
        edges = np.linspace(0, self._blocks, groups + 1).astype(np.int64) * self.reading.independent_rows
        edges[-1] = self.rows
        medians = np.empty(len(batch))
        step = max(1, _CELLS_AT_A_TIME // self.rows)
        cells = self.reading.cells(batch)
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


"""Below this many independent blocks of rows their spread is too uncertain; the bound is used instead."""

_SMALL_PART = 0.02
"""Of the table's own number in N̂: below it, its noise goes with that of the answers too little to matter."""


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
        """Mean kernel values f(q)/N̂, shape (n_queries,).

        ``nonnegative`` raises negative answers to 0: closer to the truth for each query, biased upwards on
        average.
        """
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        if nonnegative and self.kernel.signed:
            raise UsageError(
                "nonnegative", f"must be left out: sums of the {self.kernel.name} kernel may be negative"
            )
        sums = self.reading.evaluate(self.table, self.basis.prepare_queries(Q), threads=threads)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals: the noise exactly, the method's own error as its basis
        estimates it from the table or its rows show it by their spread, and the error of N̂.

        ``simultaneous`` intervals are as wide as the noise of this release, drawn again and again and read at
        these queries, requires; as Bonferroni's where that is too much work.
        """
        points = self._points(Q)
        return self.query_plus(points, 0.0, of=of, level=level, simultaneous=simultaneous, threads=threads)

    def query_plus(
        self,
        points: Points,
        known: Floats | float,
        *,
        of: str,
        level: float,
        simultaneous: bool,
        threads: int,
    ) -> Answers:
        """The same with ``known`` added to the sums, which is exact."""
        check_question(of, level)
        batch = self.basis.prepare_queries(points)
        sums = self.reading.evaluate(self.table, batch, threads=threads)
        count, number_variance = self._counts
        variance, largest, blocks = self._variances(batch, count, threads)
        largest = largest + self.reading.bias_bound(self.table, batch, count, self.cell_variance) ** 2
        reach = normal_quantile(level, blocks)
        sums, number = sums + known, max(count, 1.0)
        if simultaneous:
            common = math.sqrt(number_variance) / number * sums if of == "mean" else np.zeros(len(sums))
            simulate = self._simulation(batch, variance, common, blocks)
            quantile = partial(normal_quantile, blocks=blocks)
            reach = simultaneous_reach(level, len(sums), quantile, simulate)
        if of == "sum":
            stderr, bound = np.sqrt(variance), np.sqrt(np.maximum(largest, variance))
            lower, upper = sums - reach * stderr, sums + reach * stderr
            return Answers(sums, stderr, lower, upper, bound, level, points, simultaneous)
        covariance = self._count_covariance(batch)
        mean = Quotient(sums, number, variance, number_variance, covariance)
        most = replace(mean, sum_variance=np.maximum(largest, variance)).stderr
        lower, upper = mean.interval(reach)
        return Answers(mean.value, mean.stderr, lower, upper, most, level, points, simultaneous)

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
        """Of the noise of the sums with that of N̂, as far as N̂ is the table's own number."""
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
        from hushsum.releases._public_points import sharpen

        return sharpen(self, points)

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
