"""Merging released functions: values and variances add, and the claim says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import ClaimError, IncompatibleTallies, UsageError
from hushsum.privacy import SITE_NOISE, IntegerNoise, Trust, check_mechanism
from tests.e2e.cli_process import Shell

KERNEL = hs.EuclideanKernel(dim=1, bandwidth=1.0)


def released(place: float = 0.0, *, rows: int = 20, seed: int = 0, cap: int | None = None, **how: Any) -> Any:
    tally = hs.race(KERNEL, rows=rows, width=30, seed=seed, max_per_unit=cap)
    units = None if cap is None else np.arange(2000) // 2
    tally.add([[place]] * 2000, units=units)
    return tally.release(rows=rows, **({"epsilon": 1.0} | how))


MECHANISMS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}]


@pytest.mark.parametrize(
    "how", [*MECHANISMS, {"epsilon": 1.0, "delta": 1e-6, "mechanism": "binomial"}], ids=str
)
def test_values_and_variances_add(how: dict[str, Any], tmp_path: Path) -> None:
    how = {"epsilon": None, **how}
    parts = [released(place, **how) for place in (0.0, 0.5, 3.0)]
    merged = hs.merge(*parts, disjoint_units=True)
    assert np.array_equal(merged.table, sum(each.table for each in parts))
    assert merged.noisy_count == sum(each.noisy_count for each in parts)
    assert merged.noise.variance == pytest.approx(3 * parts[0].noise.variance)
    assert merged.count_noise.variance == pytest.approx(3 * parts[0].count_noise.variance)
    assert merged.claim.promise == parts[0].claim.promise
    assert merged.claim.trust == Trust(SITE_NOISE, 3)
    assert "no record is at more than one site" in merged.claim.assumptions
    assert "Each of 3 sites added noise of its own" in merged.claim.sentence()
    check_mechanism(merged.claim)
    merged.save(tmp_path / "all.hush")
    again: Any = hs.load(tmp_path / "all.hush")
    assert again.claim == merged.claim
    assert again.noise == merged.noise
    assert hs.audit(again).rows[0].verdict == "holds"
    assert np.array_equal(again([[0.0]]), merged([[0.0]]))


def test_promises_add_unless_units_are_disjoint() -> None:
    parts = [released(epsilon=1.0), released(epsilon=0.5, delta=1e-6), released(epsilon=0.5, delta=1e-6)]
    merged = hs.merge(*parts)
    assert merged.claim.epsilon == 2.0
    assert merged.claim.delta == pytest.approx(2e-6)
    assert str(merged.claim.mechanism) == "discrete laplace + discrete gaussian"
    disjoint = hs.merge(*parts, disjoint_units=True).claim
    assert disjoint.epsilon == 1.0
    assert disjoint.delta == pytest.approx(1e-6)
    assert hs.merge(
        released(epsilon=None, rho=0.1), released(epsilon=None, rho=0.2)
    ).claim.rho == pytest.approx(0.3)


def test_merging_is_associative() -> None:
    one, two, three = (released(place) for place in (0.0, 1.0, 2.0))
    left, right = hs.merge(hs.merge(one, two), three), hs.merge(one, two, three)
    assert np.array_equal(left.table, right.table)
    assert (left.claim, left.noise, left.count_noise) == (right.claim, right.noise, right.count_noise)


def test_persons_are_named_with_their_limit_at_each_site() -> None:
    parts = [released(cap=2), released(cap=2)]
    assert "the limit of a person's records holds at each site" in hs.merge(*parts).claim.assumptions


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    one = released()
    with pytest.raises(UsageError, match="at least two"):
        hs.merge(one)
    with pytest.raises(IncompatibleTallies, match="itself"):
        hs.merge(one, one)
    one.save(tmp_path / "one.hush")
    again: Any = hs.load(tmp_path / "one.hush")
    for same in ([one, again], [again, released(), one], [again, hs.load(tmp_path / "one.hush")]):
        with pytest.raises(IncompatibleTallies, match="itself"):
            hs.merge(*same)
    assert hs.merge(again, released()).claim.trust == Trust(SITE_NOISE, 2)
    with pytest.raises(IncompatibleTallies, match="fingerprint and kernel, got some that differ in seed;"):
        hs.merge(one, released(seed=1))
    with pytest.raises(IncompatibleTallies, match="rounded alike"):
        hs.merge(one, released().rounded())
    with pytest.raises(ClaimError, match="unit, cap and relation"):
        hs.merge(one, released(relation="replace"))
    with pytest.raises(ClaimError, match="all claim rho"):
        hs.merge(one, released(epsilon=None, rho=0.1))
    with pytest.raises(UsageError, match="released tables"):
        hs.merge(one, 3)


def test_rounding_of_every_site_is_in_the_variance() -> None:
    parts = [released(epsilon=0.1).rounded() for _ in range(3)]
    merged = hs.merge(*parts)
    assert merged.step == parts[0].step > 1
    assert merged.cell_variance == pytest.approx(3 * parts[0].cell_variance)


def test_a_file_whose_sites_add_too_little_noise_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace
    from fractions import Fraction

    parts = [released(), released()]
    merged = hs.merge(*parts, disjoint_units=True)
    thin = replace(parts[0].noise, parameter=parts[0].noise.parameter * Fraction(4, 5))
    broken = replace(merged, noise=IntegerNoise.sum_of([(1, parts[0].noise), (1, thin)]))
    broken.save(tmp_path / "broken.hush")
    with pytest.raises(hs.errors.FileRefused):
        hs.load(tmp_path / "broken.hush")
    assert not hs.audit(broken).rows[0].holds


def test_the_binomial_mechanism_states_what_it_can_keep() -> None:
    with pytest.raises(ClaimError, match="epsilon and delta"):
        released(mechanism="binomial")
    with pytest.raises(ClaimError, match="at most 1"):
        released(cap=2, delta=1e-6, mechanism="binomial")
    gaussian, binomial = (released(delta=1e-6, mechanism=each) for each in (None, "binomial"))
    assert 1.0 < binomial.noise.variance / gaussian.noise.variance < 1.3


def test_the_command_merges_functions(tmp_path: Path, quick_command: Path) -> None:
    for name in "ab":
        released().save(tmp_path / f"{name}.hush")
    hs.race(KERNEL, rows=20, width=30).save(tmp_path / "c.tally")
    shell = Shell(tmp_path, [quick_command])
    done = shell.ok("merge", "a.hush", "b.hush", "-o", "all.hush", "--disjoint-units")
    assert b"Each of 2 sites" in done.out
    merged: Any = hs.load(tmp_path / "all.hush")
    assert merged.claim.epsilon == 1.0
    refused = shell.refused(2, "merge", "a.hush", "c.tally", "-o", "x.hush")
    assert "released functions with released functions" in refused
