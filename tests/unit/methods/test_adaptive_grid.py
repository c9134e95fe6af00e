"""Adaptive grids: boxes that cover the declared one, their counts, and their errors."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import ClaimError, UsageError
from hushsum.methods import adaptive_grid
from hushsum.methods._adaptive_grid import GRID_SHARE, Halvings, chosen_leaves, estimated_counts
from hushsum.privacy import COUNT_SHARE, ReleaseNoise
from hushsum.records import Bounds
from hushsum.releases import BoxesFunction

KERNEL = hs.GaussianKernel(dim=2, bandwidth=0.05)
BOX = [(0.0, 10.0), (0.0, 5.0)]


def towns(number: int = 20_000, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    middles = rng.uniform((1, 1), (9, 4), (6, 2))
    parts = [rng.normal(middle, 0.08, (number // 8, 2)) for middle in middles]
    return np.clip(np.vstack([*parts, rng.uniform((0, 0), (10, 5), (number // 4, 2))]), 0.0, (10.0, 5.0))


def released(X: Any, *, epsilon: float = 1.0, seed: int = 1, **more: Any) -> BoxesFunction:
    return adaptive_grid(X, KERNEL, bounds=BOX, epsilon=epsilon, insecure_noise_seed=seed, **more)


def test_boxes_cover_the_declared_one_once_and_are_small_where_records_are() -> None:
    X = towns()
    f = released(X)
    areas = (f.high - f.low).prod(axis=1)
    assert areas.sum() == pytest.approx(50.0)
    places = np.random.default_rng(0).uniform((0, 0), (10, 5), (300, 2))
    inside = (places[:, None] >= f.low).all(axis=2) & (places[:, None] < f.high).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert f.weights.min() >= 0.0
    assert f.weights.sum() == pytest.approx(f.count)
    # Half of the records are in boxes that have a seventieth of the area.
    order = np.argsort(areas)
    assert areas[order][np.cumsum(f.weights[order]) < 0.5 * f.count].sum() < 0.7


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_path_of_a_record_is_that_of_the_box_that_holds_it(dim: int) -> None:
    bounds = Bounds((0.0,) * dim, tuple(float(each) for each in range(2, 2 + dim)))
    halvings = Halvings.of(bounds, [0.3] * dim)
    rows: Any = np.random.default_rng(dim).uniform(bounds.low, bounds.high, (200, dim)) - bounds.centre
    rows = np.vstack([rows, np.array(bounds.high) - bounds.centre]).astype(np.float32)
    low, high = halvings.boxes(halvings.depth, halvings.paths(rows))
    near = 1e-6
    assert (rows + bounds.centre >= low - near).all()
    assert (rows + bounds.centre <= high + near).all()
    assert ((high - low) <= 0.15 + near).all()
    # Alone as in a batch.
    assert [int(halvings.paths(row[None])[0]) for row in rows] == halvings.paths(rows).tolist()


def test_estimates_are_consistent_and_keep_what_was_measured_well() -> None:
    counts = np.random.default_rng(0).poisson(np.repeat([400.0, 0.0, 3.0, 90.0], 16)).astype(float)
    exact = {6: (counts, np.full(64, 1e9))}
    found = estimated_counts(exact, counts.sum(), 0.0, 8)
    np.testing.assert_allclose(found[6][0], counts, atol=1e-3)
    for (whole, _), (halves, _) in pairwise(found):
        np.testing.assert_allclose(halves.reshape(-1, 2).sum(axis=1), whole)
    # Below what was measured records are spread evenly.
    np.testing.assert_allclose(found[8][0], np.repeat(found[6][0] / 4.0, 4))
    leaves = chosen_leaves(found, 50.0)
    covered = [np.repeat(each, 1 << (8 - depth)) for depth, each in enumerate(leaves)]
    assert (np.sum(covered, axis=0) == 1).all()
    nothing = estimated_counts({6: (counts, np.zeros(64))}, 64.0, 1.0, 6)
    np.testing.assert_allclose(nothing[6][0], 1.0)


def test_each_step_is_calibrated_for_one_record_in_one_box(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, Fraction]] = []
    laplace = ReleaseNoise.laplace

    def watched(self: ReleaseNoise, counts: Any, l1: int, epsilon: Fraction) -> Any:
        calls.append((l1, epsilon))
        return laplace(self, counts, l1, epsilon)

    monkeypatch.setattr(ReleaseNoise, "laplace", watched)
    released(towns(800))
    rest = 1 - COUNT_SHARE
    assert calls == [(1, COUNT_SHARE), (1, rest * GRID_SHARE), (1, rest * (1 - GRID_SHARE))]
    calls.clear()
    released(towns(800), relation="replace")
    assert calls == [(2, GRID_SHARE), (2, 1 - GRID_SHARE)]


def test_it_resolves_what_a_grid_hides_in_noise() -> None:
    X = towns()
    rng = np.random.default_rng(1)
    queries = np.vstack([X[rng.choice(len(X), 200)], rng.uniform((0, 0), (10, 5), (200, 2))])
    truth = KERNEL.exact_sum(X, queries)
    plain = hs.release(X, kernel=KERNEL, bounds=BOX, method="grid", epsilon=0.2, insecure_noise_seed=1)
    errors = [np.abs(each.sum(queries) - truth).mean() for each in (released(X, epsilon=0.2), plain)]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_planned_error_is_near_the_measured_one(epsilon: float) -> None:
    X = towns()
    kernel = hs.GaussianKernel(dim=2, bandwidth=0.3)
    queries = X[np.random.default_rng(2).choice(len(X), 200)]
    truth = kernel.exact_sum(X, queries) / len(X)
    found = np.mean(
        [
            np.abs(
                adaptive_grid(X, kernel, bounds=BOX, epsilon=epsilon, insecure_noise_seed=seed)(queries)
                - truth
            ).mean()
            for seed in range(3)
        ]
    )
    planned = hs.plan(
        records=len(X), kernel=kernel, bounds=BOX, epsilon=epsilon, method="adaptive_grid",
        density=float(truth.mean()), comparison=False,
    )  # fmt: skip
    # The noise of as many leaves as there are records for would be 0.2 to 0.4 times.
    assert 0.5 < found / planned.best.error < 2.0


def test_intervals_hold() -> None:
    held = []
    for seed in range(4):
        X = towns(seed=seed)
        queries = np.random.default_rng(seed).uniform((0, 0), (10, 5), (300, 2))
        queries[:150] = X[:150]
        truth = KERNEL.exact_sum(X, queries)
        for of, scale in (("sum", 1.0), ("mean", len(X))):
            answers = released(X, seed=seed).query(queries, of=of)
            held.append(np.mean((answers.lower <= truth / scale) & (truth / scale <= answers.upper)))
    assert np.mean(held) > 0.9


def test_a_lattice_is_answered_as_its_points_are() -> None:
    f = released(towns(2000))
    across, up = np.linspace(0, 10, 20), np.linspace(0, 5, 9)
    points = np.stack([each.ravel() for each in np.meshgrid(across, up)], axis=1)
    together, single = f.query(points), f.query(points[[7]])
    assert together.value[7] == pytest.approx(single.value[0])
    assert together.stderr[7] == pytest.approx(single.stderr[0])
    assert f.nonnegative() is f
    wide = f.with_kernel(hs.LaplacianKernel(dim=2, bandwidth=1.0))
    assert wide.sum(points).min() >= 0.0


@pytest.mark.parametrize("records", [1, 300])
def test_few_records_and_wide_bandwidths(records: int) -> None:
    for bandwidth in (0.001, 0.5, 100.0):
        kernel = hs.GaussianKernel(dim=2, bandwidth=bandwidth)
        f = adaptive_grid(np.full((records, 2), 2.0), kernel, bounds=BOX, epsilon=0.1, insecure_noise_seed=1)
        assert np.isfinite(f.query([[2.0, 2.0]]).upper).all()


def test_refusals() -> None:
    with pytest.raises(ClaimError, match="no delta"):
        released(towns(100), delta=1e-6)
    with pytest.raises(UsageError, match="one product"):
        adaptive_grid(towns(100), hs.MaternKernel(dim=2, bandwidth=1.0), bounds=BOX, epsilon=1.0)
