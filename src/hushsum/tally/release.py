"""From exact sums to a public function: the one place where noise meets counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Basis, Reading, Table
from hushsum.errors import UsageError, shown
from hushsum.kernels.parameters import positive_integer
from hushsum.privacy.calibration import (
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    NO_NOISE,
    IntegerNoise,
    Sensitivity,
    gamma_noise,
    gaussian_noises,
    laplace_noise,
    split_epsilon,
)
from hushsum.privacy.claim import Claim, Promise, Relation, exact
from hushsum.privacy.noise import NoiseSource
from hushsum.privacy.release_noise import REAL_ARITHMETIC
from hushsum.privacy.request import AUTO, MOST_ROWS, ReleaseRequest
from hushsum.releases.noisy_table import UNSEEN_SHARE, NoisyTable, function_of, largest_step
from hushsum.version import PRODUCER

_CELLS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """How a release is made, beyond its promise."""

    relation: Relation
    rows: int | None
    count_share: Fraction
    per_unit: int | None
    threads: int
    insecure_noise_seed: int | None
    rounded: bool
    gamma: bool

    @classmethod
    def of(cls, request: ReleaseRequest, *, per_unit: int | None, threads: int) -> ReleaseOptions:
        """Check the options of a request; ``rows`` becomes None for ``"auto"``."""
        rows = request.rows
        if isinstance(rows, str) and rows != AUTO:
            raise UsageError(
                parameter="rows", rule=f"must be a number or {AUTO!r}", got=shown(rows), remedy="choose one"
            )
        return cls(
            relation=Relation.of(request.relation),
            rows=None if isinstance(rows, str) else positive_integer("rows", rows, at_most=MOST_ROWS),
            count_share=exact("count_share", request.count_share),
            per_unit=per_unit,
            threads=threads,
            insecure_noise_seed=request.insecure_noise_seed,
            rounded=bool(request.rounded),
            gamma=request.gamma,
        )

    def claim(self, promise: Promise) -> Claim:
        """What a release with these options claims; known before anything is drawn."""
        return Claim(
            promise=promise,
            unit="record" if self.per_unit is None else "person",
            records_per_unit=self.per_unit or 1,
            relation=self.relation,
            mechanism=GAMMA if self.gamma else LAPLACE if promise.pure else GAUSSIAN,
            arithmetic=REAL_ARITHMETIC if self.gamma else "exact integers",
            secure=self.insecure_noise_seed is None,
        )

    @property
    def count_moves(self) -> int:
        """How far one unit moves the number of records; 0 where that number is public.

        A record replaced leaves the number as it was. A person replaced may have had fewer records, so the
        number stays private.
        """
        if self.per_unit is not None:
            return self.per_unit
        return 0 if self.relation is Relation.REPLACE else 1

    @property
    def moves(self) -> int:
        """How many records' vectors one unit may move: replaced, a record leaves and another comes."""
        return (self.per_unit or 1) * (2 if self.relation is Relation.REPLACE else 1)


def release_table(
    reading: Reading, table: NDArray[np.int64], count: int, promise: Promise, options: ReleaseOptions
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
    release = _release_laplace if promise.pure else _release_gaussian
    with NoiseSource.for_release(options.insecure_noise_seed) as source:
        published, noise, noisy_count, count_noise = release(basis, count, promise, options, source)
        noisy = _with_noise(table[: published.shape[0]], noise, source, options.threads)
    function = function_of(
        reading=published.reading(reading.kernel),
        table=noisy,
        claim=claim,
        noise=noise,
        noisy_count=noisy_count,
        count_noise=count_noise,
        producer=PRODUCER,
    )
    if options.rounded:
        return function.rounded()
    step = largest_step(noise.variance, UNSEEN_SHARE) if published.fractional else 1
    return function.rounded(step) if step > 1 else function


def check_release(basis: Basis, promise: Promise, options: ReleaseOptions) -> None:
    """Refuse what cannot be released, from public parameters alone: the budget is debited only after this.

    The noise of the largest release that may follow is calibrated, and its variance computed, which refuses
    what the samplers would.
    """
    _check_rows(basis, options)
    published = basis.prefix(options.rows or basis.shape[0])
    moved = published.sensitivity(options.relation).times(options.per_unit or 1)
    if promise.pure:
        table_epsilon, count_epsilon = split_epsilon(
            promise, private_count=options.count_moves > 0, count_share=options.count_share
        )
        noises = [_pure_noise(published, moved, table_epsilon, options)]
        if options.count_moves:
            noises.append(laplace_noise(options.count_moves, count_epsilon))
    else:
        noises = list(
            gaussian_noises(
                promise,
                moved,
                cells=math.prod(published.shape),
                count=options.count_moves,
                count_share=options.count_share,
            )
        )
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


def _release_laplace(
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
        # With half of Laplace's variance as many rows suit as Laplace noise takes at √2·ε.
        worth = float(table_epsilon) * (math.sqrt(2.0) if options.gamma else 1.0)
        rows = basis.rows_for(noisy_count, worth, options.moves)
    published = basis.prefix(rows)
    moved = published.sensitivity(options.relation).times(options.per_unit or 1)
    return published, _pure_noise(published, moved, table_epsilon, options), noisy_count, count_noise


def _pure_noise(
    published: Basis, moved: Sensitivity, epsilon: Fraction, options: ReleaseOptions
) -> IntegerNoise:
    if options.gamma:
        return gamma_noise(moved.l2_squared, math.prod(published.shape), epsilon)
    return laplace_noise(moved.l1, epsilon)


def _release_gaussian(
    basis: Basis, count: int, promise: Promise, options: ReleaseOptions, source: NoiseSource
) -> _Drawn:
    published = basis.prefix(options.rows or basis.shape[0])
    moved = published.sensitivity(options.relation).times(options.per_unit or 1)
    noise, count_noise = gaussian_noises(
        promise,
        moved,
        cells=math.prod(published.shape),
        count=options.count_moves,
        count_share=options.count_share,
    )
    return published, noise, count + int(count_noise.draw(1, source)[0]), count_noise


def _with_noise(table: NDArray[np.int64], noise: IntegerNoise, source: NoiseSource, threads: int) -> Table:
    """The table plus independent noise in every cell, some rows at a time so that little is held twice.

    Noisy counts that fit 32 bits are kept in them, which halves the memory and reads faster.
    """
    rows, width = table.shape
    step = rows if noise.mechanism == GAMMA else max(1, _CELLS_AT_A_TIME // width)
    noisy: Table = np.empty((rows, width), np.int32)
    smallest, largest = -(2**31), 2**31 - 1
    for start in range(0, rows, step):
        exact = table[start : start + step]
        part = noise.draw(exact.size, source, threads=threads).reshape(exact.shape)
        part += exact
        if noisy.dtype == np.int32 and (part.min() < smallest or part.max() > largest):
            noisy = noisy.astype(np.int64)
        noisy[start : start + step] = part
    return noisy
