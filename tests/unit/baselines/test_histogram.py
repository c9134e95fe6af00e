"""Histograms: the released tally as points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import histogram, histogram_tally
from hushsum.releases import CoefficientFunction

KERNEL = hs.GaussianKernel(dim=2, bandwidth=0.2)
X = np.random.default_rng(1).normal(0.5, 0.2, (3000, 2))
Q = np.random.default_rng(2).uniform(size=(9, 2))


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_points_answer_as_the_released_tally_does(delta: float | None, relation: str) -> None:
    options = {"epsilon": 0.5, "delta": delta, "relation": relation, "insecure_noise_seed": 4}
    f = histogram(X, KERNEL, bounds=(0, 1), bins=[9, 8], **options)  # type: ignore[arg-type]
    tally = histogram_tally(KERNEL, bounds=(0, 1), bins=[9, 8]).add(X)
    g = tally.release(**options)  # type: ignore[arg-type]
    assert isinstance(g, CoefficientFunction)
    np.testing.assert_allclose(f(Q), g(Q), rtol=1e-12)
    assert (f.claim, f.count) == (g.claim, g.count)
    for of in ("mean", "sum"):
        one, other = f.query(Q, of=of), g.query(Q, of=of)
        np.testing.assert_allclose(one.stderr, other.stderr, rtol=1e-5)
        np.testing.assert_allclose(one.upper, other.upper, rtol=1e-4)


def test_the_standard_error_is_that_of_the_noise() -> None:
    """400 seeded releases; a ratio of standard deviations within six of its own, √(1.5/400) for the sums of
    many Laplace variables.
    """
    sums = np.array(
        [
            histogram(X, KERNEL, bounds=(0, 1), epsilon=0.5, bins=8, insecure_noise_seed=seed).sum(Q)
            for seed in range(400)
        ]
    )
    f = histogram(X, KERNEL, bounds=(0, 1), epsilon=0.5, bins=8)
    stated = replace(f, cell_width=None).query(Q, of="sum").stderr
    assert np.abs(sums.std(axis=0, ddof=1) / stated - 1.0).max() < 6 * np.sqrt(1.5 / 400)


def test_default_bins_are_a_quarter_of_the_bandwidth_wide() -> None:
    f = histogram(X[:, :1], hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1), epsilon=1.0)
    assert len(f.weights) == 40
    wide = histogram(X, hs.GaussianKernel(dim=2, bandwidth=1e-4), bounds=(0, 1), epsilon=1.0)
    assert len(wide.weights) <= 1 << 18


def test_noise_that_vanishes_leaves_no_variance_to_divide_by() -> None:
    f = histogram_tally(KERNEL, bounds=(0, 1), bins=8).add(X).release(epsilon=1e5)
    assert np.isfinite(f.query(Q).stderr).all()
