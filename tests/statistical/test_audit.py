"""Audits of the claims: they hold, and copies that cheat by 20 % are caught."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.auditing import SensitivityAudit, audit_gaussian, audit_laplace, audit_sensitivity
from hushsum.auditing._statistics import LESS_NOISE, binomial_bounds
from hushsum.errors import UsageError
from hushsum.privacy import IntegerNoise, Promise, Relation, Sensitivity, UnitChange, calibrate, laplace_noise
from hushsum.privacy.accounting import gaussian_variances
from hushsum.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace
from hushsum.releases import TableFunction
from hushsum.tables import HashRows
from tests.exact_tallies import exact_table
from tests.kernel_cases import CASES, Case, Records, joined, take

Draw = Callable[[int], NDArray[np.int64]]
Pair = tuple[object, object]


def extreme(case: Case) -> Records:
    """Records at the edges of what is accepted, most of them equal to each other or to zero."""
    if isinstance(case.kernel, hs.JaccardKernel):
        return [[], [0], [2**63 - 1], [-(2**63)], [7, 7, 7], list(range(500)), [0], []]
    dim: int = getattr(case.kernel, "dim")  # noqa: B009
    if isinstance(case.kernel, hs.HammingKernel):
        return np.array([[0] * dim, [2**31 - 1] * dim, [-(2**31)] * dim, [5] * dim, [0] * dim])
    largest = float(np.finfo(np.float32).max)
    values = [0.0, -0.0, largest, -largest, 1e30, 1e-45, -1e-38, 2.0**24 + 2, 1e-3, 0.0]
    alternating = np.where(np.arange(dim) % 2, largest, -largest)[None]
    return np.concatenate([np.repeat(np.array(values)[:, None], dim, axis=1), alternating]).astype(np.float32)


def adversarial(case: Case, relation: Relation) -> Iterator[Pair]:
    """Neighbours meant to move too far: batches of 1 to 40 records, extremes, duplicates, block boundaries.

    The odd record stands first, in the middle and last, so that a sum whose rounding, lanes or tails
    depended on position would move other records too.
    """
    records, rest = case.records(42, seed=5), extreme(case)
    far = take(rest, [-1])
    for size in range(1, 41):
        base = take(records, range(size))
        for position in {0, size // 2, size - 1}:
            if relation is Relation.REPLACE:
                yield base, joined(base[:position], far, base[position + 1 :])
            else:
                left = joined(base[:position], base[position + 1 :])
                yield base, left if size > 1 else None
    for i in range(len(rest)):
        crowd = joined(take(rest, [i] * 3), rest)
        if relation is Relation.REPLACE:
            yield crowd, joined(crowd[1:], take(records, [0]))
        else:
            yield crowd, crowd[1:]
    for size in (255, 256, 257, 1023, 1024, 1025):
        many = case.records(size, seed=6)
        other = joined(far, many[1:]) if relation is Relation.REPLACE else many[1:]
        yield many, other


class Understated(HashRows):
    """A copy that declares 20 % less than it moves."""

    def prefix(self, rows: int) -> Understated:
        return Understated(self.kernel, rows, self.width, self.seed, self.bounds)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        true = super().sensitivity(relation)
        return Sensitivity(l1=true.l1 * 4 // 5, l2_squared=true.l2_squared * 4 // 5, largest=true.largest)


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_neighbours_move_further_than_declared_and_a_fifth_less_is_caught(
    case: Case, relation: Relation
) -> None:
    basis = HashRows(case.kernel, 100, 1000, seed=3)
    audit = audit_sensitivity(basis, adversarial(case, relation), relation)
    assert audit.holds, audit
    assert audit.pairs > 100
    # The same moves by three threads, of a copy that declares less.
    copy = Understated(case.kernel, 100, 1000, seed=3)
    cheating = audit_sensitivity(copy, adversarial(case, relation), relation, threads=3)
    assert cheating.found == audit.found, "the move depends on threads"
    assert not cheating.holds, cheating
    assert cheating.found.l1 > cheating.declared.l1
    assert cheating.found.l2_squared > cheating.declared.l2_squared


@pytest.mark.parametrize("norm", ["l1", "l2_squared", "largest"])
def test_each_norm_alone_is_judged(norm: str) -> None:
    declared = Sensitivity(10, 10, 1)
    assert SensitivityAudit(declared, declared, 1).holds
    found = replace(declared, **{norm: getattr(declared, norm) + 1})
    assert not SensitivityAudit(declared, found, 1).holds


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_persons_move_no_further_than_the_cap_allows(relation: Relation) -> None:
    """One person with many equal records more, or replaced by another such person; cap 3."""

    def table(units: list[str], points: NDArray[np.float64]) -> NDArray[np.int64]:
        tally = hs.race(hs.EuclideanKernel(1, 1.0), rows=50, width=1000, seed=1, max_per_unit=3)
        counted: NDArray[np.int64] = exact_table(tally.add(points, units=units))
        return counted

    others, names = np.arange(20.0)[:, None], [f"p{i % 6}" for i in range(20)]
    crowd = table([*names, *["x"] * 9], np.vstack([others, np.full((9, 1), 99.0)]))
    other = (
        table(names, others)
        if relation is Relation.ADD_REMOVE
        else table([*names, *["x"] * 9], np.vstack([others, np.full((9, 1), -5000.0)]))
    )
    move = np.abs(crowd - other)
    declared = HashRows(hs.EuclideanKernel(1, 1.0), 50, 1000, 1).sensitivity(relation).times(3)
    assert move.sum() == declared.l1
    assert (move**2).sum() == declared.l2_squared
    assert move.max() == declared.largest


def laplace(parameter: Fraction, seed: int) -> Draw:
    source = NoiseSource.insecure(seed)
    return lambda size: discrete_laplace(size, parameter, source)


def gaussian(parameter: Fraction, seed: int) -> Draw:
    source = NoiseSource.insecure(seed)
    return lambda size: discrete_gaussian(size, parameter, source)


EPSILONS = [Fraction(1), Fraction(3), pytest.param(Fraction(1, 10), marks=pytest.mark.slow)]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_laplace_noise_keeps_its_epsilon(epsilon: Fraction) -> None:
    """A sound sampler is accused with probability 1e-6 at most."""
    noise = laplace_noise(1, epsilon)
    audit = audit_laplace(laplace(noise.parameter, seed=1), float(epsilon))
    assert audit.holds, audit
    assert audit.lower_bound > 0.75 * audit.claim, "the audit is too weak to say anything"
    assert audit.power >= 0.99


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_laplace_noise_a_fifth_too_small_is_caught(epsilon: Fraction) -> None:
    noise = laplace_noise(1, epsilon)
    less = noise.parameter * Fraction(LESS_NOISE).limit_denominator(100)
    audit = audit_laplace(laplace(less, seed=2), float(epsilon))
    assert not audit.holds, audit


@pytest.mark.parametrize("shift", [2, 5])
def test_laplace_noise_of_larger_moves(shift: int) -> None:
    """A person with up to five records in one row."""
    fair = audit_laplace(laplace(Fraction(shift), seed=3), 1.0, shift=shift)
    assert fair.holds
    assert fair.power >= 0.99
    forgotten = audit_laplace(laplace(Fraction(1), seed=3), 1.0, shift=shift)
    assert not forgotten.holds
    less = audit_laplace(laplace(Fraction(shift) * Fraction(4, 5), seed=4), 1.0, shift=shift)
    assert not less.holds


ROWS = 100


def table_variance() -> Fraction:
    return gaussian_variances(epsilon=1.0, delta=1e-6, cells=ROWS).variance


def test_gaussian_noise_keeps_its_trade_off_curve() -> None:
    """The calibrated table for ε = 1, δ = 1e-6 with 100 rows; accused with probability 1e-6 at most."""
    audit = audit_gaussian(gaussian(table_variance(), seed=5), float(table_variance()), cells=ROWS)
    assert audit.holds, audit
    assert audit.lower_bound > 0.75 * audit.claim
    assert audit.power >= 0.99


def test_gaussian_noise_a_fifth_too_small_is_caught() -> None:
    """20 % less noise is a deviation of 0.8, a variance of 0.64."""
    less = table_variance() * Fraction(64, 100)
    audit = audit_gaussian(gaussian(less, seed=6), float(table_variance()), cells=ROWS)
    assert not audit.holds, audit
    assert audit.power >= 0.99


@pytest.mark.slow
def test_the_stated_power_is_what_many_audits_have() -> None:
    """500 audits each of noise a fifth too small; power 0.99 misses 15 or more of them with probability 3e-4.

    A binomial count below 500·0.99 − 25 has probability below 1e-9.
    """
    caught = sum(
        not audit_laplace(laplace(Fraction(4, 5), seed=1000 + seed), 1.0).holds for seed in range(500)
    )
    assert caught >= 470
    fair = sum(audit_laplace(laplace(Fraction(1), seed=5000 + seed), 1.0).holds for seed in range(500))
    assert fair == 500


def test_audits_refuse_what_they_cannot_see() -> None:
    with pytest.raises(UsageError, match="epsilon must be above 0"):
        audit_laplace(laplace(Fraction(1), seed=1), 0.0)
    with pytest.raises(UsageError, match="too strong to be audited"):
        audit_laplace(laplace(Fraction(1), seed=1), 1e-7)


@pytest.mark.parametrize(("hits", "number"), [(0, 50), (50, 50), (3, 50), (500, 1000)])
def test_binomial_bounds_are_exact(hits: int, number: int) -> None:
    from scipy.stats import binom

    low, high = binomial_bounds(hits, number, 1e-3)
    assert low == 0.0 if hits == 0 else binom.sf(hits - 1, number, low) == pytest.approx(1e-3, rel=1e-6)
    assert high == 1.0 if hits == number else binom.cdf(hits, number, high) == pytest.approx(1e-3, rel=1e-6)


class TestSmoke:
    """A black-box smoke test of whole releases: it catches gross faults only, such as noise divided by 4.

    One row, so that all of ε is in one cell and the count: neighbours are no record and one, and the event
    is that the record's cell reaches 1.
    """

    RELEASES = 3000
    EPSILON = 1.0

    def bound(self, first_seed: int) -> float:
        """A lower bound on ε, wrong with probability 1e-6 at most."""
        empty = hs.race(hs.EuclideanKernel(1, 1.0), rows=1, width=4, seed=1)
        one = hs.race(hs.EuclideanKernel(1, 1.0), rows=1, width=4, seed=1).add([[0.0]])
        cell = int(exact_table(one)[0].argmax())
        hits = [0, 0]
        for side, tally in enumerate((empty, one)):
            for seed in range(self.RELEASES):
                f = tally.release(
                    epsilon=self.EPSILON, rows=1, insecure_noise_seed=first_seed + 2 * seed + side, threads=1
                )
                assert isinstance(f, TableFunction)
                hits[side] += int(f.table[0, cell]) >= 1
        low = binomial_bounds(hits[1], self.RELEASES, 5e-7)[0]
        high = binomial_bounds(hits[0], self.RELEASES, 5e-7)[1]
        return math.log(low / high)

    def test_a_release_keeps_its_epsilon(self) -> None:
        assert 0.5 < self.bound(0) <= self.EPSILON

    def test_a_quarter_of_the_noise_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = IntegerNoise.draw

        def quarter(noise: IntegerNoise, size: int, source: NoiseSource, *, threads: int = 1) -> Any:
            return real(IntegerNoise(noise.mechanism, noise.parameter / 4), size, source, threads=threads)

        monkeypatch.setattr(IntegerNoise, "draw", quarter)
        assert self.bound(10**6) > self.EPSILON


@pytest.mark.parametrize("rows", [1, 7, 50])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("persons", [None, 4])
def test_release_draws_with_exactly_the_calibrated_parameters(
    monkeypatch: pytest.MonkeyPatch, rows: int, relation: Relation, persons: int | None
) -> None:
    """Every primitive of a release is called with the scale of Δ1 = rows × moves × records of a unit."""
    drawn: list[tuple[IntegerNoise, int]] = []
    real = IntegerNoise.draw

    def spy(noise: IntegerNoise, size: int, source: NoiseSource, *, threads: int = 1) -> Any:
        drawn.append((noise, size))
        return real(noise, size, source, threads=threads)

    monkeypatch.setattr(IntegerNoise, "draw", spy)
    tally = hs.race(hs.EuclideanKernel(1, 1.0), rows=50, width=10, max_per_unit=persons)
    moves = (1 if relation is Relation.ADD_REMOVE else 2) * rows * (persons or 1)
    private = persons is not None or relation is Relation.ADD_REMOVE
    share = Fraction(1, 50) if private else Fraction(0)
    tally.release(epsilon=0.5, rows=rows, relation=relation, insecure_noise_seed=1)
    (count, one), (table, cells) = drawn
    assert (one, cells) == (1, rows * 10)
    assert table.parameter == moves / (Fraction(1, 2) * (1 - share))
    assert count.parameter == ((persons or 1) / (Fraction(1, 2) * share) if private else 0)
    assert (moves / table.parameter) + ((persons or 1) / count.parameter if private else 0) == Fraction(1, 2)
    drawn.clear()
    tally.release(rho=0.5, rows=rows, relation=relation, insecure_noise_seed=1)
    (count, _), (table, cells) = drawn
    squares = (1 if relation is Relation.ADD_REMOVE else 2) * rows * (persons or 1) ** 2
    spent = Fraction(squares) / (2 * table.parameter)
    spent += Fraction((persons or 1) ** 2) / (2 * count.parameter) if private else 0
    assert spent == Fraction(1, 2)
    change = UnitChange(Sensitivity(moves, squares, persons or 1), (persons or 1) if private else 0, moves)
    expected = calibrate(Promise.of(rho=0.5), change, cells=rows * 10)
    assert (table, count) == (expected.table, expected.count)
