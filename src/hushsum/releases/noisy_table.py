"""What every released table has in common: noisy integers, a paid count, a claim, a file."""

from __future__ import annotations

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
from hushsum.kernels.base import Kernel
from hushsum.kernels.combination import plain_kernels
from hushsum.privacy.calibration import IntegerNoise
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.answers import Answers, Points, mixed_points, query_points
from hushsum.releases.base import Released
from hushsum.releases.load import pickled
from hushsum.releases.presentation import Detail, Presented

if TYPE_CHECKING:
    from hushsum.files.mapped_table import PackedTable

ROUNDING_SHARE = 0.02
"""What rounding cells may add to their variance where it is requested."""

LARGEST_STEP = 2**31 - 1
"""The largest step of rounding that a file can state."""

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

    def __post_init__(self) -> None:
        if isinstance(self.cells, np.ndarray):
            self.cells.flags.writeable = False

    @property
    def table(self) -> Table:
        """The noisy cells as an array; unpacks all of them where they are packed."""
        return self.cells if isinstance(self.cells, np.ndarray) else self.cells.unpacked()

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

        A discrete Gaussian or Laplace law whose deviation is at least an odd step s leaves a remainder that
        is uniform, up to 1e-8 or a per cent of its variance, whose variance is (s² − 1)/12.
        """
        return self.noise.variance + (self.step**2 - 1) / 12.0

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
        if step == self.step:
            return self
        if not isinstance(self.cells, np.ndarray):
            return replace(self, cells=_packed_rounded(self.cells, step), step=step)
        # A cell at the end of 32 bits would leave them.
        table = self.cells if self.cells.dtype == np.int64 else _roomy(self.cells, step)
        return replace(self, cells=round_cells(table, step), step=step)

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

    def details(self) -> tuple[Detail, ...]:
        """The table, its noise, and the fingerprint of what it counts."""
        rows, width = self.basis.shape
        deviation = math.sqrt(self.noise.variance)
        noise = {**self.noise.as_json(), "standard_deviation": deviation}
        rounded = "" if self.step == 1 else f", cells rounded to multiples of {self.step}"
        return (
            Detail("basis", self.basis.name, f"{self.basis.name}, {rows} × {width}{rounded}", label="table"),
            Detail("rows", rows),
            Detail("width", width),
            Detail("noise", noise, f"{self.noise.mechanism}, standard deviation {deviation:.5g} per cell"),
            Detail("step", self.step),
            Detail("fingerprint", self.basis.fingerprint, self.basis.fingerprint),
        )

    def _points(self, Q: object) -> Points:
        if self.dim is not None and any(each.dim is None for each in plain_kernels(self.kernel)):
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
) -> NoisyTable:
    """The released function of a noisy table, by how it is read."""
    # Both kinds derive from this module's class.
    from hushsum.releases.coefficients import CoefficientFunction
    from hushsum.releases.table import TableFunction

    if isinstance(reading, RowReading):
        return TableFunction(reading, cells, claim, noise, noisy_count, count_noise, producer, step)
    if isinstance(reading, LinearReading):
        return CoefficientFunction(reading, cells, claim, noise, noisy_count, count_noise, producer, step)
    raise TypeError(f"the reading {type(reading).__name__} reads neither single cells nor the whole table")
