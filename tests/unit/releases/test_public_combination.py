"""A release combined with a public sample: smaller errors where both are alike, no harm where they differ."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.releases import MOST_POINTS, PUBLIC_SAMPLE, CombinedFunction

RNG = np.random.default_rng(5)
KERNEL = hs.GaussianKernel(dim=2, bandwidth=0.4)
PRIVATE = RNG.normal(size=(1500, 2))
PUBLIC = RNG.normal(size=(600, 2))
ELSEWHERE = RNG.normal(size=(600, 2)) * 0.3 + 2.0
QUERIES = RNG.normal(size=(60, 2))
EXACT = KERNEL.exact_sum(PRIVATE, QUERIES) / len(PRIVATE)


def released(seed: int, epsilon: float = 0.1) -> Any:
    tally = hs.grid(KERNEL, bounds=(-5, 5)).add(PRIVATE)
    return tally.release(epsilon=epsilon, insecure_noise_seed=seed)


def error(f: Any) -> float:
    return float(np.abs(f(QUERIES) - EXACT).mean())


def test_a_sample_of_the_same_kind_makes_errors_smaller_and_another_does_little_harm() -> None:
    functions = [released(seed) for seed in range(6)]
    alone = np.mean([error(f) for f in functions])
    assert np.mean([error(hs.releases.combine(f, PUBLIC)) for f in functions]) < 0.6 * alone
    assert np.mean([error(hs.releases.combine(f, ELSEWHERE)) for f in functions]) < 1.3 * alone


def test_weights_follow_the_variances() -> None:
    weak, strong = (hs.releases.combine(released(1, epsilon), PUBLIC) for epsilon in (0.02, 50.0))
    assert weak.public_share(QUERIES).mean() > 0.7
    assert strong.public_share(QUERIES).mean() < 0.1
    np.testing.assert_allclose(strong(QUERIES), strong.function(QUERIES), atol=0.02)


def test_intervals_cover() -> None:
    """Noise of 12 releases at 60 queries, which are correlated; 95 % intervals hold at 88 % at least."""
    inside = []
    for seed in range(12):
        answers = hs.releases.combine(released(seed), PUBLIC).query(QUERIES)
        inside.append((answers.lower <= EXACT) & (answers.upper >= EXACT))
    assert np.mean(inside) > 0.88
    sums = hs.releases.combine(released(1), PUBLIC).query(QUERIES, of="sum")
    assert (np.abs(sums.value - EXACT * len(PRIVATE)) < 6.0 * sums.stderr + 5.0).all()


def test_it_is_saved_with_its_points() -> None:
    g = hs.releases.combine(released(2), PUBLIC)
    stream = io.BytesIO()
    g.save(stream)
    stream.seek(0)
    for again in (hs.load(stream), pickle.loads(pickle.dumps(g))):
        assert isinstance(again, CombinedFunction)
        np.testing.assert_array_equal(again(QUERIES), g(QUERIES))
        assert again.claim == g.claim
    assert "public points" in str(g.describe())
    assert "points=600" in repr(g)


def test_one_call_takes_bandwidth_and_bounds_from_the_sample_and_says_what_it_assumed() -> None:
    f: Any = hs.release(PRIVATE, epsilon=1.0, kernel="gaussian", records=1500, public=PUBLIC)
    assert isinstance(f, CombinedFunction)
    assert f.claim.assumptions == (PUBLIC_SAMPLE,)
    silverman = (4.0 / (4.0 * 1500)) ** (1.0 / 6.0)
    kernel: Any = f.kernel
    assert kernel.bandwidth == pytest.approx(silverman, rel=0.15)
    assert f.bounds is not None
    assert (np.array(f.bounds.low) < PUBLIC.min(axis=0)).all()
    declared: Any = hs.release(
        PRIVATE, epsilon=1.0, kernel="gaussian", bandwidth=0.7, bounds=(-3, 3), public=PUBLIC
    )
    assert declared.kernel.bandwidth == 0.7
    assert declared.bounds.low == (-3.0, -3.0)
    assert hs.release(PRIVATE, epsilon=1.0, bandwidth=0.5).claim.assumptions == ()


def test_a_plan_takes_them_from_the_sample_too() -> None:
    plan = hs.plan(records=1500, epsilon=1.0, kernel="gaussian", public=PUBLIC)
    assert plan.best.method == "grid"


def test_what_does_not_suit_is_refused() -> None:
    f = released(1)
    for rows, rule in ((PUBLIC[:5], "10 to"), (np.zeros((MOST_POINTS + 1, 2)), "10 to")):
        with pytest.raises(UsageError, match=rule):
            hs.releases.combine(f, rows)
    with pytest.raises(DataRefused):
        hs.releases.combine(f, PUBLIC[:, :1])
    with pytest.raises(UsageError, match="released table"):
        hs.releases.combine(hs.releases.combine(f, PUBLIC), PUBLIC)
    with pytest.raises(UsageError, match="public must be left out"):
        hs.release(PRIVATE, epsilon=1.0, kernel=KERNEL, bounds=(-5, 5), method="mwem", public=PUBLIC)
    with pytest.raises(DataRefused, match="at least 10 rows"):
        hs.release(PRIVATE, epsilon=1.0, kernel="gaussian", public=PUBLIC[:3])
