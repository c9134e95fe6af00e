"""From exact sums to a public function: the one place where noise meets counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Basis, Cells, Reading, RowReading, Table
from hushsum.bases.hash_rows import LARGE_TABLE
from hushsum.errors import UsageError, shown
from hushsum.kernels.parameters import positive_integer
from hushsum.privacy.calibration import (
    Sensitivity,
    UnitChange,
    binomial_noises,
    gaussian_noises,
    laplace_noise,
    pure_mechanism,
    pure_noise,
    split_epsilon,
)
from hushsum.privacy.claim import PERSON, Claim, Promise, Relation, checked_unit, exact
from hushsum.privacy.integer_noise import BINOMIAL, GAMMA, GAUSSIAN, NO_NOISE, IntegerNoise
from hushsum.privacy.noise import NoiseSource
from hushsum.privacy.release_noise import EXACT_INTEGERS
from hushsum.privacy.release_request import AUTO, MOST_ROWS, ReleaseRequest
from hushsum.releases.noisy_table import UNSEEN_SHARE, NoisyTable, function_of, largest_step, round_cells
from hushsum.version import PRODUCER

if TYPE_CHECKING:
    from hushsum.tally.counters import Counters
    from hushsum.tally.tally import Tally

_CELLS_AT_A_TIME = 1 << 20


def claimed_unit(tally: Tally, requested: str | None) -> tuple[str, int]:
    """The unit of a claim, and how many records, or lists of edges, it may be in.

    Raises
    ------
    ClaimError
        for a unit that the tally does not have.
    """
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
            count_share=exact("count_share", request.count_share),
            assumptions=(
                *(text for name, text in basis.assumptions.items() if name == unit),
                *assumptions,
            ),
            threads=threads,
            insecure_noise_seed=request.insecure_noise_seed,
            rounded=bool(request.rounded),
            mechanism=request.checked_mechanism or _mechanism(request, change, basis),
        )

    def claim(self, promise: Promise) -> Claim:
        """What a release with these options claims; known before anything is drawn."""
        return Claim(
            promise=promise,
            unit=self.unit,
            records_per_unit=self.per_unit,
            relation=self.relation,
            mechanism=self.mechanism,
            arithmetic=EXACT_INTEGERS,
            secure=self.insecure_noise_seed is None,
            assumptions=self.assumptions,
        )

    @property
    def count_moves(self) -> int:
        """How far one unit moves the number of records; 0 where that number is public."""
        return self.change.count

    @property
    def moves(self) -> int:
        """How many records' vectors one unit may move: replaced, a record leaves and another comes."""
        return self.change.records

    def moved(self, published: Basis) -> Sensitivity:
        """How far one unit moves the published table."""
        return published.unit_change(self.unit, self.per_unit, self.relation).table


def _mechanism(request: ReleaseRequest, change: UnitChange, basis: Basis) -> str:
    promise = request.promise
    if not promise.pure:
        return GAUSSIAN
    share = exact("count_share", request.count_share)
    epsilon, _ = split_epsilon(promise, private_count=change.count > 0, count_share=share)
    return pure_mechanism(change.table, math.prod(basis.shape), epsilon)


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
    release = _release_pure if promise.pure else _release_approximate
    with NoiseSource.for_release(options.insecure_noise_seed) as source:
        published, noise, noisy_count, count_noise = release(basis, count, promise, options, source)
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


def check_release(basis: Basis, promise: Promise, options: ReleaseOptions) -> None:
    """Refuse what cannot be released, from public parameters alone: the budget is debited only after this.

    The noise of the largest release that may follow is calibrated, and its variance computed, which refuses
    what the samplers would.
    """
    _check_rows(basis, options)
    published = basis.prefix(options.rows or basis.shape[0])
    moved = options.moved(published)
    if promise.pure:
        table_epsilon, count_epsilon = split_epsilon(
            promise, private_count=options.count_moves > 0, count_share=options.count_share
        )
        noises = [_pure_noise(published, moved, table_epsilon, options)]
        if options.count_moves:
            noises.append(laplace_noise(options.count_moves, count_epsilon))
    else:
        noises = list(_approximate_noises(published, promise, options))
    for noise in noises:
        _ = noise.variance


def _check_rows(basis: Basis, options: ReleaseOptions) -> None:
    capacity = basis.shape[0]
    if options.rows is not None and options.rows > capacity:
        raise UsageError(
            parameter="rows",
            rule=f"must be at most the tally's {capacity}",
            got=f"{options.rows}",
            remedy="make a tally with more rows",
        )


_Drawn = tuple[Basis, IntegerNoise, int, IntegerNoise]


def _release_pure(
    basis: Basis, count: int, promise: Promise, options: ReleaseOptions, source: NoiseSource
) -> _Drawn:
    private_count = options.count_moves > 0
    table_epsilon, count_epsilon = split_epsilon(
        promise, private_count=private_count, count_share=options.count_share
    )
    count_noise = laplace_noise(options.count_moves, count_epsilon) if private_count else NO_NOISE
    noisy_count = count + int(count_noise.draw(1, source)[0])
    rows = options.rows
    if rows is None:
        worth = float(table_epsilon)
        if options.mechanism == GAMMA:
            # With less variance than Laplace's as many rows suit as Laplace noise takes at a larger ε.
            noise = _pure_noise(basis, options.change.table, table_epsilon, options)
            laplace = laplace_noise(options.change.table.l1, table_epsilon)
            # An ε at which nothing is left of Laplace noise takes all rows anyway.
            worth *= max(1.0, math.sqrt(laplace.variance / noise.variance))
        rows = basis.rows_for(noisy_count, worth, options.moves)
    published = basis.prefix(rows)
    moved = options.moved(published)
    return published, _pure_noise(published, moved, table_epsilon, options), noisy_count, count_noise


def _pure_noise(
    published: Basis, moved: Sensitivity, epsilon: Fraction, options: ReleaseOptions
) -> IntegerNoise:
    return pure_noise(moved, math.prod(published.shape), epsilon, options.mechanism)


def _release_approximate(
    basis: Basis, count: int, promise: Promise, options: ReleaseOptions, source: NoiseSource
) -> _Drawn:
    published = basis.prefix(options.rows or basis.shape[0])
    noise, count_noise = _approximate_noises(published, promise, options)
    return published, noise, count + int(count_noise.draw(1, source)[0]), count_noise


def _approximate_noises(
    published: Basis, promise: Promise, options: ReleaseOptions
) -> tuple[IntegerNoise, IntegerNoise]:
    """The noise of the table and of the count, for ρ or (ε, δ)."""
    moved, count, share = options.moved(published), options.count_moves, options.count_share
    if options.mechanism == BINOMIAL:
        return binomial_noises(promise, moved, count=count, count_share=share)
    cells = math.prod(published.shape)
    return gaussian_noises(promise, moved, cells=cells, count=count, count_share=share)


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
