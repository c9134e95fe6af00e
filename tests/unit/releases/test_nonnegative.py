"""Non-negative versions of released functions: what they promise, and where there are none."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused, UsageError
from hushsum.methods import landmarks
from hushsum.releases import NonnegativeFunction

BOX = [(0.0, 10.0), (0.0, 20.0)]
KERNEL = hs.GaussianKernel(dim=2, bandwidth=0.4)
POINTS = np.random.default_rng(0).normal((3.0, 12.0), (0.7, 1.5), size=(4000, 2))
LATTICE = np.stack(
    [each.ravel() for each in np.meshgrid(np.linspace(0, 10, 40), np.linspace(0, 20, 80))], axis=1
)


def released(seed: int = 3, *, epsilon: float = 0.3) -> Any:
    return hs.grid(KERNEL, bounds=BOX).add(POINTS).release(epsilon=epsilon, insecure_noise_seed=seed)


def test_it_is_the_kernel_sums_of_weights_that_are_not_negative_and_sum_to_the_count() -> None:
    f = released()
    g = f.nonnegative()
    assert isinstance(g, NonnegativeFunction)
    assert g is f.nonnegative() is g.nonnegative()
    assert g.weights.min() == 0
    assert g.weights.sum() / 2**20 == pytest.approx(f.count, rel=1e-6)
    sums = g.sum(LATTICE)
    assert sums.min() >= 0.0
    assert f.sum(LATTICE).min() < -5.0
    assert g(LATTICE).max() <= 1.0
    # The integral of the kernel, but for what it spreads beyond the box.
    assert sums.sum() * (10 / 39) * (20 / 79) == pytest.approx(f.count * 2 * np.pi * 0.16, rel=0.05)
    assert (g.claim, g.kernel, g.count, g.count_stderr, g.bounds) == (
        f.claim,
        f.kernel,
        f.count,
        f.count_stderr,
        f.bounds,
    )


def test_it_is_nearer_to_the_truth_and_its_intervals_hold_at_least_as_often() -> None:
    truth = KERNEL.exact_sum(POINTS, LATTICE)
    held, before, errors = [], [], []
    for seed in range(8):
        f = released(seed)
        for of, scale in (("sum", 1.0), ("mean", len(POINTS))):
            own, raised = (each.query(LATTICE, of=of, level=0.9) for each in (f, f.nonnegative()))
            held.append(np.mean((raised.lower <= truth / scale) & (truth / scale <= raised.upper)))
            before.append(np.mean((own.lower <= truth / scale) & (truth / scale <= own.upper)))
            assert (raised.lower >= 0.0).all()
            assert (
                raised.upper - raised.lower <= own.upper - own.lower + np.abs(raised.value - own.value)
            ).all()
        errors.append([np.abs(each.sum(LATTICE) - truth).sum() for each in (f, f.nonnegative())])
    assert np.mean(held) >= np.mean(before) > 0.88
    raw, projected = np.mean(errors, axis=0)
    assert projected < 0.45 * raw
    # The standard error, of the release, is an upper estimate of the error of both.
    assert np.square(raised.value - truth / scale).mean() < np.square(raised.stderr).mean()


def test_without_noise_it_is_the_function() -> None:
    f = released(epsilon=1000.0)
    np.testing.assert_allclose(f.nonnegative().sum(LATTICE), f.sum(LATTICE), atol=0.01 * f.sum(LATTICE).max())


@pytest.mark.parametrize(
    "make",
    [
        lambda: hs.race(hs.EuclideanKernel(1, 0.5), rows=50, bounds=(0, 10)),
        lambda: hs.fourier_features(hs.GaussianKernel(1, 0.5), features=50, bounds=(0, 10)),
        lambda: hs.grid(hs.MaternKernel(1, 0.5), bounds=(0, 10)),
        lambda: hs.grid(hs.GaussianKernel(3, 2.0), bounds=(0, 10)),
    ],
)
def test_other_releases_have_it_too(make: Any) -> None:
    tally = make()
    data = np.random.default_rng(1).uniform(2, 4, (500, tally.kernel.dim))
    f = tally.add(data).release(epsilon=1.0, insecure_noise_seed=1)
    g = f.nonnegative()
    queries = np.random.default_rng(2).uniform(0, 10, (50, tally.kernel.dim))
    assert g.sum(queries).min() >= 0.0
    stream = io.BytesIO()
    g.save(stream)
    stream.seek(0)
    np.testing.assert_array_equal(hs.load(stream)(queries), g(queries))


def test_weighted_points_have_it() -> None:
    f = landmarks(POINTS, KERNEL, bounds=BOX, epsilon=1.0, points=100, insecure_noise_seed=1)
    assert f.sum(LATTICE).min() < 0.0
    assert f.nonnegative().sum(LATTICE).min() >= 0.0


def test_where_there_is_none_it_is_refused() -> None:
    narrow = hs.grid(hs.GaussianKernel(1, 0.1), bounds=(0, 10), cells=200)
    signed = hs.GaussianKernel(1, 1.0) - 0.5 * hs.GaussianKernel(1, 3.0)
    release: dict[str, Any] = {"epsilon": 1.0, "insecure_noise_seed": 1}
    f: Any = narrow.release(**release)
    with pytest.raises(UsageError, match=r"positive definite"):
        f.with_kernel(signed).nonnegative()
    with pytest.raises(UsageError, match=r"bounds must be declared"):
        hs.race(hs.EuclideanKernel(1, 0.5), rows=50).release(**release).nonnegative()
    with pytest.raises(UsageError, match=r"bandwidth must be wide enough"):
        hs.fourier_features(hs.GaussianKernel(3, 0.05), features=50, bounds=(0, 10)).release(
            **release
        ).nonnegative()
    with pytest.raises(UsageError, match=r"sum of products|columns"):
        hs.race(hs.JaccardKernel(), rows=20).release(**release).nonnegative()


def test_a_file_with_a_negative_weight_is_refused() -> None:
    g = released().nonnegative()
    weights = g.weights.copy()
    weights[0, 0] = -1
    stream = io.BytesIO()
    NonnegativeFunction(g.function, g.places, weights).save(stream)
    stream.seek(0)
    with pytest.raises(FileRefused):
        hs.load(stream)
