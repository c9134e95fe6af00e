from __future__ import annotations

import math

import numpy as np
import pytest

from hushsum.errors import SuspiciousParameter, UsageError
from hushsum.kernels import named
from hushsum.plotting import LocalScale

EARTH = 6_371_008.8


def great_circle(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Metres between two places on a sphere, by the haversine formula: right to half a per cent."""
    (x, y), (p, q) = (np.radians(each) for each in (one, other))
    inside = math.sin((q - y) / 2) ** 2 + math.cos(y) * math.cos(q) * math.sin((p - x) / 2) ** 2
    return 2 * EARTH * math.asin(math.sqrt(inside))


@pytest.mark.parametrize("south", [-60.0, -33.9, 0.0, 40.5, 59.0, 69.0])
def test_distances_in_a_city_are_those_on_the_globe(south: float) -> None:
    box = [(10.0, 10.6), (south, south + 0.4)]
    scale = LocalScale.of(box)
    rng = np.random.default_rng(1)
    for _ in range(50):
        places = rng.uniform([10.0, south], [10.6, south + 0.4], size=(2, 2))
        away = (places[1] - places[0]) * (scale.longitude, scale.latitude)
        exact = great_circle(tuple(places[0]), tuple(places[1]))
        assert math.hypot(*away) == pytest.approx(exact, rel=scale.stretch + 0.006)


def test_lengths_of_a_degree() -> None:
    # Of WGS 84, from tables of geodesy.
    equator = LocalScale.of([(0, 1), (-0.5, 0.5)])
    assert equator.longitude == pytest.approx(111_319.5, abs=1.0)
    assert equator.latitude == pytest.approx(110_574.3, abs=1.0)
    north = LocalScale.of([(0, 1), (59.5, 60.5)])
    assert north.longitude == pytest.approx(55_800.0, abs=5.0)
    assert north.latitude == pytest.approx(111_412.3, abs=2.0)


def test_the_kernel_is_a_gaussian_of_metres() -> None:
    scale = LocalScale.of([(2.0, 2.7), (48.6, 49.1)])
    centre = [2.3, 48.8]
    kernel = named(scale.expression(500.0), dim=2)
    east = [centre[0] + 500.0 / scale.longitude, centre[1]]
    north = [centre[0], centre[1] + 500.0 / scale.latitude]
    for place in (east, north):
        assert kernel.similarity([centre], [place])[0, 0] == pytest.approx(math.exp(-0.5), abs=1e-3)


def test_boxes_that_are_not_on_the_globe_are_refused() -> None:
    for box in ([(48.0, 49.0), (2.0, 95.0)], [(-400.0, 0.0), (0.0, 1.0)], [(0.0, 1.0), (-90.0, 0.0)]):
        with pytest.raises(UsageError, match="longitudes from -180 to 180"):
            LocalScale.of(box)
    with pytest.raises(UsageError, match="about equally long"):
        LocalScale.of([(0.0, 1.0), (0.0, 80.0)])


def test_tall_boxes_are_warned_of() -> None:
    scale = LocalScale.of([(0.0, 10.0), (45.0, 55.0)])
    with pytest.warns(SuspiciousParameter, match="off by up to 1"):
        scale.warn()
    LocalScale.of([(2.0, 2.7), (48.6, 49.1)]).warn()
