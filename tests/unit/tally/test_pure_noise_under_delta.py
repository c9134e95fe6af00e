"""Under ε and δ other noise than Gaussian is drawn where it adds less to answers; that of pure ε claims ε
alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.auditing import audit_calibration
from hushsum.errors import ClaimError
from hushsum.ledger import Charge, DatasetTerms, Ledger
from hushsum.privacy import GAMMA, GAUSSIAN, Calibration, Promise, Relation, UnitChange, calibrate
from hushsum.privacy.accounting import GAMMA_MOST_CELLS

BOTH: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
RECORDS = np.random.default_rng(0).uniform(2, 8, (400, 4))


def grid(dim: int) -> hs.Tally:
    return hs.grid(hs.GaussianKernel(dim=dim, bandwidth=1.0), bounds=(0, 10)).add(RECORDS[:, :dim])


def test_it_is_the_release_under_epsilon_alone() -> None:
    tally = grid(1)
    both: Any = tally.release(**BOTH, insecure_noise_seed=1)
    pure: Any = tally.release(epsilon=1.0, insecure_noise_seed=1)
    np.testing.assert_array_equal(both.table, pure.table)
    assert (both.claim, both.noisy_count) == (pure.claim, pure.noisy_count)
    fresh: Any = tally.release(**BOTH)
    assert all(row.holds for row in audit_calibration(fresh))


def test_gaussian_noise_can_be_requested() -> None:
    tally = grid(1)
    default, gaussian = tally.release(**BOTH), tally.release(**BOTH, mechanism=GAUSSIAN)
    assert (default.claim.delta, gaussian.claim.delta) == (0, 1e-6)
    assert [str(each.claim.mechanism) for each in (default, gaussian)] == ["discrete laplace", GAUSSIAN]
    query = RECORDS[:3, :1]
    ratio = gaussian.query(query).stderr / default.query(query).stderr
    assert (ratio > 1.5).all()
    with pytest.raises(ClaimError, match="mechanism discrete gaussian keeps"):
        tally.release(epsilon=1.0, mechanism=GAUSSIAN)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(
    "tally",
    [
        *map(grid, (1, 2, 3, 4)),
        hs.fourier_features(hs.GaussianKernel(dim=4, bandwidth=1.0), features=100),
        hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=5),
        hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=50),
    ],
)
@pytest.mark.parametrize("relation", Relation)
def test_it_adds_the_least_to_answers_by_table_and_count(
    tally: hs.Tally, epsilon: float, relation: Relation
) -> None:
    promise, share = Promise.of(epsilon=epsilon, delta=1e-6), Fraction(1, 50)
    change = tally.basis.unit_change("record", 1, relation)
    given: Any = {"cells": math.prod(tally.basis.shape), "count_share": share}
    chosen = calibrate(promise, change, **given)
    gaussian = calibrate(promise, change, **given, mechanism=GAUSSIAN)
    pure = calibrate(replace(promise, delta=Fraction(0)), change, **given)
    counted = share if change.count else Fraction(0)

    def added(noise: Calibration) -> float:
        of_count = noise.count.variance / gaussian.count.variance if counted else 0.0
        return float(1 - counted) * noise.table.variance / gaussian.table.variance + float(counted) * of_count

    possible = [gaussian, pure]
    if given["cells"] <= GAMMA_MOST_CELLS:
        possible.append(calibrate(promise, change, **given, mechanism=GAMMA))
    assert chosen == min(possible, key=added)
    assert chosen.keeps(promise).pure == (chosen == pure)


def test_a_noisier_number_of_records_counts_too() -> None:
    """The table alone would have less noise."""
    change = grid(2).basis.unit_change("record", 1, Relation.ADD_REMOVE)
    given: Any = {"cells": 400, "count_share": Fraction(1, 50)}
    promise = Promise.of(epsilon=0.1, delta=1e-6)
    gaussian = calibrate(promise, change, **given)
    pure = calibrate(Promise.of(epsilon=0.1), change, **given)
    assert gaussian.table.mechanism == GAUSSIAN
    assert pure.table.variance < gaussian.table.variance
    assert pure.count.variance > gaussian.count.variance
    public = UnitChange(change.table, 0, change.records)
    assert calibrate(promise, public, **given).keeps(promise).pure


def test_a_dataset_of_pure_epsilon_takes_it(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.create_dataset("town", DatasetTerms.of(epsilon=2.0))
    budget = ledger.dataset("town")
    assert grid(1).release(**BOTH, budget=budget).claim.delta == 0
    with pytest.raises(ClaimError, match="takes pure epsilon only"):
        grid(4).release(**BOTH, budget=budget)
    assert ledger.account("town").spent == Charge(Fraction(1))


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_a_plan_of_a_tally_is_its_release(dim: int) -> None:
    tally = grid(dim)
    best = hs.plan(records=400, reading=tally.reading, comparison=False, **BOTH).best
    claim = tally.release(**BOTH).claim
    assert (best.mechanism, best.delta) == (str(claim.mechanism), claim.delta)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_a_plan_is_what_is_released(dim: int) -> None:
    given: Any = {"bandwidth": 1.0, "bounds": (0, 10), **BOTH}
    best = hs.plan(records=400, dim=dim, comparison=False, **given).best
    claim = hs.release(RECORDS[:, :dim], records=400, **given).claim
    assert (best.mechanism, best.delta) == (str(claim.mechanism), claim.delta)
