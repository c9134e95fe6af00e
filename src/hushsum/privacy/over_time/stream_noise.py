"""From a promise to the noise of every step of a stream: one claim over all of them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, Parameter
from hushsum.privacy.accounting.discrete_gaussian import short_above
from hushsum.privacy.accounting.discrete_gaussian_vectors import vector_delta, vector_variances
from hushsum.privacy.accounting.zcdp import zcdp_rho
from hushsum.privacy.calibration import Sensitivity, UnitChange, calibrate
from hushsum.privacy.claim import Promise, Relation
from hushsum.privacy.integer_noise import FACTORISED, GAUSSIAN, INTERVALS, LAPLACE, IntegerNoise
from hushsum.privacy.noise import NoiseSource
from hushsum.privacy.over_time.matrix_factorisation import (
    MOST_FRACTION_BITS,
    Factorisation,
    length_above,
)
from hushsum.privacy.over_time.stream_views import View
from hushsum.privacy.over_time.tree_sums import TreeSums
from hushsum.privacy.over_time.unit_changes import StepChange, step_changes

MOST_STEPS = 1 << 14
_SMALL = Fraction(1, 1000)
"""What rounding may add to the sensitivity, and the lattice to δ."""

_LARGEST_VARIANCE = 2.0**76
"""Of the noise of an output, which the sampler draws below 2⁷⁸."""

Strategy = Factorisation | TreeSums


@dataclass(frozen=True)
class StreamNoise:
    """The strategy of a stream, what it shows, and the noise of each of its outputs.

    ``table`` is drawn in every cell of the table at every step, ``count`` beside the number of records.
    """

    strategy: Strategy
    view: View
    table: IntegerNoise
    count: IntegerNoise

    @property
    def mechanism(self) -> str:
        """As claims call it."""
        return INTERVALS if isinstance(self.strategy, TreeSums) else FACTORISED

    @property
    def intervals(self) -> bool:
        """Whether outputs are sums of intervals, which is for pure ε."""
        return isinstance(self.strategy, TreeSums)

    @property
    def steps(self) -> int:
        """The horizon."""
        return self.strategy.steps

    @cached_property
    def gains(self) -> Floats:
        """The variance of what is shown at each step for noise of variance 1 in every output."""
        return self.strategy.gains(self.view)

    def at(self, step: int) -> tuple[IntegerNoise, IntegerNoise]:
        """The noise of a cell, and of the number of records, in what is shown at a step."""
        gain = float(self.gains[step - 1])
        return (
            IntegerNoise(self.mechanism, short_above(self.table.variance * gain)),
            IntegerNoise(self.mechanism, short_above(self.count.variance * gain)),
        )

    def correlation_gain(self, first: int, second: int) -> float:
        """The covariance of what two steps show, for noise of variance 1 in every output."""
        one, other = (self.strategy.row(step, self.view) for step in (first, second))
        shared = min(first, second)
        return float(np.dot(one[:shared], other[:shared]))

    def add_to(
        self, output: Integers, step: int, *, insecure_noise_seed: int | None, threads: int = 1
    ) -> None:
        """Add new noise, from a fresh key, to the exact output of a step, in place; the count is its last
        number.
        """
        seed = None if insecure_noise_seed is None else insecure_noise_seed * MOST_STEPS + step
        with NoiseSource.for_release(seed) as source:
            output[:-1] += self.table.draw(len(output) - 1, source, threads=threads)
            output[-1:] += self.count.draw(1, source)

    def as_json(self) -> dict[str, Any]:
        """For a file's header."""
        return {
            "strategy": self.strategy.as_json(),
            "view": self.view.as_json(),
            "table": self.table.as_json(),
            "count": self.count.as_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamNoise:
        """The noise of a file's header; ValueError if there is none like it."""
        if set(data) != {"strategy", "view", "table", "count"}:
            raise ValueError("stream")
        kinds: dict[str, type[Factorisation] | type[TreeSums]] = {
            Factorisation.name: Factorisation,
            TreeSums.name: TreeSums,
        }
        kind = kinds.get(data["strategy"]["name"])
        if kind is None:
            raise ValueError("strategy")
        noise = cls(
            kind.from_json(data["strategy"]),
            View.from_json(data["view"]),
            IntegerNoise.from_json(data["table"]),
            IntegerNoise.from_json(data["count"]),
        )
        drawn = LAPLACE if isinstance(noise.strategy, TreeSums) else GAUSSIAN
        if noise.steps > MOST_STEPS or {noise.table.mechanism, noise.count.mechanism} != {drawn}:
            raise ValueError("noise")
        if isinstance(noise.strategy, TreeSums) and noise.view.decay and noise.strategy.levels > 1:
            raise ValueError("levels")
        return noise


@dataclass(frozen=True, slots=True)
class StreamUnit:
    """Whom a stream protects, and what that unit can change.

    ``record`` is how far one record moves the table, for both relations; ``per_unit`` the cap on a person's
    records over the whole horizon; ``removals`` whether a record may be removed again; ``cells`` the size of
    the table.
    """

    record: Mapping[Relation, Sensitivity]
    relation: Relation
    per_unit: int | None
    removals: bool
    cells: int

    def changes(self) -> tuple[StepChange, StepChange]:
        """Of the table and of the number of records."""
        return step_changes(
            dict(self.record),
            self.relation,
            per_unit=self.per_unit,
            removals=self.removals,
            cells=self.cells,
        )


def stream_noise(
    promise: Promise, unit: StreamUnit, *, steps: int, view: View, count_share: Fraction
) -> StreamNoise:
    """The noise that keeps a promise over all steps together.

    Pure ε: sums of intervals with discrete Laplace noise. ρ, or ε and δ: the factorisation with discrete
    Gaussian noise. The number of records is one more coordinate, which takes ``count_share`` of the budget,
    under both relations: a replaced record may stand at another step, so the number at each step is private.
    """
    table, count = unit.changes()
    if promise.pure:
        intervals = TreeSums.best(steps, view)
        # A unit moves one sum of each level. No vector is longer in L2 than in L1.
        l1 = intervals.levels * table.l1
        change = UnitChange(Sensitivity(l1, l1**2, l1), intervals.levels * count.l1, 1)
        noise = calibrate(promise, change, cells=unit.cells, count_share=count_share, mechanism=LAPLACE)
        return StreamNoise(intervals, view, noise.table, noise.count)
    return _factorised(promise, table, count, steps, view, _proper(count_share))


def _factorised(
    promise: Promise, table: StepChange, count: StepChange, steps: int, view: View, share: Fraction
) -> StreamNoise:
    def plan_with(bits: int) -> Factorisation:
        return Factorisation.best(steps, view, fraction_bits=bits)

    def fewest(enough: Callable[[Factorisation], bool]) -> int:
        return bisect_left(range(MOST_FRACTION_BITS), True, key=lambda bits: enough(plan_with(bits)))

    small = fewest(lambda plan: _little_rounding(plan, table, count))
    fine = max(small, fewest(lambda plan: _fine_lattice(promise, plan, table)))
    most = fewest(lambda plan: _variance_near(promise, plan, table, share) > _LARGEST_VARIANCE) - 1
    # Where the lattice cannot be fine, as for a large ε, the noise comes from ρ, which does not need it.
    plan = plan_with(max(0, min(fine if fine < most else small, most)))
    lengths = _lengths(plan, table, count)
    variance, of_count = _variances(promise, plan, lengths, table, share)
    return StreamNoise(plan, view, IntegerNoise(GAUSSIAN, variance), IntegerNoise(GAUSSIAN, of_count))


def _lengths(plan: Factorisation, table: StepChange, count: StepChange) -> tuple[int, int]:
    """Δ2² of all outputs of the table, and of all outputs of the count."""
    bounds = plan.bounds()
    return (
        length_above(table.l2_squared, table.touched, bounds),
        length_above(count.l2_squared, count.touched, bounds),
    )


def _little_rounding(plan: Factorisation, table: StepChange, count: StepChange) -> bool:
    """Whether rounding adds next to nothing to both lengths."""
    bounds = plan.bounds()
    return all(
        each.touched * bounds.rounding_squared <= _SMALL**2 * bounds.column_squared * each.l2_squared
        for each in (table, count)
    )


def _variance_near(promise: Promise, plan: Factorisation, table: StepChange, share: Fraction) -> float:
    rho = promise.rho
    if rho is None:
        assert promise.epsilon is not None
        rho = Fraction(zcdp_rho(promise.epsilon, promise.delta))
    return float(plan.bounds().column_squared * table.l2_squared / (2 * rho * (1 - share)))


def _fine_lattice(promise: Promise, plan: Factorisation, table: StepChange) -> bool:
    """Whether discrete noise is so near to rounded noise that δ hardly grows."""
    if promise.rho is not None:
        return True
    assert promise.epsilon is not None
    gap = plan.steps * table.touched / (24.0 * _variance_near(promise, plan, table, Fraction(0)))
    return gap * (1.0 + math.exp(min(float(promise.epsilon), 700.0))) <= float(_SMALL * promise.delta)


def _variances(
    promise: Promise, plan: Factorisation, lengths: tuple[int, int], table: StepChange, share: Fraction
) -> tuple[Fraction, Fraction]:
    """σ² of the cells and of the count, which takes its share of the squared length in units of its noise.

    Multiplied by λ = σ/σ_c, the count is one more part of the vector that has noise σ, so that together
    their squared length is Δ2²/(1 − share).
    """
    cells, count = lengths
    whole = math.ceil(Fraction(cells) / (1 - share))
    # λ² of the n numbers of the count weigh in the distance of the lattices, as λ²·n cells.
    ratio = Fraction(cells) * share / ((1 - share) * count)
    if promise.rho is not None:
        variance = Fraction(whole) / (2 * promise.rho)
    else:
        assert promise.epsilon is not None
        touched = math.ceil(plan.steps * (table.touched + max(ratio, Fraction(1))))
        variance = _variance(promise.epsilon, promise.delta, whole, touched)
    return variance, variance / ratio


@lru_cache(maxsize=256)
def _variance(epsilon: Fraction, delta: Fraction, l2_squared: int, cells: int) -> Fraction:
    """Cached, because a plan and the stream that follows need the same value."""
    return vector_variances(epsilon=epsilon, delta=delta, l2_squared=l2_squared, cells=cells).variance


def spent_rho(noise: StreamNoise, unit: StreamUnit) -> Fraction:
    """ρ of all outputs of a factorised stream together."""
    assert isinstance(noise.strategy, Factorisation)
    lengths = _lengths(noise.strategy, *unit.changes())
    return lengths[0] / (2 * noise.table.parameter) + lengths[1] / (2 * noise.count.parameter)


def spent_delta(noise: StreamNoise, unit: StreamUnit, epsilon: Fraction) -> float:
    """An upper bound on δ(ε) of all outputs of a factorised stream together."""
    assert isinstance(noise.strategy, Factorisation)
    table, count = unit.changes()
    lengths = _lengths(noise.strategy, table, count)
    ratio = noise.table.parameter / noise.count.parameter
    return vector_delta(
        epsilon,
        l2_squared=math.ceil(lengths[0] + ratio * lengths[1]),
        cells=math.ceil(noise.steps * (table.touched + max(ratio, Fraction(1)))),
        variance=noise.table.parameter,
    )


def spent_epsilon(noise: StreamNoise, unit: StreamUnit) -> Fraction:
    """ε of all outputs of a stream of interval sums together."""
    assert isinstance(noise.strategy, TreeSums)
    table, count = unit.changes()
    levels = noise.strategy.levels
    return levels * table.l1 / noise.table.parameter + levels * count.l1 / noise.count.parameter


def _proper(share: Fraction) -> Fraction:
    if not 0 < share < 1:
        raise ClaimError(
            parameter="count_share",
            rule="must be above 0 and below 1",
            got=f"{float(share):g}",
            remedy=("leave ", Parameter("count_share"), " out"),
        )
    return share
