"""Factors of nodes against the least-squares problem that they solve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushsum.tables._grid import column_factors, inner_products, spline_values


def _slow_factors(degree: int, scale: float, gaussian: bool, query: float) -> dict[int, float]:
    """The normal equations of least squares on 81 nodes around a query, with quadrature in every cell."""
    nodes = np.arange(-40, 41)
    gram = np.zeros((81, 81))
    for offset, value in zip(range(-degree, degree + 1), inner_products(degree), strict=True):
        gram += np.diag(np.full(81 - abs(offset), value), offset)
    points, weights = np.polynomial.legendre.leggauss(24)
    right = np.zeros(81)
    first = (degree - 1) / 2
    # The corner of an exponential is an end of the pieces that are integrated.
    corner = (query + first) % 1.0
    for low, high in ((0.0, corner), (corner, 1.0)):
        inside = low + (high - low) * (points + 1) / 2
        values = spline_values(degree, inside) * weights[:, None] * (high - low) / 2
        for cell in range(-60, 61):
            away = np.abs(cell - first + inside - query) / scale
            shape = np.exp(-0.5 * away**2) if gaussian else np.exp(-away)
            for j in range(degree + 1):
                node = cell - round(2 * first) + j
                if -40 <= node <= 40:
                    right[node + 40] += (values[:, j] * shape).sum()
    found = np.linalg.solve(gram, right)
    return {int(node): float(value) for node, value in zip(nodes, found, strict=True)}


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
@pytest.mark.parametrize(("scale", "gaussian"), [(1.0, True), (1.6, True), (3.0, False), (0.8, False)])
def test_factors_solve_the_normal_equations(degree: int, scale: float, gaussian: bool) -> None:
    factors = column_factors(degree, scale, gaussian)
    query = 0.3
    expected = _slow_factors(degree, scale, gaussian, query)
    tolerance = 2e-4 if gaussian else 2e-5
    first = (degree - 1) / 2
    for node in range(-8, 9):
        # Nodes of the oracle are those of cells, so that node 0 gives to cells from −first − ½ … on.
        place = node + round(2 * first) - first - (degree + 1) / 2 + 0.5 + (degree + 1) / 2 - 0.5
        found = float(factors.at(np.array([place - first - query]))[0])
        assert abs(found) < 2.0
        assert math.isfinite(expected[node])
        assert found == pytest.approx(expected[node], abs=tolerance)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("degree", [0, 2, 5])
def test_rows_and_mesh_are_the_same_factors(degree: int, gaussian: bool) -> None:
    factors = column_factors(degree, 2.0, gaussian)
    inside = np.linspace(0.0, 0.999, 37)
    nodes = np.arange(1 - factors.reach, factors.reach + 1)
    expected = factors.at(inside[:, None] - nodes)
    np.testing.assert_allclose(factors.around(inside), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("degree", "spacing", "largest"),
    [(2, 0.75, 7.0e-3), (3, 0.75, 2.5e-3), (4, 0.75, 1.0e-3), (5, 0.75, 5.6e-4), (5, 0.5, 1.8e-5)],
)
def test_the_largest_error_of_a_record_is_that_of_splines(
    degree: int, spacing: float, largest: float
) -> None:
    """Over all places of the record in a cell, and distances up to six deviations."""
    factors = column_factors(degree, 1.0 / spacing, True)
    distance = np.linspace(0.0, 6.0 / spacing, 400)
    errors = factors.read(np.linspace(0.0, 0.999, 50)[:, None], distance) - factors.shape(distance)
    assert np.abs(errors).max() == pytest.approx(largest, rel=0.05)
