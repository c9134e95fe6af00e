"""Modes of a mixture whose modes are known, by every method; and the searches on functions without noise.

Noise is drawn afresh in every run. At ε = 1 on 30,000 records it moves a mode by about 0.01; tolerances are
ten times that, which a sound build exceeds in fewer than one run of 10⁶.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import HashPartitions
from hushsum.models import PrivateModes, load_model, spread_points
from hushsum.models._modes import HeldOut, Partitions, climb, distinct_modes, intersect, separated, solve
from hushsum.releases import TableFunction

Floats = NDArray[np.float64]

CENTRES = np.array([(-0.5, -0.5), (0.5, -0.5), (0.0, 0.5)])
LOW, HIGH = -np.ones(2), np.ones(2)


def mixture(each: int = 10_000) -> Floats:
    random = np.random.default_rng(5)
    return np.concatenate([centre + 0.1 * random.standard_normal((each, 2)) for centre in CENTRES])


def bumps(points: Floats) -> Floats:
    """A smooth function with three modes, without noise."""
    squared = ((points[:, None] - CENTRES) ** 2).sum(axis=2)
    total: Floats = (np.array([1.0, 0.8, 0.6]) * np.exp(-squared / 0.05)).sum(axis=1)
    return total


def furthest(found: Floats) -> float:
    """How far the centre is that was found worst."""
    distances = np.linalg.norm(found[:, None] - CENTRES, axis=2)
    return float(distances.min(axis=0).max())


@pytest.mark.parametrize(
    ("method", "kernel", "bandwidth", "tolerance"),
    [
        ("search", "euclidean", 0.4, 0.15),
        ("intersection", "euclidean", 0.4, 0.15),
        ("search", "manhattan", 0.4, 0.2),
        ("search", "gaussian", 0.15, 0.03),
    ],
)
def test_all_modes_are_found(method: str, kernel: str, bandwidth: float, tolerance: float) -> None:
    model = PrivateModes(method=method, kernel=kernel, bandwidth=bandwidth, random_state=3).fit(mixture())
    assert model.release().n_modes_ == 3
    assert furthest(model.modes_) < tolerance
    assert (np.diff(model.heights_) <= 0.0).all()
    labels = model.predict(CENTRES)
    assert sorted(labels.tolist()) == [0, 1, 2]
    assert model.predict(CENTRES + 0.05).tolist() == labels.tolist()


def test_the_linear_program_finds_a_single_mode() -> None:
    """With one cluster every row's fullest cell holds it."""
    X = np.random.default_rng(1).normal([0.3, -0.2], 0.08, (20_000, 2))
    model = PrivateModes(method="linear-program", bandwidth=0.3, n_modes=1, random_state=3).fit(X)
    assert np.abs(model.modes_[0] - [0.3, -0.2]).max() < 0.15


def test_held_out_heights_have_valid_errors() -> None:
    """The exact mean kernel value lies within six stated errors, with 250 held-out rows."""
    X = mixture()
    model = PrivateModes(bandwidth=0.4, random_state=3).fit(X)
    exact = model.function_.kernel.exact_sum(X, model.modes_) / len(X)
    assert model.height_errors_ is not None
    assert (np.abs(model.heights_ - exact) < 6.0 * model.height_errors_).all()
    assert (model.height_errors_ < 0.1 * exact).all()


def test_rows_are_held_out_of_the_search() -> None:
    f = hs.race(hs.EuclideanKernel(dim=2, bandwidth=0.4), rows=200, seed=1).add(mixture(100))
    whole: Any = f.release(epsilon=5.0, rows=200)
    split = HeldOut.of(whole, 0.25)
    assert isinstance(split.searched, TableFunction)
    assert (split.searched.rows, split.rows) == (150, 50)
    np.testing.assert_array_equal(split.searched.table, whole.table[:150])
    queries = spread_points(LOW, HIGH, 20, 0)
    heights, errors = split.heights(queries)
    # The two parts of the rows make the whole again.
    joined = 0.75 * split.searched.sum(queries) + 0.25 * heights * whole.count
    np.testing.assert_allclose(joined, whole.sum(queries), atol=0.05 * whole.count)
    assert (errors > 0.0).all()
    assert HeldOut.of(whole, 0.0).rows == 0


def test_a_release_of_few_rows_holds_none_out() -> None:
    model = PrivateModes(random_state=0).fit(mixture(20))
    assert model.height_errors_ is None
    assert model.n_modes_ >= 1


def test_modes_are_there_only_after_the_release_and_survive_a_file() -> None:
    model = PrivateModes(random_state=0).partial_fit(mixture(500))
    with pytest.raises(ValueError, match="released nothing yet"):
        _ = model.modes_
    model.release()
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    again: Any = load_model(buffer)
    np.testing.assert_array_equal(again.modes_, model.modes_)
    np.testing.assert_array_equal(again.heights_, model.heights_)
    assert again.claim_ == model.claim_


def test_at_most_n_modes() -> None:
    model = PrivateModes(bandwidth=0.4, n_modes=2, random_state=3).fit(mixture())
    assert model.n_modes_ == 2


@pytest.mark.parametrize(
    "parameters",
    [
        {"method": "gradient"},
        {"holdout": 1.0},
        {"n_modes": 0},
        {"prominence": -1.0},
        {"kernel": "hamming"},
        {"kernel": "jaccard"},
        {"kernel": "angular", "method": "intersection"},
        {"kernel": "gaussian", "method": "linear-program"},
    ],
)
def test_wrong_parameters_are_refused_before_anything_is_counted(parameters: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PrivateModes(**parameters).fit(mixture(10))


def test_climbing_reaches_the_maxima() -> None:
    cloud = spread_points(LOW, HIGH, 512, 0)
    starts = cloud[separated(cloud, bumps(cloud), 0.3, 8)]
    points, values = climb(bumps, starts, LOW, HIGH, step=0.2, seed=0)
    np.testing.assert_allclose(values, bumps(points))
    assert (values >= bumps(starts)).all()
    kept = distinct_modes(
        bumps, points, values, distance=0.1, prominence=np.full(len(points), 0.1), most=None
    )
    assert furthest(points[kept]) < 0.01
    assert len(kept) == 3
    np.testing.assert_allclose(values[kept], [1.0, 0.8, 0.6], atol=0.01)


def test_separated_points_keep_their_distance_and_order() -> None:
    points = spread_points(LOW, HIGH, 256, 1)
    kept = separated(points, bumps(points), 0.4, 100)
    values = bumps(points)[kept]
    assert (np.diff(values) <= 0.0).all()
    assert kept[0] == bumps(points).argmax()
    gaps = np.linalg.norm(points[kept][:, None] - points[kept], axis=2)
    assert gaps[~np.eye(len(kept), dtype=bool)].min() >= 0.4


def test_a_shoulder_is_no_mode_of_its_own() -> None:
    ramp = np.array([[0.0, 0.0], [0.4, 0.0]])

    def cone(points: Floats) -> Floats:
        height: Floats = 1.0 - np.linalg.norm(points, axis=1)
        return height

    kept = distinct_modes(cone, ramp, cone(ramp), distance=0.1, prominence=np.full(2, 0.05), most=None)
    assert kept.tolist() == [0]


@pytest.mark.parametrize("kernel", [hs.EuclideanKernel, hs.ManhattanKernel])
@pytest.mark.parametrize("power", [1, 3])
def test_slabs_are_the_cells_of_the_hash(kernel: Any, power: int) -> None:
    """Two points share a cell of a wide table just when they share all slabs of the row."""
    made = kernel(dim=2, bandwidth=0.5, power=power)
    tally = hs.race(made, rows=30, width=100_000, seed=9, bounds=(-1, 3))
    basis: Any = tally.basis
    points = spread_points(-np.ones(2), 3 * np.ones(2), 64, 2)
    cells = basis.cells(basis.prepare_queries(points))
    slabs = np.floor(HashPartitions.of(made, rows=30, seed=9).positions(points - basis.bounds.centre))
    same_cell = cells[:, None] == cells[None]
    same_slab = (slabs[:, None] == slabs[None]).all(axis=3)
    assert (same_slab <= same_cell).mean() > 0.999
    # Different slabs fold into one of 100,000 cells once in as many pairs.
    assert (same_cell == same_slab).mean() > 0.999


def test_partitions_without_noise_give_the_mode() -> None:
    """Both methods on a table whose noise is negligible."""
    X = np.random.default_rng(0).normal([0.25, -0.4], 0.05, (3000, 2))
    f: Any = hs.race(hs.EuclideanKernel(dim=2, bandwidth=0.4), rows=200, bounds=(-1, 1)).add(X)
    f = f.release(epsilon=1e4, rows=200)
    parts = Partitions.of(f, LOW, HIGH)
    (narrowed,) = intersect(parts, np.array([[0.1, -0.2]]), reach=0.4, size=0.02, seed=0)
    np.testing.assert_allclose(narrowed, [0.25, -0.4], atol=0.06)
    (solved,) = solve(parts, most=1, seed=0)
    np.testing.assert_allclose(solved, [0.25, -0.4], atol=0.1)
