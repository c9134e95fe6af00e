"""The release of a tally: noise is added to its exact sums, and the result is a public function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushsum._native import CounterTable
from hushsum.errors import ClaimError, UsageError, shown
from hushsum.kernels import CategoricalKernel, Kernel, counts_records, positive_integer, records_in_words
from hushsum.privacy import (
    AUTO,
    EXACT_INTEGERS,
    GAMMA,
    MOST_ROWS,
    PERSON,
    Calibration,
    Claim,
    IntegerNoise,
    Mechanism,
    Relation,
    ReleaseRequest,
    UnitChange,
    calibrate,
    checked_unit,
    laplace_noise,
)
from hushsum.privacy.noise import NoiseSource
from hushsum.releases import UNSEEN_SHARE, NoisyTable, PublicFacts, function_type, largest_step, round_cells
from hushsum.tables import LARGE_TABLE, Basis, Cells, LinearReading, RowReading, Table, slices

if TYPE_CHECKING:
    from ._tally import Tally


Counters = NDArray[np.int64] | CounterTable
"""A table of exact counts: an array, or counters that start at one byte."""

CELLS_AT_A_TIME = 1 << 22


def row_blocks(
    table: Counters, rows: int, *, threads: int = 1, cells: int = CELLS_AT_A_TIME
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The first rows, at most ``cells`` at a time, each time with the number of the first one; not to be
    written to.
    """
    for at in slices(rows, cells // table.shape[1]):
        if isinstance(table, np.ndarray):
            yield at.start, table[at.start : min(at.stop, rows)]
            continue
        values = np.empty((min(at.stop, rows) - at.start, table.shape[1]), np.int64)
        table.read_rows(at.start, values, threads)
        yield at.start, values


def value_range(table: Counters) -> tuple[int, int]:
    """The smallest and the largest count."""
    ends = [(int(values.min()), int(values.max())) for _, values in row_blocks(table, table.shape[0])]
    return min(0, *(low for low, _ in ends)), max(0, *(high for _, high in ends))


_CELLS_AT_A_TIME = 1 << 20


def claimed_unit(tally: Tally, requested: str | None, relation: str | Relation) -> tuple[str, int]:
    """The unit of a claim, and how many records, or lists of edges, it may be in.

    Raises
    ------
    ClaimError
        for a unit that the tally does not have, or a relation that it is not counted for.
    """
    if tally.add_remove_only and Relation.of(relation) is Relation.REPLACE:
        raise ClaimError(
            "relation",
            "must be 'add/remove' for a tally from which records with missing values were left out: "
            "their number is not public",
            got="'replace'",
            remedy="release under 'add/remove', or count a file without those records",
        )
    cap = tally.max_per_unit
    offered = tuple(each for each in tally.basis.units if (each == PERSON) is (cap is not None))
    unit = checked_unit(tally.unit if requested is None else requested, offered)
    if cap is not None:
        return unit, cap
    return unit, 1 if unit == tally.basis.units[0] else tally.edge_lists


@dataclass(frozen=True, slots=True)
class TableRelease:
    """How the noisy table of a release is drawn: checked and calibrated from public parameters alone, before
    the budget is debited.

    ``rows`` is None where the noisy count decides how many are published; ``calibration`` is that of the
    largest table that may follow. The mechanism of the claim is the one with the least noise for that table,
    unless one was requested; if it needs no δ, the claim is pure.
    """

    basis: Basis
    claim: Claim
    rows: int | None
    count_share: Fraction
    rounded: bool
    threads: int
    insecure_noise_seed: int | None
    calibration: Calibration

    @classmethod
    def of(
        cls,
        request: ReleaseRequest,
        basis: Basis,
        unit: str,
        per_unit: int,
        threads: int = 1,
        assumptions: Sequence[str] = (),
    ) -> TableRelease:
        """Check a request for the table of a basis; raises UsageError or ClaimError for what cannot be
        released, noise that the samplers would refuse among it.
        """
        promise, relation = request.promise, Relation.of(request.relation)
        rows = None if request.rows == AUTO else request.rows
        if isinstance(rows, str):
            raise UsageError("rows", f"must be a number or {AUTO!r}", got=shown(rows))
        if rows is not None:
            rows, capacity = positive_integer("rows", rows, at_most=MOST_ROWS), basis.shape[0]
            if rows > capacity:
                remedy = "make a tally with more rows"
                raise UsageError("rows", f"must be at most the tally's {capacity}", got=rows, remedy=remedy)
        largest = basis.prefix(rows or basis.shape[0])
        calibration = calibrate(
            promise,
            largest.unit_change(unit, per_unit, relation),
            cells=math.prod(largest.shape),
            count_share=request.share_of_count,
            mechanism=request.checked_mechanism,
        )
        calibration.check()
        of_unit = tuple(text for name, text in basis.assumptions.items() if name == unit)
        claim = Claim(
            promise=calibration.keeps(promise),
            unit=unit,
            records_per_unit=per_unit,
            relation=relation,
            mechanism=Mechanism.of(calibration.table.mechanism),
            arithmetic=EXACT_INTEGERS,
            secure=request.insecure_noise_seed is None,
            assumptions=(*of_unit, *assumptions),
        )
        share, seed = request.share_of_count, request.insecure_noise_seed
        return cls(basis, claim, rows, share, bool(request.rounded), threads, seed, calibration)

    @property
    def change(self) -> UnitChange:
        """How far one unit moves the whole table and the number of records."""
        return self.basis.unit_change(self.claim.unit, self.claim.records_per_unit, self.claim.relation)

    def draw(self, kernel: Kernel | None, table: Counters, count: int) -> NoisyTable:
        """Add noise to the first rows of a table, and to the count, and wrap them with their claim.

        Privacy
        -------
        The count is drawn first; the number of rows may depend on the noisy count, never on the exact one.
        Sequential composition: ε of the count and ε of the table add to the promise; Gaussian noise is
        composed in calibration.
        """
        count_noise = self.calibration.count
        with NoiseSource.for_release(self.insecure_noise_seed) as source:
            noisy_count = count + int(count_noise.draw(1, source)[0])
            published = self.basis.prefix(self.rows or self._rows_for(noisy_count))
            noise = self._noise_of(published)
            reading = published.reading(kernel)
            step = rounding_step(published, noise, rounded=self.rounded)
            parts = noisy_rows(table, published.shape[0], noise, source, self.threads)
            packed = isinstance(reading, RowReading) and math.prod(published.shape) >= LARGE_TABLE
            cells: Cells
            if packed:
                cells = _packed(parts, published.shape, step, self.threads)
            else:
                cells = _array(parts, published)
        function = function_type(reading)(
            reading=reading,
            cells=cells,
            facts=PublicFacts(self.claim),
            noise=noise,
            noisy_count=noisy_count,
            count_noise=count_noise,
            step=step if packed else 1,
        )
        return function if packed else function.rounded_at_release(step)

    def _noise_of(self, published: Basis) -> IntegerNoise:
        """The noise of the rows that are published: of the distribution that the claim names."""
        claim = self.claim
        return calibrate(
            claim.promise,
            published.unit_change(claim.unit, claim.records_per_unit, claim.relation),
            cells=math.prod(published.shape),
            count_share=self.count_share,
            mechanism=self.calibration.table.mechanism,
        ).table

    def _rows_for(self, noisy_count: int) -> int:
        """The rows that suit a noisy count: under pure ε each row adds noise to all others."""
        promise, change, table = self.claim.promise, self.change, self.calibration.table
        if not promise.pure:
            return self.basis.shape[0]
        assert promise.epsilon is not None
        epsilon = promise.epsilon * (1 - self.count_share if change.count else 1)
        worth = float(epsilon)
        if table.mechanism == GAMMA:
            # With less variance than Laplace's as many rows suit as Laplace noise takes at a larger ε.
            laplace = laplace_noise(change.table.l1, epsilon)
            # An ε at which nothing is left of Laplace noise takes all rows anyway.
            worth *= max(1.0, math.sqrt(laplace.variance / table.variance))
        return self.basis.rows_for(noisy_count, worth, change.records)

    def noise_in_words(self, kernel: Kernel | None) -> str | None:
        """The noise of an answer in the middle of the bounds, for people; None where a query has no place, as
        for sets and categories.

        It follows from public parameters alone, before anything is drawn. Under pure ε fewer rows may be
        published, with less noise.
        """
        if kernel is None or kernel.dim is None or isinstance(kernel, CategoricalKernel):
            return None
        if any(each.dim is None for each in kernel.parts()):
            return None
        bounds, published = self.basis.bounds, self.basis.prefix(self.rows or self.basis.shape[0])
        middle = np.ones(kernel.dim) if bounds is None else bounds.centre
        reading, query = published.reading(kernel), published.prepare_queries(middle[np.newaxis])
        # The covariances of a linear reading may have to be probed cell by cell, which a release has no time
        # for.
        if isinstance(reading, LinearReading):
            gain = reading.noise_gain(query)[0]
        else:
            gain = reading.noise_covariance(query)[0, 0]
        error = math.sqrt(float(gain) * self.calibration.table.variance)
        if not counts_records(kernel):
            return f"noise of at most ± {error:.2g} of a sum of similarities, in the middle of the bounds"
        return f"noise of at most {records_in_words(error)} near a point, in the middle of the bounds"


def rounding_step(published: Basis, noise: IntegerNoise, *, rounded: bool) -> int:
    """What cells are rounded to multiples of."""
    if rounded:
        return largest_step(noise.variance)
    return largest_step(noise.variance, UNSEEN_SHARE) if published.fractional else 1


def noisy_rows(
    table: Counters, rows: int, noise: IntegerNoise, source: NoiseSource, threads: int
) -> Iterator[NDArray[np.int64]]:
    """The first rows plus noise, some at a time, so that little is held twice; noise of the Gamma-radius
    distribution, which is one vector, all at once.
    """
    cells = rows * table.shape[1] if noise.mechanism == GAMMA else _CELLS_AT_A_TIME
    for _, exact in row_blocks(table, rows, threads=threads, cells=cells):
        noisy = noise.draw(exact.size, source, threads=threads).reshape(exact.shape)
        noisy += exact
        yield noisy


def _array(parts: Iterator[NDArray[np.int64]], published: Basis) -> Table:
    """Noisy counts that fit 32 bits are kept in them, which halves the memory and reads faster."""
    noisy: Table = np.empty(published.shape, np.int32)
    smallest, largest, start = -(2**31), 2**31 - 1, 0
    for part in parts:
        if noisy.dtype == np.int32 and (part.min() < smallest or part.max() > largest):
            noisy = noisy.astype(np.int64)
        noisy[start : start + len(part)] = part
        start += len(part)
    return noisy


def _packed(parts: Iterator[NDArray[np.int64]], shape: tuple[int, int], step: int, threads: int) -> Cells:
    """Large tables take the form that they have in files, without ever being in another one."""
    from hushsum.files import TablePacker

    packer = TablePacker(shape, unit=step, threads=threads)
    for part in parts:
        packer.add(part.reshape(-1) if step == 1 else round_cells(part, step).reshape(-1))
    return packer.finish()
