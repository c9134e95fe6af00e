"""What every released table has in common: noisy integers, a paid count, a claim, a file."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hushsum._types import Floats, PathOrFile
from hushsum.bases.base import Basis, Cells, LinearReading, Reading, RowReading, Table
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel
from hushsum.privacy.claim import Claim
from hushsum.privacy.integer_noise import IntegerNoise
from hushsum.privacy.trust_model import SITE_NOISE
from hushsum.records.bounds import Bounds
from hushsum.releases.answers import Answers, Points, mixed_points, query_points
from hushsum.releases.base import Released
from hushsum.releases.load import pickled
from hushsum.releases.presentation import Detail, Presented
from hushsum.releases.stream_step import StreamStep

if TYPE_CHECKING:
    from hushsum.files.mapped_table import PackedTable

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

        A law (discrete Gaussian, Laplace or Gamma radius) whose deviation is at least an odd step s leaves a
        remainder that is uniform, up to 1e-8 or a per cent of its variance, whose variance is (s² − 1)/12.
        Functions of several sites were rounded before they were added.
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
                parameter="step",
                rule=f"must be odd and at most the deviation of the noise, {deviation:.3g}",
                got=f"{step}",
                remedy="leave it out",
            )
        if step % self.step:
            raise UsageError(
                parameter="step",
                rule=f"must be a multiple of {self.step}, to which the cells are rounded already",
                got=f"{step}",
                remedy="leave it out",
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
        """The number of records and the variance of that estimate: the paid count and the table's own,
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
        about = {"stream": found.stream, "step": found.step, "steps": found.steps, "shows": shows}
        return (Detail("stream", about, f"step {found.step} of {found.steps}: {shows}", label="stream"),)

    def _points(self, Q: object) -> Points:
        if self.dim is not None and any(each.dim is None for each in self.kernel.parts()):
            return mixed_points(Q, dim=self.dim, columns=self.columns)
        return query_points(Q, dim=self.dim, columns=self.columns)

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        from hushsum.releases.table_file import save_table

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
    from hushsum.files.mapped_table import TablePacker

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
    # Both kinds derive from this module's class.
    from hushsum.releases.coefficients import CoefficientFunction
    from hushsum.releases.sketch import TableFunction

    rest = (claim, noise, noisy_count, count_noise, producer, step, stream_step, parts)
    if isinstance(reading, RowReading):
        return TableFunction(reading, cells, *rest)
    if isinstance(reading, LinearReading):
        return CoefficientFunction(reading, cells, *rest)
    raise TypeError(f"the reading {type(reading).__name__} reads neither single cells nor the whole table")
