"""Skellam noise: its law, the shares that add up to it, and what it spends."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ive
from scipy.stats import chi2
from tests.aggregation_runs import identity

import hushsum as hs
from hushsum.errors import ClaimError, FileRefused, UsageError
from hushsum.parties.secure_aggregation import AggregationTerms, released_sum
from hushsum.privacy import (
    GAUSSIAN,
    NO_NOISE,
    SKELLAM,
    IntegerNoise,
    Promise,
    ReleaseRequest,
    Sensitivity,
    UnitChange,
    check_mechanism,
    noise,
    noise_shares,
)
from hushsum.privacy.accounting import skellam_delta, skellam_rho, skellam_variances
from hushsum.privacy.noise import LazyUniform, NoiseSource, skellam


def law(variance: float, reach: int = 400) -> NDArray[np.float64]:
    """P(−reach), …, P(reach) by the Bessel functions of another library."""
    return np.asarray(ive(np.abs(np.arange(-reach, reach + 1)), variance), np.float64)


def fits(draws: NDArray[np.int64], variance: float) -> bool:
    """A test of goodness of fit; the seeds are fixed."""
    reach = 400
    expected = len(draws) * law(variance, reach)
    kept = expected >= 5
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    seen = np.append(counts[kept], counts[~kept].sum())
    due = np.append(expected[kept], max(len(draws) - expected[kept].sum(), 1e-9))
    distance = float(((seen - due) ** 2 / due)[due >= 5].sum())
    return bool(chi2.sf(distance, kept.sum() - 1) > 1e-4)


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(2, 3), Fraction(3), Fraction(300)])
def test_draws_have_the_law(variance: Fraction) -> None:
    draws = skellam(200_000, variance, NoiseSource.insecure(5))
    assert fits(draws, float(variance))
    assert not fits(skellam(200_000, variance * Fraction(16, 25), NoiseSource.insecure(5)), float(variance))


def test_shares_add_up_whoever_leaves() -> None:
    share = IntegerNoise(SKELLAM, Fraction(1, 5))
    drawn = share.draw(20 * 50_000, NoiseSource.insecure(6)).reshape(20, -1)
    assert fits(drawn.sum(axis=0), 4.0)
    # Those who collude know theirs.
    assert fits(drawn[3:].sum(axis=0), 3.4)
    # The laws convolve exactly, up to the rounding of the other library.
    assert np.allclose(np.convolve(law(0.7, 40), law(1.3, 40))[40:121], law(2.0, 40), atol=1e-14)


def test_doubtful_words_are_refined() -> None:
    table = noise._half(Fraction(3))
    first = int(table.low[0])
    below, above = (lambda _: 0), (lambda _: (1 << 64) - 1)
    decide = noise._decide_poisson
    assert decide(table, LazyUniform(first - 10, 64, above)) == 0
    assert decide(table, LazyUniform(first + 10, 64, below)) == 1
    assert {decide(table, LazyUniform(first, 64, more)) for more in (below, above)} == {0, 1}


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(5000), Fraction(1, 1 << 21)])
def test_other_variances_are_refused(variance: Fraction) -> None:
    with pytest.raises(UsageError):
        skellam(3, variance, NoiseSource.insecure(1))
    with pytest.raises(ValueError, match="parameter"):
        IntegerNoise.from_json({"mechanism": SKELLAM, "parameter": str(variance)})


def exact_delta(epsilon: float, *variances: float) -> float:
    """δ of one cell, or of a cell and a count, by summing over all outcomes."""
    near, far = np.ones(1), np.ones(1)
    for variance in variances:
        whole = law(variance)
        near = np.multiply.outer(near, whole[1:]).ravel()
        far = np.multiply.outer(far, whole[:-1]).ravel()
    return float(np.maximum(near - math.exp(epsilon) * far, 0.0).sum())


@pytest.mark.parametrize("variance", [0.3, 2.0, 16.0, 60.0])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_of_delta_lies_above_the_sum_over_all_outcomes(variance: float, epsilon: float) -> None:
    for variances in ((variance,), (variance, variance), (variance, 3 * variance)):
        exact = exact_delta(epsilon, *variances)
        if len(variances) == 2 and variances[0] == variances[1]:
            bound = skellam_delta(epsilon, cells=2, variance=variance)
        else:
            count = variances[1] if len(variances) == 2 else None
            bound = skellam_delta(epsilon, cells=1, variance=variance, count_variance=count)
        assert exact <= bound
        # Moments cost a factor, and no more: 20 % less noise is noticed.
        assert bound < max(12 * exact, 1e-12) or exact > 0.05


@pytest.mark.parametrize("variance", [0.05, 1.0, 7.0, 40.0])
def test_the_bound_of_rho_lies_above_all_divergences(variance: float) -> None:
    whole = law(variance)
    kept = whole[1:] > 1e-290
    near, far = whole[1:][kept], np.maximum(whole[:-1][kept], 1e-300)
    bound = skellam_rho(cells=1, variance=variance)
    divergences = []
    for order in (1.01, 1.3, 2.0, 3.7, 10.0, 40.0):
        divergence = math.log(float((near * (near / far) ** (order - 1)).sum())) / (order - 1)
        divergences.append(divergence / order)
    assert max(divergences) <= bound < 1.02 * max(divergences)


@pytest.mark.parametrize("count_share", [None, Fraction(1, 50)])
def test_calibrated_variances_keep_the_promise_and_less_does_not(count_share: Fraction | None) -> None:
    found = skellam_variances(epsilon=1.0, delta=1e-6, cells=1, count_share=count_share)
    spent = exact_delta(1.0, *(float(each) for each in found if each is not None))
    assert spent <= 1e-6
    thin = exact_delta(1.0, *(0.64 * float(each) for each in found if each is not None))
    assert thin > 1e-6
    kept = skellam_variances(rho=0.5, cells=3, count_share=count_share)
    assert skellam_rho(cells=3, variance=kept.variance, count_variance=kept.count_variance) <= 0.5
    with pytest.raises(ClaimError, match="at most 32768"):
        skellam_variances(epsilon=0.01, delta=1e-9, cells=1)


HOW: dict[str, Any] = {"cells": 100, "count_share": Fraction(1, 50), "honest": 20}


def test_small_shares_cost_next_to_nothing() -> None:
    moved = UnitChange(Sensitivity(1, 1, 1), 1, 1)
    for promise in (Promise.of(epsilon=1.0, delta=1e-6), Promise.of(rho=0.05)):
        table, count = noise_shares(promise, moved, **HOW)
        alone, _ = noise_shares(promise, moved, **{**HOW, "honest": 1})
        assert table.mechanism == count.mechanism == SKELLAM
        # Within 2 % of a central release in standard deviation.
        assert math.sqrt(20 * table.variance / alone.variance) < 1.02
    # Where a unit moves a cell further, and where shares are large, discrete Gaussians are used.
    for other in (Sensitivity(2, 4, 2), Sensitivity(1000, 1000, 1)):
        assert noise_shares(Promise.of(rho=0.5), UnitChange(other, 1, 1), **HOW).table.mechanism == GAUSSIAN


@pytest.mark.parametrize("promise", [{"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}], ids=str)
def test_a_histogram_of_many_sites_is_released_audited_and_loaded(
    promise: dict[str, Any], tmp_path: Path
) -> None:
    kernel = hs.EuclideanKernel(dim=1, bandwidth=1.0)
    tally = hs.race(kernel, rows=1, width=30)
    terms = AggregationTerms.of(
        tally, ReleaseRequest(**promise), [identity(i).fingerprint for i in range(9)], dropouts=2, colluding=2
    )
    assert AggregationTerms.from_bytes(terms.to_bytes()).digest == terms.digest
    assert str(terms.claim.mechanism) == SKELLAM
    check_mechanism(terms.claim)
    total = np.arange(31, dtype=np.int64)
    function = released_sum(terms, total, 7)
    rows = hs.audit(function).rows
    assert rows[0].holds
    function.save(tmp_path / "f.hush")
    assert hs.load(tmp_path / "f.hush").noise == function.noise  # type: ignore[union-attr]
    share = terms.shares.table
    thin = replace(share, parameter=share.parameter * Fraction(16, 25))
    wrong = replace(function, noise=IntegerNoise.sum_of([(7, thin)]))
    assert not hs.audit(wrong).rows[0].holds
    if "rho" in promise:
        wrong.save(tmp_path / "thin.hush")
        with pytest.raises(FileRefused):
            hs.load(tmp_path / "thin.hush")
    # Known to the sites that collude, or too few of them: nothing to rest on.
    few = replace(function, noise=IntegerNoise.sum_of([(6, share)]), count_noise=NO_NOISE)
    assert not hs.audit(few).rows[0].holds
