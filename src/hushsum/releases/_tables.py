"""Released tables: noisy integers, a noisy count, a claim, and how they are stored.

How they answer follows, those of hash rows and those of coefficients; then how their files are read, and the
noise that they state is compared with their claim; then the function released from reports of the local
model, a table of signed sums, one row per report.
"""

from __future__ import annotations

import hashlib
import math
import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum import files, privacy, tables
from hushsum._types import Floats, is_number
from hushsum.errors import FileRefused, UsageError, shown
from hushsum.files import Buffer, Header, PackedForm, PackedTable, PageCheck, Section, TablePacker
from hushsum.kernels import Batch, GaussianKernel, GaussianProfileKernel, Kernel, one_of
from hushsum.privacy import Claim, IntegerNoise, Mechanism, Relation, StreamNoise, StreamUnit
from hushsum.privacy.accounting import GAMMA_MOST_CELLS, gamma_radius_delta, shuffled_delta, skellam_rho
from hushsum.tables import (
    Basis,
    Cells,
    LinearReading,
    Reading,
    RowAverages,
    RowReading,
    SampledReading,
    Table,
)

from ._base import (
    Answers,
    Detail,
    LocalTable,
    Payload,
    Points,
    PublicFacts,
    QueryOptions,
    Quotient,
    ReleasedFunction,
    check_names,
    mixed_points,
    normal_answers,
    normal_quantile,
    query_points,
    register,
    stored_integer,
)

if TYPE_CHECKING:
    from ._public_points import SharpenedFunction

__all__ = [
    "ESTIMATORS", "ROUNDING_SHARE", "UNSEEN_SHARE", "CoefficientFunction", "NeighbourDensity", "NoisyTable",
    "ReportedFunction", "StepCovariance", "StreamStep", "TableFunction", "function_type", "largest_step",
    "neighbour_density", "noise_table", "round_cells", "simultaneous_reach", "step_covariance", "stream_unit",
]  # fmt: skip

_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
# How far a stored variance may be from one that is computed again, on another machine perhaps.
_CLOSE = 1e-5


@dataclass(frozen=True, slots=True)
class StreamStep:
    """Which step of which stream a function shows; public.

    Attributes
    ----------
    stream : str
        The name of the stream, 32 hexadecimal digits: functions of one stream have it in common.
    step : int
        The number of the step, from 1.
    horizon : int or None
        How many steps there can be; None without a horizon.
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
    def horizon(self) -> int | None:
        """How many steps the claim covers; None for all that there will ever be."""
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
        check_names(data, "stream", "step", "removals", "noise")
        found = cls(data["stream"], data["step"], data["removals"], StreamNoise.from_json(data["noise"]))
        if not isinstance(found.stream, str) or not _ID.fullmatch(found.stream):
            raise ValueError("stream")
        stored_integer(found.step, 1, found.horizon or privacy.LAST_STEP)
        if type(found.removals) is not bool:
            raise ValueError("removals")
        return found

    def detail(self) -> Detail:
        """For the description of a function."""
        shows = self.noise.view.in_words()
        about = {"stream": self.stream, "step": self.step, "horizon": self.horizon, "shows": shows}
        last = "" if self.horizon is None else f" of {self.horizon}"
        return Detail("stream", about, f"step {self.step}{last}: {shows}", label="stream")

    def keeps(self, claim: Claim, basis: Basis, table: IntegerNoise, count: IntegerNoise) -> bool:
        """Whether the noise of all steps keeps a claim, and the noise of this step is what the file states.

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
            return self.noise.intervals and privacy.spent_epsilon(self.noise, unit) <= claim.promise.epsilon
        if self.noise.intervals:
            return False
        return claim.promise.rho is None or privacy.spent_rho(self.noise, unit) <= claim.promise.rho


def stream_unit(basis: Basis, unit: str, per_unit: int, relation: Relation, *, removals: bool) -> StreamUnit:
    """What one unit can change in a stream of tables."""
    rows, width = basis.shape
    return StreamUnit(
        record={each: basis.sensitivity(each) for each in Relation},
        relation=relation,
        per_unit=per_unit if unit == privacy.PERSON else None,
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
    gain = float(one.noise.covariances([one.step, other.step])[0, 1])
    return StepCovariance(one.noise.table.variance * gain, one.noise.count_variance * gain)


ROUNDING_SHARE = 0.02
"""What rounding cells may add to their variance where it is requested."""

LARGEST_STEP = 2**31 - 1
"""The largest step of rounding that a file can state."""

DIGEST_LETTERS = 32
"""The length of a release's digest, which finds repetitions and does not prevent forgery."""

UNSEEN_SHARE = 0.001
"""What rounding adds to the variance of cells that are counted in small fractions of a record."""


@dataclass(frozen=True, eq=False)
class NoisyTable(LocalTable):
    """The noisy sum of a basis's vectors over records, and how it is read; public and frozen.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    kind = "table"

    reading: Reading
    cells: Cells
    facts: PublicFacts
    noise: IntegerNoise
    noisy_count: int
    count_noise: IntegerNoise
    step: int = 1
    stream_step: StreamStep | None = None
    parts: tuple[str, ...] = ()
    unchecked: Callable[[NoisyTable], None] | None = None
    """A check that has not run yet: it compares the noise that a file states with its claim, and raises
    ``FileRefused``. It is put off where it would take longer than reading the file. None if it has run.
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
    def _own_count(self) -> tuple[float, float] | None:
        """An estimate of the number of records from the table itself, and its variance; None if the table
        gives no estimate.
        """

    @property
    def cell_variance(self) -> float:
        """The variance of what a cell holds beside its exact sum: noise, and rounding where there was any.

        A distribution (discrete Gaussian, Laplace or Gamma radius) whose deviation is at least an odd step s
        leaves a remainder that is uniform, up to 1e-8 or a per cent of its variance, whose variance is (s² −
        1)/12. Functions of several sites were rounded before they were added.
        """
        trust = self.claim.trust
        rounded = trust.parties if trust is not None and trust.model == privacy.SITE_NOISE else 1
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
            rule = f"must be a multiple of {self.step}, to which the cells are rounded already"
            raise UsageError("step", rule, got=f"{step}")
        return self if step == self.step else replace(self._rounded(step), parts=self.releases)

    def rounded_at_release(self, step: int) -> Self:
        """The table with cells rounded at the release: the table before rounding is not released."""
        return self if step == self.step else self._rounded(step)

    def _rounded(self, step: int) -> Self:
        if not isinstance(self.cells, np.ndarray):
            packer = TablePacker(self.cells.shape, unit=step)
            for values in self.cells.blocks():
                packer.add(round_cells(values, step))
            return replace(self, cells=packer.finish(), step=step)
        table: NDArray[Any] = self.cells
        limits = np.iinfo(np.int32)
        # A cell at the end of 32 bits would leave them.
        if int(table.max()) > limits.max - step or int(table.min()) < limits.min + step:
            table = table.astype(np.int64)
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
        slope = np.full(len(batch), self.number_slope)
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
        """What each record adds to the kernel sum at each query, for public or synthetic records; shape
        (n_records, n_queries). These are kernel values with the approximation error of this release's basis.
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
    def number_slope(self) -> float:
        """How much one more in the number of records lowers a kernel sum, where cells stay the same."""
        return 0.0

    def _count_covariance(self, batch: Batch) -> Floats | float:
        """The covariance of the noise of the sums with the noise of the number of records."""
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
            *([] if self.stream_step is None else [self.stream_step.detail()]),
        )

    def _points(self, Q: object) -> Points:
        if self.dim is not None and any(each.dim is None for each in self.kernel.parts()):
            return mixed_points(Q, dim=self.dim, columns=self.columns)
        return super()._points(Q)

    def stated(self) -> Header:
        """The header of its file, without the layout of the cells."""
        constants, step = self.reading.constants_as_json(), self.stream_step
        return {
            **super().stated(),
            **tables.reading_as_json(self.reading),
            **({} if constants is None else {"constants": constants}),
            **({} if step is None else {"stream": step.as_json()}),
            **({"parts": list(self.parts)} if self.parts else {}),
            "noise": self.noise.as_json(),
            "count": {"value": self.noisy_count, "noise": self.count_noise.as_json()},
        }

    def _payload(self) -> Payload:
        """Cells are packed where that is shorter. A table that is packed in memory keeps its fixed number of
        bits per cell, to be memory-mapped.
        """
        if not isinstance(self.cells, np.ndarray):
            return _packed_payload(self.cells, self.step)
        table, step = self.table, self.step
        type_name = files.narrowest_type(table)
        about: dict[str, Any] = {"type": type_name, "shape": list(self.basis.shape)}
        payload: Buffer = files.encode_array(table, type_name)
        if table.size >= _WORTH_PACKING or step != 1:
            # Cells are multiples of the step of their rounding, unless they were shifted since.
            unit = step if step == 1 or not (table % step).any() else 1
            packed, centre = files.pack_integers(table, unit)
            if len(packed) < len(payload):
                about["packed"] = {"centre": centre, "size": len(packed), "unit": unit}
                payload = packed
        if step != 1:
            about["step"] = step
        return {"table": about}, [payload], None


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


_WRITTEN = 1 << 24
# Cells. Smaller tables are stored as they are, unless their cells are rounded.
_WORTH_PACKING = 4096


def _packed_payload(cells: PackedTable, step: int) -> Payload:
    cells.verify()  # a damaged page must not get a new checksum
    about = {
        "shape": list(cells.shape),
        "step": step,
        "cells": {**cells.form._asdict(), "exceptions": len(cells.exception_cells), "total": cells.total},
    }
    sections = [
        files.encode_array(cells.exception_cells, "int64"),
        files.encode_array(cells.exception_values, "int64"),
    ]
    data = cells.data.data
    paged = Section(len(data), lambda: (data[i : i + _WRITTEN] for i in range(0, len(data), _WRITTEN)))
    return {"table": about}, sections, paged


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
    if mechanism == privacy.LAPLACE:
        drawn = rng.laplace(scale=math.sqrt(0.5), size=shape)
    else:
        drawn = rng.standard_normal(shape)
    if mechanism == privacy.GAMMA:
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
    largest = np.abs(paths) / np.where(scale > 0.0, scale, np.inf)[:, None]
    return np.asarray(largest.max(axis=0))


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
        factor = tables.median_of_means_bound(1.0, self._blocks, failure / 2.0)
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
        groups = min(tables.groups_for(failure / 2.0), self._blocks)
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


_LARGEST_COUNT = 2**63
_DIGEST = re.compile(f"[0-9a-f]{{{DIGEST_LETTERS}}}", re.ASCII)


def _check_noise_later(function: NoisyTable) -> None:
    """`_check_noise` when a function that was read is first used."""
    try:
        _check_noise(function)
    except (TypeError, ValueError, ArithmeticError):
        raise FileRefused(
            "the noise that the file states does not keep its claim", remedy="ask who wrote it"
        ) from None


def _check_noise(function: NoisyTable) -> None:
    """Refuse a file whose noise cannot keep its claim; finds mistakes, not forgery.

    Pure ε and ρ add up exactly. For (ε, δ) the audit recomputes δ, which takes longer.

    Privacy
    -------
    A file is public when it is read: what it reveals was decided when it was written, so the check protects
    no record. It protects readers, and owners who passed a mistaken file on, from believing its claim. So no
    answer, description, copy or sum of a file is given before the check; where the sensitivity takes long to
    compute (`Basis.costly_sensitivity`), the first of them does it instead of the reading.
    """
    stated = (function.noise, function.count_noise)
    if function.stream_step is not None:
        if not function.stream_step.keeps(function.claim, function.basis, *stated):
            raise ValueError("the noise does not keep the claim")
        return
    noises = privacy.protecting_noises(function.claim, *stated)
    if not noises or not all(_keeps(function, *each) for each in noises):
        raise ValueError("the noise does not keep the claim")


def _keeps(function: NoisyTable, noise: IntegerNoise, count_noise: IntegerNoise) -> bool:
    if privacy.SUM in (noise.mechanism, count_noise.mechanism):
        # Noise of several parties, in a claim of one: no part of it is known to be secret.
        return False
    claim = function.claim
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    moved, counted = change.table, change.count
    if counted and count_noise.mechanism not in _count_laws(claim, noise):
        return False
    table, count = noise.parameter, count_noise.parameter
    epsilon, rho = claim.promise.epsilon, claim.promise.rho
    whole = noise.parts == count_noise.parts == 1
    if epsilon is not None and (claim.promise.pure or noise.mechanism == privacy.LAPLACE):
        gamma = noise.mechanism == privacy.GAMMA
        moves = privacy.root_above(moved.l2_squared) if gamma else moved.l1
        spent = moves / table + (counted / count if counted else 0)
        # Of a table of which some rows were published, the cells are those of the whole.
        known = noise.cells >= function.cells.size if gamma else noise.mechanism == privacy.LAPLACE
        return whole and spent <= epsilon and known
    if noise.mechanism == privacy.SKELLAM:
        if moved.largest > 1 or counted > 1:
            return False
        counted_variance = count if counted else None
        return (
            rho is None
            or skellam_rho(cells=moved.l2_squared, variance=table, count_variance=counted_variance) <= rho
        )
    if rho is not None:
        spent = moved.l2_squared / (2 * table) + (counted**2 / (2 * count) if counted else 0)
        return noise.mechanism == privacy.GAUSSIAN and spent <= rho
    if noise.mechanism == privacy.GAMMA:
        assert epsilon is not None
        left = epsilon - (counted / count if counted else 0)
        known = max(function.cells.size, 2) <= noise.cells <= GAMMA_MOST_CELLS and whole and left > 0
        moves = privacy.root_above(moved.l2_squared) / table
        return known and gamma_radius_delta(left, cells=noise.cells, separation=moves) <= claim.promise.delta
    return noise.mechanism in (privacy.GAUSSIAN, privacy.BINOMIAL)


def _count_laws(claim: Claim, noise: IntegerNoise) -> tuple[str, ...]:
    """The distributions that the noise of the count may have beside this one: pure ε adds to anything but
    ρ."""
    own = () if noise.mechanism == privacy.GAMMA else (noise.mechanism,)
    return own if claim.promise.rho is not None else (*own, privacy.LAPLACE)


def _payload_size(header: Header) -> int:
    shape = tables.basis_from_json(header["basis"]).shape
    files.check_spelling(header["table"]["shape"], list(shape))
    if "cells" in header["table"]:
        return sum(_packed_sizes(header, shape))
    if "paged" in header:
        raise ValueError("paged")
    size = files.encoded_size(shape, header["table"]["type"])
    if "packed" not in header["table"]:
        return size
    packed = stored_integer(header["table"]["packed"]["size"], 0, size)
    files.check_packed(shape, packed)
    return packed


def _packed_sizes(header: Header, shape: tuple[int, int]) -> tuple[int, int, int]:
    """The bytes of a packed table's codes, exceptions and digests of pages."""
    about = header["table"]["cells"]
    codes = files.data_bytes(shape, stored_integer(about["bits"], 1, 64))
    if header["paged"] != codes:
        raise ValueError("paged")
    return codes, 16 * stored_integer(about["exceptions"], 0, math.prod(shape)), files.digests_size(codes)


def _packed_table(header: Header, payload: memoryview, shape: tuple[int, int]) -> PackedTable:
    """The table of a large file. Its pages are checked when they are first used, and nothing is unpacked."""
    about = header["table"]["cells"]
    check_names(about, "bits", "base", "unit", "exceptions", "total")
    check_names(header["table"], "shape", "step", "cells")
    total = stored_integer(about["total"], -_LARGEST_COUNT, _LARGEST_COUNT)
    form = PackedForm(
        stored_integer(about["bits"], 1, 64),
        stored_integer(about["base"], -_LARGEST_COUNT, _LARGEST_COUNT - 1),
        stored_integer(about["unit"], 1, LARGEST_STEP),
    )
    codes, exceptions, _ = _packed_sizes(header, shape)
    listed = files.decode_array(payload[codes : codes + exceptions], (2, exceptions // 16), "int64")
    check = PageCheck(payload[:codes], payload[codes + exceptions :])
    data = np.frombuffer(payload[:codes], np.uint8)
    return PackedTable(shape, form, data, listed[0].copy(), listed[1].copy(), total, check=check)


def _table(header: Header, payload: memoryview, shape: tuple[int, int]) -> Cells:
    about = header["table"]
    if "cells" in about:
        return _packed_table(header, payload, shape)
    check_names({"step": None, "packed": None, **about}, "type", "shape", "step", "packed")
    if "packed" in about:
        packed = about["packed"]
        check_names(packed, "centre", "size", "unit")
        unit = stored_integer(packed["unit"], 1, LARGEST_STEP)
        centre = stored_integer(packed["centre"], -_LARGEST_COUNT, _LARGEST_COUNT - 1)
        return files.unpack_integers(payload, shape, about["type"], unit=unit, centre=centre)
    stored = files.decode_array(payload, shape, about["type"])
    # The types the native loops read: 32 bits, or 64 where those were needed.
    return stored.astype(np.int64) if stored.dtype.itemsize == 8 else stored.astype(np.int32)


def _parts(listed: object, claim: Claim) -> tuple[str, ...]:
    """The releases that were added, each once; a sum of sites names as many as it claims."""
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise TypeError("parts")
    if listed != sorted(set(listed)) or not all(_DIGEST.fullmatch(each) for each in listed):
        raise ValueError("parts")
    sites = None if claim.trust is None or claim.trust.model != privacy.SITE_NOISE else claim.trust.parties
    if len(listed) > 1 if sites is None else len(listed) != sites:
        raise ValueError("parts")
    return tuple(listed)


def _build(header: Header, payload: memoryview) -> NoisyTable:
    count: dict[str, Any] = header["count"]
    reading = tables.reading_from_json(header)
    if "constants" in header:
        reading = reading.with_constants(header["constants"])
    facts = PublicFacts.from_json(header)
    function = function_type(reading)(
        reading=reading,
        cells=_table(header, payload, reading.basis.shape),
        facts=facts,
        noise=IntegerNoise.from_json(header["noise"]),
        noisy_count=stored_integer(count["value"], -_LARGEST_COUNT, _LARGEST_COUNT),
        count_noise=IntegerNoise.from_json(count["noise"]),
        step=stored_integer(header["table"].get("step", 1), 1, LARGEST_STEP),
        stream_step=StreamStep.from_json(header["stream"]) if "stream" in header else None,
        parts=_parts(header.get("parts", []), facts.claim),
    )
    if function.count_noise.mechanism == privacy.NONE and function.noisy_count < 0:
        raise ValueError("a public number of records")
    relations = [function.claim.relation] if function.stream_step is None else list(Relation)
    if any(function.basis.costly_sensitivity(each) for each in relations):
        return replace(function, unchecked=_check_noise_later)
    _check_noise(function)
    return function


register(NoisyTable.kind, _payload_size, _build, "table", "paged")


TYPE = "reports"
_MOST_REPORTS = 2**31 - 1
# Standard errors that an answer exceeds once in a thousand times.
_RARE_REPORTS = 3.3


@dataclass(frozen=True, eq=False)
class ReportedFunction(LocalTable):
    """Kernel sums of persons who each sent one noisy report; public, frozen, for any number of queries.

    Every person reported about one row of a sketch, so all rows together hold every person once: an answer
    is a sum over the rows, and its error falls as 1/√N, not as 1/N as with a trusted curator.

    Made by `hushsum.parties.collect_reports` or ``hushsum.load``; not by hand.

    Parameters
    ----------
    reading : RowReading
        How the cells of queries are found.
    table : array of int32 of shape (rows, width)
        Σ s·H[cell, column] over the reports of each row.
    reports : int
        How many reports there are; public.
    honest : int
        How many of them the claim of shuffled reports takes to follow the protocol.
    local_epsilon : Fraction
        What every report satisfies by itself.
    facts : PublicFacts

    Privacy
    -------
    Everything here is computed from reports that are private already, so using it spends nothing.
    """

    kind = TYPE

    reading: RowReading
    table: NDArray[np.int32]
    reports: int
    honest: int
    local_epsilon: Fraction
    facts: PublicFacts

    def __post_init__(self) -> None:
        self.table.flags.writeable = False

    def __repr__(self) -> str:
        rows, width = self.table.shape
        return (
            f"ReleasedFunction({self.kernel!r}, reports={self.reports}, rows={rows}, width={width}, "
            f"claim={self.claim!r})"
        )

    @property
    def count(self) -> float:
        """The number of reports, which is public."""
        return float(self.reports)

    @property
    def count_stderr(self) -> float:
        """0: the number of reports is public."""
        return 0.0

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        return self._sums(self._points(Q), 1)[0]

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        """From the spread over the rows. ``bound`` adds to the exact variance of the signs the largest one
        that hashing can have at the answer.
        """
        sums, variance = self._sums(points, options.threads)
        keep = 1.0 / (1.0 - self.reading.basis.fold_rate)
        # At most one ±1 per report, times the gain.
        signs = keep**2 * self.reports / privacy.sign_gain(self.local_epsilon) ** 2
        variance = np.maximum(variance, signs)
        most = np.clip(sums + _RARE_REPORTS * np.sqrt(variance), 0.0, self.reports)
        # Folding hash values adds a part of the other records to a query's cells.
        folded = (self.reports - most) * self.reading.basis.fold_rate
        largest = signs + keep**2 * self.reports * (most + folded) / self.table.shape[0]
        scale = 1.0 if options.of == "sum" else 1.0 / max(self.reports, 1)
        answers = normal_answers(
            scale * sums, scale * np.sqrt(variance), options.level, points, simultaneous=options.simultaneous
        )
        return replace(answers, bound=scale * np.sqrt(np.maximum(largest, variance)))

    def details(self) -> tuple[Detail, ...]:
        """The reports, their own privacy, and the table."""
        rows, width = self.table.shape
        local = f"{float(self.local_epsilon):g}"
        return (
            Detail("method", TYPE, "reports of the local model"),
            Detail("reports", self.reports, f"{self.reports:,}, each with ε = {local} by itself"),
            Detail("local_epsilon", str(self.local_epsilon)),
            Detail("honest", self.honest),
            Detail("rows", rows),
            Detail("width", width, f"{rows} × {width}", label="table"),
            Detail("fingerprint", self.reading.basis.fingerprint, self.reading.basis.fingerprint),
        )

    def stated(self) -> Header:
        """The header of its file, without the layout of the table."""
        return {
            **super().stated(),
            **tables.reading_as_json(self.reading),
            "reports": self.reports,
            "honest": self.honest,
            "local_epsilon": str(self.local_epsilon),
        }

    def _payload(self) -> Payload:
        numbers = files.narrowest_type(self.table)
        about = {"type": numbers, "shape": list(self.table.shape)}
        return {"table": about}, [files.encode_array(self.table, numbers)], None

    def _sums(self, points: Points, threads: int) -> tuple[Floats, Floats]:
        """Kernel sums, and their variance from the spread over the rows.

        The mean over R rows, times R/tanh(ε/2), estimates the number of persons in the query's cells.
        """
        batch = self.reading.basis.prepare_queries(points)
        averages = self.reading.read(self.table, batch, threads=threads)
        scale = self.table.shape[0] / privacy.sign_gain(self.local_epsilon)
        keep = 1.0 / (1.0 - self.reading.basis.fold_rate)
        variance = np.nan_to_num((keep * scale) ** 2 * averages.variance, nan=0.0)
        return self.reading.unfold(scale * averages.mean, float(self.reports)), variance


def _shape(header: Header) -> tuple[int, int]:
    rows, width = header["table"]["shape"]
    if type(rows) is not int or type(width) is not int or rows < 1 or width < 1:
        raise ValueError("shape")
    return rows, width


def _size(header: Header) -> int:
    return files.encoded_size(_shape(header), header["table"]["type"])


def _build_reports(header: Header, payload: memoryview) -> ReportedFunction:
    check_names(header["table"], "type", "shape")
    reading: Any = tables.reading_from_json(header)
    shape = _shape(header)
    if not isinstance(reading, RowReading) or reading.basis.shape != shape:
        raise ValueError("basis")
    table = files.decode_array(payload, shape, header["table"]["type"]).astype(np.int64)
    reports, honest = (stored_integer(header[name], 1, _MOST_REPORTS) for name in ("reports", "honest"))
    if honest > reports or (np.abs(table) > reports).any():
        raise ValueError("more than the reports")
    local = files.stored_rational(header["local_epsilon"])
    facts = PublicFacts.from_json(header)
    _check_claim(facts.claim, local, honest)
    return ReportedFunction(reading, table.astype(np.int32), reports, honest, local, facts)


def _check_claim(claim: Claim, local: Fraction, honest: int) -> None:
    """Refuse a claim that reports of this ε do not keep; finds mistakes, not forgery."""
    epsilon = claim.promise.epsilon
    if epsilon is None or claim.relation is not Relation.REPLACE or not 0 < local <= 60:
        raise ValueError("claim")
    if claim.promise.pure:
        kept = claim.mechanism == privacy.HADAMARD and epsilon >= local
    else:
        spent = shuffled_delta(
            float(local), honest, math.nextafter(float(epsilon), math.inf), tail=1e-4 * claim.delta
        )
        kept = claim.mechanism == privacy.SHUFFLED_HADAMARD and spent <= claim.delta
    if not kept:
        raise ValueError("the reports do not keep the claim")


register(TYPE, _size, _build_reports, "table")
