"""From exact sums to a public function: the one place where noise meets counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Basis, Cells, LinearReading, Reading, RowReading, Table
from hushsum.bases.hash_rows import LARGE_TABLE
from hushsum.errors import ClaimError, UsageError, shown
from hushsum.kernels.base import CategoricalKernel
from hushsum.kernels.parameters import counts_records, positive_integer, records_in_words
from hushsum.privacy.calibration import Calibration, UnitChange, calibrate, laplace_noise
from hushsum.privacy.claim import PERSON, Claim, Promise, Relation, checked_unit, exact
from hushsum.privacy.integer_noise import GAMMA, IntegerNoise
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.noise import NoiseSource
from hushsum.privacy.release_noise import EXACT_INTEGERS
from hushsum.privacy.release_request import AUTO, MOST_ROWS, ReleaseRequest
from hushsum.releases.noisy_table import UNSEEN_SHARE, NoisyTable, function_of, largest_step, round_cells
from hushsum.version import PRODUCER

if TYPE_CHECKING:
    from hushsum.tally.counters import Counters
    from hushsum.tally.tally import Tally

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
            parameter="relation",
            rule="must be 'add/remove' for a tally from which records with missing values were left out: "
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
class ReleaseOptions:
    """How a release is made, beyond its promise."""

    relation: Relation
    unit: str
    per_unit: int
    change: UnitChange
    rows: int | None
    count_share: Fraction
    assumptions: tuple[str, ...]
    threads: int
    insecure_noise_seed: int | None
    rounded: bool
    mechanism: str

    @classmethod
    def of(
        cls,
        request: ReleaseRequest,
        basis: Basis,
        unit: str,
        per_unit: int,
        threads: int,
        assumptions: Sequence[str] = (),
    ) -> ReleaseOptions:
        """Check the options of a request; ``rows`` becomes None for ``"auto"``, and the mechanism that of the
        least noise for the whole basis.
        """
        relation = Relation.of(request.relation)
        change = basis.unit_change(unit, per_unit, relation)
        count_share = exact("count_share", request.count_share)
        rows = request.rows
        if isinstance(rows, str) and rows != AUTO:
            raise UsageError(
                parameter="rows", rule=f"must be a number or {AUTO!r}", got=shown(rows), remedy="choose one"
            )
        return cls(
            relation=relation,
            unit=unit,
            per_unit=per_unit,
            change=change,
            rows=None if isinstance(rows, str) else positive_integer("rows", rows, at_most=MOST_ROWS),
            count_share=count_share,
            assumptions=(
                *(text for name, text in basis.assumptions.items() if name == unit),
                *assumptions,
            ),
            threads=threads,
            insecure_noise_seed=request.insecure_noise_seed,
            rounded=bool(request.rounded),
            mechanism=request.checked_mechanism
            or calibrate(
                request.promise, change, cells=math.prod(basis.shape), count_share=count_share
            ).table.mechanism,
        )

    def claim(self, promise: Promise) -> Claim:
        """What a release with these options claims; known before anything is drawn."""
        return Claim(
            promise=promise,
            unit=self.unit,
            records_per_unit=self.per_unit,
            relation=self.relation,
            mechanism=Mechanism.of(self.mechanism),
            arithmetic=EXACT_INTEGERS,
            secure=self.insecure_noise_seed is None,
            assumptions=self.assumptions,
        )

    def calibration(self, published: Basis, promise: Promise) -> Calibration:
        """The noise of a release of these rows of the table."""
        return calibrate(
            promise,
            published.unit_change(self.unit, self.per_unit, self.relation),
            cells=math.prod(published.shape),
            count_share=self.count_share,
            mechanism=self.mechanism,
        )


def release_table(
    reading: Reading, table: Counters, count: int, promise: Promise, options: ReleaseOptions
) -> NoisyTable:
    """Add noise to the first rows of a table, and to the count, and wrap them with their claim.

    Privacy
    -------
    The count is drawn first; the number of rows may depend on the noisy count, never on the exact one.
    Sequential composition: ε of the count and ε of the table add to the promise; Gaussian noise is
    composed in calibration.
    """
    basis = reading.basis
    _check_rows(basis, options)
    claim = options.claim(promise)
    whole = options.calibration(basis.prefix(options.rows or basis.shape[0]), promise)
    with NoiseSource.for_release(options.insecure_noise_seed) as source:
        count_noise = whole.count
        noisy_count = count + int(count_noise.draw(1, source)[0])
        published = basis.prefix(options.rows or _rows_for(basis, noisy_count, promise, options, whole))
        noise = options.calibration(published, promise).table
        published_reading, step = (
            published.reading(reading.kernel),
            rounding_step(published, noise, rounded=options.rounded),
        )
        parts = noisy_rows(table, published.shape[0], noise, source, options.threads)
        packed = isinstance(published_reading, RowReading) and math.prod(published.shape) >= LARGE_TABLE
        cells = _packed(parts, published.shape, step, options.threads) if packed else _array(parts, published)
    function = function_of(
        reading=published_reading,
        cells=cells,
        claim=claim,
        noise=noise,
        noisy_count=noisy_count,
        count_noise=count_noise,
        producer=PRODUCER,
        step=step if packed else 1,
    )
    return function if packed else function.rounded_at_release(step)


def noise_in_words(reading: Reading, promise: Promise, options: ReleaseOptions) -> str | None:
    """The noise of an answer in the middle of the bounds, for people; None where a query has no place, as
    for sets and categories.

    It follows from public parameters alone, before anything is drawn. Under pure ε fewer rows may be
    published, with less noise.
    """
    basis, kernel = reading.basis, reading.kernel
    if kernel.dim is None or isinstance(kernel, CategoricalKernel):
        return None
    if any(each.dim is None for each in kernel.parts()):
        return None
    middle = np.ones(kernel.dim) if basis.bounds is None else basis.bounds.centre
    published = basis.prefix(options.rows or basis.shape[0])
    read, query = published.reading(kernel), published.prepare_queries(middle[np.newaxis])
    # The covariances of a linear reading may have to be probed cell by cell, which a release has no time for.
    gain = (
        read.noise_gain(query)[0] if isinstance(read, LinearReading) else read.noise_covariance(query)[0, 0]
    )
    error = math.sqrt(float(gain) * options.calibration(published, promise).table.variance)
    if not counts_records(kernel):
        return f"noise of at most ± {error:.2g} of a sum of similarities, in the middle of the bounds"
    return f"noise of at most {records_in_words(error)} near a point, in the middle of the bounds"


def check_release(basis: Basis, promise: Promise, options: ReleaseOptions) -> None:
    """Refuse what cannot be released, from public parameters alone: the budget is debited only after this.

    The noise of the largest release that may follow is calibrated, and its variance computed, which refuses
    what the samplers would.
    """
    _check_rows(basis, options)
    options.calibration(basis.prefix(options.rows or basis.shape[0]), promise).check()


def _check_rows(basis: Basis, options: ReleaseOptions) -> None:
    capacity = basis.shape[0]
    if options.rows is not None and options.rows > capacity:
        raise UsageError(
            parameter="rows",
            rule=f"must be at most the tally's {capacity}",
            got=f"{options.rows}",
            remedy="make a tally with more rows",
        )


def _rows_for(
    basis: Basis, noisy_count: int, promise: Promise, options: ReleaseOptions, whole: Calibration
) -> int:
    """The rows that suit a noisy count: under pure ε each row adds noise to all others."""
    if not promise.pure:
        return basis.shape[0]
    assert promise.epsilon is not None
    epsilon = promise.epsilon * (1 - options.count_share if options.change.count else 1)
    worth = float(epsilon)
    if options.mechanism == GAMMA:
        # With less variance than Laplace's as many rows suit as Laplace noise takes at a larger ε.
        laplace = laplace_noise(options.change.table.l1, epsilon)
        # An ε at which nothing is left of Laplace noise takes all rows anyway.
        worth *= max(1.0, math.sqrt(laplace.variance / whole.table.variance))
    return basis.rows_for(noisy_count, worth, options.change.records)


def rounding_step(published: Basis, noise: IntegerNoise, *, rounded: bool) -> int:
    """What cells are rounded to multiples of."""
    if rounded:
        return largest_step(noise.variance)
    return largest_step(noise.variance, UNSEEN_SHARE) if published.fractional else 1


def noisy_rows(
    table: Counters, rows: int, noise: IntegerNoise, source: NoiseSource, threads: int
) -> Iterator[NDArray[np.int64]]:
    """The first rows plus noise, some at a time, so that little is held twice; noise of the Gamma-radius law,
    which is one vector, all at once.
    """
    width = table.shape[1]
    step = rows if noise.mechanism == GAMMA else max(1, _CELLS_AT_A_TIME // width)
    for start in range(0, rows, step):
        many = min(step, rows - start)
        noisy = noise.draw(many * width, source, threads=threads).reshape(many, width)
        if isinstance(table, np.ndarray):
            noisy += table[start : start + many]
        else:
            exact = np.empty_like(noisy)
            table.read_rows(start, exact, threads)
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
    from hushsum.files.mapped_table import TablePacker

    packer = TablePacker(shape, unit=step, threads=threads)
    for part in parts:
        packer.add(part.reshape(-1) if step == 1 else round_cells(part, step).reshape(-1))
    return packer.finish()
