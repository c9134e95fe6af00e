"""Cells, k-means and mixtures of them, and the number of clusters: post-processing of public values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from hushsum._types import Floats
from hushsum.analysis import (
    Cells,
    Mixture,
    cluster_cells,
    enough_cells,
    fit_mixture,
    nearest_centers,
    number_of_clusters,
    number_of_components,
    sizes_and_spread,
)

CENTRES = np.array([[-0.6, -0.5], [0.5, -0.4], [0.1, 0.6]])


def cells_around(width: float = 0.05, each: int = 12) -> Cells:
    rng = np.random.default_rng(3)
    means = np.concatenate([centre + width * rng.standard_normal((each, 2)) for centre in CENTRES])
    return Cells(np.full(len(means), 50.0), means, np.full(means.shape, width**2))


def in_order(centres: Floats) -> Floats:
    return centres[np.argsort(centres[:, 0])]


def test_nearest_centres_are_those_of_all_distances() -> None:
    rng = np.random.default_rng(0)
    points, centres = rng.normal(size=(300, 5)), rng.normal(size=(7, 5))
    square = np.square(points[:, None] - centres).sum(axis=2)
    nearest, found = nearest_centers(points, centres)
    np.testing.assert_array_equal(nearest, square.argmin(axis=1))
    np.testing.assert_allclose(found, square.min(axis=1))


def test_inertia_is_that_of_the_records_in_the_cells() -> None:
    rng = np.random.default_rng(1)
    groups = [rng.normal(centre, 0.01, (40, 2)) for centre in CENTRES]
    cells = Cells(
        np.full(3, 40.0),
        np.array([each.mean(axis=0) for each in groups]),
        np.array([each.var(axis=0) for each in groups]),
    )
    exact = sum(float(np.square(each - centre).sum()) for each, centre in zip(groups, CENTRES, strict=True))
    assert cells.inertia(CENTRES) == pytest.approx(exact)


def test_clusters_are_found_and_counted() -> None:
    cells = cells_around()
    centres = cluster_cells(cells, 3, seed=0)
    np.testing.assert_allclose(in_order(centres), in_order(CENTRES), atol=0.05)
    assert number_of_clusters(cells, 10, seed=0) == 3
    held, spread = sizes_and_spread(cells, centres)
    np.testing.assert_allclose(held, 600.0)
    assert (spread < 0.2).all()


def test_too_few_cells_are_cut_where_they_vary_most() -> None:
    cells = Cells(
        np.array([10.0, 10.0]), np.array([[0.0, 0.0], [5.0, 0.0]]), np.array([[4.0, 1.0], [1.0, 1.0]])
    )
    more = enough_cells(cells, 3)
    assert len(more) == 3
    assert more.total == pytest.approx(20.0)
    assert sorted(more.means[:, 0]) == pytest.approx([-1.6, 1.6, 5.0])
    assert len(cluster_cells(Cells(np.ones(1), np.zeros((1, 2)), np.zeros((1, 2))), 4, seed=0)) == 4


def test_a_mixture_of_fine_cells_is_that_of_the_records() -> None:
    rng = np.random.default_rng(2)
    records = np.concatenate([rng.multivariate_normal(c, [[0.02, 0.01], [0.01, 0.03]], 100) for c in CENTRES])
    cells = Cells(np.ones(len(records)), records, np.zeros(records.shape))
    found, value = fit_mixture(cells, 3, kind="full", seed=0)
    exact = GaussianMixture(3, random_state=0).fit(records)
    np.testing.assert_allclose(in_order(found.means), in_order(exact.means_), atol=0.02)
    assert value == pytest.approx(exact.score(records), abs=0.02)
    np.testing.assert_allclose(found.log_densities(records).mean(), value, atol=1e-4)
    probabilities = found.probabilities(records)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_noise_in_the_means_of_cells_makes_the_criterion_careful() -> None:
    cells = cells_around()
    noisy = Cells(cells.weights, cells.means, cells.variances, None, np.full(len(cells), 0.05**2))
    assert noisy.effective_total < 0.1 * cells.effective_total
    assert number_of_components(noisy, 4, kind="diag", seed=0) <= number_of_components(
        cells, 4, kind="diag", seed=0
    )


@pytest.mark.parametrize(("kind", "numbers"), [("full", 17), ("diag", 14), ("spherical", 11)])
def test_parameters_of_a_mixture(kind: str, numbers: int) -> None:
    law = Mixture(np.full(3, 1 / 3), CENTRES, np.tile(np.eye(2), (3, 1, 1)))
    assert law.parameters(kind) == numbers
    moved = law.in_units(np.array([2.0, 1.0]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(moved.means, CENTRES * [2.0, 1.0] + [1.0, 0.0])
    np.testing.assert_allclose(moved.covariances[0], np.diag([4.0, 1.0]))
